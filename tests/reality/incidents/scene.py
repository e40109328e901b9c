"""The scene of an incident: its servers, the clients that write, and the writes that were acknowledged."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.follow.result import Acknowledgements, WriteReply
from harness.processes import ServerError, wait_until
from harness.record.ensemble import CHILDREN, LOAD, WriteClient
from harness.record.ensemble import Plan as LoadPlan
from harness.servers import CREATE, EXISTS, SYNC, WORLD, Servers
from spec.quorum import Sid
from tests.reality.incidents.servers import StandingServers
from tests.reality.states import network_of

CLIENTS, PAUSE = 2, 0.03
SECONDS = 60.0
SETTLED_SECONDS = 8.0


@dataclass(frozen=True)
class Truth:
    """What is wrong: the cause, the servers that it concerns, and a sentence about what was done.

    `also` are names that are as right: what files and disks show of a defect is its result. `repairs` has the texts of
    the files of a server as an operator would correct them, by their names.
    """

    cause: str
    servers: tuple[Sid, ...]
    deed: str
    also: tuple[str, ...] = ()
    repairs: Mapping[Sid, Mapping[str, str]] = field(default_factory=dict)


class Scene:
    """One incident below `home`. An incident with servers of another kind sets `servers` itself."""

    def __init__(self, home: Path, release: str) -> None:
        home.mkdir()
        self.home, self.release = home, release
        self.network = network_of(os.getpid())
        self.servers: Servers | None = None
        self.witness = Acknowledgements()
        self.lines_before: dict[Sid, int] = {}
        self.paused: tuple[Sid, ...] = ()
        self.endings: list[Callable[[], None]] = []
        self.addresses: dict[Sid, Mapping[str, str]] = {}
        self._clients: list[WriteClient] = []

    # --- the ensemble before the incident

    def begin(self, *sids: Sid, options: Iterable[str] = (), writes: int = 40, **keys: str) -> StandingServers:
        """Start voters, by default 1, 2 and 3, with equal files, and let clients write."""
        servers = self.make(options)
        members = sids or (1, 2, 3)
        for sid in members:
            servers.give(sid, servers.text(sid, servers.places(*members), **keys))
            servers.start(sid)
        servers.wait_serving(seconds=SECONDS)
        self.load(writes)
        return servers

    def make(self, options: Iterable[str] = ()) -> StandingServers:
        servers = StandingServers(self.home, self.release, self.network, options)
        self.servers = servers
        return servers

    def load(self, writes: int = 40) -> None:
        """Begin to write, and return after this number of acknowledged writes."""
        assert self.servers is not None
        create_load(self.servers)
        self.resume(writes)

    def resume(self, writes: int = 0) -> None:
        """Let new clients write; return after this number of further acknowledged writes."""
        assert self.servers is not None
        plan = LoadPlan(seed=len(self.witness.replies), pause=PAUSE)
        numbers = range(len(self._clients), len(self._clients) + CLIENTS)
        goal = len(self.witness.replies) + writes
        self._clients += [WriteClient(self.servers, number, plan, self.witness) for number in numbers]
        wait_until(lambda: len(self.witness.replies) >= goal, SECONDS, f"{writes} writes are acknowledged")

    def quiet(self) -> None:
        """Let the clients end their writes and their sessions, and wait until it is everywhere."""
        for client in self._clients:
            client.stop()
        if self._clients:
            time.sleep(1.0)

    def mark(self) -> None:
        """Begin the incident: the lines of the logs so far are those of a healthy ensemble."""
        assert self.servers is not None
        self.lines_before = {sid: count_lines(self.servers.home(sid) / "log.txt") for sid in self.servers.sids}

    def pause(self, sid: Sid) -> None:
        """Halt a server for the sake of the harness. It is not dead: the first step at it continues it."""
        assert self.servers is not None
        self.servers.pause(sid)
        self.paused += (sid,)

    def settle(self, seconds: float = SETTLED_SECONDS) -> None:
        time.sleep(seconds)

    def write_at_each(self, *sides: Iterable[Sid]) -> None:
        """Let new clients write until servers of each of these sides have acknowledged writes."""
        begin, groups = len(self.witness.replies), [frozenset(side) for side in sides]
        self.resume()

        def acknowledged() -> bool:
            sids = [reply.sid for reply in self.witness.replies[begin:]]
            return all(sum(sid in group for sid in sids) > 10 for group in groups)

        wait_until(acknowledged, SECONDS, f"{len(groups)} sides acknowledge writes")

    def forget(self) -> None:
        """Begin with another ensemble: the writes so far are not its own."""
        for client in self._clients:
            client.stop()
        self._clients = []
        self.witness = Acknowledgements()

    # --- the end

    @property
    def replies(self) -> tuple[WriteReply, ...]:
        return self.witness.replies

    @property
    def acknowledged(self) -> dict[str, str]:
        """The paths of the acknowledged writes so far, with their zxids."""
        return {reply.path: f"{reply.zxid:#x}" for reply in self.replies}

    def close(self) -> None:
        """Stop the clients, kill the servers, and undo what the incident did to the machine."""
        for client in self._clients:
            client._stop.set()
        for client in self._clients:
            client.stop()
        if self.servers is not None:
            self.servers.shut_down()
        for ending in reversed(self.endings):
            with contextlib.suppress(OSError):
                ending()


def count_lines(file: Path) -> int:
    return file.read_text(encoding="utf-8", errors="replace").count("\n") if file.exists() else 0


def create_load(servers: Servers) -> None:
    """Create the parent of all writes. Raises ServerError if no server does it."""
    for sid in servers.running:
        with contextlib.suppress(ServerError, OSError):
            session = servers.connect(sid)
            session.ask(CREATE, LOAD, b"", WORLD, 0)
            session.close()
            return
    raise ServerError(f"no server creates {LOAD}")


def written_at(servers: Servers, sid: Sid, paths: Iterable[str] = (), *, sync: bool = True) -> frozenset[str] | None:
    """The writes that a server has, with those of `paths` that are not below LOAD; None if it does not serve."""
    try:
        session = servers.connect(sid)
    except (ServerError, OSError):
        return None
    try:
        if sync:
            session.ask(SYNC, "/")
        answer = session.ask(CHILDREN, LOAD, False)
        names = answer.values[0] if answer.err == 0 else []
        others = [path for path in paths if not path.startswith(LOAD) and session.ask(EXISTS, path, False).err == 0]
        return frozenset([*(f"{LOAD}/{name}" for name in names), *others])
    except (ServerError, OSError):
        return None
    finally:
        session.drop()
