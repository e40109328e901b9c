"""Runs a job: the one way from a job to its exploration, and the deadline that several runs share.

Rules of this module:

- The engines are imported when a run begins, because their kernels load slowly.
- A run shows its progress on standard error, unless the caller has a report of its own.
- An interrupt ends a run, and the exploration says so; `run_uninterrupted` raises it again instead.
- Work beside runs ends where it calls `poll`, by the exception of the check that `ended_by` has set for its thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from checker.engine.result import CUT_SHORT, SEED, Exploration, Limits, Stop, disagreements, verdict_disagreements

if TYPE_CHECKING:
    from checker.cluster import Workers
    from checker.engine.checkpoint import Checkpoint
    from checker.job import Job

EngineName = Literal["tables", "plain", "both"]
Reduction = Literal["none", "symmetric", "auto"]
FULL_STATES = 3_000_000
"""The states that a search with `auto` explores in full, before it begins again with symmetry."""
Report = Callable[[Exploration], None]
"""Takes an unfinished exploration several times a second; a KeyboardInterrupt that it raises ends the run."""


_CHECK: ContextVar[Callable[[], None]] = ContextVar("_CHECK", default=lambda: None)


@contextmanager
def ended_by(check: Callable[[], None]) -> Iterator[None]:
    """A context whose work ends as soon as the check raises an exception."""
    before = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(before)


def poll() -> None:
    """Raise what ends the present work: its time is over, or nobody waits for its result."""
    _CHECK.get()()


class Deadline:
    """A budget of some seconds that starts now, and the time that remains. The caller decides how runs share it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        """The remaining time in seconds; never below zero."""
        return max(0.0, self._end - self.clock())

    @property
    def used(self) -> float:
        """The time used so far, in seconds."""
        return self.seconds - (self._end - self.clock())


def run_job(
    job: Job,
    limits: Limits | None = None,
    *,
    engine: EngineName = "tables",
    workers: Workers = 2,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    seed: int = SEED,
    reduce: Reduction = "none",
) -> Exploration:
    """Explore a job within limits (default: those of the job). Raises ModelError, also if two engines disagree.

    The engine "both" compares the two engines if neither was cut short. Otherwise the stop of the second is the stop of
    the run, and the violations found by the first remain. A reduced search is one by tables; with "both" its answers
    are compared with those of the plain engine, which searches in full.

    The reduction "auto" is "symmetric" in large models with a symmetry, else "none"; with a checkpoint or on a cluster
    it is "none".
    """
    limits = job.limits if limits is None else limits
    run = _JobRun(job, workers, report, checkpoint, seed)
    if engine == "plain":
        return run.by_sets(limits, reduce)
    result, used = run.by_tables(limits, reduce)
    if engine == "tables" or result.stop in CUT_SHORT:
        return result
    return _compared(result, run.by_sets(limits), used)


def compare_with_symmetry(
    job: Job, found: Exploration, *, workers: Workers = 2, report: Report | None = None, seed: int = SEED
) -> str:
    """Explore a job with its symmetry, and compare the answers with those of a search in full; the result in words.

    The limits are those of the job, less what the search in full has used. Raises ModelError, also if the answers
    differ.
    """
    if found.stop in CUT_SHORT:
        return ""
    run = _JobRun(job, workers, report, seed=seed)
    if reason := run.reason_against_symmetry:
        return f"none, and nothing to compare: {reason}"
    result = run.after(found, job.limits)
    if result.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    if result.stop in CUT_SHORT:
        return "none; a symmetric search did not end within the limits"
    _compare_answers("the symmetric search and the full one", result, found, "symmetric")
    answers = "the same answers" if found.exhausted and result.exhausted else "the same findings within the limits"
    return f"none; a symmetric search of {result.states:,} states in {result.seconds:.0f} s gives {answers}"


def run_uninterrupted(job: Job, limits: Limits, engine: EngineName = "tables") -> Exploration:
    """Explore a job within limits. Raises ModelError, and KeyboardInterrupt if an interrupt ended it."""
    exploration = run_job(job, limits, engine=engine)
    if exploration.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    return exploration


def compile_kernels(job: Job, *, shown: bool = True) -> None:
    """Compile the kernels for a job, or load them from their cache, so that no run pays for it. Raises ModelError.

    If it is not `shown`, the engine itself reports a compilation, and to a terminal alone.
    """
    from checker.engine import search  # noqa: PLC0415 (loads the kernels)

    with _progress("", None) if shown else nullcontext() as progress:
        search.explore(job.model, Limits(depth=1), progress=progress)


@dataclass(frozen=True)
class _JobRun:
    """A job with the options that all of its searches share. All methods raise ModelError."""

    job: Job
    workers: Workers
    report: Report | None
    checkpoint: Checkpoint | None = None
    seed: int = SEED

    def by_sets(self, limits: Limits, reduce: Reduction = "none") -> Exploration:
        """The search by the plain engine, which has no reduction."""
        from checker.engine import plain  # noqa: PLC0415 (as late as the other engine)
        from checker.engine.model import ModelError  # noqa: PLC0415 (for this case alone)

        if reduce != "none":
            raise ModelError(
                f"--reduce {reduce} is for the table engine; write --engine tables, or --engine both to compare"
            )
        with _progress(self.job.name, self.report) as progress:
            return plain.explore(self.job.model, limits, until_witnessed=self.job.until_witnessed, progress=progress)

    def by_tables(self, limits: Limits, reduce: Reduction) -> tuple[Exploration, Reduction]:
        """The search by tables, and the reduction that it had."""
        if reduce == "symmetric":
            return self._explore(limits, is_symmetric=True), reduce
        if reduce == "none" or self.checkpoint is not None or self.reason_against_symmetry:
            return self._explore(limits), "none"
        return self._automatic(limits)

    def _explore(self, limits: Limits, further: str = "", *, is_symmetric: bool = False) -> Exploration:
        from checker.engine import search, symmetric_search  # noqa: PLC0415 (they load the kernels)

        with _progress(self.job.name + further, self.report) as progress:
            return search.explore(
                self.job.model, limits, workers=self.workers, checkpoint=self.checkpoint, progress=progress,
                frontier=symmetric_search.SYMMETRIC if is_symmetric else search.BREADTH_FIRST,
                until_witnessed=self.job.until_witnessed, seed=self.seed,
            )  # fmt: skip

    def _automatic(self, limits: Limits) -> tuple[Exploration, Reduction]:
        """Explore a job in full. If it is large, begin again with its symmetry.

        A small space takes less time in full, since a symmetric search makes comparisons first.
        """
        most = FULL_STATES if limits.states is None else min(FULL_STATES, limits.states)
        in_full = self._explore(replace(limits, states=most))
        if in_full.stop is not Stop.STATES or most == limits.states:
            return replace(in_full, limits=limits), "none"
        try:
            symmetric = self.after(in_full, limits)
        except KeyboardInterrupt:  # before the search, which would end by itself
            return replace(in_full, limits=limits, stop=Stop.INTERRUPTED), "none"
        is_less = symmetric.stop in CUT_SHORT and not symmetric.found and symmetric.depth < in_full.depth
        best = replace(in_full if is_less else symmetric, limits=limits, stop=symmetric.stop)
        return best.at_the_cost_of(in_full, symmetric), "none" if is_less else "symmetric"

    @property
    def reason_against_symmetry(self) -> str | None:
        """The reason why the job cannot be explored with its symmetry, if there is one."""
        from checker.engine.symmetric_search import reason_against_symmetry  # noqa: PLC0415 (as late as the engine)

        is_here = isinstance(self.workers, int)
        return reason_against_symmetry(self.job.model) if is_here else "it does not run on a cluster"

    def after(self, found: Exploration, limits: Limits) -> Exploration:
        """Explore a job with its symmetry, within the limits that a search in full has left.

        No limit counts the time before a search was resumed.
        """
        left = limits.less(found.seconds - found.seconds_before, found.work)
        return self._explore(left, ", with symmetry", is_symmetric=True)


def _compared(found: Exploration, other: Exploration, reduce: Reduction) -> Exploration:
    """The result of two engines that explored one job. Raises ModelError if they disagree."""
    searched = f"the plain engine, {other.states:,} states in {other.seconds:.2f} s"
    if other.stop in CUT_SHORT:
        result = replace(found, stop=other.stop) if found.violations else other
        return replace(result, second=f"{searched}: it did not end, so that nothing was compared")
    _compare_answers("the engines", found, other, reduce)
    return replace(
        found, assumption="", second=f"{searched}: {'every figure' if reduce == 'none' else 'every answer'} agrees"
    )


def _compare_answers(who: str, found: Exploration, other: Exploration, reduce: Reduction) -> None:
    """Compare a search that may be reduced with one in full. Raises ModelError if they disagree."""
    from checker.engine.model import ModelError  # noqa: PLC0415 (for this case alone)

    symmetry = found.model.symmetry if reduce == "symmetric" else None
    if symmetry is None:
        differences = disagreements(found, other)
    else:
        differences = verdict_disagreements(found, other, ends=symmetry.wider is None)
    if differences:
        raise ModelError(f"{who} disagree, which is a defect: " + "; ".join(differences))


def _progress(name: str, report: Report | None) -> AbstractContextManager[Report]:
    if report is not None:
        return nullcontext(report)
    from checker.report.text import Progress  # noqa: PLC0415 (a caller with a report shows no line)

    return Progress(name)
