"""Executes walks in one process, and rebuilds the run of any walk.

A walk is a function of the seed and of its number. Rules:

- The kernel runs for some thousand steps; then Python fills the tables with the entries that it lacked.
- An interrupt takes effect between two such rounds. The walks that had begun count as far as they came.
- A run is repeated by the kernel, which then records the ordinals of its moves, and rebuilt by the plain engine. Both
  must reach the same state.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from checker.engine.model import Finding, Kind, Model, ModelError, Property
from checker.engine.process import Interrupts
from checker.engine.result import Discovery, Step, Stop
from checker.engine.semantics import answer, rebuild, rediscover, successors
from checker.swarm.outcome import Sighting, WalkCounts
from checker.swarm.walker import SharedTables, Walker, plans

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

    def run(self, first: int, count: int, ended: Callable[[], Stop | None] = lambda: None) -> WalkCounts:
        """Execute the walks `first` to first + count; they end early when `ended`, called in each round, says why."""
        walker, tables = self._walker, self._shared.tables
        python_before = tables.seconds
        walker.begin(plans(self._seed, first, count, self._depth))
        try:
            reason = None
            while walker.is_running and reason is None:
                with Interrupts():
                    walker.advance(BUDGET)
                    self._shared.fill(walker.noted)
                reason = ended()
            reason = reason or (Stop.FOUND if walker.is_alarmed and not self._keep_going else Stop.WORK)
        except KeyboardInterrupt:
            reason = Stop.INTERRUPTED
        counts = walker.taken()
        counts.stop, counts.python_seconds = reason, tables.seconds - python_before
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
        return rebuild(self._model, walker.ordinals, lambda row: row == walker.values)

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
        discoveries = []
        for prop in self._model.properties:
            if prop.kind is Kind.ALWAYS or (prop.kind is Kind.FINAL and is_end):
                finding = answer(self._model, prop, last)
                if isinstance(finding, Finding):
                    discoveries.append(Discovery(prop, finding, len(path) - 1, path))
        return path, discoveries
