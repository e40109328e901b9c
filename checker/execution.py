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
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

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
    if engine == "plain":
        with _progress(job.name, report) as progress:
            return _plain(job, limits, progress, reduce)
    found, used = _searched(job, limits, report, workers, checkpoint, seed, reduce)
    if engine == "tables" or found.stop in CUT_SHORT:
        return found
    with _progress(job.name, report) as progress:
        return _compared(found, _plain(job, limits, progress), used)


def compare_with_symmetry(
    job: Job, found: Exploration, *, workers: Workers = 2, report: Report | None = None, seed: int = SEED
) -> str:
    """Explore a job with its symmetry, and compare the answers with those of a search in full; the result in words.

    The limits are those of the job, less what the search in full has used. Raises ModelError, also if the answers
    differ.
    """
    if found.stop in CUT_SHORT:
        return ""
    if reason := _reason_against_symmetry(job, workers):
        return f"none, and nothing to compare: {reason}"
    other = _with_symmetry(job, job.limits, found, report, workers, seed)
    if other.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    if other.stop in CUT_SHORT:
        return "none; a symmetric search did not end within the limits"
    _compare_answers("the symmetric search and the full one", other, found, "symmetric")
    answers = "the same answers" if found.exhausted and other.exhausted else "the same findings within the limits"
    return f"none; a symmetric search of {other.states:,} states in {other.seconds:.0f} s gives {answers}"


def run_uninterrupted(job: Job, limits: Limits) -> Exploration:
    """Explore a job by tables within limits. Raises ModelError, and KeyboardInterrupt if an interrupt ended it."""
    exploration = run_job(job, limits)
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


def _by_tables(
    job: Job, limits: Limits, progress: Report, workers: Workers, checkpoint: Checkpoint | None, seed: int
) -> Exploration:
    named: dict[str, Any] = {"until_witnessed": job.until_witnessed, "progress": progress}
    named |= {"checkpoint": checkpoint, "seed": seed}
    if isinstance(workers, int):
        from checker.engine import search  # noqa: PLC0415 (loads the kernels)

        return search.explore(job.model, limits, workers=workers, **named)
    from checker.cluster.explore import explore  # noqa: PLC0415 (loads the kernels; Ray is an extra)

    return explore(job.model, limits, workers=workers, **named)


def _searched(
    job: Job,
    limits: Limits,
    report: Report | None,
    workers: Workers,
    checkpoint: Checkpoint | None,
    seed: int,
    reduce: Reduction,
) -> tuple[Exploration, Reduction]:
    if reduce == "auto":
        if checkpoint is None and not _reason_against_symmetry(job, workers):
            return _automatic(job, limits, report, workers, seed)
        reduce = "none"
    with _progress(job.name, report) as progress:
        search = _by_tables if reduce == "none" else _by_symmetry
        return search(job, limits, progress, workers, checkpoint, seed), reduce


def _automatic(
    job: Job, limits: Limits, report: Report | None, workers: Workers, seed: int
) -> tuple[Exploration, Reduction]:
    """Explore a job in full. If it is large, begin again with its symmetry.

    A small space takes less time in full, since a symmetric search makes comparisons first.
    """
    most = FULL_STATES if limits.states is None else min(FULL_STATES, limits.states)
    with _progress(job.name, report) as progress:
        found = _by_tables(job, replace(limits, states=most), progress, workers, None, seed)
    if found.stop is not Stop.STATES or most == limits.states:
        return replace(found, limits=limits), "none"
    try:
        other = _with_symmetry(job, limits, found, report, workers, seed)
    except KeyboardInterrupt:  # before the search, which would end by itself
        return replace(found, limits=limits, stop=Stop.INTERRUPTED), "none"
    is_less = other.stop in CUT_SHORT and not other.found and other.depth < found.depth
    best = replace(found, stop=other.stop) if is_less else other
    both = replace(
        best,
        limits=limits,
        seconds=found.seconds + other.seconds,
        work=found.work + other.work,
        python_steps=found.python_steps + other.python_steps,
        python_calls=found.python_calls + other.python_calls,
        python_seconds=found.python_seconds + other.python_seconds,
        peak_bytes=max(found.peak_bytes, other.peak_bytes),
        spilled_bytes=max(found.spilled_bytes, other.spilled_bytes),
    )
    return both, "none" if is_less else "symmetric"


def _reason_against_symmetry(job: Job, workers: Workers) -> str | None:
    from checker.engine.symmetric_search import reason_against_symmetry  # noqa: PLC0415 (as late as the engine)

    return reason_against_symmetry(job.model) if isinstance(workers, int) else "it does not run on a cluster"


def _with_symmetry(
    job: Job, limits: Limits, found: Exploration, report: Report | None, workers: Workers, seed: int
) -> Exploration:
    """Explore a job with its symmetry, within what a search in full has left of the limits.

    No limit counts the time before a search was resumed.
    """
    used = found.seconds - found.seconds_before
    seconds = None if limits.seconds is None else max(0.0, limits.seconds - used)
    work = None if limits.work is None else max(0, limits.work - found.work)
    with _progress(f"{job.name}, with symmetry", report) as progress:
        return _by_symmetry(job, replace(limits, seconds=seconds, work=work), progress, workers, None, seed)


def _by_symmetry(
    job: Job, limits: Limits, progress: Report, workers: Workers, checkpoint: Checkpoint | None, seed: int
) -> Exploration:
    """Explore a job with its symmetry. Raises ModelError for what such a search cannot do."""
    from checker.engine import symmetric_search  # noqa: PLC0415 (loads the kernels)
    from checker.engine.model import ModelError  # noqa: PLC0415 (for this case alone)

    if checkpoint is not None or not isinstance(workers, int):
        problem = "saves no checkpoint" if checkpoint is not None else "does not run on a cluster"
        raise ModelError(f"--reduce symmetric {problem}; write --reduce none, or leave the other option out")
    named: dict[str, Any] = {"until_witnessed": job.until_witnessed, "progress": progress, "seed": seed}
    return symmetric_search.explore(job.model, limits, workers=workers, **named)


def _plain(job: Job, limits: Limits, progress: Report, reduce: Reduction = "none") -> Exploration:
    """Explore a job by the plain engine. Raises ModelError for a reduction, which it does not have."""
    from checker.engine import plain  # noqa: PLC0415 (as late as the other engine)
    from checker.engine.model import ModelError  # noqa: PLC0415 (for this case alone)

    if reduce != "none":
        raise ModelError(
            f"--reduce {reduce} is for the table engine; write --engine tables, or --engine both to compare"
        )
    return plain.explore(job.model, limits, until_witnessed=job.until_witnessed, progress=progress)


def _compared(found: Exploration, other: Exploration, reduce: Reduction) -> Exploration:
    """The result of two engines that explored one job. Raises ModelError if they disagree."""
    searched = f"the plain engine, {other.states:,} states in {other.seconds:.2f} s"
    if other.stop in CUT_SHORT:
        kept = replace(found, stop=other.stop) if found.violations else other
        return replace(kept, second=f"{searched}: it did not end, so that nothing was compared")
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
