"""Executes a script of commands on one ensemble, and records the results and events of each session.

Rules of this module:

- Commands run one after another. After each command, every session passes a barrier: a `sync`, which is answered after
  everything that the leader had committed. So an event is recorded with the command that caused it, on whichever server
  its session is.
- A session is attached to a server only after the server has applied the last zxid of the session. Otherwise the server
  would refuse the session, and the barrier could not wait for it. A server that does not answer `srvr` with its zxid is
  asked for the session again until it accepts.
- Anything that may differ between two correct servers is removed from the record: session ids are numbered in the order
  of opening, zxids are relative to the first transaction, times are left out, and values without an order on the wire
  (children, ACL entries, identities, the events at the end of a session) are sorted. Everything else is recorded as
  received.
- The wait for an expiry ends with an event, never after a fixed time.
- A server that keeps an answer for itself is helped, and the record says so (`harness.session`).

Source: `FinalRequestProcessor` (order of events and replies), `SessionTrackerImpl` (expiry),
`ZooKeeperServer.processConnectRequest` (the refusal).
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec

from harness import commands as c
from harness.layouts import MULTI, MULTI_READ, Stat
from harness.processes import Place, ServerError, address_of, srvr, wait_until
from harness.session import PING, SECONDS, Answer, DisconnectedError, Session, other_session
from spec.text import required_integer

TIMEOUT = 60_000
SHORTEST = 1
# A server that the session has left may still report it as alive, with its old timeout, after the new one was granted.
EXPIRY_ATTEMPTS = 8
EXPIRY_SECONDS = 3.0
EXPIRY_TIMEOUTS = 2.5
"""A session is expired at the tick after its timeout, which is at least two ticks."""
GONE_POLL = 0.1
"""Seconds between two looks at a znode that is to be deleted by the server."""
NO_NODE = -101
QUOTA = "/zookeeper/quota"
AUTH, SET_WATCHES2, WHO_AM_I, SYNC, EXISTS = 100, 105, 107, 9, 3


class Seen(NamedTuple):
    """The record of one command: its outcome, and the events of each session up to the barrier after it.

    `late` says that an answer up to there came only after the request of another session.
    """

    command: c.Command
    outcome: Any
    events: tuple[Any, ...]
    late: bool = False


class Interpreter:
    """One run: `sessions` sessions on the servers at these places, below the new znode `root`.

    `seconds` bounds each wait for an answer; `silent` are the servers that do not answer `srvr`, if that is known.
    Raises ServerError if the root cannot be created, and OSError.
    """

    def __init__(
        self,
        places: Sequence[Place],
        root: str,
        sessions: int,
        seconds: float = SECONDS,
        silent: frozenset[Place] | None = None,
    ) -> None:
        self._places = tuple(places)
        self._root = root
        self._opened: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self._at: dict[int, Place] = {}
        self._markers = 0
        self._silent = (
            frozenset(place for place in self._places if "Zxid" not in srvr(place)) if silent is None else silent
        )
        self._control = Session(TIMEOUT, seconds, wakes=True)
        self._control.connect(self._places[0])
        created = self._control.ask(c.CREATE, root, b"", c.OPEN, c.PERSISTENT)
        if created.err:
            raise ServerError(f"{root} cannot be created: the server answers with error {created.err}")
        self._base = created.zxid
        self._sessions = [Session(TIMEOUT, seconds, wakes=True) for _ in range(sessions)]
        for who, session in enumerate(self._sessions):
            self._attach(who, session, who)
        self._barrier()

    def run(self, script: c.Script) -> list[Seen]:
        """Execute every command; return the record of each."""
        return [self._seen(command) for command in script]

    def close(self) -> None:
        """End every session that can be ended."""
        for who, session in enumerate(self._sessions):
            with suppress(ServerError):
                if not session.connected:
                    self._attach(who, session, who)
                session.close()
        self._control.close()

    def _seen(self, command: c.Command) -> Seen:
        try:
            outcome = self._do(command, self._sessions[command.who])
        except DisconnectedError:
            outcome = "disconnected"
        self._barrier()
        # The ephemeral znodes of a session are deleted in no particular order.
        unordered = isinstance(command, c.Close | c.Expire)
        events = [session.take_events() for session in self._sessions]
        sessions = (self._control, *self._sessions)
        late = any(session.late for session in sessions)
        for session in sessions:
            session.late = False
        return Seen(command, outcome, tuple(tuple(sorted(group)) if unordered else group for group in events), late)

    def _barrier(self) -> None:
        """Let every session catch up; a session with a connection that the server ended notices it here."""
        waiting: list[Session] = []
        for session in self._sessions:
            if session.connected:
                with suppress(DisconnectedError):
                    session.send(SYNC, "/")
                    waiting.append(session)
        for session in waiting:
            with suppress(DisconnectedError):
                session.receive(SYNC)

    def _do(self, command: c.Command, session: Session) -> Any:
        match command:
            case c.Connect(server=server):
                return self._attach(command.who, session, server)
            case c.Drop():
                return self._drop(command.who, session)
            case c.Expire():
                return self._expire(command.who, session)
            case c.Close():
                session.close()
                return "closed"
            case c.Gone(path=path, seconds=seconds):
                deadline = time.monotonic() + seconds
                while session.ask(EXISTS, self._root + path, False).err != NO_NODE:
                    if time.monotonic() > deadline:
                        return "still there"
                    time.sleep(GONE_POLL)
                return "gone"
            case c.Raw(opcode=opcode, body=body):
                session.send_raw(opcode, body)
                return session.receive_raw()
            case c.Limit(path=path, limits=limits):
                return self._limit(session, path, limits)
            case c.Use(path=path):
                answer = session.ask(c.Get.opcode, f"{QUOTA}{self._root}{path}/zookeeper_stats", False)
                return answer.err, answer.values[:1]
            case c.WrongPassword():
                session.password = bytes(byte ^ 0xFF for byte in session.password)
                return "changed"
            case _:
                opcode, values = self._request(command)
                answer = session.ask(opcode, *values)
                return Answer(answer.err, self._relative(answer.zxid), self._comparable(answer.values))

    def _limit(self, session: Session, path: str, limits: bytes) -> tuple[int, ...]:
        place = QUOTA
        for name in (self._root + path).split("/")[1:]:
            place += f"/{name}"
            session.ask(c.CREATE, place, b"", c.OPEN, c.PERSISTENT)
        texts = (("zookeeper_limits", limits), ("zookeeper_stats", b"count=0,bytes=0"))
        return tuple(session.ask(c.CREATE, f"{place}/{name}", text, c.OPEN, c.PERSISTENT).err for name, text in texts)

    def _request(self, command: c.Command) -> tuple[int, tuple[Any, ...]]:
        match command:
            case c.Create():
                return command.by, command.values(self._root)
            case c.Request():
                return command.opcode, command.values(self._root)
            case c.Multi(parts=parts):
                return MULTI, tuple(map(self._request, parts))
            case c.MultiRead(parts=parts):
                return MULTI_READ, tuple(map(self._request, parts))
            case c.AddAuth(scheme=scheme, auth=auth):
                return AUTH, (0, scheme, auth)
            case c.SetWatches():
                _, *lists, opcode = msgspec.structs.astuple(command)
                paths = lists if opcode == SET_WATCHES2 else lists[:3]
                return opcode, (self._left.get(command.who, self._base), *map(self._below, paths))
            case c.WhoAmI():
                return WHO_AM_I, ()
            case _:
                raise ServerError(f"no request is known for {command}")

    def _attach(self, who: int, session: Session, server: int) -> tuple[str, int]:
        self._drop(who, session)
        self._at[who] = place = self._places[server % len(self._places)]
        name = "{}:{}".format(*address_of(place))
        if place in self._silent:
            condition = f"the server at {name} accepts a session that has seen 0x{session.last_zxid:x}"
            self._wait(partial(_accepts, place, session), condition, place)
            granted = session.timeout if session.connected else 0
        else:
            condition = f"the server at {name} has applied 0x{session.last_zxid:x}"
            self._wait(partial(_has_applied, place, session.last_zxid), condition, place)
            granted = session.connect(place)
        if granted:
            self._opened.setdefault(session.session_id, len(self._opened) + 1)
            return "attached", granted
        session.session_id, session.password = 0, bytes(16)
        session.connect(place)
        self._opened[session.session_id] = len(self._opened) + 1
        return "begun anew", session.timeout

    def _wait(self, holds: Callable[[], bool], what: str, place: Place) -> None:
        """Wait for something at a server, that may need the request of another session to do it."""
        try:
            wait_until(holds, SECONDS, what)
        except ServerError:
            with other_session(place, SECONDS):
                wait_until(holds, SECONDS, what)
            self._control.late = True

    def _drop(self, who: int, session: Session) -> str:
        if session.connected:
            self._left[who] = session.last_zxid
        session.drop()
        return "dropped"

    def _expire(self, who: int, session: Session) -> str:
        """Leave the session with the shortest timeout that the server grants, and wait until its marker is deleted."""
        if not session.connected:
            raise DisconnectedError("the session has no connection")
        self._markers += 1
        marker = f"{self._root}-expires-{self._markers}"
        session.ask(c.CREATE, marker, b"", c.OPEN, c.EPHEMERAL)
        self._control.ask(SYNC, "/")
        self._control.ask(EXISTS, marker, True)
        self._drop(who, session)
        session.timeout = SHORTEST
        for _ in range(EXPIRY_ATTEMPTS):
            # Connect to the same server: another one may not have applied the marker yet, and would refuse the client.
            cut_off = False
            seconds = EXPIRY_SECONDS
            try:
                if granted := session.connect(self._at[who]):
                    seconds = max(seconds, EXPIRY_TIMEOUTS * granted / 1000)
                    session.ask(PING)
            except DisconnectedError:
                # The session has expired in the meantime: a pause of two ticks, here or at the server, is enough.
                cut_off = True
            session.drop()
            # The sync helps a server that keeps the end of the session for itself.
            if self._control.wait_event(seconds) or (self._control.ask(SYNC, "/") and self._control.take_events()):
                session.timeout = TIMEOUT
                return "expired"
            if cut_off:
                raise ServerError(f"the server ended a connection whose session lives: {marker} is still there")
        raise ServerError(f"{marker} is still there: its session did not expire")

    def _below(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._root + path for path in paths)

    def _relative(self, zxid: int) -> int:
        """A zxid relative to the creation of the root; a zxid from before it stays unchanged."""
        return zxid - self._base if zxid >= self._base else zxid

    def _comparable(self, value: Any) -> Any:
        # Times, session ids and the order of children may differ between servers that are both right.
        match value:
            case Stat():
                return value._replace(
                    czxid=self._relative(value.czxid),
                    mzxid=self._relative(value.mzxid),
                    pzxid=self._relative(value.pzxid),
                    ctime=0,
                    mtime=0,
                    ephemeral_owner=self._opened.get(value.ephemeral_owner, value.ephemeral_owner),
                )
            case list():
                return sorted(value)
            case tuple():
                return tuple(map(self._comparable, value))
            case _:
                return value


def _accepts(place: Place, session: Session) -> bool:
    """Whether a server answers to the session, which is then attached or known to have ended."""
    try:
        session.connect(place)
    except DisconnectedError:
        return False
    return True


def _has_applied(place: Place, zxid: int) -> bool:
    zxid_text = srvr(place).get("Zxid")
    return zxid_text is not None and required_integer(zxid_text.removeprefix("0x"), base=16) >= zxid
