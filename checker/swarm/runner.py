"""Executes walks in one process, and rebuilds the run of any walk.

A walk is a function of the seed and of its number. Rules:

- The kernel runs for some thousand steps; then Python fills the tables with the entries that it lacked.
- An interrupt takes effect between two such rounds. The walks that had begun count as far as they came.
- A run is repeated by the kernel, which then records the ordinals of its moves, and rebuilt by the plain engine. Both
  must reach the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from checker.engine.kernels import move_kernels
from checker.engine.model import Finding, Kind, Model, ModelError, Property
from checker.engine.process import Interrupts
from checker.engine.result import Coverage, Discovery, Evaluations, Step
from checker.engine.semantics import answer, rebuild, rediscover, successors
from checker.engine.steps import step_properties
from checker.engine.tables import Tables
from checker.swarm.outcome import Ending, Sighting, WalkCounts
from checker.swarm.plans import plans
from checker.swarm.walker import PartResult, SharedTables, Walker

BUDGET = 1 << 14  # steps of a round

Array = np.ndarray[Any, Any]


class WalkRunner:
    """The walks of a seed over a model without liveness. The tables stay from one call to the next.

    With `keep_going`, a violation ends only its walk. Raises ModelError, as all methods do.
    """

    def __init__(self, model: Model, seed: int, depth: int, *, keep_going: bool = False) -> None:
        self._model, self._seed, self._depth, self._keep_going = model, seed, depth, keep_going
        self._shared = SharedTables(model)
        self._walker = Walker(self._shared)

    def compile(self) -> None:
        """Compile the kernels, or load them from their cache, by one step of a walk."""
        walker = Walker(self._shared)
        walker.begin(plans(self._seed, 0, 1, 1), 1)
        walker.advance(1)

    def run(self, first: int, count: int, ended: Callable[[], Ending | None] = lambda: None) -> WalkCounts:
        """Execute the walks `first` to first + count; they end early when `ended`, called in each round, says why."""
        counts, walker, tables = WalkCounts(), self._walker, self._shared.tables
        python_before = tables.seconds
        walker.begin(plans(self._seed, first, count, self._depth))
        try:
            reason = None
            while walker.is_running and reason is None:
                with Interrupts():
                    walker.advance(BUDGET)
                    self._shared.fill(walker.noted)
                reason = ended()
            found = Ending.FOUND if walker.is_alarmed and not self._keep_going else None
            counts.ending = reason or found or Ending.WALKS
        except KeyboardInterrupt:
            counts.ending = Ending.INTERRUPTED
        _write(counts, walker.taken(), tables)
        counts.local = _local(walker.visited, tables)
        counts.python_seconds = tables.seconds - python_before
        return counts

    @property
    def running(self) -> WalkCounts:
        """The present counts of the walks that are running."""
        return self._walker.present()

    def path(self, walk: int, steps: int) -> tuple[Step, ...]:
        """The first steps of a walk, fewer if it ends earlier; executed again by both engines."""
        walker = Walker(self._shared)
        walker.begin(plans(self._seed, walk, 1, self._depth), steps)
        while walker.is_running:
            walker.advance(steps + 1)
            self._shared.fill(walker.noted)
        values = self._shared.tables.values(walker.cells.tolist())
        return rebuild(self._model, walker.ordinals[: walker.steps].tolist(), lambda row: row == values)

    def discovery(self, prop: Property, sighting: Sighting) -> Discovery:
        """The run to a finding, as its walk executed it."""
        path = self.path(sighting.walk, sighting.step)
        discovery = rediscover(self._model, prop, path)
        if discovery.depth != sighting.step:
            raise ModelError(f"the walk {sighting.walk} ends elsewhere than before; a step is not a function")
        return discovery

    def repeat(self, walk: int) -> tuple[tuple[Step, ...], list[Discovery]]:
        """The whole run of a walk, and the findings at its end."""
        plan = plans(self._seed, walk, 1, self._depth)
        path = self.path(walk, int(plan.limits[0]))
        last = path[-1].row
        is_end = not any(True for _ in successors(self._model, last))
        found = []
        for prop in self._model.properties:
            if prop.kind is Kind.ALWAYS or (prop.kind is Kind.FINAL and is_end):
                finding = answer(self._model, prop, last)
                if isinstance(finding, Finding):
                    found.append(Discovery(prop, finding, len(path) - 1, path))
        return path, found


def _write(counts: WalkCounts, part: PartResult, tables: Tables) -> None:
    """Write the counts of a part, with names in place of the numbers of the tables."""
    counts.walks, counts.cut, counts.steps, counts.dead = part.walks, part.cut, part.steps, part.dead
    counts.registers = part.registers
    depths, walks = np.unique(part.depths, return_counts=True)
    counts.depths = dict(zip(depths.tolist(), walks.tolist(), strict=True))
    for label, fired in zip(tables.labels, part.fired.tolist(), strict=False):
        if label.action:
            counts.coverage.setdefault(label.action, Coverage()).fired += fired
    verdicts, properties = tables.verdicts, tables.model.properties
    evaluations = [Evaluations() for _ in properties]
    totals = verdicts.totals(part.judged.times[: verdicts.judgements.size], part.final.times)
    for number in np.flatnonzero(totals).tolist():
        verdict, times = verdicts.verdicts[number], int(totals[number])
        for position in verdict.bundle.properties:
            evaluations[position].states += times
        for position in verdict.premises:
            evaluations[position].premise += times
    of_steps = step_properties(properties)
    counts.evaluations = {
        p.name: evaluation for p, evaluation in zip(properties, evaluations, strict=True) if p not in of_steps
    }
    for tally, found in ((part.judged, verdicts.found), (part.final, lambda n: verdicts.verdicts[n].found)):
        for number in tally.unnoted():
            step, walk = divmod(int(tally.first[number]), 1 << 32)
            for position in found(number):
                name, here = properties[position].name, Sighting(step, walk)
                counts.sightings[name] = min(here, counts.sightings.get(name, here))


def _local(visited: Array, tables: Tables) -> dict[str, Array]:
    """For each column, the numbers of its visited values, in ascending order."""
    cells = np.flatnonzero(visited)
    columns = np.array([tables.column_of(cell) for cell in cells.tolist()], np.int64)
    numbers = tables.cells.view[cells, move_kernels.ZOBRIST]
    return {column.name: np.sort(numbers[columns == position]) for position, column in enumerate(tables.model.columns)}
