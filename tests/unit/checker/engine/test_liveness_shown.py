"""Runs that never reach a goal, as a reader sees them: reports, exit codes, traces in every format, and replays."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from checker.engine import (
    Actor,
    Column,
    Discovery,
    Finding,
    Kind,
    Limits,
    Model,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    plain,
)
from checker.job import Job, Verdict
from checker.present import DefaultPresenter
from checker.report import judge, report_json, report_lines
from checker.scenario import bundled
from checker.traces import (
    ReplayError,
    Trace,
    TraceFileError,
    Truth,
    read_itf,
    replay,
    to_itf,
    to_mermaid,
    to_text,
    trace_of,
)
from tests.support.command_line import cli
from tests.support.graphs import eventually, graph, recoverable

SCENARIOS = {path.stem: path for path in bundled()}
LOOP = [(0, "on", 1), (1, "on", 2), (2, "round", 1), (1, "out", 3)]
TRAP = [(0, "on", 1), (1, "back", 0), (1, "off", 2), (2, "wait", 2)]
END = [(0, "on", 1), (1, "back", 0), (1, "off", 2)]


def job_of(edges: list, prop: Property) -> Job:
    model = graph(edges, prop)
    return Job("token", model, DefaultPresenter(model), {"model": "token"})


def trace_in(job: Job) -> Trace:
    (found,) = plain.explore(job.model).found.values()
    return trace_of(job, found)


LOOPS, TRAPPED, ENDS = job_of(LOOP, eventually(3)), job_of(TRAP, recoverable(0)), job_of(END, recoverable(0))
STAYS = job_of(LOOP, eventually(3, unfair=["on", "round", "out"]))


def lines_of(job: Job, **limits: int) -> list[str]:
    found = plain.explore(job.model, Limits(**limits))
    return [" ".join(line.split()) for line in report_lines(job, found, judge(job, found))]


# -- reports -------------------------------------------------------------------------------------------------


def test_a_report_says_what_was_examined():
    loops = "There eventually VIOLATED goal in 1 state; demanded in 3, 4 edges, 2 components examined"
    assert loops in lines_of(LOOPS)
    assert "Back recoverable NOT RECOVERABLE goal in 1 state; 3 edges, 2 components examined" in lines_of(TRAPPED)
    held = job_of([(0, "on", 1), (1, "back", 0)], recoverable(0))
    assert "Back recoverable holds goal in 1 state; 1 edge, 1 component examined" in lines_of(held)


def test_the_first_line_says_since_when_and_how_it_ends():
    assert lines_of(TRAPPED)[0] == (
        "violated: Back: from step 2 on no run reaches the goal (states left = 1, this run ends = in a loop of 1 move)"
    )
    assert lines_of(STAYS)[0] == (
        "violated: There: what step 0 demands never comes, on a fair run "
        "(this run ends = where nothing more need happen)"
    )


def test_what_was_not_judged_is_not_said_to_hold():
    lines = lines_of(job_of([(0, "on", 1), (1, "on", 2)], recoverable(2)), depth=1)
    assert lines[0] == "incomplete: Back cannot be judged within a depth (1): it needs the whole space; " + (
        "no violation among the 2 states seen, to depth 1"
    )
    assert "Back recoverable not judged" in lines


def test_what_is_demanded_nowhere_is_vacuous():
    job = job_of([(0, "on", 1)], eventually(1, after=(9,)))
    assert judge(job, plain.explore(job.model)).verdict is Verdict.VACUOUS
    assert lines_of(job)[0].startswith("vacuous: There was demanded in no state")


def test_the_json_report_has_the_same():
    found = plain.explore(LOOPS.model)
    (prop,) = json.loads(json.dumps(report_json(LOOPS, found, judge(LOOPS, found))))["properties"]
    examined = {name: prop["liveness"][name] for name in ("goals", "open", "states", "edges", "components", "traps")}
    assert examined == {"goals": 1, "open": 3, "states": 3, "edges": 4, "components": 2, "traps": 1}
    assert (prop["found"]["depth"], prop["found"]["since"], prop["found"]["loop"]) == (1, 0, 1)
    assert (prop["kind"], prop["outcome"]) == ("eventually", "VIOLATED")


# -- traces --------------------------------------------------------------------------------------------------


def test_the_text_shows_where_the_loop_begins_and_that_it_is_closed():
    text = to_text(trace_in(LOOPS))
    assert text.startswith("violated: There, a stem of 1 move and a loop of 2 moves\n")
    assert "=> There: demanded from here on" in text
    assert "=> the loop begins here: steps 2 to 3 repeat for ever" in text
    assert "=> as after step 1: the loop is closed" in text


def test_the_text_of_a_run_that_stays_and_of_one_that_ends():
    assert "=> nothing more need happen" in to_text(trace_in(STAYS))
    assert "the loop" not in to_text(trace_in(STAYS))
    ends = to_text(trace_in(ENDS))
    assert ends.startswith("not recoverable: Back, a stem of 2 moves, which ends the run\n")
    assert "=> Back: no run reaches the goal any more" in ends


def test_the_diagram_draws_the_loop():
    lines = [line.strip() for line in to_mermaid(trace_in(LOOPS)).splitlines()]
    begin, end = lines.index("loop for ever"), lines.index("end")
    assert lines[begin + 1 : end] == ["Note over p1: 2: on 2", "Note over p1: 3: round 1"]
    assert "loop for ever" not in to_mermaid(trace_in(STAYS))


def test_a_file_has_the_state_that_a_loop_closes_with_once():
    file = json.loads(to_itf(trace_in(LOOPS)))
    assert (file["loop"], len(file["states"]), len(file["#meta"]["moves"])) == (1, 3, 3)
    assert file["#meta"]["closing"] == {"caption": "round 1", "drawn": []}
    assert json.loads(to_itf(trace_in(STAYS)))["loop"] == 0
    assert "loop" not in json.loads(to_itf(trace_in(ENDS)))


@pytest.mark.parametrize("job", [LOOPS, TRAPPED, ENDS, STAYS], ids=["loops", "trapped", "ends", "stays"])
def test_a_file_is_read_as_it_was_written_and_replays(job: Job):
    trace = trace_in(job)
    assert read_itf(to_itf(trace)) == trace
    replayed = replay(trace, job)
    assert replayed.found == plain.explore(job.model).found[trace.prop]
    assert replayed.verified[0] == f"no state from step {trace.since} on is a goal"


def test_a_replay_says_what_it_has_seen():
    assert replay(trace_in(LOOPS), LOOPS).verified[1:] == (
        "the last state is that of step 1, whole",
        "every unit of fairness either cannot happen somewhere in the loop or does happen in it",
    )
    assert replay(trace_in(ENDS), ENDS).verified[1:] == (
        "nothing can happen at the end",
        "no goal is among the 1 states that step 2 leads to",
    )


def test_each_state_says_where_it_stands():
    assert [step.truth["There"] for step in trace_in(LOOPS).steps] == [Truth.OPEN] * 4
    assert [step.truth["Back"] for step in trace_in(ENDS).steps] == [Truth.REACHED, Truth.OPEN, Truth.OPEN]


# -- refused loops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "prop", "why"),
    [
        ([*LOOP, (2, "out", 3)], eventually(3), "its loop is not fair"),
        (LOOP, eventually(2), "step 2 reaches the goal"),
        (LOOP, eventually(3, after=(2,)), "step 0 demands nothing"),
    ],
)
def test_a_replay_refuses_a_loop_that_the_model_has_and_the_property_does_not(edges, prop, why):
    with pytest.raises(ReplayError, match=why):
        replay(trace_in(LOOPS), job_of(edges, prop))


def test_a_replay_refuses_a_run_from_which_the_goal_is_within_reach():
    with pytest.raises(ReplayError, match="still within reach"):
        replay(trace_in(TRAPPED), job_of([*TRAP, (2, "back", 0)], recoverable(0)))


@pytest.mark.parametrize("changed", [{"loop": 0}, {"loop": 2}, {"since": 2}, {"loop": None}])
def test_a_replay_refuses_another_loop(changed):
    with pytest.raises(ReplayError):
        replay(replace(trace_in(LOOPS), **changed), LOOPS)


def test_a_loop_is_closed_by_the_whole_state_and_not_by_what_is_shown_of_it():
    """Each turn adds to a channel that the presenter does not show; after three turns the goal is reached."""

    def turns(at: int, sent: tuple) -> list[Move]:
        return [Move("turn", (), (Send("at", 1 - at), Send("a->b", (*sent, at))))] if len(sent) < 6 else []

    prop = Property("Full", (Read("a->b"),), lambda sent: Finding("full") if len(sent) == 6 else None, Kind.EVENTUALLY)
    columns = (Column("at", 0), Column("a->b", ()))
    actors = tuple(Actor(c.name, (c.name,), lambda _, to: Outcome((to,))) for c in columns)
    model = Model("turns", columns, actors, (Rule("turn", (Read("at"), Read("a->b")), turns),), (prop,))
    job = Job("turns", model, DefaultPresenter(model), {})
    path = plain.explore(model.with_properties([replace(prop, kind=Kind.SOMETIMES)])).found["Full"].path
    finding = Finding("what step 0 demands never comes, on a fair run", (("this run ends", "in a loop of 2 moves"),))
    claimed = trace_of(job, Discovery(prop, finding, 0, path[:3], loop=0, since=0))
    assert claimed.steps[0].lanes == claimed.steps[2].lanes
    with pytest.raises(ReplayError, match="step 2 does not lead back to step 0"):
        replay(claimed, job)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.update(loop=3),
        lambda file: file.pop("loop"),
        lambda file: file["#meta"].pop("since"),
        lambda file: file["#meta"].update(since=7),
        lambda file: file["#meta"].pop("closing"),
        lambda file: file["states"].pop(),
        lambda file: file["#meta"].update(kind="always"),
    ],
)
def test_a_file_whose_loop_cannot_be_is_no_trace(change: Callable):
    file = json.loads(to_itf(trace_in(LOOPS)))
    change(file)
    with pytest.raises(TraceFileError):
        read_itf(json.dumps(file))


# -- the command line ----------------------------------------------------------------------------------------


def test_13_for_liveness_violated():
    code, out, _ = cli("run", SCENARIOS["zookeeper-1419-never-elects"], "--verdict", "--engine", "both")
    assert code == 13
    assert "=> the loop begins here: steps 3 to 6 repeat for ever" in out


def test_20_for_liveness_within_a_depth():
    code, out, _ = cli("run", SCENARIOS["elects-after-a-crash"], "--verdict", "--depth", "3")
    assert code == 20
    assert out.startswith("incomplete: Settles and Elects cannot be judged within a depth (3)")


def test_saved_loops_replay(tmp_path: Path):
    assert cli("run", SCENARIOS["zookeeper-1419-never-elects"], "--traces", tmp_path, "--format", "none")[0] == 0
    files = sorted(tmp_path.glob("*.itf.json"))
    assert len(files) == 2
    for file in files:
        code, out, _ = cli("replay", file, "--format", "none")
        assert code == 0
        assert "the last state is that of step 2, whole" in out
