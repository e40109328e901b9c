"""The answer as a comment on GitHub: a stable marker, the verdict and steps open, the rest folded, never too long."""

import re

import pytest

from checker.rollout import Plan
from checker.rollout.output import markdown as module
from checker.rollout.output.markdown import LONGEST, MARKER, github_comment, sections, steps
from tests.support.rollout_runs import plan_of, unfinished


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
