"""Makes the run of a random walk shorter, and shows that it is shortest where that is possible.

Three methods, one after the other, within one budget of time:

1. Parts of the run are left out, first large ones and then single moves, and the rest is executed again by the plain
   engine (delta debugging). A move that is not possible is left out as well, and so is a loop: the moves between two
   visits of one state.
2. The minimiser of traces searches all runs of the same moves in another order and number (`checker.traces.minimise`).
3. A breadth-first search by tables looks for any shorter run. If it finishes, the result is shown to be shortest.

Every run that is considered is executed, and the finding is evaluated at its end.

Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (2002).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from checker.engine.bounds import bounds_among
from checker.engine.contract import moves
from checker.engine.discovery import Discovery, Step
from checker.engine.model import NO_EXCEPTION, Finding, Model, ModelError, Move, Property, RaisedError, Row
from checker.engine.process import free_memory
from checker.engine.result import Limits, Stop
from checker.engine.search import explore
from checker.engine.semantics import by_rule, finding_at, fire, read
from checker.execution import Deadline
from checker.job import Job
from checker.traces.minimise import minimised

SHARE_OF_MEMORY = 0.5


class ShortenedRun(NamedTuple):
    """A run to a finding, and whether it is shown that no run to a finding of this property is shorter."""

    found: Discovery
    is_shortest: bool


class RuleMove(NamedTuple):
    """A move with the name of the rule that lists it."""

    rule: str
    move: Move


def shortened(job: Job, found: Discovery, deadline: Deadline, workers: int = 1) -> ShortenedRun:
    """The shortest run to a finding of the same property that is found in time. Raises ModelError.

    An interrupt ends the search for shorter runs.
    """
    rerun = Rerun(job.model, found.prop)
    if not found.depth:
        return ShortenedRun(found, is_shortest=True)
    try:
        found = rerun.without_parts(found, deadline)
        if deadline.left:
            found = minimised(job, found)
        return searched(job.model, found, deadline, workers)
    except KeyboardInterrupt:
        return ShortenedRun(rerun.best or found, is_shortest=False)


def searched(model: Model, found: Discovery, deadline: Deadline, workers: int = 1) -> ShortenedRun:
    """The result of a breadth-first search for a run that is shorter than this one. Raises ModelError."""
    if not deadline.left:
        return ShortenedRun(found, is_shortest=False)
    limits = Limits(depth=found.depth - 1, seconds=deadline.left, memory=free_memory(SHARE_OF_MEMORY))
    # An exception may be that of any property.
    properties = [*bounds_among(model.properties), found.prop]
    searched_for = model if found.prop is NO_EXCEPTION else model.with_properties(properties)
    result = explore(searched_for, limits, progress=lambda _: None, workers=workers)
    if found.prop.name in result.found:
        return ShortenedRun(result.found[found.prop.name], is_shortest=True)
    return ShortenedRun(found, is_shortest=result.stop in (Stop.DEPTH, Stop.EXHAUSTED))


class ExecutedRun(NamedTuple):
    """A run to a finding, and its moves."""

    found: Discovery
    moves: tuple[RuleMove, ...]


class Rerun:
    """Executes sequences of moves of a model again, by the plain engine, until a property finds something."""

    def __init__(self, model: Model, prop: Property) -> None:
        self._model, self._prop, self._start = model, prop, model.first_rows[0]
        self._rules = {rule.name: rule for rule in model.rules}
        self.best: Discovery | None = None

    def without_parts(self, found: Discovery, deadline: Deadline) -> Discovery:
        """The finding at the end of the shortest run that remains after parts of this one are left out."""
        self._start = found.path[0].row
        run = self.execute(self._moves(found.path))
        if run is None:
            raise ModelError(f"the property {self._prop.name!r} finds nothing where it found something before")
        size = max(1, len(run.moves) // 2)
        while deadline.left:
            shorter = self._pass(run, size, deadline)
            if size == 1 and shorter is run:
                break
            run, size = shorter, max(1, size // 2)
        return run.found

    def execute(self, moves: Iterable[RuleMove]) -> ExecutedRun | None:
        """The run to the first finding that takes these moves where they are possible; None without a finding."""
        path = [Step(None, self._start)]
        run: list[RuleMove] = []
        visits = {path[0].row: 0}
        finding = finding_at(self._model, self._prop, path[0].row)
        if finding is not None:
            return self._ended(finding, path, run)
        for rule, move in moves:
            step = self._step(path[-1].row, rule, move)
            if step is None or step.move is None:
                continue
            if step.row in visits:
                for visit in path[visits[step.row] + 1 :]:
                    del visits[visit.row]
                del path[visits[step.row] + 1 :], run[visits[step.row] :]
                continue
            visits[step.row] = len(path)
            path.append(step)
            run.append(RuleMove(rule, step.move))
            finding = finding_at(self._model, self._prop, step.row)
            if finding is not None:
                return self._ended(finding, path, run)
        return None

    def _ended(self, finding: Finding, path: Sequence[Step], taken: Sequence[RuleMove]) -> ExecutedRun:
        self.best = Discovery(self._prop, finding, len(taken), tuple(path))
        return ExecutedRun(self.best, tuple(taken))

    def _moves(self, path: Sequence[Step]) -> list[RuleMove]:
        rule_moves = []
        for before, after in pairwise(path):
            for rule, move, row in by_rule(self._model, before.row):
                if move == after.move and row == after.row:
                    rule_moves.append(RuleMove(rule, move))
                    break
        return rule_moves

    def _pass(self, run: ExecutedRun, size: int, deadline: Deadline) -> ExecutedRun:
        """Leave out parts of this size, from the end to the beginning; return the same run if none can be."""
        end = len(run.moves)
        while end > 0 and deadline.left:
            begin = max(0, end - size)
            run = self.execute((*run.moves[:begin], *run.moves[end:])) or run
            end = min(begin, len(run.moves))
        return run

    def _step(self, row: Row, rule: str, move: Move) -> Step | None:
        """The step of this move of a rule, or of the first possible one with the same action; None if there is none,
        or a function raises.
        """
        try:
            arguments = read(self._model, self._rules[rule].reads, row)
            if arguments is None:
                return None
            rule_moves = moves(self._model, self._rules[rule], *arguments)
            alike = [move] if move in rule_moves else [other for other in rule_moves if other.action == move.action]
            steps = ((candidate, fire(self._model, row, candidate)) for candidate in alike)
            return next((Step(candidate, after) for candidate, after in steps if after is not None), None)
        except RaisedError:
            return None
