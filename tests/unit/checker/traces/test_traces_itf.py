"""A trace file follows the rules of the Informal Trace Format, is read back as the same trace, and replays.

The reader at the top is based only on the description of the format, and is independent of the writer.
"""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checker.engine import plain
from checker.engine.model import Actor, Column, Finding, Kind, Model, Move, Outcome, Property, Read, Rule, Send
from checker.job import Job
from checker.models.small_election import election
from checker.present import DefaultPresenter
from checker.traces import ReplayError, TraceFileError, read_itf, replay, to_itf, trace_of
from checker.traces.itf import expr, json_of

SPECIAL = {"#bigint": str, "#tup": list, "#set": list, "#map": list}


def check_expression(value):
    """Assert ITF: a boolean, a string, a list, a record, or an object with one special key; never a bare number."""
    if isinstance(value, bool | str):
        return
    if isinstance(value, list):
        for item in value:
            check_expression(item)
        return
    assert isinstance(value, dict), f"{value!r} is neither of the expressions"
    special = [key for key in value if key.startswith("#")]
    if not special:
        check_expression(list(value.values()))
        return
    assert len(value) == 1
    assert isinstance(value[special[0]], SPECIAL[special[0]])
    if special[0] == "#bigint":
        int(value["#bigint"])
    else:
        check_expression(value[special[0]])


def job_of(servers: int = 3) -> Job:
    model = election(servers)
    return Job(f"election of {servers}", model, DefaultPresenter(model), {"model": "rounds", "servers": servers})


@pytest.fixture(scope="module")
def job():
    return job_of()


@pytest.fixture(scope="module")
def trace(job):
    return trace_of(job, plain.explore(job.model).found["OneLeader"])


@pytest.fixture(scope="module")
def text(trace):
    return to_itf(trace)


def altered(text, change):
    """Return the file with a change made to its JSON."""
    file = json.loads(text)
    change(file)
    return json.dumps(file)


# -- writing -------------------------------------------------------------------------------------------------


def test_a_file_has_the_shape_that_the_format_asks_for(text):
    file = json.loads(text)
    assert set(file) == {"#meta", "vars", "states"}
    for index, state in enumerate(file["states"]):
        assert set(state) == {"#meta", *file["vars"]}
        assert state["#meta"]["index"] == index
        for variable in file["vars"]:
            check_expression(state[variable])


def test_the_lanes_are_variables_and_the_action_is_where_other_tools_look_for_it(text):
    file = json.loads(text)
    assert file["vars"] == ["mbt::actionTaken", "mbt::nondetPicks", "1", "2", "3"]
    assert [state["mbt::actionTaken"] for state in file["states"]][:5] == ["init", "start", "start", "start", "deliver"]
    assert file["states"][1]["1"]["round"] == {"#bigint": "1"}


def test_the_file_says_what_was_found_and_carries_what_a_replay_needs(text):
    meta = json.loads(text)["#meta"]
    assert (meta["format"], meta["property"], meta["verdict"]) == ("ITF", "OneLeader", "violated")
    assert meta["source"] == {"model": "rounds", "servers": 3}
    assert meta["moves"][3] == {
        "action": "deliver",
        "arguments": ["1", "2", {"round": 1, "vote": 1, "state": "LOOKING"}],
    }


def test_each_state_has_a_line_of_its_own(text):
    assert len([line for line in text.splitlines() if line.startswith('   {"#meta"')]) == 13


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_is_written_by_the_rules_and_read_back_as_it_was(value):
    check_expression(expr(value))
    assert json_of(json.loads(json.dumps(expr(value)))) == value


# -- reading -------------------------------------------------------------------------------------------------


def test_reading_gives_the_trace_that_was_written(trace, text):
    assert read_itf(text) == trace


@given(st.text() | VALUES.map(json.dumps))
def test_garbage_is_refused_by_name_and_with_no_other_error(garbage):
    with pytest.raises(TraceFileError, match=r"^broken\.itf\.json is not a trace: "):
        read_itf(garbage, "broken.itf.json")


@given(data=st.data())
def test_a_file_with_any_part_replaced_is_read_or_refused_and_never_breaks_the_reader(text, data):
    file = json.loads(text)
    place, key = file, "states"
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
    place[key] = data.draw(VALUES)
    try:
        read_itf(json.dumps(file))
    except TraceFileError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f["#meta"].pop("source"), "missing required field `source`"),
        (lambda f: f["#meta"].update(quorate=9), "version 9; this release reads 'ITF', version 1"),
        (lambda f: f["#meta"].update(verdict="fine"), r"Invalid enum value 'fine' - at `\$\.#meta\.verdict`"),
        (lambda f: f["states"].pop(), "12 states and 12 moves; a trace has one state more than moves"),
        (lambda f: f["states"][3]["1"].update(round=1), r"state 3: 1\.round has the bare value 1; a number"),
        (lambda f: f["states"][3].pop("2"), "state 3: it has no value for the variable '2'"),
        (lambda f: f["states"][3].update({"2": "x"}), "state 3: 2 is 'x'; a lane is a record"),
        (lambda f: f["states"][3].update({"mbt::actionTaken": "x"}), "it should be state 3 after 'start'"),
        (lambda f: f["states"][3]["1"].update(round={"#bigint": "one"}), "has #bigint with 'one', not as the format"),
    ],
)  # fmt: skip
def test_an_error_says_where_the_file_is_wrong_and_what_would_be_right(text, change, message):
    with pytest.raises(TraceFileError, match=message):
        read_itf(altered(text, change))


def test_values_nested_without_end_are_refused():
    with pytest.raises(TraceFileError, match="nested too deeply"):
        read_itf("[" * 100_000 + "]" * 100_000)


# -- replay --------------------------------------------------------------------------------------------------


def test_a_saved_trace_replays_to_the_same_finding(job, text):
    replayed = replay(read_itf(text), job)
    assert replayed.found.finding == Finding("two servers are LEADING", (("leaders", (2, 3)),))
    assert trace_of(job, replayed.found) == read_itf(text)


def test_a_move_that_is_not_possible_is_named_with_those_that_are(job, trace):
    early = replace(trace, steps=(trace.steps[0], replace(trace.steps[8], number=1), *trace.steps[2:]))
    with pytest.raises(ReplayError, match=r"in step 1 it says decide 2 happens.* only these can: start 1; start 2"):
        replay(early, job)


def test_a_state_that_was_tampered_with_is_shown_from_both_sides(job, text):
    def vote_otherwise(file):
        file["states"][6]["1"]["vote"] = {"#bigint": "3"}

    with pytest.raises(ReplayError) as caught:
        replay(read_itf(altered(text, vote_otherwise)), job)
    assert (caught.value.step, caught.value.recorded, caught.value.now) == (6, "1 has vote=3", "1 has vote=2")


def test_another_initial_state_is_a_mismatch_in_step_0(trace):
    with pytest.raises(ReplayError, match="in step 0 it says 1 has recvset"):
        replay(trace, job_of(4))


def test_a_finding_with_other_values_is_a_mismatch(job, trace):
    with pytest.raises(ReplayError, match=r"leaders = \[1, 2\].*leaders = \[2, 3\]"):
        replay(replace(trace, values=(("leaders", [1, 2]),)), job)


def test_a_property_that_the_model_does_not_have_is_a_mismatch(job, trace):
    with pytest.raises(ReplayError, match=r"that NoLeader \(always\) was found.*OneLeader \(always\)"):
        replay(replace(trace, prop="NoLeader"), job)


def test_a_replay_shows_what_the_model_says_and_nothing_of_the_file(job, text):
    def tell_otherwise(file):
        file["#meta"] |= {"job": "another job", "grain": "another grain", "bounds": ["none"], "verdict": "passed"}
        file["states"][1]["#meta"]["caption"] = "another step"

    told = replay(read_itf(altered(text, tell_otherwise)), job).trace
    assert told == read_itf(text)


def counts_up_to(most: int) -> Job:
    """A counter whose runs end at `most`, and must not end at 2."""
    rule = Rule("add", (Read("n"),), lambda n: [Move("add", (), (Send("n", n + 1),))] if n < most else [])
    prop = Property("EndsElsewhere", (Read("n"),), lambda n: Finding("it ends at 2") if n == 2 else None, Kind.FINAL)
    actor = Actor("n", ("n",), lambda _, n: Outcome((n,)))
    model = Model("counter", (Column("n", 0),), (actor,), (rule,), (prop,))
    return Job("counter", model, DefaultPresenter(model), {})


def test_a_deadlock_is_none_where_the_model_can_go_on():
    short, longer = counts_up_to(2), counts_up_to(3)
    trace = trace_of(short, plain.explore(short.model).found["EndsElsewhere"])
    assert replay(trace, short).trace.headline == "deadlock: EndsElsewhere at depth 2"
    with pytest.raises(ReplayError, match=r"it says EndsElsewhere: it ends at 2.* and the model says it finds nothing"):
        replay(trace, longer)


def test_all_runs_that_look_the_same_are_followed():
    """A coin is thrown out of sight (`->hand`), and only one of its two sides leads to the recorded end."""
    shown = Actor("table", ("table",), lambda _, operation: Outcome((operation,)))
    hidden = Actor("->hand", ("->hand",), lambda _, operation: Outcome((operation,)))

    def throw(table):
        if table == "ready":
            for side in ("heads", "tails"):
                yield Move("throw", (), (Send("->hand", side), Send("table", "thrown")))

    def look(table, hand):
        return [Move("look", (), (Send("table", hand),))] if table == "thrown" else []

    model = Model(
        "coin",
        (Column("table", "ready"), Column("->hand", "")),
        (shown, hidden),
        (Rule("throw", (Read("table"),), throw), Rule("look", (Read("table"), Read("->hand")), look)),
        (Property("Tails", (Read("table"),), lambda t: Finding(t) if t == "tails" else None, Kind.SOMETIMES),),
    )
    job = Job("coin", model, DefaultPresenter(model), {})
    trace = trace_of(job, plain.explore(model).found["Tails"])
    assert replay(read_itf(to_itf(trace)), job).found.path == plain.explore(model).found["Tails"].path
