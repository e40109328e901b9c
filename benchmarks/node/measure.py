"""Measures the cases of the table: the kinds of server in turn, round after round, on the same machine and disk.

A stub measures the speed of the load generator: a server that only counts bytes and answers from a prepared buffer.

Rules of this module:

- Both kinds run at the same time and are idle while the other one is measured. Within a round each is measured once,
  and the order alternates from round to round. A figure is the median over the rounds.
- fsync is on, as it is by default; the time of one fsync on that disk is measured too.
- Before the first round every server carries out `WARM_UP` of each operation: a JVM compiles the code that it runs
  often.
- With several servers, requests are sent to the leader. Every run has a separate session and a separate znode.
- The stub runs in a separate process, like a server; it knows one batch, and answers it once for
  each session; it does as little work for a request as possible.
"""

import multiprocessing
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import psutil

from benchmarks.node.load import Run, drive, make, session
from benchmarks.node.requests import OPERATIONS, VALUE, Batch, answers, batch, framed, opening
from benchmarks.node.timing import HEAP, Say, Timing
from benchmarks.outcome import Missed, NotMeasured
from harness import real
from harness.ensemble import KINDS, Ensemble
from harness.layouts import write
from harness.processes import LOOPBACK, ServerError
from harness.releases import DEBIAN

WARM_UP = 20_000
QUICK = 20
"""The divisor for the requests of a quick look, whose figures are not significant."""
TICK = 2000
"""Milliseconds; ZooKeeper's usual tick, so that pings do not disturb."""


@dataclass(frozen=True)
class Case:
    """One operation with a number of outstanding requests and of servers; a run makes `requests` of them."""

    operation: str
    outstanding: int
    servers: int
    requests: int

    def __str__(self) -> str:
        return f"{self.operation}, {self.outstanding} outstanding, {self.servers} server{'s'[: self.servers > 1]}"


CASES = (
    Case("create", 50, 1, 20_000),
    Case("set", 50, 1, 20_000),
    Case("get", 50, 1, 60_000),
    Case("set", 1, 1, 2_000),
    Case("get", 1, 1, 6_000),
    Case("create", 50, 3, 20_000),
    Case("set", 50, 3, 20_000),
    Case("set", 1, 3, 2_000),
)


@dataclass(frozen=True)
class Figures:
    """The figures of one kind of server in one case, one for each round; latencies in seconds.

    `cpu` are the seconds of a processor that the server that is asked takes for one request, in all of its threads.
    Other programs of the machine change it less than the rate.
    """

    rates: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, run: Run, cpu: float | None = None) -> None:
        """Add the figures of one round; nothing is known of the processor without `cpu`."""
        if cpu is not None:
            self.cpu.append(cpu)
        self.rates.append(run.rate)
        self.p50.append(run.percentile(50))
        self.p99.append(run.percentile(99))

    @property
    def rate(self) -> float:
        """Replies per second, the median of the rounds."""
        return median(self.rates)


@dataclass(frozen=True)
class Row:
    """One case: the figures of each measured kind, and those of the load generator against the stub."""

    case: Case
    generator: Figures
    kinds: dict[str, Figures]

    @property
    def ratio(self) -> float | None:
        """Replies per second of our node, divided by those of the real server; None if one of them is missing."""
        real, node = self.kinds.get("real"), self.kinds.get("node")
        return None if real is None or node is None else node.rate / real.rate

    @property
    def headroom(self) -> float | None:
        """The speed of the load generator, as a multiple of the speed of the faster server."""
        return self.generator.rate / max(figures.rate for figures in self.kinds.values()) if self.kinds else None


@dataclass(frozen=True)
class Report:
    """The whole table. `release` is the real server; `fsync` the median time of one on the disk, in seconds."""

    rows: list[Row]
    missed: list[Missed]
    rounds: int
    quick: bool
    fsync: float
    timings: tuple[Timing, ...] = ()
    release: str = DEBIAN

    def with_timings(self, timings: Sequence[Timing], missed: Sequence[Missed]) -> "Report":
        """The same report with the timings, and with further missed measurements."""
        return replace(self, timings=tuple(timings), missed=[*self.missed, *missed])


def measure(kinds: Sequence[str], rounds: int, directory: Path, quick: bool, say: Say, release: str = DEBIAN) -> Report:
    """Measure every case for these kinds; a kind that cannot be started, or fails, is listed in `missed`."""
    classes = {kind: real.available(release) if kind == "real" else KINDS[kind]() for kind in kinds}
    reasons = [Missed(kind, reason) for kind, reason in classes.items() if reason]
    startable = [kind for kind, reason in classes.items() if reason is None]
    measured = _Measurement(rounds, directory, QUICK if quick else 1, say, release)
    rows: list[Row] = []
    for servers in dict.fromkeys(case.servers for case in CASES if kinds):
        rows += measured.cases([case for case in CASES if case.servers == servers], startable)
    missed = [*reasons, *measured.missed.values()]
    return Report(rows, missed, rounds, quick, _fsync_time(directory), release=release)


class _Measurement:
    def __init__(self, rounds: int, directory: Path, divisor: int, say: Say, release: str) -> None:
        self.missed: dict[str, Missed] = {}
        self._rounds = rounds
        self._directory = directory
        self._divisor = divisor
        self._say, self._release = say, release
        self._number = count()

    def cases(self, cases: Sequence[Case], kinds: Sequence[str]) -> list[Row]:
        servers = cases[0].servers
        with ExitStack() as running:
            ensembles: dict[str, Ensemble] = {}
            for kind in kinds:
                with self._missing(kind):
                    ensemble = running.enter_context(self._ensemble(kind, servers))
                    ensemble.start_all()
                    self._warm_up(ensemble)
                    ensembles[kind] = ensemble
            return [self._row(case, ensembles) for case in cases]

    def _ensemble(self, kind: str, servers: int) -> Ensemble:
        directory = self._directory / f"{kind}-{servers}"
        directory.mkdir(parents=True)
        return Ensemble(
            [kind] * servers, directory, standalone=servers == 1, tick_time=TICK, heap=HEAP, release=self._release
        )

    def _warm_up(self, ensemble: Ensemble) -> None:
        for operation in OPERATIONS:
            self._say(f"warming up: {operation}, {ensemble.kind(1)}, {len(ensemble.sids)} servers")
            self._run(Case(operation, 50, len(ensemble.sids), WARM_UP), ensemble)

    def _row(self, case: Case, ensembles: dict[str, Ensemble]) -> Row:
        figures = {kind: Figures() for kind in ensembles}
        for number in range(self._rounds):
            order = list(ensembles) if number % 2 == 0 else list(ensembles)[::-1]
            for kind in order:
                self._say(f"{case}: {kind}, round {number + 1} of {self._rounds}")
                with self._missing(f"{kind}: {case}"):
                    figures[kind].add(*self._run(case, ensembles[kind]))
        whole = {kind: figure for kind, figure in figures.items() if len(figure.rates) == self._rounds}
        return Row(case, self._generator(case), whole)

    def _run(self, case: Case, ensemble: Ensemble) -> tuple[Run, float]:
        """A run, and the seconds of a processor that the leader took for each request."""
        path = f"/load-{next(self._number):06d}"
        requests = batch(case.operation, case.requests // self._divisor, path)
        leader = ensemble.leader()
        process = psutil.Process(ensemble.process(leader).pid)
        with session(ensemble.client_port(leader)) as connection:
            make(connection, path)
            before = process.cpu_times()
            run = drive(connection, requests, case.outstanding)
            after = process.cpu_times()
        return run, (after.user - before.user + after.system - before.system) / run.count

    def _generator(self, case: Case) -> Figures:
        figures = Figures()
        requests = batch(case.operation, case.requests // self._divisor, "/load-000000")
        with stub(requests) as port:
            for _ in range(self._rounds):
                with session(port) as connection:
                    figures.add(drive(connection, requests, case.outstanding))
        return figures

    @contextmanager
    def _missing(self, name: str) -> Iterator[None]:
        """Record the reason of a failure in the block; the measurement continues with the next one."""
        try:
            yield
        except (NotMeasured, ServerError) as reason:
            self.missed.setdefault(name, Missed(name, str(reason)))


def _fsync_time(directory: Path, times: int = 50) -> float:
    """The median time to append one value to a file in the directory, and to fsync it."""
    durations: list[float] = []
    with (directory / "fsync").open("wb", buffering=0) as file:
        for _ in range(times):
            begin = time.perf_counter()
            file.write(VALUE)
            os.fsync(file.fileno())
            durations.append(time.perf_counter() - begin)
    return median(durations)


CHUNK = 1 << 18
SESSION = (0, 30_000, 1, bytes(16), False)


def serve(listener: socket.socket, requests: Batch) -> None:
    """Serve sessions one after another, until the listener is closed."""
    prepared = memoryview(answers(requests))
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _session(connection, requests, prepared)


def _session(connection: socket.socket, requests: Batch, prepared: memoryview) -> None:
    size, answered = -len(opening()), 0
    buffer = bytearray(CHUNK)
    while arrived := connection.recv_into(buffer):
        if size < 0 <= size + arrived:
            connection.sendall(framed(write("iilbt", SESSION)))
        size += arrived
        whole = min(max(size, 0) // requests.size, requests.count)
        if whole > answered:
            connection.sendall(prepared[answered * requests.answer_size : whole * requests.answer_size])
            answered = whole
        if size > len(requests.data):
            return


def _process(requests: Batch, ready: Connection) -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        ready.send(listener.getsockname()[1])
        serve(listener, requests)


@contextmanager
def stub(requests: Batch) -> Iterator[int]:
    """Run the stub for this batch; yields its port."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=_process, args=(requests, far), daemon=True)
    process.start()
    try:
        yield near.recv()
    finally:
        process.kill()
        process.join()
