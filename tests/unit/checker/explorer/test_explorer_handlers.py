"""Files and searches of the explorer: saved walks replay, and the results of searches exist and are nearest."""

import json
from collections.abc import Callable
from itertools import count

import pytest

from checker.engine import plain, search
from checker.engine.model import Kind, Move, Row
from checker.engine.semantics import rebuild, successors
from checker.explorer import BadRequestError, Handlers
from checker.explorer.walk import (
    ActionGoal,
    CaptionGoal,
    EndGoal,
    ExploreRequest,
    FindRequest,
    Goal,
    LoadRequest,
    PropertyGoal,
    RefineRequest,
    WalkRequest,
    Walks,
    by_plain_steps,
    by_tables,
    look_ahead,
)
from checker.traces import read_itf, replay, trace_of
from checker.traces.formats import FORMATS
from checker.traces.trace import Truth, truths
from tests.support.explorer import KINDS, WRONG_ORDER, handlers, job, key_of, patient, random_walk, walked, with_folder

# -- files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("path", [(), WRONG_ORDER[:4], WRONG_ORDER], ids=["first state", "walked", "violated"])
def test_every_format_shows_every_walk(form: str, path: tuple[int, ...]) -> None:
    one = handlers("r10-wrong-order")
    made, trace, text = one.file(key_of(one), path, form, None)
    assert (made.name, trace.depth) == (form, len(path))
    assert text.strip()


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_saved_walk_is_replayed_and_opened_to_the_same_walk(name: str, kind: Kind) -> None:
    explored, one = search.explore(job(name).model, job(name).limits), handlers(name)
    found = next(each for each in explored.found.values() if each.prop.kind is kind)
    path = Walks(job(name).model).ordinals(found.path)
    text = one.file(key_of(one), path, "itf", found.prop.name)[2]
    again = replay(read_itf(text), job(name))
    assert again.found is not None and again.found.prop.name == found.prop.name
    loaded = Handlers().load(LoadRequest("saved.itf.json", text))
    assert (loaded["job"]["key"], loaded["path"]) == (key_of(one), list(path))
    assert loaded["headline"] == trace_of(job(name), found).headline


def test_a_walk_without_a_finding_is_saved_as_one_and_says_so() -> None:
    one = handlers("r10-wrong-order")
    for path, finding in ((WRONG_ORDER[:3], None), (WRONG_ORDER, "")):
        text = one.file(key_of(one), path, "itf", finding)[2]
        assert json.loads(text)["#meta"]["verdict"] is None
        loaded = Handlers().load(LoadRequest("walked.itf.json", text))
        assert loaded["headline"] == f"walked: {len(path)} moves, without a finding"
        assert loaded["path"] == list(path)


def test_a_trace_that_does_not_replay_is_refused_with_the_step() -> None:
    one = handlers("r10-wrong-order")
    text = one.file(key_of(one), WRONG_ORDER, "itf", None)[2]
    with pytest.raises(BadRequestError, match="does not replay: in step 3"):
        one.load(
            LoadRequest("saved", text.replace('"lose leader", "arguments": [5', '"lose leader", "arguments": [9', 1))
        )
    with pytest.raises(BadRequestError, match=r"no trace\.txt is not a trace"):
        one.load(LoadRequest("no trace.txt", "hello"))


def test_a_walk_is_no_file_of_a_finding_that_it_does_not_end_in() -> None:
    one = handlers("r10-wrong-order")
    with pytest.raises(BadRequestError, match="no finding of LeaderIsAVoter, but in one of OneLeader"):
        one.file(key_of(one), WRONG_ORDER, "text", "LeaderIsAVoter")
    with pytest.raises(BadRequestError, match="unknown format 'pdf'; write one of text"):
        one.file(key_of(one), WRONG_ORDER, "pdf", None)


def test_traces_of_many_jobs_may_be_opened_and_the_first_jobs_stay() -> None:
    one = Handlers([with_folder("r10-wrong-order")])
    for number in range(12):
        source = json.loads(handlers("r10-leader-last").file(key_of(handlers("r10-leader-last")), (0,), "itf", None)[2])
        source["#meta"]["source"]["text"] += f"# {number}\n"
        one.load(LoadRequest("trace", json.dumps(source)))
    keys = [each["key"] for each in one.jobs()["jobs"]]
    assert keys[0] == key_of(handlers("r10-wrong-order")) and len(keys) == 9


def test_each_job_has_the_folder_that_it_came_with() -> None:
    pairs = [with_folder(name) for name in ("r18-lock", "r10-wrong-order")]
    opened = Handlers(pairs).jobs()["jobs"]
    assert [(each["name"], each["folder"]) for each in opened] == [(job.name, folder) for job, folder in pairs]


# -- finding -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r10-wrong-order", "r19-no-protection-alone", "r20-window"])
def test_both_ways_to_look_ahead_find_the_same_distance_from_anywhere(name: str) -> None:
    model = job(name).model
    for path in random_walk(name, seed=11, moves=6):
        row = rebuild(model, path)[-1].row
        for prop in model.properties:
            if prop.kind is Kind.FINAL:
                continue
            looked = look_ahead(job(name), row, PropertyGoal(prop.name), patient)
            other = by_plain_steps(job(name), row, PropertyGoal(prop.name), patient, states=3000)
            if other.path is not None or other.whole:
                assert (looked.path is None, len(looked.path or ())) == (other.path is None, len(other.path or ()))


def distance(name: str, path: tuple[int, ...], wanted: Callable[[Move, Row], bool]) -> int:
    """Return the distance in moves to the nearest wanted move, by breadth-first search."""
    model = job(name).model
    level, moves = {rebuild(model, path)[-1].row}, 1
    while not any(wanted(*each) for row in level for each in successors(model, row)):
        level, moves = {after for row in level for _, after in successors(model, row)}, moves + 1
    return moves


def test_what_is_found_is_there_and_nearest() -> None:
    name, here = "r10-wrong-order", WRONG_ORDER[:2]
    model, caption = job(name).model, job(name).presenter.caption
    goals: list[tuple[Goal, Callable[[Move, Row], bool]]] = [
        (PropertyGoal("OneLeader"), lambda _, row: truths(model, row)["OneLeader"] is Truth.FAILS),
        (EndGoal(), lambda _, row: not list(successors(model, row))),
        (ActionGoal("plan 2: start 2"), lambda move, _: move.action == "plan 2: start 2"),
        (CaptionGoal("ELECTS server.3"), lambda move, _: "elects server.3" in caption(move)),
    ]
    for goal, wanted in goals:
        found = handlers(name).find(FindRequest(key_of(handlers(name)), here, goal), patient)
        path = rebuild(model, found["path"])
        assert wanted(*path[-1]), goal
        assert len(path) - 1 - len(here) == found["moves"] == distance(name, here, wanted), goal


def test_a_state_like_the_one_here_is_looked_for_ahead_of_it() -> None:
    name = "r18-lock"
    held = handlers(name).find(FindRequest(key_of(handlers(name)), (), PropertyGoal("Held")), patient)
    again = handlers(name).find(FindRequest(key_of(handlers(name)), tuple(held["path"]), PropertyGoal("Held")), patient)
    assert again["moves"] >= 1


@pytest.mark.parametrize(
    "goal", [EndGoal(), PropertyGoal("NobodyWaits"), CaptionGoal("the")], ids=["end", "property", "move"]
)
def test_nothing_is_ahead_of_an_end_and_least_of_all_itself(goal: Goal) -> None:
    explored = search.explore(job("r19-no-protection-alone").model)
    end = next(each.path[-1].row for each in explored.found.values() if each.prop.kind is Kind.FINAL)
    looked = look_ahead(job("r19-no-protection-alone"), end, goal, patient)
    assert (looked.path, looked.states, looked.whole) == (None, 1, True)


def test_what_is_not_ahead_is_told_with_all_that_was_seen() -> None:
    one = handlers("r10-wrong-order")
    found = one.find(FindRequest(key_of(one), (), PropertyGoal("LeaderIsAVoter")), patient)
    whole = plain.explore(job("r10-wrong-order").model.with_properties(()))
    assert (found["path"], found["whole"], found["states"]) == (None, True, whole.states)
    for goal in (CaptionGoal("nobody says this"), ActionGoal("no such action")):
        found = one.find(FindRequest(key_of(one), (), goal), patient)
        assert (found["path"], found["whole"], found["states"]) == (None, True, whole.states)


@pytest.mark.parametrize("goal", [PropertyGoal("OneHolder"), CaptionGoal("nobody says this")])
def test_a_search_that_is_cancelled_ends_and_says_so(goal: PropertyGoal | CaptionGoal) -> None:
    one = handlers("r18-lock")
    calls: list[int] = []

    def enough(states: int, _depth: int) -> bool:
        calls.append(states)
        return len(calls) < 2

    found = one.find(FindRequest(key_of(one), (), goal), enough)
    assert (found["path"], found["whole"], found["why"]) == (None, False, "it was cancelled")


def test_who_leaves_at_any_report_has_cancelled_the_search_and_at_the_last_one_has_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "REPORT_EVERY", 3600.0)  # so only levels are reported on any machine
    one = handlers("r10-wrong-order")

    def left_at(number: int) -> dict[str, object]:
        reports = count()
        return one.whole(ExploreRequest(key_of(one)), lambda *_: next(reports) != number)

    reports: list[int] = []
    whole = one.whole(ExploreRequest(key_of(one)), lambda states, _: reports.append(states) is None)
    *cancelled, last = [left_at(number) for number in range(len(reports))]
    assert len(cancelled) > 3 and all(each["cancelled"] for each in cancelled)
    assert last == whole


def test_a_search_for_a_move_has_a_bound_and_names_it() -> None:
    lock, words = job("r18-lock"), CaptionGoal("nobody says this")
    looked = by_plain_steps(lock, lock.model.initial(), words, patient, states=500)
    assert (looked.path, looked.whole) == (None, False)
    assert "no more than 500 states" in looked.why


def test_tables_look_from_the_state_that_was_walked_to() -> None:
    name = "r10-wrong-order"
    row = rebuild(job(name).model, WRONG_ORDER[:7])[-1].row
    (prop,) = (prop for prop in job(name).model.properties if prop.name == "OneLeader")
    looked = by_tables(job(name), row, prop, patient)
    assert looked.path == WRONG_ORDER[7:]


def test_the_whole_space_gives_the_verdict_and_a_walk_to_each_finding() -> None:
    one = handlers("zookeeper-1419-never-elects")
    whole = one.whole(ExploreRequest(key_of(one)), patient)
    assert whole["verdict"] == "violated" and not whole["cancelled"]
    for found in whole["found"]:
        view = walked("zookeeper-1419-never-elects", tuple(found["path"]))
        assert found["property"] in [each["property"] for each in view["findings"]]


def test_no_more_searches_run_than_may_and_places_are_given_back() -> None:
    one = Handlers([with_folder("r10-wrong-order")])
    ahead = FindRequest(key_of(one), (), PropertyGoal("OneLeader"))

    def second(_states: int, _depth: int) -> bool:
        with pytest.raises(BadRequestError, match="2 searches are under way"):
            one.find(ahead, patient)
        tried.append(1)
        return True

    def first(_states: int, _depth: int) -> bool:
        one.find(ahead, second)
        return False

    tried: list[int] = []
    assert one.find(ahead, first)["why"] == "it was cancelled"
    assert tried
    assert one.find(ahead, patient)["moves"] == 8


def test_a_property_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    one = handlers("r10-wrong-order")
    with pytest.raises(
        BadRequestError, match="unknown property 'TwoLeaders'; the known ones are OneLeader, LeaderIsAVoter"
    ):
        one.find(FindRequest(key_of(one), (), PropertyGoal("TwoLeaders")), patient)


# -- message by message --------------------------------------------------------------------------------------


def test_a_violation_by_the_oracle_is_walked_message_by_message() -> None:
    one = Handlers([with_folder("r10-wrong-order")])
    fine = one.refine(RefineRequest(key_of(one), WRONG_ORDER, "OneLeader"))
    assert fine["job"]["grain"].startswith("fine") and len(fine["path"]) > len(WRONG_ORDER)
    view = one.walk(WalkRequest(fine["job"]["key"], tuple(fine["path"])))
    assert [found["property"] for found in view["findings"]] == ["OneLeader"]
    text = one.file(fine["job"]["key"], tuple(fine["path"]), "itf", None)[2]
    assert Handlers().load(LoadRequest("fine", text))["path"] == fine["path"]
    with pytest.raises(BadRequestError, match="ends in no finding of OneLeader"):
        one.refine(RefineRequest(key_of(one), WRONG_ORDER[:3], "OneLeader"))


def test_a_finer_run_has_the_file_and_the_description_of_its_scenario() -> None:
    one = Handlers([with_folder("r10-wrong-order")])
    (coarse,) = one.jobs()["jobs"]
    finer = one.refine(RefineRequest(key_of(one), WRONG_ORDER, None))["job"]
    assert coarse["file"] == "r10-wrong-order.yaml" and coarse["about"] != ""
    assert (finer["file"], finer["about"]) == (coarse["file"], coarse["about"])
