"""The loss of a quorum where a run of the model postpones it: a real leader gives up within a second.

In a run of the model a leader without a quorum may lead for ever, and a shortest run often has such a leader, because
its end costs a step. A real leader looks at its learners every half tick. So the schedule gets the step, or gets it
earlier, if every later step remains possible and the end still has the same findings.

Source: `Leader.lead` (the loop over `tickTime / 2`, and `syncedAckSet.hasAllQuorums`).
"""

from dataclasses import replace

from checker.engine.model import Finding, Model, Move, Row
from checker.engine.semantics import read, successors
from checker.models.ensemble.actions import Action
from harness.reproduce.schedule import Schedule, ScheduledStep


def with_losses(schedule: Schedule) -> Schedule:
    """The same schedule, in which leaders without a quorum give up at once; an added step has the number before it."""
    steps, at = list(schedule.steps), 0
    while at < len(steps) - 1:
        last, rest = steps[at], steps[at + 1 :]
        for move, after in successors(schedule.model, last.after):
            if move.action != Action.LOSE_QUORUM or move == rest[0].move:
                continue
            moved = _repeated(schedule.model, after, _without_first(move, rest))
            if moved and _findings(schedule.model, moved[-1].after) >= _findings(schedule.model, rest[-1].after):
                lost = ScheduledStep(last.number, move, last.after, after, schedule.caption(move))
                steps[at + 1 :] = [lost, *moved]
                break
        at += 1
    return replace(schedule, steps=tuple(steps))


def _without_first(move: Move, steps: list[ScheduledStep]) -> list[ScheduledStep]:
    """The steps without the first that is this move, which happens earlier."""
    at = next((at for at, step in enumerate(steps) if _same(move, step)), len(steps))
    return [*steps[:at], *steps[at + 1 :]]


def _repeated(model: Model, row: Row, steps: list[ScheduledStep]) -> list[ScheduledStep] | None:
    """The steps from another state; None if one of them is impossible."""
    found = []
    for step in steps:
        after = next((after for move, after in successors(model, row) if _same(move, step)), None)
        if after is None:
            return None
        found.append(replace(step, before=row, after=after))
        row = after
    return found


def _same(move: Move, step: ScheduledStep) -> bool:
    return move.action == step.move.action and move.arguments == step.move.arguments


def _findings(model: Model, row: Row) -> frozenset[str]:
    values = ((prop, read(model, prop.reads, row)) for prop in model.properties)
    return frozenset(
        prop.name for prop, known in values if known is not None and isinstance(prop.check(*known), Finding)
    )
