"""The budget of a command: the shares of its runs; a run that it ends is neither a success nor a failure.

The sharing of time is computed on a clock that the test controls. The reports are checked on scenarios of five servers,
message by message, whose space no machine exhausts in a second.
"""

import json
import time
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from checker.cli.main import COMMANDS
from checker.cli.runner import outcome_of, share
from checker.cli.sources import load_request
from checker.command import command_parser
from checker.execution import Deadline
from tests.support.command_line import cli, zoo_cfg
from tests.support.gate import LARGE, NEVER, SERVERS, at, check_junit, check_sarif, commands, load_kernels, on_own_time

SETTLES = f"{SERVERS}sometimes: [AllSettled]\n"


class Clock:
    """A clock that advances only when work is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def shared(seconds: float, *needs: float) -> tuple[list[float | None], float]:
    """Return the length of each run's last attempt (None: never begun), and the total; `needs` are full lengths."""
    clock = Clock()
    budget = Deadline(seconds, clock)

    def run(need: float, part: float, earlier: float | None) -> float:
        assert earlier is None or part > earlier
        clock.now += min(need, part)
        return min(need, part)

    results = share(budget, needs, run, lambda took: took not in needs)
    return [results.get(place) for place in range(len(needs))], clock.now


@pytest.mark.parametrize("needs", [(100, 1, 1, 1, 1), (1, 1, 100, 1, 1), (1, 1, 1, 1, 100)])
def test_small_runs_have_what_they_need_and_a_large_one_most_of_the_rest(needs: tuple[float, ...]) -> None:
    """Of 60, four runs need 1. The large one has 56 if it is last; otherwise its first attempt costs a part of that."""
    had, took = shared(60, *needs)

    assert [had[place] for place, need in enumerate(needs) if need == 1] == [1, 1, 1, 1]
    assert had[needs.index(100)] >= 56 / 2
    assert took <= 60


def test_large_runs_share_alike_and_nothing_is_tried_again_for_little() -> None:
    assert shared(60, 100, 100, 100) == ([20, 20, 20], 60)


@pytest.mark.parametrize("needs", [(7, 50, 3), (50, 50, 1, 1), (0.1,) * 50, (100,), (9, 8, 7, 6, 5, 4)])
def test_runs_never_take_longer_than_the_budget_together(needs: tuple[float, ...]) -> None:
    had, took = shared(12, *needs)

    assert None not in had
    assert took <= 12 + 1e-9


def test_nothing_begins_when_the_time_is_over() -> None:
    clock = Clock()
    budget = Deadline(10, clock)
    clock.now = 10

    assert share(budget, [1, 2], lambda *_: 1, lambda _: False) == {}


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels are compiled before a budget of seconds begins, regardless of the speed of the machine."""
    load_kernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(autouse=True)
def own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a budget of seconds would otherwise end before its runs begin."""
    on_own_time(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Scenarios of all kinds, next to their zoo.cfg files."""
    for servers in (3, 5):
        (tmp_path / f"zoo-{servers}.cfg").write_text(zoo_cfg(*range(1, servers + 1)))
    texts = {
        "settles": f"{SETTLES}expect: passed\n",
        "large": f"name: large\n{LARGE}expect: passed\n",
        "hidden": f"name: hidden\n{LARGE}expect: violated\n",
        "violated": f"{SERVERS}{NEVER}",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_what_the_budget_ends_is_undecided_and_nowhere_a_success(folder: Path) -> None:
    """This includes a run that expects a violation which was not found in time."""
    words = ("--budget", "2s", "--junit", "j.xml", "--sarif", "s.sarif", "--report", "r.json", "--github")
    with at(folder, GITHUB_STEP_SUMMARY=str(folder / "summary.md")):
        began = time.monotonic()
        ended = cli("run", "settles.yaml", "large.yaml", "hidden.yaml", *words)
        took = time.monotonic() - began
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    report = json.loads((folder / "r.json").read_text())

    assert ended.code == report["exit_code"] == 0
    assert took < 5
    for name, verdict in (("large", "passed"), ("hidden", "violated")):
        (line,) = [line for line in lines if line.endswith(f"incomplete (undecided, expected: {verdict})")]
        assert line.startswith(name)
    assert "3 runs, 1 as expected, 2 undecided within the budget" in lines
    for run in report["runs"][1:]:
        assert (run["verdict"], run["as_expected"], run["undecided"]) == ("incomplete", None, True)
        assert not run["search"]["exhausted"]
        seen = f"{run['search']['states']:,} states, to depth {run['search']['depth']}"
        assert run["sentence"] == f"incomplete: no violation within the budget: {seen}"
        assert run["search"]["states"] > 1
    everything = "".join(each.read_text() for each in folder.iterdir() if each.suffix in (".xml", ".sarif", ".md"))
    assert (everything + ended.out).count("exhausted") == 1  # the end of the run that passed, in its suite
    assert [len(case) for case in Tree.parse(folder / "j.xml").iter("testcase")] == [0, 1, 1]
    assert [case[0].tag for case in Tree.parse(folder / "j.xml").iter("testcase") if len(case)] == ["skipped"] * 2
    (sarif,) = json.loads((folder / "s.sarif").read_text())["runs"]
    check_sarif(json.loads((folder / "s.sarif").read_text()))
    check_junit(folder / "j.xml")
    assert sarif["results"] == []
    assert [note["level"] for note in sarif["invocations"][0]["toolExecutionNotifications"]] == ["warning"] * 2
    assert [(each.level, each.properties["title"]) for each in commands(ended.out)] == [
        ("warning", "undecided: large"),
        ("warning", "undecided: hidden"),
    ]


def test_a_violation_that_the_budget_leaves_time_for_has_its_code(folder: Path) -> None:
    with at(folder):
        ended = cli("run", "large.yaml", "violated.yaml", "--budget", "1s", "--format", "none")

    assert ended.code == 12
    assert "2 runs, 0 as expected, 1 undecided within the budget" in ended.out


def test_20_where_a_run_was_never_begun(folder: Path) -> None:
    """Reading the scenario alone takes longer than this budget."""
    with at(folder):
        ended = cli("run", "settles.yaml", "--budget", "0.0001s")

    assert ended.code == 20
    assert ended.out.startswith("incomplete: it was not begun before the end of the budget")


def test_20_where_the_time_is_a_limit_of_the_run_and_not_the_budget(folder: Path) -> None:
    """`--time` applies to each run: a run must end within it."""
    with at(folder):
        ended = cli("run", "large.yaml", "--time", "0.2s", "--budget", "60s")
        alone = cli("run", "large.yaml", "--verdict", "--budget", "1s")

    assert (ended.code, alone.code) == (20, 20)
    assert ended.out.startswith("incomplete: the time given (0.2 s) ended the search; ")
    assert alone.out.startswith("incomplete: no violation within the budget: ")


def test_both_engines_together_have_the_time_that_is_left(folder: Path) -> None:
    with at(folder):
        began = time.monotonic()
        ended = cli("run", "large.yaml", "--engine", "both", "--budget", "1s")

    assert (ended.code, time.monotonic() - began < 4) == (0, True)


# -- profiles, and resumed searches --------------------------------------------------------------------------


def test_a_profile_stands_for_options_and_what_is_typed_goes_before_it(folder: Path) -> None:
    with at(folder):
        cli("run", "settles.yaml", "--profile", "pull-request", "--report", "1.json")
        cli(
            "run",
            "settles.yaml",
            "--profile",
            "pull-request",
            "--budget",
            "5s",
            "--reduce",
            "symmetric",
            "--report",
            "2.json",
        )
        cli("run", "settles.yaml", "--profile", "pull-request", "--engine", "plain", "--report", "3.json")
        cli("run", "settles.yaml", "--profile", "nightly", "--report", "4.json")
        cli("run", "settles.yaml", "--report", "5.json")
    shown = [json.loads((folder / f"{n}.json").read_text())["parameters"] for n in range(1, 6)]

    assert [each["budget"] for each in shown] == [60.0, 5.0, 60.0, None, None]
    assert [each["reduce"] for each in shown] == ["auto", "symmetric", "none", "compare", "none"]


def test_a_nightly_run_goes_on_where_the_last_one_ended_and_demands_the_end(folder: Path) -> None:
    text = f"name: middling\n{SERVERS.replace('oracle', 'fine')}rounds: 2\nfaults: {{crashes: 1}}\n"
    (folder / "middling.yaml").write_text(text)
    with at(folder):
        whole = cli("run", "middling.yaml", "--json")
        first = cli("run", "middling.yaml", "--profile", "nightly", "--states", "2000")
        kept = list((folder / "quorate-checkpoints").glob("middling-*/*"))
        second = cli("run", "middling.yaml", "--profile", "nightly", "--json")
        left = list((folder / "quorate-checkpoints").iterdir())

    assert first.code == 20
    assert kept and not left
    assert "  checkpoint    quorate-checkpoints/middling-" in first.out
    once, twice = (json.loads(each.out)["runs"][0] for each in (whole, second))
    assert once["search"]["states"] > 2000
    for figure in ("states", "transitions", "levels", "stop", "exhausted"):
        assert once["search"][figure] == twice["search"][figure], figure
    (note,) = twice["search"]["notes"]
    assert note.startswith("taken up from quorate-checkpoints/middling-")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--resume",), "error: --resume needs the folder of the checkpoint; add --checkpoint DIR"),
        (("--checkpoint", "c", "--engine", "plain"), "error: --checkpoint keeps searches by tables"),
        (("--checkpoint", "settles.yaml"), "error: --checkpoint settles.yaml: no folder can be there ("),
        (("--budget", "soon"), "'soon' is not a time; write 60s, 5m or 1h"),
        (("--profile", "weekly"), "argument --profile: invalid choice: 'weekly'"),
    ],
)
def test_2_for_options_of_a_gate_that_are_wrong(folder: Path, words: tuple[str, ...], said: str) -> None:
    with at(folder):
        ended = cli("run", "settles.yaml", *words)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err.splitlines()[-1]


def test_within_a_budget_a_search_that_is_kept_goes_on_in_its_second_attempt(folder: Path) -> None:
    options = command_parser(COMMANDS["run"]).parse_args(["--checkpoint", str(folder / "c")])
    large = load_request(folder / "large.yaml")
    first = outcome_of(large, options, 0.4)
    second = outcome_of(large, options, 0.4, again=True)

    assert first.judgement.undecided and second.judgement.undecided
    assert first.exploration is not None and second.exploration is not None
    assert second.exploration.states > first.exploration.states
    assert second.exploration.seconds > 0.8  # both sittings together


def test_a_search_that_is_kept_is_not_overwritten(folder: Path) -> None:
    with at(folder):
        first = cli("run", "large.yaml", "--checkpoint", "c", "--time", "0.3s")
        again = cli("run", "large.yaml", "--checkpoint", "c", "--time", "0.3s")

    assert (first.code, again.code) == (20, 2)
    assert again.out.startswith("error: c/large-")
    assert "resume it, or name another folder" in again.out
