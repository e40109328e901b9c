"""The report gives the result of a run in words, numbers and JSON; progress does not interfere with it."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from checker.engine.discovery import Discovery
from checker.engine.model import Finding, Kind, Property, Read
from checker.engine.result import Coverage, Evaluations, Exploration, FunctionCost, Limits, Stop
from checker.job import Job, Verdict
from checker.models.small_election import election
from checker.present import DefaultPresenter
from checker.report import Progress, judge, print_report, refuse, report_json, report_lines, summary_line

READS = (Read("1"),)
SAFE = Property("Safe", READS, lambda _: None, meaning="two servers never lead")
HOPED = Property("Hoped", READS, lambda _: None, Kind.SOMETIMES)
CLAUSE = Finding("two lead", (("leaders", (2, 3)),))


def a_run(*properties: Property, stop: Stop = Stop.EXHAUSTED, found: tuple[str, ...] = ()) -> Exploration:
    """Return a run of 6 states in 3 levels; `start` fired, `crash` was listed and never possible."""
    model = election(2).with_properties(properties or (SAFE,))
    named = {prop.name: prop for prop in model.properties}
    return Exploration(
        model,
        "tables",
        Limits(depth=2, states=1000, memory=2_000_000, seconds=60.0, work=500),
        levels=[1, 2, 3],
        transitions=9,
        stop=stop,
        found={name: Discovery(named[name], CLAUSE, 2, ()) for name in found},
        coverage={"start": Coverage(9, 5), "crash": Coverage(0, 0)},
        evaluations={name: Evaluations(6, 2) for name in named},
        seconds=0.5,
        python_steps=7,
        python_calls=9,
        peak_bytes=1_200,
    )


def job_for(exploration: Exploration, expected: Verdict | None = None) -> Job:
    model = exploration.model
    return Job("pair", model, DefaultPresenter(model), {}, "fine", bounds=("1 crash",), expected=expected)


def lines_of(exploration: Exploration, expected: Verdict | None = None, **options: bool) -> list[str]:
    job = job_for(exploration, expected)
    return report_lines(job, exploration, judge(job, exploration, ["start", "crash"]), **options)


def words(lines: list[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def test_grain_bounds_and_limits_are_named():
    lines = words(lines_of(a_run()))
    assert lines[lines.index("pair") :][:4] == [
        "pair",
        "grain fine",
        "bounds 1 crash",
        "limits depth 2, 1,000 states, 2 MB of memory, 60 s, 500 transitions of work",
    ]


def test_a_run_with_much_time_in_python_names_the_functions_and_the_columns_that_cause_it():
    run = replace(
        a_run(),
        python_seconds=4.0,
        functions={"the step of 's1'": FunctionCost(1_200, 1.0), "the rule 'start'": FunctionCost(5, 2.0)},
        values={"s1": 300, "s2": 7_000},
    )
    lines = words(lines_of(run))

    assert lines[lines.index("time of Python, and the values that cause it") :][1:6] == [
        "the rule 'start' 5 calls 2.00 s, 50%",
        "the step of 's1' 1,200 calls 1.00 s, 25%",
        "the numbers of values 1.00 s, 25%",
        "the column 's2' 7,000 values",
        "the column 's1' 300 values",
    ]


def test_each_property_has_its_outcome_and_how_often_its_premise_held():
    lines = words(lines_of(a_run(SAFE, HOPED, found=("Hoped",))))
    assert "Safe always holds examined 6 times, its premise held in 2" in lines
    assert "Hoped sometimes witnessed at depth 2 examined 6 times, its premise held in 2" in lines


def test_a_property_holds_only_if_all_states_were_seen():
    assert "Safe always no violation seen" in " ".join(words(lines_of(a_run(stop=Stop.DEPTH))))


@pytest.mark.parametrize("kind", Kind)
def test_only_what_can_be_vacuous_is_marked_as_allowed_where_its_premise_never_held(kind):
    """An action and a property of another kind can have the same name; only the action is excused then."""
    can_be_vacuous = kind in (Kind.ALWAYS, Kind.FINAL)
    run = replace(a_run(replace(SAFE, kind=kind)), evaluations={"Safe": Evaluations(6, 0)})
    job = replace(job_for(run), allowed_silent=frozenset({"Safe"}))
    judgement = judge(job, run)
    assert any("(allowed)" in line for line in report_lines(job, run, judgement)) is can_be_vacuous
    assert report_json(job, run, judgement)["properties"][0]["allowed_silent"] is can_be_vacuous


def test_an_action_that_never_fired_is_flagged():
    lines = words(lines_of(a_run()))
    assert "crash never fired" in lines
    assert "start fired 9 times 5 new states" in lines


def test_the_search_is_told_with_its_cost():
    told = " / ".join(words(lines_of(a_run())))
    for part in (
        "states 6",
        "transitions 9",
        "depth 2",
        "time 0.50 s (12 states/s)",
        "Python steps 7 of 9 calls",
        "memory 1 kB (200 bytes a state)",
        "collisions probability at most 8.1e-19",  # 6 * 5 / 2^65
    ):
        assert part in told


@pytest.mark.parametrize("stop", list(Stop))
def test_no_success_beside_a_violation_and_nothing_exhausted_after_a_bound(stop):
    violated = "\n".join(lines_of(a_run(stop=stop, found=("Safe",))))
    assert "passed" not in violated
    assert "no violation" not in violated
    if stop is not Stop.EXHAUSTED:
        assert "exhausted" not in "\n".join(lines_of(a_run(stop=stop)))


def test_a_run_that_could_not_begin_has_a_line_too():
    job = job_for(a_run())
    assert summary_line(job, None, refuse("no such file"), (4, 4)).split() == ["pair", "fine", "-", "-", "error"]


def test_a_warning_is_coloured_by_what_happened_and_not_by_its_words():
    """The bounds contain the word "never", which is not a warning; the silent action is one."""
    out = io.StringIO()
    run = a_run()
    job = replace(job_for(run), bounds=("never more than one crash, VIOLATED on purpose",))
    console = Console(file=out, force_terminal=True, color_system="standard")
    print_report(job, run, judge(job, run, ["start", "stop"]), console=console)
    coloured = [line for line in out.getvalue().splitlines() if "\x1b[33m" in line]
    assert not [line for line in coloured if "one crash" in line]
    assert [line for line in coloured if "stop" in line]


def test_the_json_report_says_the_same():
    run = a_run(stop=Stop.FOUND, found=("Safe",))
    job = job_for(run, Verdict.PASSED)
    report = json.loads(json.dumps(report_json(job, run, judge(job, run, ["start", "stop"]))))
    assert (report["schema"], report["verdict"], report["exit_code"]) == (1, "violated", 12)
    assert (report["job"]["expected"], report["as_expected"]) == ("passed", False)
    assert report["properties"][0]["found"] == {
        "depth": 2,
        "clause": "two lead",
        "values": [["leaders", [2, 3]]],
        "since": None,
        "loop": None,
    }
    assert report["limits"] == {"depth": 2, "states": 1000, "memory": 2_000_000, "seconds": 60.0, "work": 500}
    assert [(action["name"], action["fired"]) for action in report["actions"]] == [
        ("crash", 0),
        ("start", 9),
        ("stop", 0),
    ]
    assert (report["search"]["states"], report["search"]["levels"]) == (6, [1, 2, 3])


def test_the_json_of_a_run_that_could_not_begin_has_no_search():
    report = report_json(job_for(a_run()), None, refuse("no such file"))
    assert (report["verdict"], report["exit_code"], report["search"]) == ("error", 150, None)


# -- progress ------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def shown(seconds: list[float], *, terminal: bool) -> str:
    """Return the output when progress is called at these times, and closed."""
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, force_terminal=terminal, width=100)
    with Progress("pair", console=console, clock=clock) as progress:
        for clock.now in seconds:
            progress(a_run())
    progress(a_run())
    return out.getvalue()


def test_elsewhere_than_on_a_terminal_progress_is_a_plain_line_every_five_seconds():
    line = "pair: 6 states, 12/s, depth 2, frontier 3, 1 kB, 0 s\n"
    assert shown([1, 4, 5, 6, 9.9, 10], terminal=False) == 2 * line


def test_on_a_terminal_one_line_changes_and_is_taken_away():
    text = shown([1, 2], terminal=True)
    assert text.count("pair: 6 states") >= 2
    assert text.endswith("\x1b[1A\x1b[2K") or "\x1b[2K" in text.rpartition("pair:")[2]


def test_states_of_an_unfinished_level_are_counted():
    run = a_run()
    run.coverage["start"] = Coverage(50, 40)
    out, clock = io.StringIO(), Clock()
    with Progress(stream=out, clock=clock) as progress:
        clock.now = 5.0
        progress(run)
    assert out.getvalue().startswith("41 states, ")


def test_compilation_is_announced_at_once():
    out = io.StringIO()
    with Progress(stream=out) as progress:
        progress.compiling()
    assert out.getvalue() == "compiling kernels, on first use only\n"


def test_a_large_search_offers_a_second_one_with_other_fingerprints():
    """Where a collision is not unlikely; the offered seed is not that of the search."""
    large = replace(a_run(SAFE), levels=[10**8], seed=4)
    assert any(
        line == "collisions probability at most 2.7e-04; the same search with --seed 5 is an independent check"
        for line in words(lines_of(large))
    )
    assert not any("--seed" in line for line in lines_of(a_run(SAFE)))
