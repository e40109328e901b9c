"""Walks of the explorer reach exactly the states of the model, with the same findings as the checker's."""

import re
from pathlib import Path

import pytest

from checker.engine import Actor, Column, Model, Move, Outcome, Read, Rule, Send, plain
from checker.engine.discovery import Step
from checker.engine.model import Kind
from checker.engine.semantics import rebuild, successors
from checker.explorer import BadRequestError, Handlers
from checker.explorer.walk import LONGEST, WalkRequest, Walks, read_path, write_path
from checker.local_page import read_request
from checker.scenario import bundled, load
from tests.support.explorer import KINDS, WRONG_ORDER, handlers, job, key_of, random_walk, walked
from tests.support.graphs import recoverable

# -- walking -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r10-wrong-order-fine", "r18-lock", "elects-after-a-partition", "r13-moving"])
def test_moves_are_the_successors_of_the_state_in_their_order_and_what_they_change_becomes_so(name: str) -> None:
    for path in random_walk(name, seed=7, moves=8):
        view, row = walked(name, path), rebuild(job(name).model, path)[-1].row
        captions = [job(name).presenter.caption(move) for move, _ in successors(job(name).model, row)]
        assert [move["caption"] for move in view["moves"]] == captions
        assert [move["ordinal"] for move in view["moves"]] == list(range(len(captions)))
        for move in view["moves"]:
            after = walked(name, (*path, move["ordinal"]))
            changed = {(lane["name"], gone) for lane in after["lanes"] for gone in lane["gone"]}
            for lane in after["lanes"]:
                changed |= {(lane["name"], field["name"]) for field in lane["fields"] if field["changed"]}
            assert {(change["lane"], change["field"]) for change in move["changes"]} == changed


def test_a_move_that_loses_messages_says_whose_and_to_whom_where_that_is_known() -> None:
    lost = {
        line
        for seed in range(6)
        for path in random_walk("r13-moving", seed=seed, moves=10)
        for move in walked("r13-moving", path)["moves"]
        for line in move["drawn"]
        if "is lost" in line
    }
    assert lost
    for line in lost:
        assert re.match(r"what (client|server) \d has sent( to (client|server) \d)? is lost: ", line), line


@pytest.mark.parametrize("name", ["r10-wrong-order", "r19-no-protection-alone", "zookeeper-1419-never-elects"])
def test_hints_say_where_each_move_leads(name: str) -> None:
    model = job(name).model
    for path in random_walk(name, seed=3, moves=12):
        steps = rebuild(model, path)
        for move in walked(name, path)["moves"]:
            after = rebuild(model, (*path, move["ordinal"]))[-1].row
            assert move["last"] is (not list(successors(model, after)))
            seen = [number for number, step in enumerate(steps) if step.row == after]
            assert move["back_to"] == (seen[0] if seen else None)
            told = {turn["property"] for turn in move["turns"] if turn["truth"] == "fails"}
            there = walked(name, (*path, move["ordinal"]))["properties"]
            assert told == {prop["name"] for prop in there if prop["truth"] == "fails"}


def test_a_walk_to_a_violation_names_it_with_its_clause_and_values() -> None:
    view = walked("r10-wrong-order", WRONG_ORDER)
    (found,) = view["findings"]
    assert (found["property"], found["kind"], found["good"]) == ("OneLeader", "always", False)
    assert found["headline"] == "violated: OneLeader at depth 8"
    assert [name for name, _ in found["values"]] == ["behind server.3", "behind server.5"]
    truth = {each["name"]: each["truth"] for each in view["properties"]}
    assert truth == {"OneLeader": "fails", "LeaderIsAVoter": "holds"}
    assert view["moves"] == []
    (before,) = (m for m in walked("r10-wrong-order", WRONG_ORDER[:-1])["moves"] if m["ordinal"] == WRONG_ORDER[-1])
    assert before["turns"] == [{"property": "OneLeader", "truth": "fails"}]


def test_the_picture_is_that_of_the_trace_and_has_a_row_for_each_step() -> None:
    picture = walked("r10-wrong-order", WRONG_ORDER)["picture"]
    assert [f'id="p-step-{number}"' in picture for number in range(10)] == [True] * 9 + [False]
    assert "<style" not in picture and "<script" not in picture


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_run_that_the_checker_found_ends_in_the_same_finding_when_it_is_walked(name: str, kind: Kind) -> None:
    explored = plain.explore(job(name).model, job(name).limits)
    found = [each for each in explored.found.values() if each.prop.kind is kind]
    assert found
    for each in found:
        walks = Walks(job(name).model)
        path = walks.path(walks.ordinals(each.path))
        (same,) = (one for one in walks.findings(path) if one.prop.name == each.prop.name)
        assert (same.finding, same.path, same.loop, same.since) == (each.finding, each.path, each.loop, each.since)


@pytest.mark.parametrize("name", ["r16-fair-election-live", "elects-after-a-partition", "zookeeper-1419-fixed"])
def test_no_walk_ends_in_a_finding_of_liveness_where_the_checker_finds_none(name: str) -> None:
    walks = Walks(job(name).model)
    for seed in range(6):
        for path in random_walk(name, seed, moves=30):
            assert not [each for each in walks.findings(walks.path(path)) if each.prop.kind.is_liveness]


def test_walks_that_several_threads_share_find_the_same_while_others_make_them_forget() -> None:
    class Forgetful(dict):  # type: ignore[type-arg]
        """A cache that is emptied at each insertion, as if another thread had found it full."""

        def __setitem__(self, key: object, value: object) -> None:
            self.clear()

    name = "votes-sent-once"
    explored = plain.explore(job(name).model, job(name).limits)
    (found,) = (each for each in explored.found.values() if each.prop.kind is Kind.RECOVERABLE)
    walks = Walks(job(name).model)
    expected = walks.findings(found.path)
    walks._lost = Forgetful()
    assert [each.prop.name for each in expected if each.prop.kind is Kind.RECOVERABLE] == [found.prop.name]
    assert walks.findings(found.path) == expected


# -- links ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("farthest", "goal", "is_lost"), [(50, 50, False), (50, 99, True), (20_000, 20_000, False)])
def test_a_goal_is_out_of_reach_only_where_all_that_is_left_was_looked_at(
    farthest: int, goal: int, is_lost: bool
) -> None:
    """A token moves from place to place, and may go back from 1 to 0, which closes a loop."""
    on = Rule("on", (Read("at"),), lambda at: [Move("on", (), (Send("at", at + 1),))] if at < farthest else [])
    back = Rule("back", (Read("at"),), lambda at: [Move("back", (), (Send("at", 0),))] if at == 1 else [])
    token = Actor("at", ("at",), lambda _, to: Outcome((to,)))
    walks = Walks(Model("far", (Column("at", 0),), (token,), (on, back), (recoverable(goal),)))

    assert [found.prop.name for found in walks.findings(walks.path((0, 1)))] == (["Back"] if is_lost else [])


def test_a_link_leads_to_the_walk_it_was_made_of() -> None:
    view = walked("r10-wrong-order", WRONG_ORDER[:5])
    key, path, check = view["link"].split("/")
    assert handlers("r10-wrong-order").walk(WalkRequest(key, read_path(path), check)) == view


def test_a_link_to_another_scenario_or_another_variant_of_it_is_refused() -> None:
    one = handlers("r10-wrong-order")
    with pytest.raises(BadRequestError, match=r"of another run .* start the explorer with the scenario"):
        one.walk(WalkRequest(key_of(handlers("r10-leader-last")), ()))


def test_a_link_whose_moves_lead_elsewhere_by_now_is_refused() -> None:
    one = handlers("r10-wrong-order")
    check = walked("r10-wrong-order", (0,))["link"].split("/")[2]
    with pytest.raises(BadRequestError, match="its moves now lead to another state"):
        one.walk(WalkRequest(key_of(one), (0, 1), check))


def test_every_link_of_a_scenario_changes_with_its_text(tmp_path: Path) -> None:
    (path,) = (path for path in bundled() if path.stem == "r18-lock")
    other = tmp_path / path.name
    other.write_text(path.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
    assert key_of(Handlers([(load(other), "")])) != key_of(Handlers([(load(path), "")]))


@pytest.mark.parametrize(
    ("path", "why"),
    [((4,), "step 1 is move number 4, and only 1 can happen there"), ((*WRONG_ORDER, 0), "nothing can happen there")],
)
def test_a_path_that_is_none_is_refused_with_the_step(path: tuple[int, ...], why: str) -> None:
    with pytest.raises(BadRequestError, match=why):
        walked("r10-wrong-order", path)


@pytest.mark.parametrize("text", ["0..1", "-1", "a", "0.1.", "٣", "1" * 30, ".".join("0" * (LONGEST + 1))])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="path"):
        read_path(text)


def test_a_path_is_written_as_it_is_read() -> None:
    assert [read_path(write_path(path)) for path in ((), (0,), (12, 0, 3))] == [(), (0,), (12, 0, 3)]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"job": 1, "path": []}', b'{"job": "x", "path": [-1]}', b'{"job": "x", "path": [0.5]}',
     b'{"job": "x", "path": [], "more": 1}', b"[" * 100_000, b"\xff", b'{"job": "x", "path": [99999999]}'],
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError, match="the request is not as it should be"):
        read_request(body, WalkRequest)


def test_steps_of_another_model_are_no_walk() -> None:
    walks = Walks(job("r10-wrong-order").model)
    first = Step(None, job("r10-wrong-order").model.initial())
    with pytest.raises(BadRequestError, match="is not a move of this run's state"):
        walks.ordinals((first, Step(None, first.row)))
