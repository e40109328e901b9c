"""A run of the coarse grain, told message by message.

The oracle says what an election came to. Here each of its steps is replaced by the fewest deliveries and decisions
that come to it, on the very state that the run has reached in the fine grain; every other step is taken as it is.
So a coarse counterexample is shown to be a real one, with every vote that was cast, and an outcome which the
messages cannot bring about is an error. The fine run has the fewest coarse steps, and each election in it the
fewest fine ones; whether another fine run is shorter overall is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from checker.engine import Finding, Kind, Limits, Model, Move, Property, Read, Row, Step
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.models.ensemble.names import server_name
from checker.models.ensemble.standing import Standing, standing
from spec.quorum import Sid

SECONDS = 60.0  # for one election; the largest of the shipped scenarios needs a few


class NotRefinedError(Exception):
    """A step of the coarse run cannot be taken in the fine grain; the message says which."""


def refine(model: Model, path: Iterable[Step]) -> tuple[Step, ...]:
    """The run of a fine model that a run of the same ensemble by the oracle stands for. Raises NotRefinedError."""
    fine = [Step(None, model.initial())]
    for coarse in path:
        if coarse.move is None:
            continue
        if coarse.move.action == "elect":
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
    """The shortest run from `row` in which the members decide for the leader, and nobody else does anything."""

    def decided(*seen: Standing | str) -> Finding | None:
        done = all(isinstance(each, Standing) and each.leader == leader for each in seen)
        return Finding("they have decided") if done else None

    names = {f"decide {sid}" for sid in members}
    own = [rule for rule in model.rules if rule.name in names or _delivers_to(rule.name, members)]
    goal = Property("decided", tuple(Read(server_name(sid), standing) for sid in members), decided, Kind.SOMETIMES)
    begun = tuple(replace(column, initial=value) for column, value in zip(model.columns, row, strict=True))
    part = Model("an election", begun, model.actors, tuple(own), (goal,))
    found = explore(part, Limits(seconds=SECONDS), until_witnessed=True).found.get(goal.name)
    if found is None:
        raise NotRefinedError(f"the election of server {leader} by {members} was not found message by message")
    return found.path[1:]


def _delivers_to(name: str, members: tuple[Sid, ...]) -> bool:
    return name.startswith("deliver ") and int(name.rpartition(">")[2]) in members
