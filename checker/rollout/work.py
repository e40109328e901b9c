"""The loop that works off the questions of a plan under one budget.

    work = Work(runner, seconds)
    work.ask(spec)       the result of a run
    work.deepen()        begin the next pass

A plan is searched in passes. Every run of a pass has the same limit, and the next pass has a limit four times as large.
A finished run is not repeated, so a pass costs the runs that are still open. A search asks the most useful question
first. Fixed shares of the budget were tried before: a share was too small for one change and wasted on another.

Rules of this module:

- The budget is work, in seconds of a reference machine (`checker.rollout.runs`). So the same request has the same plan
  on every machine.
- Questions that no verdict needs are asked `beside` them, such as an example of a danger, or another way of working.
  All of them have `BESIDE` seconds.
- A result of an earlier pass stays until a later pass has a better one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from checker.rollout.runs import RunEnd, Runner, RunResult, SafetyVerdict, impossible, not_begun
from checker.rollout.scenarios import RunSpec
from checker.scenario import ScenarioError

FIRST = 2.0  # seconds of work: most runs need less
DEEPER = 4
BESIDE = 10.0  # seconds of work for all questions that no verdict needs


class Work:
    """The runs of one plan. `filled_memory`: the free memory has ended one of them."""

    def __init__(self, run: Runner, seconds: float) -> None:
        self._run, self._seconds = run, seconds
        self._limit, self._used, self._beside = FIRST, 0.0, BESIDE
        self._is_beside = self._is_cut = False
        self._known: dict[str, tuple[float, RunResult]] = {}
        self.filled_memory = False

    def clock(self) -> float:
        """The work of all runs so far, in seconds."""
        return self._used

    @property
    def left(self) -> float:
        """The work that is left, in seconds."""
        left = self._seconds - self._used
        return max(0.0, min(left, self._beside) if self._is_beside else left)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """No verdict needs the questions that are asked inside."""
        outer, self._is_beside = self._is_beside, True
        try:
            yield
        finally:
            self._is_beside = outer

    def deepen(self) -> bool:
        """Begin the next pass; False if no run was cut by the limit of this one, or no work is left."""
        again = self._is_cut and self.left > 0 and self._limit < self._seconds
        self._is_cut = False
        self._limit *= DEEPER
        return again

    def ask(self, spec: RunSpec) -> RunResult:
        """The result of a run within the limit of this pass, or the known one if no work is left."""
        limit, known = self._known.get(spec.text) or (0.0, not_begun(spec))
        if limit < self._limit and not _is_final(known) and self.left:
            try:
                known = self._run(spec, min(self._limit, self.left))
            except ScenarioError:
                known = impossible(spec)
            self._known[spec.text] = self._limit, known
            self._used += known.seconds
            self._beside -= known.seconds if self._is_beside else 0.0
            self.filled_memory = self.filled_memory or known.end is RunEnd.MEMORY
        self._is_cut = self._is_cut or (not _is_final(known) and not self._is_beside)
        return replace(known, spec=spec)


def _is_final(result: RunResult) -> bool:
    """Whether a run with more work would have the same result."""
    return result.outcome is not SafetyVerdict.OPEN or result.end not in (RunEnd.WORK, RunEnd.NO_WORK_LEFT)
