"""Many runs on all processors, one after the other on each; and the verdict on each.

The journals of a run are judged by the specification, its history by the guarantees of clients.

Rules of this module:

- Each worker is a separate process. It gets one plan at a time, and returns the summary of its run.
- A run that does not end within `LONGEST` seconds of processor time is a failure: some code of a server loops.
- Every step of every journal is replayed, and every message compared. The invariants are evaluated for one seed in
  `SAMPLE`.
- Every check runs, even after a failure of another one.
- A journal is written to a file for the validation, which reads files as those of a live server.
"""

import multiprocessing
import signal
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

from checker.histories import ClientHistoryError, FinalZnodes, check, history_of
from checker.job import Verdict
from checker.validate import JournalError, validate
from simulation.report import RunSummary
from simulation.run import Outcome, Plan, simulate
from simulation.workload import Numbered
from spec.quorum import Sid

SAMPLE = 4


def judged(outcome: Outcome) -> tuple[str, ...]:
    """The failures of a run: those it noticed, then those in its record. Empty if it passed."""
    return (
        *outcome.failures,
        *_journals(outcome.journals, _is_sampled(outcome)),
        *_history(outcome),
        *_pairs(outcome),
        *_numbers(outcome),
    )


def _is_sampled(outcome: Outcome) -> bool:
    """Whether the invariants are evaluated too. That takes longer than the run, so one seed in `SAMPLE` is chosen.

    They do not apply to a run in which the operator has written files: the view in them was never committed.
    """
    return not outcome.joined and zlib.crc32(outcome.plan.seed.encode()) % SAMPLE == 0


def _journals(journals: Mapping[Sid, bytes], together: bool) -> Sequence[str]:
    with tempfile.TemporaryDirectory(prefix="quorate-simulate-") as folder:
        paths = []
        for sid, data in journals.items():
            if data:
                paths.append(Path(folder) / f"server-{sid}.jsonl")
                paths[-1].write_bytes(data)
        if not paths:
            return []  # no server has started, which is a failure already
        try:
            validation = validate(paths, together=together)
        except JournalError as error:
            return [f"journal: {error}".replace(f"{folder}/", "")]
    if validation.verdict is Verdict.VIOLATED:
        return [f"journal: {mismatch}".replace(f"{folder}/", "") for mismatch in validation.mismatches[:3]]
    return []


def _history(outcome: Outcome) -> Sequence[str]:
    try:
        findings = check(history_of(outcome.entries))
    except ClientHistoryError as error:
        return [f"history: {error}"]
    undecided = [f"history: {key}: the search for an order was given up" for key in findings.undecided]
    return [*(f"history: {violation}" for violation in findings.violations), *undecided]


def _pairs(outcome: Outcome) -> Sequence[str]:
    """Both znodes of a multi exist, or none; both if it was acknowledged."""
    replica = next((entry for entry in outcome.entries if isinstance(entry, FinalZnodes)), None)
    if replica is None:
        return []
    failures = []
    for pair in outcome.pairs:
        present = [path for path in pair.paths if path in replica.znodes]
        if len(present) == 1 or (pair.acknowledged and not present):
            failures.append(f"a multi created {list(pair.paths)}, and {present} exist on server {replica.server}")
    return failures


def _numbers(outcome: Outcome) -> Sequence[str]:
    """Numbers of sequential znodes are unique, and rise in the order of real time."""
    failures: list[str] = []
    highest: Numbered | None = None
    by_end = sorted(outcome.numbered, key=lambda znode: znode.completed)
    waiting = list(by_end)
    if len({znode.number for znode in by_end}) < len(by_end):
        failures.append("two sequential znodes have one number")
    for znode in sorted(outcome.numbered, key=lambda znode: znode.invoked):
        while waiting and waiting[0].completed < znode.invoked:
            ended = waiting.pop(0)
            if highest is None or ended.number > highest.number:
                highest = ended
        if highest is not None and highest.number > znode.number:
            failures.append(f"sequential znode {znode.number} was asked for after {highest.number} was acknowledged")
            break
    return failures


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
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
