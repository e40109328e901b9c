"""The answer as a comment on GitHub: a stable marker, the verdict and steps open, the rest folded, never too long."""

import re
from pathlib import Path

import pytest

from checker.rollout import Plan
from checker.rollout.output import markdown as module
from checker.rollout.output.markdown import LONGEST, MARKER, github_comment, sections, steps
from tests.support.command_line import cli
from tests.support.rollout_runs import FOLDERS, SAMPLES, plan_of, unfinished


@pytest.fixture(scope="module")
def made() -> Plan:
    """A plan in two stages, whose unfinished no engine made."""

    return plan_of("three", "five", unfinished)


def folded(text: str) -> list[str]:
    return re.findall(r"^<summary>(.*)</summary>$", text, re.MULTILINE)


def test_the_marker_is_the_first_line_and_hidden(made: Plan) -> None:
    first, blank, *_ = github_comment(made).splitlines()
    assert (first, blank) == (MARKER, "") and first.startswith("<!--") and first.endswith("-->")


def test_the_verdict_and_the_steps_are_open_and_every_other_section_is_folded(made: Plan) -> None:
    text = github_comment(made)
    opened = re.sub(r"<details>.*?\n</details>", "", text, flags=re.DOTALL)
    shown = sections(made, traces=True)
    assert f"#{shown[0].heading}" in opened
    assert "\n".join(steps(made)[0]) in opened
    evidence = [each.heading.lstrip("# ") for each in shown if each.evidence]
    assert [each for each in folded(text) if each != "The whole run"] == evidence and evidence
    assert text.count("<details>") == text.count("</details>")


def test_nothing_is_left_out_of_a_short_answer(made: Plan) -> None:
    text = github_comment(made)
    assert len(text) < LONGEST
    for section in sections(made, traces=True):
        assert "\n".join(section.lines) in text


def test_the_largest_folded_sections_are_left_out_first_and_the_steps_stay(
    made: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = github_comment(made)
    monkeypatch.setattr(module, "LONGEST", len(whole) - 1)
    text = github_comment(made)
    assert len(text) < len(whole) - 1
    assert text.count(module.LEFT_OUT) == 1
    assert "\n".join(steps(made)[0]) in text
    assert folded(text) == folded(whole)


def test_a_comment_is_cut_off_if_nothing_else_makes_it_short(made: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 1000)
    text = github_comment(made)
    assert len(text) < 1000
    assert text.startswith(MARKER) and text.endswith(module.CUT)


def test_the_command_writes_it_to_standard_output_and_to_a_file(tmp_path: Path) -> None:
    both = ("--from", FOLDERS / "three", "--to", FOLDERS / "three")
    ended = cli("rollout", *both, "--format", "github-comment", "--output", tmp_path / "comment.md")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"{MARKER}\n\n## There is nothing to do: ")
    assert (tmp_path / "comment.md").read_text(encoding="utf-8") == ended.out


def test_two_forms_at_once_are_a_bad_command_line() -> None:
    both = ("--from", FOLDERS / "three", "--to", FOLDERS / "three")
    ended = cli("rollout", *both, "--json", "--format", "github-comment")
    assert ended.code == 2


def test_rendered_manifests_are_judged_from_the_command_line() -> None:
    ended = cli("rollout", "--from", SAMPLES / "bitnami-3.yaml", "--to", SAMPLES / "bitnami-3.yaml")
    assert (ended.code, ended.err) == (0, "")
    assert "replicas is 3; the image bitnami/zookeeper: ids and addresses" in ended.out
    assert "way of working: all new pods start at once (podManagementPolicy Parallel)" in ended.out


def test_a_bad_input_ends_with_151_and_one_message(tmp_path: Path) -> None:
    text = (SAMPLES / "bitnami-3.yaml").read_text()
    (tmp_path / "new.yaml").write_text(text.replace("replicas: 3", "replicas: three"))
    ended = cli("rollout", "--from", SAMPLES / "bitnami-3.yaml", "--to", tmp_path / "new.yaml")
    assert (ended.code, ended.out) == (151, "")
    assert f"{tmp_path}/new.yaml:11: spec.replicas: 'three' is not a number; write" in ended.err


def test_an_operator_that_makes_the_change_itself_is_named(tmp_path: Path) -> None:
    five = (SAMPLES / "strimzi.yaml").read_text().replace("zookeeper:\n    replicas: 3", "zookeeper:\n    replicas: 4")
    (tmp_path / "kafka.yaml").write_text(five)
    ended = cli("rollout", "--from", SAMPLES / "strimzi.yaml", "--to", tmp_path / "kafka.yaml", "--budget", "3s")
    assert ended.code in (0, 20), ended.err
    assert "**Strimzi makes this change itself**, by `reconfig`" in ended.out
