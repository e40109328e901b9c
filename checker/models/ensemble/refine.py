"""Refinement of a run of the coarse grain to single messages.

The oracle gives the result of an election in one step. `refine` replaces each of these steps by the fewest deliveries
and decisions with the same result, from the state that the run has reached in the fine grain, and copies every other
step. The refined run shows that a coarse counterexample is real, with every vote that was cast. If the messages cannot
reach a result, that is an error. The refined run is not necessarily the shortest fine run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from checker.engine import Finding, Kind, Limits, Model, Move, Property, Read, Row, Rule, Step
from checker.engine.semantics import successors
from checker.models.ensemble.actions import Action
from checker.models.ensemble.setup import server_name
from checker.models.ensemble.status import ElectionStatus, election_status
from spec.quorum import Sid

SECONDS = 60.0  # for one election; the largest of the shipped scenarios needs a few


class NotRefinedError(Exception):
    """A step of the coarse run is not possible in the fine grain; the message names the step."""


def refine(model: Model, path: Iterable[Step]) -> tuple[Step, ...]:
    """Return the run of the fine model for a run of the same ensemble by the oracle. Raises NotRefinedError."""
    fine = [Step(None, model.initial())]
    for coarse in path:
        if coarse.move is None:
            continue
        if coarse.move.action == Action.ELECT:
            leader, members = coarse.move.arguments
            fine += _election(model, fine[-1].row, leader, members)
        else:
            fine.append(_same(model, fine[-1].row, coarse.move))
    return tuple(fine)


def _same(model: Model, row: Row, move: Move) -> Step:
    for found, after in successors(model, row):
        if (found.action, found.arguments) == (move.action, move.arguments):
            return Step(found, after)
    raise NotRefinedError(f"{move.action} {move.arguments} is not possible message by message at this point of the run")


def _election(model: Model, row: Row, leader: Sid, members: tuple[Sid, ...]) -> tuple[Step, ...]:
    """Return the shortest run from `row` in which the members elect the leader; other servers take no step."""

    def decided(*seen: ElectionStatus | str) -> Finding | None:
        done = all(isinstance(each, ElectionStatus) and each.leader == leader for each in seen)
        return Finding("they have decided") if done else None

    own = [
        _of_servers(rule, members) for rule in model.rules if {Action.DELIVER, Action.DECIDE}.issuperset(rule.actions)
    ]
    goal = Property(
        "decided", tuple(Read(server_name(sid), election_status) for sid in members), decided, Kind.SOMETIMES
    )
    begun = tuple(replace(column, initial=value) for column, value in zip(model.columns, row, strict=True))
    part = Model("an election", begun, model.actors, tuple(own), (goal,))
    from checker.engine.search import explore  # noqa: PLC0415 (it loads numba)

    found = explore(part, Limits(seconds=SECONDS), until_witnessed=True).found.get(goal.name)
    if found is None:
        raise NotRefinedError(f"the election of server {leader} by {members} was not found message by message")
    return found.path[1:]


def _of_servers(rule: Rule, sids: tuple[Sid, ...]) -> Rule:
    """The rule with only those moves in which one of these servers acts."""

    def moves(*read: object) -> list[Move]:
        return [move for move in rule.moves(*read) or () if move.arguments[Action(move.action).traits.actor] in sids]

    return replace(rule, moves=moves)
