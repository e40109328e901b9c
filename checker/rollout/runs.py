"""Runs a question about a stage, and classifies the result; and the loop that asks all questions of a plan.

    work = Work(runner, seconds)
    work.ask(spec)       the result of a run
    work.deepen()        begin the next pass

A plan is searched in passes. Every run of a pass has the same limit, and the next pass has a limit four times as large.
A finished run is not repeated, so a pass costs the runs that are still open. A search asks the most useful question
first. Fixed shares of the budget were tried before: a share was too small for one change and wasted on another.

Rules of this module:

- Every run is a scenario, loaded from its text and files, so that its trace can be replayed with nothing else.
- SAFE means that the space was exhausted. A search that a limit ended is OPEN.
- A run stalls if the operator waits for a server that can never serve. If only the bound on elections keeps the server
  from serving, the run is OPEN.
- Servers that all have a leader, and wait for each other, wait for `initLimit` ticks and then look again
  (`Leader.waitForEpochAck`). No time passes in the model, so a run that ends like this is OPEN.
- The server that the plan waits for is read from the last state of the run that stalled.
- The budget is the work of all runs, in seconds of a reference machine: the transitions and calls of the runs. So a
  busy or slow machine gives the same verdict, since elapsed time and processor time vary and the work does not. One
  limit depends on the machine: a run that fills its share of the free memory ends, and says so. The work between the
  runs has as much processor time as the budget; a plan that needs more, of hundreds of servers, is not decided.
- Questions that no verdict needs are asked `beside` them, such as an example of a danger, or another way of working.
  All of them have `BESIDE` seconds.
- A result of an earlier pass stays until a later pass has a better one.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, total_ordering
from importlib.util import find_spec
from typing import Self

from checker.engine import Discovery, Exploration, Limits, Move, Row
from checker.engine.model import Kind
from checker.engine.process import free_memory
from checker.engine.result import Stop
from checker.execution import compile_kernels, ended_by, run_uninterrupted
from checker.job import Job
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.setup import PLAN, server_name
from checker.models.ensemble.status import ElectionStatus, connects, election_status, is_established
from checker.rollout.orders import RESTART
from checker.rollout.scenarios import RunSpec
from checker.scenario import ScenarioError, from_text
from checker.symbolic.disjoint import UndecidedError
from checker.traces import trace_of
from checker.traces.minimise import minimised
from checker.traces.trace import Trace
from spec.quorum import Sid

SHARE_OF_MEMORY = 0.4  # of the free memory
A_SECOND = 2_000_000  # transitions: the work that a processor of 2023 does in about a second
A_RUN = 0.03  # seconds of work: to build a model, whatever its search costs
SMALL = 5_000  # states: about two seconds of the plain engine
LEAST_SECONDS = 0.5  # of work for a run that begins before the budget is used up


@total_ordering
class SafetyVerdict(Enum):
    """The outcome of a run, and the verdict on a question, a stage or a plan; the worst is first and the least."""

    UNSAFE = "unsafe"
    OPEN = "undecided"
    STALLS = "stalls"
    SAFE = "safe"

    def __lt__(self, other: Self) -> bool:
        order = list(SafetyVerdict)
        return order.index(self) < order.index(other)


def worst_verdict(verdicts: Iterable[SafetyVerdict]) -> SafetyVerdict:
    """The worst of some verdicts; undecided without any."""
    return min(verdicts, default=SafetyVerdict.OPEN)


class RunEnd(Enum):
    """The reason for the end of a run."""

    VIOLATION = "violation"
    STALL = "stall"  # some servers never find a leader
    EXHAUSTED = "exhausted"
    WORK = "work"  # the run has done the work that its limit allows
    MEMORY = "memory"  # the run has filled its share of the free memory
    INIT_LIMIT = "init limit"  # all servers wait, and none looks for a leader: initLimit ends that, not the model
    ELECTIONS = "elections"  # the bound on elections is used up before all servers settle
    NO_KERNELS = "no kernels"  # the run is large, and numba is not installed
    NO_WORK_LEFT = "no work left"  # the run never began
    IMPOSSIBLE = "impossible"  # no election of the model ends in the first state, or the opening cannot be followed


@dataclass(frozen=True)
class RunResult:
    """A run: the question, the outcome and the reason for its end, with its size, its bounds and the finding, if any.

    `seconds` is its work, in seconds of a reference machine. `least_moves` are those of the states before the finding.
    `levels` count its states by depth. `stuck`: the server that the operator waits for in vain. `text` is the scenario.
    """

    spec: RunSpec
    outcome: SafetyVerdict
    end: RunEnd
    states: int
    depth: int
    seconds: float
    bounds: tuple[str, ...]
    text: str
    found: Discovery | None = None
    least_moves: int = 0
    levels: tuple[int, ...] = ()
    stuck: Sid | None = None
    looking: tuple[Sid, ...] = ()
    exhausted: bool = False

    @property
    def begun(self) -> bool:
        """False iff no time was left for the run."""
        return self.states > 0

    @property
    def complete(self) -> bool:
        """True iff every reachable state was explored, with or without a finding."""
        return self.exhausted or self.outcome is SafetyVerdict.SAFE

    @property
    def prop(self) -> str:
        """The property that was violated; empty if none was."""
        return self.found.prop.name if self.found else ""

    @cached_property
    def _shortest(self) -> tuple[Job, Discovery] | None:
        """The job and the finding, minimised; computed on first use."""
        if self.found is None:
            return None
        job = job_of(self.spec)
        return job, minimised(job, self.found, self.least_moves)

    @cached_property
    def trace(self) -> Trace | None:
        """The trace of the minimised finding."""
        return None if self._shortest is None else trace_of(*self._shortest)

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves of the minimised finding."""
        return () if self._shortest is None else tuple(step.move for step in self._shortest[1].path if step.move)

    @property
    def last_statuses(self) -> dict[Sid, ElectionStatus]:
        """The servers that run at the end of the minimised finding."""
        if self._shortest is None:
            return {}
        job, discovery = self._shortest
        return _running(_statuses(self.spec, job, discovery.path[-1].row))


Runner = Callable[[RunSpec, float], RunResult]
"""Runs a question with at most this number of seconds of work."""


def worst_result(results: Iterable[RunResult]) -> RunResult | None:
    """The result with the worst outcome, and of these the one with the fewest faults; None without any."""
    return min(results, key=lambda result: (result.outcome, sum(result.spec.faults.values())), default=None)


class Engine:
    """Runs questions: with the plain engine until one is larger than `SMALL`, and from then on with the table engine.

    Kernels take time to compile and to load, and need numba. Many answers need none. Without numba a larger question
    stays open.
    """

    def __init__(self) -> None:
        self._compiled: set[bool] = set()
        self._can_compile = find_spec("numba") is not None

    def run(self, spec: RunSpec, seconds: float) -> RunResult:
        """Explore a question with at most this number of seconds of work."""
        job = job_of(spec)
        if not self._compiled:
            explored = run_uninterrupted(job, replace(_limits(seconds), states=SMALL), "plain")
            if explored.stop is not Stop.STATES:
                return _classified(spec, job, explored)
            if not self._can_compile:
                result = _classified(spec, job, explored)
                return result if result.found else replace(result, end=RunEnd.NO_KERNELS)
        if spec.recoverable not in self._compiled:
            compile_kernels(job)
            self._compiled.add(spec.recoverable)
        return _classified(spec, job, run_uninterrupted(job, _limits(seconds)))


def job_of(spec: RunSpec) -> Job:
    """The job of a question. Raises ScenarioError where its opening is impossible."""
    return from_text(spec.text, spec.files.get, "rollout.yaml")


def run(spec: RunSpec, seconds: float) -> RunResult:
    """Explore a question with at most this number of seconds of work."""
    return run_within(spec, _limits(seconds))


def _limits(seconds: float) -> Limits:
    work = round(max(seconds, LEAST_SECONDS) * A_SECOND)
    return Limits(memory=free_memory(SHARE_OF_MEMORY), work=work)


def not_begun(spec: RunSpec) -> RunResult:
    """A run for which no work was left."""
    return RunResult(spec, SafetyVerdict.OPEN, RunEnd.NO_WORK_LEFT, 0, 0, 0.0, (), spec.text)


def impossible(spec: RunSpec) -> RunResult:
    """A run that the model cannot begin: no election ends in its first state, or its opening cannot be followed."""
    return replace(not_begun(spec), end=RunEnd.IMPOSSIBLE)


def run_within(spec: RunSpec, limits: Limits) -> RunResult:
    """Explore a question within limits of any kind. An interrupt ends it, as KeyboardInterrupt."""
    job = job_of(spec)
    return _classified(spec, job, run_uninterrupted(job, limits))


def leads_first(spec: RunSpec) -> bool:
    """Whether that server leads, with a quorum, where exploration begins.

    False as well if no run of the model begins so, which is possible only where files differ.
    """
    try:
        job = job_of(spec)
    except ScenarioError:
        return False
    return is_established(_statuses(spec, job, job.model.initial()), spec.leader)


def _statuses(spec: RunSpec, job: Job, row: Row) -> dict[Sid, ElectionStatus | str]:
    """The statuses of the servers of a model in one state."""
    index = job.model.index
    return {sid: election_status(row[index[server_name(sid)]]) for sid in spec.stage.sids if server_name(sid) in index}


def _running(statuses: Mapping[Sid, ElectionStatus | str]) -> dict[Sid, ElectionStatus]:
    """The statuses of the servers that run."""
    return {sid: status for sid, status in statuses.items() if isinstance(status, ElectionStatus)}


def _classified(spec: RunSpec, job: Job, explored: Exploration) -> RunResult:
    violations = explored.violations
    seconds = A_RUN + explored.work / A_SECOND
    result = RunResult(
        spec, SafetyVerdict.SAFE, RunEnd.EXHAUSTED, explored.states, explored.depth, seconds, job.bounds, spec.text,
        levels=tuple(explored.levels), exhausted=explored.exhausted and not explored.unjudged,
    )  # fmt: skip
    if violations:
        discovery = min(violations, key=lambda each: (each.prop.kind is not Kind.ALWAYS, each.depth))
        if discovery.prop.kind is Kind.RECOVERABLE:
            return _not_recoverable(result, job, discovery)
        moves = explored.least_moves(discovery.depth)
        return replace(result, outcome=SafetyVerdict.UNSAFE, end=RunEnd.VIOLATION, found=discovery, least_moves=moves)
    if not explored.exhausted or explored.unjudged:
        return replace(
            result, outcome=SafetyVerdict.OPEN, end=RunEnd.MEMORY if explored.stop is Stop.MEMORY else RunEnd.WORK
        )
    return result


def _not_recoverable(result: RunResult, job: Job, found: Discovery) -> RunResult:
    """Classify a run that leaves servers without a common leader: a wait in vain, or the end of a bound."""
    spec = result.spec
    elections = [move.arguments for move, _ in found.path if move and move.action is ServerAction.ELECT]
    count = sum(leader in members for leader, members in elections)
    if spec.zab and count >= spec.elections:
        return replace(result, outcome=SafetyVerdict.OPEN, end=RunEnd.ELECTIONS)
    row, index = found.path[-1].row, job.model.index
    running = _running(_statuses(spec, job, row))
    looking = tuple(
        sid
        for sid, status in running.items()
        if status.leader is None or not connects(sid, status, running.get(status.leader), status.leader)
    )
    if not looking:
        return replace(result, outcome=SafetyVerdict.OPEN, end=RunEnd.INIT_LIMIT)
    stuck = _waited_for(spec, row[index[PLAN]]) if PLAN in index else None
    return replace(result, outcome=SafetyVerdict.STALLS, end=RunEnd.STALL, found=found, stuck=stuck, looking=looking)


def _waited_for(spec: RunSpec, done: int) -> Sid | None:
    """The server of the last step after this number of actions of the plan; a restart is two actions."""
    count = 0
    for step in spec.steps_taken:
        count += 2 if step.action == RESTART else 1
        if count == done:
            return step.sid if step.wait and spec.patient else None
    return None


class TimeBetweenRuns:
    """A runner, and the check that ends the work between its runs after some seconds of processor time."""

    def __init__(self, run: Runner, seconds: float) -> None:
        self._run, self._seconds, self._began = run, seconds, time.thread_time()

    def check(self) -> None:
        """Raises checker.symbolic.disjoint.UndecidedError after the time."""
        if time.thread_time() - self._began > self._seconds:
            problem = f"not decided: the work between the runs has used up the budget of {self._seconds:g} s"
            raise UndecidedError(f"{problem}; ask with a larger budget, or about fewer servers")

    def run(self, spec: RunSpec, seconds: float) -> RunResult:
        """Explore a question; the run has its own limit. Raises the errors of the runner."""
        began = time.thread_time()
        try:
            with ended_by(lambda: None):
                return self._run(spec, seconds)
        finally:
            self._began += time.thread_time() - began


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
        rest = self._seconds - self._used
        return max(0.0, min(rest, self._beside) if self._is_beside else rest)

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
        limit, result = self._known.get(spec.text) or (0.0, not_begun(spec))
        if limit < self._limit and not _is_final(result) and self.left:
            try:
                result = self._run(spec, min(self._limit, self.left))
            except ScenarioError:
                result = impossible(spec)
            self._known[spec.text] = self._limit, result
            self._used += result.seconds
            self._beside -= result.seconds if self._is_beside else 0.0
            self.filled_memory = self.filled_memory or result.end is RunEnd.MEMORY
        self._is_cut = self._is_cut or (not _is_final(result) and not self._is_beside)
        return replace(result, spec=spec)


def _is_final(result: RunResult) -> bool:
    """Whether a run with more work would have the same result."""
    return result.outcome is not SafetyVerdict.OPEN or result.end not in (RunEnd.WORK, RunEnd.NO_WORK_LEFT)
