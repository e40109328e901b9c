"""The symmetry of an ensemble: ids in values, and the setups that have it.

The classes of states are counted by brute force: every permutation of the ids is applied to the text of each value. The
ids are 101, 102 and 103, so that no other number looks like one.
"""

import re
from ast import literal_eval
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import pytest

from checker.engine import Model, search
from checker.engine.model import Row
from checker.engine.result import verdict_disagreements
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.engine.symmetric_search import SYMMETRIC, compare
from checker.models.ensemble import Budgets, File, Grain, Member, PlannedAction, Prologue, Setup, ensemble
from checker.properties import ENSEMBLE_PROPERTIES
from spec.durable import Durable
from spec.quorum import Sid, View, hierarchical, majority_view
from spec.txn import Txn
from spec.zab.state import ZabRules

IDS = (101, 102, 103)
FILE = File("zoo.cfg", majority_view(IDS))
WEIGHTED = View(hierarchical({1: IDS}))
SETUP = Setup(
    tuple(Member(sid, FILE) for sid in IDS),
    Grain.ORACLE,
    budgets=Budgets(elections=1, writes=1),
    zab=ZabRules(),
    discovery_in_one_step=True,
)


def model_of(setup: Setup) -> Model:
    return ensemble("zab", setup, ENSEMBLE_PROPERTIES.build_defaults(setup))


@cache
def text_of(value: Any) -> str:
    """The text of a value with the elements of sets in order."""
    if isinstance(value, frozenset):
        return str(sorted(value))
    return re.sub(r"frozenset\(\{([\d, ]*)\}\)", lambda found: f"{{{in_order(found[1], ', ')}}}", str(value))


def in_order(text: str, separator: str) -> str:
    return separator.join(sorted(text.strip(", ").split(separator)))


@cache
def renamed(text: str, order: tuple[Sid, ...]) -> str:
    """A text with other ids; the handlers of a leader and the ids in sets are put into order again."""
    after = re.sub(r"\b10[123]\b", lambda found: str(order[int(found[0]) - 101]), text)
    if text.startswith("["):  # links
        return str(sorted(tuple(sorted(pair)) for pair in literal_eval(after)))
    after = re.sub(r"\{([\d, ]*)\}", lambda found: f"{{{in_order(found[1], ', ')}}}", after)
    after = re.sub(r"\((10[123](?:, 10[123])+)\)", lambda found: f"({in_order(found[1], ', ')})", after)
    handlers = re.search(r"handlers=\((Handler\(.*?\)),?\), outstanding", after)
    if handlers is not None:
        parts = sorted(re.split(r", (?=Handler\()", handlers[1]))
        after = after[: handlers.start(1)] + ", ".join(parts) + after[handlers.end(1) :]
    return after


def the_least(model: Model, row: Row) -> str:
    found = []
    for order in permutations(IDS):
        values = {}
        for column, value in zip(model.columns, row, strict=True):
            name = re.sub(r"10[123]", lambda found, order=order: str(order[int(found[0]) - 101]), column.name)  # type: ignore[misc]
            if "-" in name:
                name = "-".join(sorted(name.split("-")))
            values[name] = renamed(text_of(value), order)
        found.append(str(sorted(values.items())))
    return min(found)


def reachable(model: Model) -> set[Row]:
    seen, waiting = {model.initial()}, [model.initial()]
    while waiting:
        new = {after for _, after in successors(model, waiting.pop())} - seen
        seen |= new
        waiting += new
    return seen


FAULTS = ({}, {"disconnects": 1}, {"crashes": 1, "restarts": 1}, {"cuts": 1}, {"partitions": 1, "heals": 1})


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_there_are_as_many_states_as_classes_where_any_server_wins_a_tie(fault: dict[str, int]) -> None:
    writes = 0 if fault else 1
    model = model_of(replace(SETUP, budgets=Budgets(elections=1, writes=writes, **fault)))
    assert model.symmetry is not None and model.symmetry.wider is not None
    states, wider = reachable(model), reachable(model.with_rules(model.symmetry.wider))
    classes = {the_least(model, row) for row in wider}

    assert states < wider
    assert search.explore(model, frontier=SYMMETRIC).states == len(classes) < len(states) / 2


@pytest.mark.parametrize("zxids", [(0, 0, 0), (0, 5, 5), (7, 5, 5), (1, 2, 3)])
@pytest.mark.parametrize("absent", IDS)
def test_of_two_servers_any_may_win_a_tie_and_the_better_vote_wins_otherwise(
    zxids: tuple[int, ...], absent: Sid
) -> None:
    zxid_of = dict(zip(IDS, zxids, strict=True))
    members = tuple(Member(sid, FILE, Durable(snapshot=zxid_of[sid]), late=sid == absent) for sid in IDS)
    model = model_of(replace(SETUP, members=members))
    assert model.symmetry is not None and model.symmetry.wider is not None
    wider = model.with_rules(model.symmetry.wider)
    pair = [sid for sid in IDS if sid != absent]
    best = max(zxid_of[sid] for sid in pair)

    elected = {move.arguments[0] for move, _ in successors(wider, wider.initial()) if move.action == "elect"}
    assert elected == {sid for sid in pair if zxid_of[sid] == best}


OTHER_FILE = File("other.cfg", FILE.view)
OBSERVERS = File("zoo.cfg", majority_view(IDS[:2], IDS[2:]))
ALIKE = tuple(Member(sid, FILE) for sid in IDS)


@pytest.mark.parametrize(
    "setup",
    [
        replace(SETUP, members=(ALIKE[0], Member(102, OTHER_FILE), ALIKE[2])),
        replace(SETUP, members=(*ALIKE[:2], Member(103, FILE, late=True))),
        replace(SETUP, members=tuple(replace(each, late=True) for each in ALIKE)),
        replace(SETUP, members=(*ALIKE[:2], Member(103, FILE, Durable(1, 1, log=(Txn(1 << 32 | 1, "a"),))))),
        replace(SETUP, members=tuple(Member(sid, OBSERVERS) for sid in IDS)),
        replace(SETUP, prologue=(Prologue((101, 102)), Prologue((103,)))),
    ],
    ids=["101 and 103 alike", "one late", "all late", "another disk", "an observer", "a history"],
)
def test_the_answers_are_those_of_the_full_search(setup: Setup) -> None:
    for budgets in (Budgets(elections=2, disconnects=1), Budgets(elections=2, crashes=1)):
        model = model_of(replace(setup, budgets=budgets))
        reduced = search.explore(model, frontier=SYMMETRIC)
        assert reduced.reduction.endswith("in an over-approximation")
        assert reduced.model is model
        assert verdict_disagreements(reduced, explore(model), ends=False) == []


@pytest.mark.parametrize("seed", range(5))
def test_servers_that_are_not_neighbours_may_change_places(seed: int) -> None:
    """Between 101 and 103 is a server with another file, whose id is compared with theirs."""
    model = model_of(
        replace(
            SETUP,
            members=(ALIKE[0], Member(102, OTHER_FILE), ALIKE[2]),
            prologue=(Prologue(IDS),),
            budgets=Budgets(elections=1, disconnects=1, writes=2),
        )
    )
    assert model.symmetry is not None
    assert compare(model, model.symmetry, seed) > 100


def test_the_leader_hears_its_learners_in_the_order_of_their_ids_for_each_order_of_the_ids() -> None:
    """Server 102 has a better vote than 101: it gives up a leader that hears it last, not one that hears it first."""
    better = Durable(1, 1)
    members = (Member(101, FILE), Member(102, FILE, better), Member(103, FILE))
    model = model_of(replace(SETUP, members=members, budgets=Budgets(elections=1)))
    assert model.symmetry is not None and model.symmetry.wider is not None
    wider = model.with_rules(model.symmetry.wider)

    def outcomes(searched: Model, leader: Sid) -> set[Row]:
        found = successors(searched, searched.initial())
        return {row for move, row in found if move.action == "elect" and move.arguments == (leader, IDS)}

    assert len(outcomes(model, 103)) == 1
    assert len(outcomes(wider, 103)) == 2
    assert len(outcomes(wider, 101)) == 2


def test_a_renamed_value_has_the_text_of_the_value_with_other_ids_in_it() -> None:
    model = model_of(SETUP)
    assert model.symmetry is not None
    cycle = next(each for each in model.symmetry.renamings if each.columns.get("server.101") == "server.102")
    order = tuple(int(cycle.columns.get(f"server.{sid}", f"server.{sid}").removeprefix("server.")) for sid in IDS)
    values = {value for row in reachable(model) for value in row}
    assert any(text_of(cycle.value(value)) != text_of(value) for value in values)
    for value in values:
        assert text_of(cycle.value(value)) == renamed(text_of(value), order)


@pytest.mark.parametrize(
    "setup",
    [
        replace(SETUP, plan=(PlannedAction("stop", 101),)),
        replace(SETUP, grain=Grain.FINE, discovery_in_one_step=False),
        replace(SETUP, zab=None, discovery_in_one_step=False),
        replace(SETUP, members=tuple(Member(sid, File(str(sid), FILE.view)) for sid in IDS)),
        replace(SETUP, members=tuple(Member(sid, File("zoo.cfg", WEIGHTED)) for sid in IDS)),
    ],
    ids=["a plan", "messages", "the election alone", "other files", "weights"],
)
def test_a_model_that_names_servers_has_no_symmetry(setup: Setup) -> None:
    assert model_of(setup).symmetry is None


def test_servers_change_places_with_those_of_the_same_file_alone() -> None:
    """Observer 103 has the same file, and another role in the view."""
    file = File("zoo.cfg", majority_view((101, 102), (103,)))
    found = model_of(replace(SETUP, members=tuple(Member(sid, file) for sid in IDS))).symmetry
    assert found is not None
    assert [dict(each.columns) for each in found.renamings] == [
        {"server.101": "server.102", "server.102": "server.101", "101-102": "101-102", "101-103": "102-103",
         "102-103": "101-103"},
    ]  # fmt: skip
