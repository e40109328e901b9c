"""One run under kills: the load, the kills one after another, and the judgement of the history.

Servers are killed and started again by commands of the user, or as processes of this program. Each client writes and
reads a few znodes, and records every operation.

Rules of this module:

- Everything happens below one znode. A kill comes after acknowledged writes, and a server is started again after a
  while. The next kill waits until a write was acknowledged since, and every server accepts sessions.
- An ensemble that does not recover in time is a finding, and ends the run.
- At the end the znodes of all servers are compared, after a sync.
- The judge is `checker.histories.check`: linearizable writes and synced reads, no session that goes back, the same
  znodes at all servers. It knows neither the protocol of the servers nor their kind.
- A command is run by the shell, for one server each time. `{server}` is the number of the server, from 1 in the order
  of the addresses; `{host}` and `{port}` are its address.
- A command that fails, or does not end in time, is an error. A command that starts a server must leave it in the
  background.
- A client has one request in flight and retries nothing. It moves its session when a connection ends, and sometimes
  without need. A request without an answer is recorded as such, since it may take effect later.
- A server without create2 is asked to set and to read only: the answer to a create has no Stat there.
"""

import random
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from checker import histories
from checker.histories import Entry, FinalZnodes, Findings, Leaf, Operation
from checker.histories.record import Kind
from harness import commands as c
from harness.conform.kills.operations import KINDS, OperationSource, answered, registers, requests_of
from harness.layouts import Stat
from harness.processes import Place, ServerError, address_of, srvr, wait_until
from harness.session import Answer, Session

FAILURES = (OSError, ServerError, ValueError, struct.error)
"""What a client meets while servers are killed."""
TIMEOUT = 10_000
PATIENCE = 3.0
"""Seconds until a client stops waiting for an answer."""
PAUSE = 0.005
RETRY = 0.1
OLD_KINDS: Mapping[Kind, int] = {"set": 10, "get": 6, "sync+get": 6}
"""The relative frequency of each kind at a server without create2."""
MOVE_SHARE = 0.02
SESSION_ENDED = -112


class LoadClient(threading.Thread):
    """One client in its thread; `recorded` are its operations, `acknowledged` the number of its writes so far."""

    def __init__(self, number: int, places: Sequence[Place], root: str, seed: int, creates: bool) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.recorded: list[Operation] = []
        self.acknowledged = 0
        self._random = random.Random(f"{seed}/{number}")
        self._source = OperationSource(self.name, root, self._random, KINDS if creates else OLD_KINDS)
        self._places = tuple(places)
        self._session = Session(TIMEOUT, PATIENCE)
        self._server = 0
        self._ended = threading.Event()

    def run(self) -> None:
        """Work until `stop`; then close the session."""
        while not self._ended.is_set():
            if not self._session.connected or self._random.random() < MOVE_SHARE:
                self._move()
            else:
                self._operate()
                self._ended.wait(PAUSE)
        with suppress(*FAILURES):
            self._session.close()
        self._session.drop()

    def stop(self) -> None:
        """End the work after the operation in progress."""
        self._ended.set()

    def _move(self) -> None:
        self._server = self._random.randrange(len(self._places)) + 1
        try:
            if self._session.connect(self._places[self._server - 1]) == 0:
                self._session = Session(TIMEOUT, PATIENCE)  # it has expired
        except FAILURES:
            self._session.drop()
            self._ended.wait(RETRY)

    def _operate(self) -> None:
        operation = self._source.draw(self._session.session_id, self._server)
        try:
            answer = self._ask(operation)
        except FAILURES:
            self._session.drop()
            if operation.is_write:
                self.recorded.append(operation)
            return
        if answer.err == SESSION_ENDED:
            self._session.drop()
            self._session = Session(TIMEOUT, PATIENCE)
        outcome = answered(operation, answer, time.monotonic())
        self.acknowledged += outcome.acknowledged
        if outcome.is_write or outcome.outcome != "unknown":
            self.recorded.append(outcome)
        self._source.note(outcome)

    def _ask(self, asked: Operation) -> Answer:
        for opcode, *values in requests_of(asked):
            answer = self._session.ask(opcode, *values)
            if answer.err:
                return answer._replace(zxid=max(answer.zxid, 0))  # an error may have -1, which is no zxid
        return answer


SECONDS = 120.0
"""The bound of a command."""


class ServerControl(Protocol):
    """Something that kills and starts servers by their numbers, from 1; an `Ensemble` does."""

    def kill(self, number: int, /) -> None:
        """End a server at once, as a crash does. Raises ServerError."""

    def start(self, number: int, /) -> None:
        """Start a server that was killed. Raises ServerError."""


class ShellCommands(NamedTuple):
    """Commands of the user; `kill_command` may be None where only starts are needed."""

    places: Sequence[Place]
    kill_command: str | None
    start_command: str

    def kill(self, number: int) -> None:
        """Run the command that kills a server."""
        if self.kill_command is None:
            raise ServerError("no command kills a server; write --kill COMMAND")
        self._run("--kill", self.kill_command, number)

    def start(self, number: int) -> None:
        """Run the command that starts a server."""
        self._run("--restart", self.start_command, number)

    def _run(self, option: str, command: str, number: int) -> None:
        host, port = address_of(self.places[number - 1])
        for name, value in (("{server}", number), ("{host}", host), ("{port}", port)):
            command = command.replace(name, str(value))
        try:
            # Files and not pipes: a server that the command leaves behind would keep a pipe open.
            ended = subprocess.run(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"{option}: {command!r} did not end within {SECONDS:g} s; leave a server in the background"
            ) from None
        if ended.returncode:
            raise ServerError(f"{option}: {command!r} ended with {ended.returncode}; run it by hand to see its message")


CLIENTS = 6
RECOVERY = 60.0
"""Seconds until a write must be acknowledged, and every server must accept sessions, after a kill."""
FIRST_WRITES = 20
CALM = (0.2, 1.0)
DOWN = (0.2, 3.0)
"""Seconds between a recovery and the next kill, and seconds that a server is down."""
POLL = 0.05
LEADER_SHARE = 0.5


class KillCycle(NamedTuple):
    """A kill: the server, whether it led (None: not known), seconds that it was down, seconds until the next write."""

    server: int
    led: bool | None
    down: float
    recovery: float


class KillsResult(NamedTuple):
    """What a run under kills found; `stuck` says why it ended early, and is empty otherwise."""

    cycles: tuple[KillCycle, ...]
    findings: Findings
    history: Path
    stuck: str

    @property
    def passed(self) -> bool:
        """Whether every check passed, and the servers recovered from every kill."""
        return self.findings.passed and not self.stuck


class KillsRun:
    """A run of `kills` kills on these servers, below the znode `root`, which exists. `history` is the file to write."""

    def __init__(
        self, places: Sequence[Place], root: str, control: ServerControl, kills: int, seed: int, creates: bool
    ) -> None:
        self._places, self._root, self._control, self._wanted = tuple(places), f"{root}/kills", control, kills
        self._random = random.Random(f"kills {seed}")
        self._clients = [LoadClient(number, places, self._root, seed, creates) for number in range(CLIENTS)]
        self._cycles: list[KillCycle] = []

    def run(self, history: Path, progress: Callable[[str], None]) -> KillsResult:
        """Make the run; the caller deletes the znodes. Raises ServerError, OSError."""
        prepared = self._prepare()
        for client in self._clients:
            client.start()
        try:
            stuck = self._strike(progress)
        finally:
            for client in self._clients:
                client.stop()
            for client in self._clients:
                client.join(PATIENCE * 4)
        recorded = (operation for client in self._clients for operation in client.recorded)
        operations = sorted((*prepared, *recorded), key=lambda operation: operation.invoked)
        replicas: list[FinalZnodes] = []
        try:
            replicas = [self._replica(number) for number in range(1, len(self._places) + 1)]
        except ServerError as error:
            stuck = stuck or str(error)
        entries: list[Entry] = [*operations, *replicas]
        histories.save(history, entries)
        findings = histories.check(histories.history_of(entries, str(history)))
        return KillsResult(tuple(self._cycles), findings, history, stuck)

    def _prepare(self) -> list[Operation]:
        session = Session(TIMEOUT, wakes=True)
        session.connect(self._places[0])
        creations: list[Operation] = []
        for number, path in enumerate((self._root, *registers(self._root))):
            value, invoked = f"first-{number}", time.monotonic()
            answer = session.ask(c.CREATE, path, value.encode(), c.OPEN, c.PERSISTENT)
            if answer.err:
                raise ServerError(f"{path} cannot be created: the server answers with error {answer.err}")
            stat = session.ask(c.Get.opcode, path, False).values[1]
            creations.append(
                Operation(
                    "preparation",
                    session.session_id,
                    1,
                    "create",
                    path,
                    invoked,
                    completed=time.monotonic(),
                    outcome="ok",
                    value=value,
                    zxid=answer.zxid,
                    mzxid=stat.mzxid,
                )
            )
        session.close()
        return creations[1:]

    def _strike(self, progress: Callable[[str], None]) -> str:
        """Kill and start servers; return the reason why the servers did not recover, or an empty text."""
        try:
            wait_until(lambda: self._acknowledged >= FIRST_WRITES, RECOVERY, f"{FIRST_WRITES} acknowledged writes")
            while len(self._cycles) < self._wanted:
                time.sleep(self._random.uniform(*CALM))
                self._cycles.append(self._cycle())
                progress(f"kill {len(self._cycles)} of {self._wanted}: {self._acknowledged} acknowledged writes")
        except ServerError as error:
            return str(error)
        return ""

    def _cycle(self) -> KillCycle:
        leader = self._leader()
        bystander = self._random.randrange(len(self._places)) + 1
        victim = leader if leader is not None and self._random.random() < LEADER_SHARE else bystander
        down = self._random.uniform(*DOWN)
        self._control.kill(victim)
        time.sleep(down)
        self._control.start(victim)
        since, count = time.monotonic(), self._acknowledged
        wait_until(lambda: self._acknowledged > count, RECOVERY, f"a write after the kill of server {victim}")
        recovery = time.monotonic() - since
        for number, place in enumerate(self._places, 1):
            wait_until(partial(accepts, place), RECOVERY, f"server {number} accepts a session")
        return KillCycle(victim, None if leader is None else victim == leader, down, recovery)

    @property
    def _acknowledged(self) -> int:
        return sum(client.acknowledged for client in self._clients)

    def _leader(self) -> int | None:
        modes = [srvr(place).get("Mode") for place in self._places]
        return modes.index("leader") + 1 if modes.count("leader") == 1 else None

    def _replica(self, number: int) -> FinalZnodes:
        """The znodes below the root on one server, after a sync; read again if the connection ends meanwhile."""
        deadline = time.monotonic() + RECOVERY
        while True:
            session = Session(TIMEOUT, wakes=True)
            try:
                session.connect(self._places[number - 1])
                session.ask(c.Sync.opcode, self._root)
                znodes = self._znodes(session)
                session.close()
            except FAILURES as error:
                session.drop()
                if time.monotonic() > deadline:
                    raise ServerError(f"the znodes of server {number} could not be read at the end: {error}") from error
                time.sleep(POLL)
            else:
                return FinalZnodes(number, znodes)

    def _znodes(self, session: Session) -> dict[str, Leaf]:
        answer = session.ask(c.Children.opcode, self._root, False)
        if answer.err:
            return {}
        names = answer.values[0]
        leaves: dict[str, Leaf] = {}
        for path in (self._root, *(f"{self._root}/{name}" for name in names)):
            data, stat = session.ask(c.Get.opcode, path, False).values
            value = None if data is None else data.decode()
            leaves[path] = Leaf(value, dict(zip(Stat._fields, stat, strict=True)))
        return leaves


def accepts(place: Place) -> bool:
    """Whether a server opens a session now."""
    session = Session(TIMEOUT, PATIENCE)
    try:
        session.connect(place)
        session.close()
    except FAILURES:
        session.drop()
        return False
    return True


def revived(control: ServerControl, places: Sequence[Place]) -> None:
    """Start the servers that accept no connection, and wait until they accept sessions. Raises ServerError."""
    for number, place in enumerate(places, 1):
        if not accepts(place):
            control.start(number)
            wait_until(partial(accepts, place), RECOVERY, f"server {number} accepts a session after its start")
