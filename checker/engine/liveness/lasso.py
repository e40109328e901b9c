"""A run that never reaches the goal: its description, and the check that it really is one.

Both engines pass ordinals of successors. The run is rebuilt from them by the plain steps of the model, and checked
before it is reported. The replay of a saved run makes the same check. Rules:

- Nothing here trusts a graph, a table or a component: every check uses rows of the model.
- A *lasso* is a stem and a loop that ends in the row in which it begins. A loop without a step is a run that stays
  there, since no further move need happen.
- A run for RECOVERABLE has no loop if it ends in a state without a successor.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from checker.engine.discovery import Discovery, Step
from checker.engine.model import Finding, Kind, Model, ModelError, Move, Property, Row, Unit
from checker.engine.semantics import answer, by_rule, length, rebuild, successors

REMAINS = 10_000  # states of the remaining space that are counted, one by one

Path = Sequence[Step]


class RemainingSpace(NamedTuple):
    """The space that is reachable after a step: the number of states seen, whether it is complete, whether it has a
    goal.
    """

    states: int
    whole: bool
    goal: bool

    def __str__(self) -> str:
        return f"{self.states:,}" if self.whole else f"more than {self.states:,}"


def lasso(model: Model, prop: Property, stem: list[int], loop: list[int] | None, since: int) -> Discovery:
    """The finding of a run: `stem` and `loop` as ordinals (of `rebuild`), None for a run that ends.

    `since` is the latest step at which the violation begins. For EVENTUALLY, it moves back to the first open step after
    the last goal before it. Raises ModelError if the run does not have the claimed properties.
    """
    path = rebuild(model, [*stem, *(loop or ())])
    begins = None if loop is None else length(model, stem)
    if prop.kind is Kind.EVENTUALLY:
        answers = [answer(model, prop, step.row) for step in path]
        met = max((number for number in range(since) if isinstance(answers[number], Finding)), default=-1)
        since = next(number for number in range(met + 1, since + 1) if answers[number] is None)
    wrong = flaw(model, prop, path, begins, since)
    if wrong is not None:
        raise ModelError(
            f"{prop.name!r} finds a run that the model does not have: {wrong}; the model is not deterministic"
        )
    depth = since if prop.kind is Kind.RECOVERABLE else length(model, stem)
    return Discovery(prop, describe_lasso(model, prop, path, begins, since), depth, path, begins, since)


def describe_lasso(model: Model, prop: Property, path: Path, loop: int | None, since: int) -> Finding:
    """The finding that describes such a run."""
    last = len(path) - 1
    if loop is None:
        end = "where nothing can happen"
    elif loop == last:
        end = "where nothing more need happen"
    else:
        end = f"in a loop of {last - loop} move{'s' if last - loop > 1 else ''}"
    if prop.kind is Kind.RECOVERABLE:
        rest = str(remains(model, prop, path[since].row))
        return Finding(f"from step {since} on no run reaches the goal", (("states left", rest), ("this run ends", end)))
    return Finding(f"what step {since} demands never comes, on a fair run", (("this run ends", end),))


def flaw(model: Model, prop: Property, path: Path, loop: int | None, since: int) -> str | None:
    """The defect of a run that allegedly never reaches the goal, if any."""
    last = len(path) - 1
    if loop is not None and (not 0 <= loop <= last or path[loop].row != path[last].row):
        return f"step {last} does not lead back to step {loop}"
    if loop is None and (prop.kind is Kind.EVENTUALLY or any(True for _ in successors(model, path[last].row))):
        return f"it does not end with step {last}"
    if not 0 <= since <= (last if loop is None else loop):
        return f"step {since} is not before the end of its stem"
    for number, step in enumerate(path[since:], since):
        if isinstance(answer(model, prop, step.row), Finding):
            return f"step {number} reaches the goal"
    if answer(model, prop, path[since].row) is not None:
        return f"step {since} demands nothing"
    if prop.kind is Kind.RECOVERABLE:
        return "the goal is still within reach" if remains(model, prop, path[since].row).goal else None
    starved = unfair(model, prop, path[loop:])
    if starved is None:
        return None
    often = "again and again" if model.is_strong(starved) else "always"
    return f"its loop is not fair: {starved} can {often} happen and never does"


def unfair(model: Model, prop: Property, loop: Path) -> Unit | None:
    """A unit of fairness that can happen in every state of a loop, or a strong one that can happen in some state, but
    does not happen in it; None if the loop is fair.

    The move of the first step of `loop` is not part of the loop, which begins after it.
    """
    units = [
        [(model.unit(prop, rule, move.action), move, after) for rule, move, after in by_rule(model, step.row)]
        for step in loop
    ]
    able = [{unit for unit, _, _ in moves if unit is not None} for moves in units]
    due = set.intersection(*able) | {unit for unit in set.union(*able) if model.is_strong(unit)}
    for moves, step in zip(units, loop[1:], strict=False):
        # Two rules may list moves with the same name and result; a run does not show which one it takes.
        due -= {unit for unit, move, after in moves if _shown(move, after) == _shown(step.move, step.row)}
    return min(due, default=None)


def forcing(actions: Iterable[str], holds: Callable[[frozenset[str]], bool]) -> tuple[str, ...]:
    """Of the actions that need never happen, a smallest set by which a violated property holds if they are fair.

    It is empty if there is none. `holds` judges the property with these actions fair as well; with more of them fair
    there are fewer runs, so that each action is tried once.
    """
    forced = frozenset(actions)
    if not forced or not holds(forced):
        return ()
    for action in sorted(forced):
        if holds(forced - {action}):
            forced -= {action}
    return tuple(sorted(forced))


def _shown(move: Move | None, after: Row) -> tuple[object, ...]:
    return () if move is None else (move.action, move.arguments, after)


def remains(model: Model, prop: Property, row: Row, most: int = REMAINS) -> RemainingSpace:
    """Count the states reachable from a row, by plain steps, up to `most`; end at the first goal."""
    states, todo = {row}, [row]
    while todo:
        state = todo.pop()
        if isinstance(answer(model, prop, state), Finding):
            return RemainingSpace(len(states), whole=False, goal=True)
        for _, after in successors(model, state):
            if after not in states:
                if len(states) == most:
                    return RemainingSpace(most, whole=False, goal=False)
                states.add(after)
                todo.append(after)
    return RemainingSpace(len(states), whole=True, goal=False)
