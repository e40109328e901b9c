"""The clients of a run: their requests, and the record of their answers.

Rules of this module:

- Every value is written once. A client has one request at a time, or a group of creates, and retries nothing.
- This module judges, answer by answer, the guarantees that the checks of histories do not cover: watches, the numbers
  of sequential znodes, the ephemeral znodes of a living session, and both halves of a multi.
- A read of a znode may not show a change of it while a watch on it waits for its event.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from checker.histories import Operation
from checker.histories.record import ANY_VERSION, Kind
from simulation.ensemble import CLIENT_PORT, address_of
from simulation.session import Answer, ClientSession, NoAnswerError, SessionExpiredError
from simulation.world.loop import SimulatedLoop
from spec.quorum import Sid
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.replies import Code, OperationResult
from spec.tree.requests import Check, Create2, CreateMode, Delete, Exists, GetData, Multi, SetData, SetWatches, Sync

ROOT = "/run"
REGISTERS = tuple(f"{ROOT}/register-{n}" for n in range(4))
SHARED = tuple(f"{ROOT}/e-{n}" for n in range(2))
KINDS: Mapping[str, int] = {
    "create": 3,
    "set": 9,
    "delete": 1,
    "get": 6,
    "sync+get": 6,
    "ledger": 4,
    "burst": 2,
    "pair": 2,
    "ephemeral": 2,
    "sequential": 2,
    "close": 1,
}
"""The relative frequency of each kind of work."""
NAMES = {Code.NO_NODE: "NoNode", Code.BAD_VERSION: "BadVersion", Code.NODE_EXISTS: "NodeExists"}
UNKNOWN = (Code.CONNECTION_LOSS, Code.OPERATION_TIMEOUT, Code.SESSION_MOVED, Code.SESSION_EXPIRED)
"""Errors that leave the outcome open, or that an unnoticed change of the session explains."""


class Pair(msgspec.Struct, frozen=True):
    """The two znodes that a multi creates, and whether it was acknowledged."""

    paths: tuple[str, str]
    acknowledged: bool


class Numbered(msgspec.Struct, frozen=True):
    """A sequential znode: its number, and when it was asked for and acknowledged."""

    number: int
    invoked: float
    completed: float


class Client:
    """One client with its session, and its records."""

    def __init__(self, loop: SimulatedLoop, number: int, servers: int, seed: str, pause: float, timeout: int) -> None:
        self.name = f"client-{number}"
        self.recorded: list[Operation] = []
        self.pairs: list[Pair] = []
        self.numbered: list[Numbered] = []
        self.errors: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.events = 0
        self.living: dict[int, dict[str, None]] = {}
        """The ephemeral znodes that each session certainly has while it lives."""
        self._loop, self._servers, self._pause = loop, servers, pause
        self._random = random.Random(f"{seed}/{self.name}")
        self._session = ClientSession(loop, timeout, max(2.0, timeout / 1000), self._event)
        self._server: Sid = 0
        self._count = 0
        self._versions: dict[str, int] = {}
        self._resting: asyncio.Future[None] | None = None
        self._visiting: Sid = 0
        self._quiet_until = 0.0
        self._watched: dict[str, int] = {}
        """The mzxid of each znode with a watch, 0 for one that did not exist."""

    async def run(self, until: asyncio.Event) -> None:
        """Works until the event is set."""
        while not until.is_set():
            if self._visiting:
                await self._write_at_once()
            elif not self._session.attached or self._random.random() < 0.01:
                await self.move()
            elif self._loop.now < self._quiet_until:
                await self._rest(1.0)
            else:
                await self._operate()
                await self._rest(self._pause * 2 * self._random.random())

    async def _rest(self, seconds: float) -> None:
        """Waits for some seconds, or until `visit`."""
        self._resting = self._loop.create_future()
        timer = self._loop.call_later(seconds, _wake, self._resting)
        await self._resting
        timer.cancel()

    async def _write_at_once(self) -> None:
        server, self._visiting = self._visiting, 0
        if (self._session.attached and self._server == server) or await self.move(server):
            self._count += 1
            await self._ledger(self._random.choice((1, 3, 10, 30)))

    def hurry(self, server: Sid) -> None:
        """Something happens to a server: a client that rests at it writes at once, unless it is quiet."""
        if self._server == server and self._resting is not None and self._loop.now >= self._quiet_until:
            self.visit(server)

    def visit(self, server: Sid) -> None:
        """Lets the client write at this server as its next work."""
        self._visiting = server
        if self._resting is not None:
            _wake(self._resting)

    def quieten(self, seconds: float) -> None:
        """Lets the client make no request of its free will for some seconds."""
        self._quiet_until = self._loop.now + seconds

    async def move(self, server: Sid | None = None) -> bool:
        """Attaches the session to a server; returns whether that was possible."""
        self._server = server or self._random.randrange(1, self._servers + 1)
        try:
            await self._session.attach(address_of(self._server), CLIENT_PORT)
        except SessionExpiredError:
            self.outcomes["session expired"] += 1
            self._forget()
            return False
        except NoAnswerError:
            self._note()
            await asyncio.sleep(0.2 + 0.3 * self._random.random())
            return False
        self._note()
        await self._watch_again()
        return True

    async def _watch_again(self) -> None:
        """Registers the watches of the last connection again, or forgets them."""
        if not self._watched or self._random.random() < 0.3:
            self._watched.clear()
            return
        data = tuple(path for path, zxid in self._watched.items() if zxid)
        absent = tuple(path for path, zxid in self._watched.items() if not zxid)
        try:
            await self._session.ask(SetWatches(self._session.last_zxid, data, absent, ()))
        except NoAnswerError:
            self._note()

    def _note(self) -> None:
        if self._session.protocol_error:
            self._error(self._session.protocol_error)
            self._session.protocol_error = ""

    def _error(self, what: str) -> None:
        self.errors.append(f"{self._loop.now:.6f} s, {self.name} at server {self._server}: {what}")

    async def finish(self, server: Sid) -> bool:
        """Reads every watched znode once more after a sync, at a server that works.

        The first sync shows a connection with a server that has lost its power, of which the client has heard nothing.
        """
        if not self._session.attached and not await self.move(server):
            return False
        try:
            if (await self._session.ask(Sync(ROOT))).err:
                return False
            for path in tuple(self._watched):
                await self._read("sync+get", path)
        except NoAnswerError:
            return False
        return True

    @property
    def session(self) -> int:
        """The session."""
        return self._session.session

    async def close(self) -> bool:
        """Ends the session; returns whether that was acknowledged."""
        try:
            await self._session.close()
        except NoAnswerError:
            return False
        finally:
            self._forget()
        return True

    def _forget(self) -> None:
        self.living.pop(self._session.session, None)
        self._session.forget()
        self._watched.clear()

    # Work.

    async def _operate(self) -> None:
        kind = self._random.choices(list(KINDS), list(KINDS.values()))[0]
        self._count += 1
        with suppress(NoAnswerError):
            match kind:
                case "ledger":
                    await self._ledger(1)
                case "burst":
                    await self._ledger(self._random.choice((3, 10, 30)))
                case "pair":
                    await self._pair()
                case "ephemeral":
                    await self._ephemeral()
                case "sequential":
                    await self._sequential()
                case "close":
                    if self._random.random() < 0.3:
                        self.outcomes["session closed" if await self.close() else "session: no answer"] += 1
                case "get" | "sync+get":
                    await self._read(kind, self._random.choice(REGISTERS))
                case "create" | "set" | "delete":
                    await self._write(kind, self._random.choice(REGISTERS))
        self._note()

    async def _ledger(self, count: int) -> None:
        """Creates znodes that never change, with all requests sent together."""
        requests = []
        for number in range(count):
            key = f"{ROOT}/{self.name}-{self._count}-{number}"
            long = self._random.random() < 0.25  # a record of several sectors, which a failure of the power may tear
            operation = self._operation("create", key, value=f"{key} value" + "." * (2500 if long else 0))
            future = self._session.send(Create2(key, (operation.value or "").encode(), OPEN_ACL_UNSAFE, 0))
            requests.append((operation, future))
        for operation, future in requests:
            try:
                async with asyncio.timeout(self._session.patience):
                    answer = await future
            except (TimeoutError, NoAnswerError):
                self._session.drop()
                self._unanswered(operation)
            else:
                self._answered(operation, answer)

    async def _write(self, kind: Kind, key: str) -> None:
        condition = ANY_VERSION
        if kind != "create" and self._random.random() < 0.2:
            condition = self._versions.get(key, 0)
        content = f"{self.name}-{self._count}" + "." * self._random.choice((0, 0, 0, 700, 3000))
        operation = self._operation(kind, key, None if kind == "delete" else content, condition)
        data = content.encode()
        request = {
            "create": Create2(key, data, OPEN_ACL_UNSAFE, 0),
            "set": SetData(key, data, condition),
            "delete": Delete(key, condition),
        }[kind]
        await self._ask(operation, request)

    async def _read(self, kind: Kind, key: str) -> None:
        operation = self._operation(kind, key)
        if kind == "sync+get":
            answer = await self._session.ask(Sync(key))
            if answer.err:
                return
        watch = self._random.random() < 0.3
        if watch and self._random.random() < 0.3:
            await self._exists(key)
            return
        answer = await self._ask(operation, GetData(key, watch))
        self._seen(key, answer, watches=watch and not answer.err)

    async def _exists(self, key: str) -> None:
        self._seen(key, await self._session.ask(Exists(key, True)), watches=True)

    def _seen(self, key: str, answer: Answer, *, watches: bool) -> None:
        """Judges the znode in an answer by its watch; `watches`: the request has set another one."""
        if answer.err not in (Code.OK, Code.NO_NODE):
            return
        mzxid = 0 if answer.err else answer.record.stat.mzxid
        before = self._watched.get(key)
        if before is not None and before != mzxid:
            self._error(f"{key} was seen at mzxid {mzxid:#x}; its watch from {before:#x} has had no event")
            del self._watched[key]
        if watches:
            self._watched[key] = mzxid

    def _event(self, kind: int, path: str) -> None:
        self.events += 1
        if self._watched.pop(path, None) is None:
            self._error(f"an event ({kind}) for {path}, which has no watch")

    async def _pair(self) -> None:
        """Creates two znodes in one transaction; sometimes one that must fail."""
        fails = self._random.random() < 0.2
        first, second = (f"{ROOT}/{self.name}-{self._count}-{side}" for side in ("left", "right"))
        operations = [Create2(path, b"", OPEN_ACL_UNSAFE, 0) for path in (first, second)]
        parts = (operations[0], Check(f"{ROOT}/none", 0), operations[1]) if fails else tuple(operations)
        try:
            answer = await self._session.ask(Multi(parts))
        except NoAnswerError:
            self.outcomes["multi: no answer"] += 1
            self.pairs.append(Pair((first, second), acknowledged=False))
            raise
        ok = not answer.err and all(
            isinstance(result, OperationResult) and result.type != -1 for result in answer.record.results
        )
        self.outcomes[f"multi: {'ok' if ok else 'failed'}"] += 1
        if ok and fails:
            self._error("a multi with a check of a missing znode was carried out")
        self.pairs.append(Pair((first, second), acknowledged=ok))

    async def _ephemeral(self) -> None:
        mine = self.living.setdefault(self._session.session, {})
        if mine and self._random.random() < 0.4:
            path = self._random.choice(list(mine))
            del mine[path]
            answer = await self._session.ask(Delete(path, -1))
            if answer.err == Code.NO_NODE:
                self._error(f"{path}, an ephemeral znode of the living session, was gone")
        else:
            shared = self._random.random() < 0.3  # a name that other sessions have too, one after another
            path = self._random.choice(SHARED) if shared else f"{ROOT}/e-{self.name}-{self._count}"
            answer = await self._session.ask(Create2(path, b"", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL))
            if not answer.err:
                mine[path] = None
        self.outcomes[f"ephemeral: {'failed' if answer.err else 'ok'}"] += 1

    async def _sequential(self) -> None:
        invoked = self._loop.now
        prefix = f"{ROOT}/s-"
        answer = await self._session.ask(Create2(prefix, b"", OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL))
        if not answer.err:
            number = int(answer.record.path.removeprefix(prefix))
            self.numbered.append(Numbered(number, invoked, self._loop.now))
        self.outcomes[f"sequential: {'failed' if answer.err else 'ok'}"] += 1

    # Records.

    def _operation(self, kind: Kind, key: str, value: str | None = None, condition: int = ANY_VERSION) -> Operation:
        return Operation(
            self.name,
            self._session.session,
            self._server,
            kind,
            key,
            self._loop.now,
            value=value,
            condition=condition,
        )

    async def _ask(self, operation: Operation, request: msgspec.Struct) -> Answer:
        try:
            answer = await self._session.ask(request)  # type: ignore[arg-type]
        except NoAnswerError:
            self._unanswered(operation)
            raise
        self._answered(operation, answer)
        return answer

    def _unanswered(self, operation: Operation) -> None:
        self.outcomes[f"{operation.kind}: no answer"] += 1
        if operation.is_write:
            self.recorded.append(operation)

    def _answered(self, operation: Operation, answer: Answer) -> None:
        if answer.err in UNKNOWN:
            self._unanswered(operation)
            return
        now = self._loop.now
        if answer.err:
            self.outcomes[f"{operation.kind}: failed"] += 1
            error = NAMES.get(Code(answer.err), Code(answer.err).name)
            record = msgspec.structs.replace(operation, completed=now, outcome="failed", error=error, zxid=answer.zxid)
            self.recorded.append(record)
            return
        self.outcomes[f"{operation.kind}: ok"] += 1
        stat = getattr(answer.record, "stat", None)
        value = operation.value if operation.is_write else (answer.record.data or b"").decode()
        version, mzxid = (0, 0) if stat is None else (stat.version, stat.mzxid)
        record = msgspec.structs.replace(
            operation, completed=now, outcome="ok", value=value, zxid=answer.zxid, mzxid=mzxid, version=version
        )
        self.recorded.append(record)
        self._versions[operation.key] = version


def _wake(resting: asyncio.Future[None]) -> None:
    if not resting.done():
        resting.set_result(None)
