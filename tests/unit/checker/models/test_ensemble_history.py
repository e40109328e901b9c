"""The history of an ensemble is a run of the model: it ends in a state that the exploration reaches without it.

Expected values: the same servers started within the exploration, searched step by step without the history.
"""

import pytest

from checker.engine import Row, Stop
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.models.ensemble import build as builder
from checker.models.ensemble.build import URGENT, HistoryError
from checker.models.ensemble.status import ElectionStatus, election_status
from checker.properties import ENSEMBLE_PROPERTIES
from spec.durable import Durable
from spec.election.channel import ChannelRules
from spec.quorum import Sid, View, majority_view
from spec.server import Server

TWO, THREE = majority_view([1, 2]), majority_view([1, 2, 3])


def setup_of(views: tuple[View, ...], budgets: Budgets, *, late: bool) -> Setup:
    members = tuple(Member(sid, File(f"zoo-{sid}.cfg", view), late=late) for sid, view in enumerate(views, 1))
    prologue = () if late else (Prologue(tuple(member.sid for member in members)),)
    channels = ChannelRules(capacity=1, merge_repeats=True)
    return Setup(members, Grain.FINE, prologue, budgets=budgets, round_limit=2, channels=channels)


def settled_without_faults(setup: Setup) -> set[Row]:
    """The states that the model reaches by urgent steps after all servers start, in ascending order."""
    model = ensemble("late", setup)
    row = model.initial()
    for sid in setup.sids:
        steps = successors(model, row)
        row = next(after for move, after in steps if move.action == "start" and move.arguments[0] == sid)
    seen, waiting = {row}, [row]
    while waiting:
        found = [after for move, after in successors(model, waiting.pop()) if move.action in URGENT]
        waiting += [after for after in dict.fromkeys(found) if after not in seen]
        seen.update(found)
    return seen


@pytest.mark.parametrize("budgets", [Budgets(crashes=1, restarts=1), Budgets(cuts=1), Budgets(partitions=1), Budgets()])
@pytest.mark.parametrize("views", [(TWO, TWO), (TWO, THREE, THREE)], ids=["one file", "1 has an older file"])
def test_a_history_ends_in_a_state_that_the_run_reaches_without_it(views: tuple[View, ...], budgets: Budgets) -> None:
    history = ensemble("history", setup_of(views, budgets, late=False)).initial()
    assert history in settled_without_faults(setup_of(views, budgets, late=True))


@pytest.mark.parametrize("late", [False, True], ids=["after a history", "started within the exploration"])
def test_a_last_message_of_the_history_arrives_again_after_a_crash(late: bool) -> None:
    """Server 1 has an older file, crashes and returns. Servers 2 and 3 then both lead, with or without a history."""
    setup = setup_of((TWO, THREE, THREE), Budgets(crashes=1, restarts=1), late=late)
    both_lead = ENSEMBLE_PROPERTIES.build(setup, "NeverStands", {2: "LEADING", 3: "LEADING"})
    assert explore(ensemble("stands", setup, [both_lead])).stop is Stop.FOUND


ALONE, FOUR = majority_view([1]), majority_view([1, 2, 3, 4])


def settled_at(grain: Grain, views: tuple[View, ...], newer: tuple[Sid, ...], order: tuple[Sid, ...]) -> Setup:
    """Return a setup of servers with these views, started in this order; those in `newer` have one more transaction."""
    members = tuple(
        Member(sid, File(f"zoo-{sid}.cfg", view), Durable(snapshot=int(sid in newer)))
        for sid, view in enumerate(views, 1)
    )
    return Setup(members, grain, (Prologue(order),), budgets=Budgets(crashes=1))


@pytest.mark.parametrize("grain", Grain)
def test_two_leaders_after_a_history_are_found_at_each_grain(grain: Grain) -> None:
    """By its file server 1 alone is a quorum, so it leads when messages arrive; 4 leads the others."""
    setup = settled_at(grain, (ALONE, FOUR, FOUR, FOUR), newer=(1, 4), order=(3, 2, 1, 4))
    explored = explore(ensemble("alone", setup, [ENSEMBLE_PROPERTIES.build(setup, "OneLeader")]))
    assert [found.depth for found in explored.violations] == [0]


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (4, 3, 2, 1), (3, 2, 1, 4)])
@pytest.mark.parametrize("newer", [(), (1, 4), (2,)])
@pytest.mark.parametrize("views", [(ALONE, FOUR, FOUR, FOUR), (TWO, TWO, FOUR, FOUR), (THREE, THREE, THREE, FOUR)])
def test_a_history_ends_alike_with_messages_and_with_elections_in_one_step(
    views: tuple[View, ...], newer: tuple[Sid, ...], order: tuple[Sid, ...]
) -> None:
    fine, oracle = (leaders(settled_at(grain, views, newer, order)) for grain in (Grain.FINE, Grain.ORACLE))
    assert oracle == fine


def leaders(setup: Setup) -> dict[Sid, Sid | None]:
    row = ensemble("history", setup).initial()
    servers = [value for value in row if isinstance(value, Server)]
    return {
        server.sid: each.leader for server in servers if isinstance(each := election_status(server), ElectionStatus)
    }


def test_a_history_that_elections_in_one_step_cannot_reach_is_refused() -> None:
    """Two servers that need each other cannot both lead."""
    members = tuple(Member(sid, File("zoo-2.cfg", TWO)) for sid in (1, 2))
    model = ensemble("looking", Setup(members, Grain.ORACLE))
    with pytest.raises(HistoryError, match="server 1 leads after the history"):
        builder._settled_alike(model, model.initial(), {1: 1, 2: 2})
