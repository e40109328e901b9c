"""Many runs on all processors, one after the other on each.

Rules of this module:

- Each worker is a separate process. It gets one plan at a time, and returns the summary of its run.
- A run that does not end within `LONGEST` seconds of processor time is a failure: some code of a server loops.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice

from refimpl.simulation.judge import judged
from refimpl.simulation.report import RunSummary
from refimpl.simulation.run import Plan, simulate

LONGEST = 120.0


class EndlessRun(BaseException):
    """A run that does not end."""


def run_plan(plan: Plan) -> RunSummary:
    """Carries out and judges one plan."""

    def endless(_number: int, _frame: object) -> None:
        raise EndlessRun

    began = time.process_time()
    before = signal.signal(signal.SIGPROF, endless)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        outcome = simulate(plan)
        failures = judged(outcome)
    except EndlessRun:
        failure = f"the run does not end within {LONGEST:g} s of processor time"
        return RunSummary(plan.seed, (failure,), 0.0, time.process_time() - began, {}, {}, {}, 0, 0, "")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    return RunSummary(
        seed=plan.seed,
        failures=failures,
        simulated=outcome.simulated,
        real=time.process_time() - began,
        faults=outcome.faults,
        operations=outcome.operations,
        roles=outcome.roles,
        events=outcome.events,
        starts=outcome.starts,
        digest=outcome.digest,
    )


def run_all(plans: Iterator[Plan], workers: int) -> Iterator[RunSummary]:
    """Yields the summaries of plans as they end; a plan is taken when its run can begin."""
    if workers == 1:
        yield from map(run_plan, plans)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts) as pool:
        running: set[Future[RunSummary]] = set()
        try:
            while True:
                running |= {pool.submit(run_plan, plan) for plan in islice(plans, workers - len(running))}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    yield each.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
