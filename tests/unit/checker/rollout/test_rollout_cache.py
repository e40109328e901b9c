"""The second question about the same files is answered at once, and only by the answer that belongs to it."""

import json
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from checker import source
from checker.rollout import Engine, PlanRequest, plan
from checker.rollout.orders import Way
from checker.rollout.output.cache import MOST, VARIABLE, AnswerCache, RenderedAnswer, rendered
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict, Work
from checker.rollout.scenarios import RunSpec
from checker.source import ProgramSource
from tests.support.command_line import Ended, cli
from tests.support.rollout_runs import FOLDERS, edited, shipped

REQUEST = PlanRequest(shipped("three"), shipped("four"))


def ended(spec: RunSpec, end: RunEnd = RunEnd.EXHAUSTED) -> RunResult:
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


@pytest.mark.parametrize("other", [replace(REQUEST, faults=0), replace(REQUEST, new=shipped("five"))])
def test_another_question_is_not_answered(tmp_path: Path, answer: RenderedAnswer, other: PlanRequest) -> None:
    answers = AnswerCache(tmp_path)
    made = plan(REQUEST, lambda spec, seconds: ended(spec))
    answers.save(made, answer)
    assert answers.load(REQUEST) == answer
    assert answers.load(other) is None


def test_other_content_of_a_file_is_another_question(tmp_path: Path, answer: RenderedAnswer) -> None:
    answers = AnswerCache(tmp_path / "answers")
    versions = (edited(tmp_path / "new", "four", more=more) for more in ("", "snapCount=7\n"))
    requests = [replace(REQUEST, new=version) for version in versions]
    answers.save(plan(requests[0], lambda spec, seconds: ended(spec)), answer)
    assert answers.load(requests[0]) == answer
    assert answers.load(requests[1]) is None


def test_a_damaged_answer_is_passed_over(tmp_path: Path, answer: RenderedAnswer) -> None:
    answers = AnswerCache(tmp_path)
    answers.save(plan(REQUEST, lambda spec, seconds: ended(spec)), answer)
    (kept,) = tmp_path.glob("*.json")
    good = json.loads(kept.read_text(encoding="utf-8"))
    wrong = [{**good, "brief": 7}, {**good, "data": []}, {**good, "data": {}}, {**good, "exit_code": "0"}]
    wrong += [{**good, "exit_code": 12}, {**good, "pictures": [1]}, {**good, "data": {**good["data"], "verdict": 1}}]
    for damaged in ("", "[]", '{"brief": "x"}', "[" * 200_000, '{"data":' * 9_999, *map(json.dumps, wrong)):
        kept.write_text(damaged, encoding="utf-8")
        assert answers.load(REQUEST) is None
    kept.write_text(json.dumps(good), encoding="utf-8")
    assert answers.load(REQUEST) == answer


def test_an_answer_that_depends_on_the_memory_of_the_machine_is_not_kept(
    tmp_path: Path, answer: RenderedAnswer
) -> None:
    answers = AnswerCache(tmp_path)
    answers.save(plan(REQUEST, lambda spec, seconds: ended(spec, RunEnd.MEMORY)), answer)
    assert list(tmp_path.iterdir()) == []


def test_an_answer_is_not_kept_if_the_memory_ended_a_run_that_it_does_not_show(
    tmp_path: Path, answer: RenderedAnswer
) -> None:
    """Runs of trials that the search throws away, and of ways of working, have an effect on the plan as well."""
    made = plan(REQUEST, lambda spec, seconds: ended(spec))
    made.depends_on_memory = True
    AnswerCache(tmp_path).save(made, answer)
    assert list(tmp_path.iterdir()) == []

    def first_fills_memory(spec: RunSpec, _: float, seen: list[RunSpec] = []) -> RunResult:  # noqa: B006
        seen.append(spec)
        return ended(spec, RunEnd.MEMORY if len(seen) == 1 else RunEnd.EXHAUSTED)

    work = Work(first_fills_memory, 60.0)
    first = made.direct.runs[0].spec
    ends = [work.ask(spec).end for spec in (first, replace(first, elections=1))]
    assert ends == [RunEnd.MEMORY, RunEnd.EXHAUSTED] and work.filled_memory


def test_an_answer_of_runs_for_other_ways_is_not_kept_if_the_memory_ended_one(
    tmp_path: Path, answer: RenderedAnswer
) -> None:
    """From three to five the ways of working are explored; their runs are not among those of the plan."""

    def by_way(spec: RunSpec, _: float) -> RunResult:
        return ended(spec, RunEnd.MEMORY if spec.way is Way.PARALLEL else RunEnd.EXHAUSTED)

    made = plan(replace(REQUEST, new=shipped("five")), by_way)
    assert made.depends_on_memory and all(result.end is not RunEnd.MEMORY for result in made.runs)
    AnswerCache(tmp_path).save(made, answer)
    assert list(tmp_path.iterdir()) == []


# The program that answers.


def test_a_process_whose_source_has_changed_reads_and_keeps_nothing(tmp_path: Path, answer: RenderedAnswer) -> None:
    """After a `git pull` the loaded program is the old one, and the files are those of the new one."""
    program = tmp_path / "program"
    program.mkdir()
    (program / "a.py").write_text("a = 1\n")
    old = ProgramSource([program])
    made, kept = plan(REQUEST, lambda spec, seconds: ended(spec)), tmp_path / "answers"
    AnswerCache(kept, old).save(made, answer)
    assert AnswerCache(kept, old).load(REQUEST) == answer
    (program / "a.py").write_text("a = 22\n")
    assert AnswerCache(kept, old).load(REQUEST) is None
    for file in kept.iterdir():
        file.unlink()
    AnswerCache(kept, old).save(made, answer)
    assert list(kept.iterdir()) == []
    new = ProgramSource([program])
    assert AnswerCache(kept, new).load(REQUEST) is None and new.digest() not in (None, old.digest())


def test_a_file_of_the_source_that_goes_makes_nothing_fail(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    source = ProgramSource([tmp_path])
    (tmp_path / "a.py").unlink()
    assert source.digest() is None


def test_the_digest_has_the_versions_of_python_and_of_the_solvers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "version", lambda name: "1")
    one = ProgramSource([tmp_path]).digest()
    for changed in ("z3-solver", "numba"):
        monkeypatch.setattr(source, "version", lambda name, changed=changed: "2" if name == changed else "1")
        assert ProgramSource([tmp_path]).digest() != one
    monkeypatch.setattr(source, "version", lambda name: "1")
    monkeypatch.setattr(source.platform, "python_version", lambda: "3.99")
    assert ProgramSource([tmp_path]).digest() != one


def test_the_source_is_looked_at_before_the_planner_is_loaded() -> None:
    """The commands import the planner when they run, and the source with the command line."""
    script = "import sys; import checker.cli.main; print([name in sys.modules for name in sys.argv[1:]])"
    command = [sys.executable, "-c", script, "checker.source", "checker.rollout", "checker.planner_page"]
    ended = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    assert ended.stdout.strip() == "[True, False, False]"


# Files that others can write, or that none can.


def test_answers_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: RenderedAnswer) -> None:
    made = plan(REQUEST, lambda spec, seconds: ended(spec))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "quorate" / "answers"
    folder.mkdir(parents=True, mode=0o755)
    AnswerCache.of_user().save(made, answer)
    (kept,) = folder.iterdir()
    assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)
    AnswerCache(tmp_path / "other").save(made, answer)
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o700


def test_without_a_home_directory_no_answer_is_kept(monkeypatch: pytest.MonkeyPatch, answer: RenderedAnswer) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in (VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    answers = AnswerCache.of_user()
    answers.save(plan(REQUEST, lambda spec, seconds: ended(spec)), answer)
    assert answers.load(REQUEST) is None


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
