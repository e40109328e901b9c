"""The page of results: nothing on it differs from its figures, and a figure needs the count of states of the model."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.comparison import SearchFigures
from benchmarks.outcome import NotMeasured
from benchmarks.page import command, text
from benchmarks.page.command import FULL, QUICK, Plan, Tool, measure
from benchmarks.page.record import LeftOut, Machine, Record, RecordError, Search, Series, digest, load, save

DOCS = Path(__file__).parents[3] / "docs"
OURS, TWICE, SPIN = Series("Quorate", 1), Series("Quorate", 2), Series("SPIN", 1)
MACHINE = Machine("a processor", 2, 24 * 2**30, "Linux", 0.2)
RECORD = Record(
    "2026-11-24",
    True,
    MACHINE,
    {"SPIN": "6.5.2"},
    (
        Search("two_phase_commit", 8, OURS, 1_745_408, 0.5, 1_745_408 * 70),
        Search("two_phase_commit", 8, TWICE, 1_745_408, 0.25, 1_745_408 * 72),
        Search("two_phase_commit", 8, SPIN, 1_745_408, 2.0, 1_745_408 * 35),
        Search("election", 3, SPIN, 6_544, 0.01, 2**20),
    ),
    (LeftOut("election", 4, SPIN, "about 90 s were predicted, and the limit was 60 s"),),
    {"stateright": "cargo is missing"},
)


def test_the_page_of_the_manual_is_that_of_its_figures() -> None:
    record = load(DOCS / "benchmarks.json")

    assert (DOCS / "benchmarks.md").read_text(encoding="utf-8") == text.page(record)
    assert f"figures {digest(record)}" in (DOCS / "benchmarks.svg").read_text(encoding="utf-8")


def test_the_figures_of_the_manual_have_every_tool_that_needs_no_jar() -> None:
    record = load(DOCS / "benchmarks.json")

    assert {each.tool for each in record.series()} >= {"Quorate", "SPIN", "stateright"}
    assert not record.missed


def test_a_record_is_the_same_after_it_was_saved(tmp_path: Path) -> None:
    save(RECORD, tmp_path / "figures.json")

    assert load(tmp_path / "figures.json") == RECORD


def test_a_changed_figure_changes_the_digest() -> None:
    first, *others = RECORD.searches
    changed = replace(RECORD, searches=(replace(first, seconds=0.6), *others))

    assert digest(changed) != digest(RECORD)


def test_the_page_shows_rates_memory_and_ratios() -> None:
    """1,745,408 states in 0.5 s and in 2 s: a ratio of 4. Less than 16 MiB of memory is not shown."""
    lines = text.page(RECORD).splitlines()

    model = "| two-phase commit, 8 managers | 1,745,408 |"
    assert f"{model} Quorate, 1 thread | 0.500 | 3,490,816 | 70 |  |" in lines
    assert f"{model} Quorate, 2 threads | 0.250 | 6,981,632 | 72 |  |" in lines
    assert f"{model} SPIN | 2.000 | 872,704 | 35 | 4.00 |" in lines
    assert "| election, 3 servers | 6,544 | SPIN | 0.010 | 654,400 |  |  |" in lines


def test_the_page_warns_of_a_machine_that_was_busy() -> None:
    busy = replace(RECORD, machine=replace(MACHINE, load=3.5))

    assert "**The machine was not quiet.** Its load before the run was 3.5; 0.5 would be right." in text.page(busy)
    assert "not quiet" not in text.page(RECORD)


def test_the_page_names_what_is_left_out() -> None:
    shown = text.page(RECORD)

    assert "- SPIN, election, 4 servers: about 90 s were predicted, and the limit was 60 s.\n" in shown
    assert "- stateright: not measured: cargo is missing\n" in shown
    assert "- TLC: no jar was given.\n" in shown


def test_the_plot_has_every_tool_and_is_the_same_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    text.draw(RECORD, first)
    text.draw(RECORD, second)

    drawn = first.read_text(encoding="utf-8")
    assert drawn == second.read_text(encoding="utf-8")
    shown = set(re.findall(r">([^<>]+)</text>", drawn))
    assert shown >= {"Quorate, 1 thread", "Quorate, 2 threads", "SPIN", "two-phase commit", "election"}
    assert shown >= {"states per second", "bytes per state"}


def tool(seconds: dict[int, float], wrong: int | None = None) -> tuple[Tool, list[int]]:
    """A tool that searches two-phase commit in the given seconds by size; `wrong` is a size with a state too many."""
    asked: list[int] = []

    def search(example: str, size: int) -> SearchFigures:
        asked.append(size)
        if size not in seconds:
            raise NotMeasured("no such size")
        states = 4**size + 6**size + 2**size + (size == wrong)
        return SearchFigures("a tool", states, None, seconds[size] + len(asked), 0)

    return Tool(Series("a tool", 1), ("two_phase_commit",), search), asked


def quiet(_: str) -> None:
    """No progress."""


def test_a_search_that_is_predicted_to_take_too_long_is_left_out() -> None:
    """8,832 states in 2 s, so 50,816 in 11.5 s and 296,448 in 67 s; after 50,816 in 4 s, 296,448 take 23.3 s."""
    searched, asked = tool({5: 1.0, 6: 2.0})
    plan = Plan(searched, 20.0)
    plan.make({"two_phase_commit": (5, 6, 7)}, quiet)

    assert asked == [5, 6]
    assert [each.reason for each in plan.left_out] == ["about 23 s were predicted, and the limit was 20 s"]


def test_a_short_search_is_repeated_and_the_best_counts() -> None:
    searched, asked = tool({5: -0.5})
    plan = Plan(searched, 20.0)
    plan.make({"two_phase_commit": (5,)}, quiet)

    assert asked == [5, 5, 5]
    assert [each.seconds for each in plan.searches] == [0.5]


def test_another_count_of_states_is_no_figure() -> None:
    searched, _ = tool(dict.fromkeys(range(5, 9), 1.0), wrong=6)
    record = measure([searched], {}, quick=True, limit=1e9, say=quiet)

    assert [each.size for each in record.searches] == [5]
    assert record.missed == {"a tool": "a tool found 50,817 states where the model has 50,816"}


def test_the_sizes_reach_from_ten_thousand_states_to_a_hundred_million() -> None:
    known = [4**size + 6**size + 2**size for size in FULL["two_phase_commit"]]

    assert min(known) < 10**4 < 10**7.5 < max(known) < 10**8
    assert all({*QUICK[name]} <= {*FULL[name]} for name in FULL)


def test_a_page_is_made_again_from_its_figures(tmp_path: Path) -> None:
    save(RECORD, tmp_path / "earlier.json")

    assert benchmarks.main(["page", str(tmp_path), "--from", str(tmp_path / "earlier.json")]) == 1, "one was missed"

    assert (tmp_path / "benchmarks.md").read_text(encoding="utf-8") == text.page(RECORD)
    assert load(tmp_path / "benchmarks.json") == RECORD
    assert (tmp_path / "benchmarks.svg").is_file()


@pytest.mark.parametrize("broken", ["{", "[]", json.dumps({"date": "today"})])
def test_figures_that_cannot_be_used_are_one_error(
    broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.json"
    file.write_text(broken, encoding="utf-8")

    assert command.main([str(tmp_path), "--from", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {file}: no figures of `python -m benchmarks page`")
    with pytest.raises(RecordError, match="No such file"):
        load(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["/nowhere/at/all"], "the folder does not exist"),
        ([".", "--limit", "0"], "is not a number from 1 to 1000000"),
        ([".", "--limit", "nan"], "is not a number from 1 to 1000000"),
        ([".", "--jar", "/nowhere.jar"], "this is no jar file"),
        ([".", "--from", "x.json", "--quick"], "--from measures nothing"),
    ],
)
def test_a_bad_command_line_says_what_would_be_right(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(argv)

    assert ended.value.code == 2
    assert says in capsys.readouterr().err
