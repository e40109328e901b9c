"""The two sides of a comparison: the tested server by its addresses, and the oracle, our node on a loopback port.

Rules of this module:

- Each script runs below a fresh znode `ROOT/N/s`, with the same path at both sides. `remove` deletes the root with all
  of them, and their quotas. Nothing else of the tested server is changed.
- A failure of a server while a script runs is an outcome: it ends the connection, it does not answer in
  time, or its answer does not fit the layout.
- The oracle executes `spec/tree` and `spec/service`: it is a node of `refimpl` alone in its ensemble.

Source: ZooKeeper Programmer's Guide, connect strings; `ServerCnxnFactory`, `VersionInfoMain` (the version in `srvr`).
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from harness import commands as c
from harness.conform.cases.case import SECRET
from harness.conform.protocol import NO_ANSWER
from harness.ensemble import Ensemble
from harness.interpreter import AUTH, QUOTA, TIMEOUT, Interpreter, Seen
from harness.processes import Place, ServerError, address_of, srvr
from harness.session import DisconnectedError, Session
from spec.text import integer

SESSIONS = 3
UNREADABLE = "unreadable answer"
NOT_RUN = "not run"
MOST_FAILURES = 2
"""The number of scripts, one after the other, that cannot even begin before the run ends."""
OK, NO_NODE, NO_AUTH, NOT_EMPTY = 0, -101, -102, -111
ADDRESS = re.compile(r"\[(?P<six>[0-9A-Fa-f:.%\w]+)\]:(?P<sixport>\d{1,5})|(?P<host>[^\s:/,\[\]]+):(?P<port>\d{1,5})")
TICK = 200
"""The tickTime of the servers that the command starts, in milliseconds."""
ORACLE_KEYS = {
    "maxSessionTimeout": "60000",
    "extendedTypesEnabled": "true",
    "znode.container.checkIntervalMs": "86400000",
}
"""The keys of the oracle's zoo.cfg: containers and TTL znodes can be made, and are not deleted while a script runs."""


def parse_places(text: str) -> tuple[tuple[str, int], ...]:
    """Read HOST:PORT[,HOST:PORT...]. Raises ValueError with the part that is wrong."""
    places: list[tuple[str, int]] = []
    for part in text.split(","):
        match = ADDRESS.fullmatch(part.strip())
        port = integer(match["port"] or match["sixport"], 1, 65535) if match else None
        if match is None or port is None:
            raise ValueError(f"{part!r} is no address; write HOST:PORT, with a port from 1 to 65535")
        places.append((match["host"] or match["six"], port))
    return tuple(places)


def release_of(place: Place) -> str | None:
    """The release that a server states in its answer to `srvr`; None if it states none."""
    match = re.match(r"(\d+\.\d+\.\d+)", srvr(place).get("Zookeeper version", ""))
    return match[1] if match else None


class TolerantInterpreter(Interpreter):
    """An interpreter whose record also has the failures of a server, so that a comparison can show them."""

    def run(self, script: c.Script) -> list[Seen]:
        """Execute the commands up to a failure of the barrier; the rest is recorded as not run."""
        record: list[Seen] = []
        for command in script:
            try:
                record.append(self._seen(command))
            except (OSError, ServerError, ValueError, struct.error):
                record.append(Seen(command, NO_ANSWER, ()))
                break
        return record + [Seen(command, NOT_RUN, ()) for command in script[len(record) :]]

    def close(self) -> None:
        """End the sessions, as far as the server permits."""
        with suppress(OSError, ServerError, ValueError, struct.error):
            super().close()

    def _do(self, command: c.Command, session: Session) -> Any:
        try:
            return super()._do(command, session)
        except DisconnectedError:
            raise
        except (ValueError, struct.error):
            outcome = UNREADABLE
        except (OSError, ServerError):
            outcome = NO_ANSWER
        session.drop()
        return outcome


class Side:
    """One side: servers of one ensemble, and the root below which everything happens. Raises OSError, ServerError.

    `revive` starts servers that have stopped, if there is a way to; the run then goes on with the next script.
    """

    def __init__(
        self, places: Sequence[Place], root: str, seconds: float, revive: Callable[[], None] | None = None
    ) -> None:
        self.places = tuple(places)
        self._revive = revive
        self.root = root
        self._seconds = seconds
        self._scripts = 0
        self._failures = 0

    def create_root(self, parents: bool) -> None:
        """Create the root, with `parents` also the znodes above it."""
        session = self._session()
        names = self.root.split("/")[1:]
        for depth in range(1 if parents else len(names), len(names) + 1):
            path = "/" + "/".join(names[:depth])
            err = session.ask(c.CREATE, path, b"", c.OPEN, c.PERSISTENT).err
            if err:
                raise ServerError(f"{path} cannot be created: the server answers with error {err}")
        session.close()

    def run(self, script: c.Script) -> list[Seen]:
        """Execute a script below a fresh znode. Its parent is new too, so its counts are the same at both sides."""
        self._scripts += 1
        parent = f"{self.root}/{self._scripts}"
        try:
            session = self._session()
            session.ask(c.CREATE, parent, b"", c.OPEN, c.PERSISTENT)
            session.close()
            interpreter = TolerantInterpreter(self.places, f"{parent}/s", SESSIONS, self._seconds, self._silent)
        except (OSError, ServerError) as error:
            self._failures += 1
            if self._failures == MOST_FAILURES:
                raise ServerError(f"{self.name} stopped answering: {error}") from error
            return [Seen(command, NO_ANSWER, ()) for command in script]
        self._failures = 0
        try:
            return interpreter.run(script)
        finally:
            interpreter.close()

    @cached_property
    def _silent(self) -> frozenset[Place]:
        """The servers that do not answer `srvr`, asked before the first script."""
        return frozenset(place for place in self.places if "Zxid" not in srvr(place))

    @property
    def name(self) -> str:
        """The addresses, as on the command line."""
        return ",".join("{}:{}".format(*address_of(place)) for place in self.places)

    def remove(self) -> None:
        """Delete the root and everything below it. Raises ServerError if something is left."""
        session = self._session()
        session.ask(AUTH, 0, "digest", SECRET)
        _removed(session, QUOTA + self.root)
        err = _removed(session, self.root)
        session.close()
        if err:
            raise ServerError(f"{self.root} was not deleted: the server answers with error {err}; delete it by hand")

    def _session(self) -> Session:
        session = Session(TIMEOUT, self._seconds, wakes=True)
        try:
            session.connect(self.places[0])
        except (OSError, ServerError):
            if self._revive is None:
                raise
            self._revive()
            session.connect(self.places[0])
        return session


def _removed(session: Session, path: str) -> int:
    """Delete a znode and all znodes below it; return the error that remains, 0 after success."""
    err = session.ask(c.Delete.opcode, path, -1).err
    if err != NOT_EMPTY:
        return OK if err == NO_NODE else err
    children = session.ask(c.Children.opcode, path, False)
    if children.err == NO_AUTH:
        session.ask(c.SetAcl.opcode, path, c.OPEN, -1)
        children = session.ask(c.Children.opcode, path, False)
    for name in children.values[0] if children.values else ():
        if _removed(session, f"{path}/{name}") == NO_AUTH:
            session.ask(c.SetAcl.opcode, path, c.OPEN, -1)
            _removed(session, f"{path}/{name}")
    return session.ask(c.Delete.opcode, path, -1).err


def start_oracle(folder: Path, keys: Mapping[str, str]) -> Ensemble:
    """Start the oracle; these keys replace those of `ORACLE_KEYS`. The caller closes it. Raises ServerError."""
    oracle = Ensemble(["node"], folder, tick_time=TICK, extra=ORACLE_KEYS | dict(keys))
    try:
        oracle.start_all()
    except ServerError:
        oracle.shut_down()
        raise
    return oracle
