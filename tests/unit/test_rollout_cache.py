"""The second question about the same files is answered at once, and only by the answer that belongs to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from checker.rollout import Engine, PlanRequest, plan, read_folder
from checker.rollout.output.cache import MOST, VARIABLE, AnswerCache, RenderedAnswer, rendered
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import RunSpec
from checker.scenario import bundled
from tests.support.command_line import Ended, cli

FOLDERS = bundled()[0].parent.parent / "rollouts"
REQUEST = PlanRequest(read_folder(FOLDERS / "three"), read_folder(FOLDERS / "four"))


def ended(spec: RunSpec, end: RunEnd = RunEnd.EXHAUSTED) -> RunResult:
    """Return a made-up run."""
    return RunResult(spec, SafetyVerdict.SAFE, end, 100, 10, 1.0, (), spec.name)


@pytest.fixture
def answer() -> RenderedAnswer:
    return rendered(plan(REQUEST, lambda spec, seconds: ended(spec)))


def ask(*words: object) -> Ended:
    """Ask the command about three and four servers."""
    return cli("rollout", "--from", FOLDERS / "three", "--to", FOLDERS / "four", *words)


def test_the_second_question_is_answered_without_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    first = ask()

    def no_run(*_: object) -> RunResult:
        raise AssertionError("a run is made")

    monkeypatch.setattr(Engine, "run", no_run)
    second = ask()
    assert (second.code, second.out) == (first.code, first.out) and first.code == 0
    with pytest.raises(AssertionError, match="a run is made"):
        ask("--no-cache")


@pytest.mark.parametrize("other", [replace(REQUEST, faults=0), replace(REQUEST, new=read_folder(FOLDERS / "five"))])
def test_another_question_is_not_answered(tmp_path: Path, answer: RenderedAnswer, other: PlanRequest) -> None:
    answers = AnswerCache(tmp_path)
    made = plan(REQUEST, lambda spec, seconds: ended(spec))
    answers.save(made, answer)
    assert answers.load(REQUEST) == answer
    assert answers.load(other) is None


def test_other_content_of_a_file_is_another_question(tmp_path: Path, answer: RenderedAnswer) -> None:
    answers = AnswerCache(tmp_path / "answers")
    folder = tmp_path / "new"
    folder.mkdir()
    text = (FOLDERS / "four" / "zoo.cfg").read_text(encoding="utf-8")
    requests = []
    for version in (text, text + "snapCount=7\n"):
        (folder / "zoo.cfg").write_text(version, encoding="utf-8")
        requests.append(replace(REQUEST, new=read_folder(folder)))
    answers.save(plan(requests[0], lambda spec, seconds: ended(spec)), answer)
    assert answers.load(requests[0]) == answer
    assert answers.load(requests[1]) is None


def test_a_damaged_answer_is_passed_over(tmp_path: Path, answer: RenderedAnswer) -> None:
    answers = AnswerCache(tmp_path)
    answers.save(plan(REQUEST, lambda spec, seconds: ended(spec)), answer)
    (kept,) = tmp_path.glob("*.json")
    for damaged in ("", "[]", '{"brief": "x"}'):
        kept.write_text(damaged, encoding="utf-8")
        assert answers.load(REQUEST) is None


def test_an_answer_that_depends_on_the_memory_of_the_machine_is_not_kept(
    tmp_path: Path, answer: RenderedAnswer
) -> None:
    answers = AnswerCache(tmp_path)
    answers.save(plan(REQUEST, lambda spec, seconds: ended(spec, RunEnd.MEMORY)), answer)
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_answers_go_first(tmp_path: Path, answer: RenderedAnswer) -> None:
    for number in range(MOST + 5):
        (tmp_path / f"{number}.json").write_text("{}", encoding="utf-8")
    AnswerCache(tmp_path).save(plan(REQUEST, lambda spec, seconds: ended(spec)), answer)
    assert len(list(tmp_path.glob("*.json"))) == MOST


def test_no_answer_is_kept_where_the_folder_cannot_be_written(tmp_path: Path, answer: RenderedAnswer) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    answers = AnswerCache(tmp_path / "file" / "answers")
    answers.save(plan(REQUEST, lambda spec, seconds: ended(spec)), answer)
    assert answers.load(REQUEST) is None
