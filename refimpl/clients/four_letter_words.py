"""The four-letter words: plain-text queries from operators and probes, answered in ZooKeeper's own format.

Rules this module keeps:

- A word is the first four bytes of a connection; it is answered and the connection ends. Any other four bytes are the
  length of a frame.
- Known words outside the whitelist are refused. Four bytes that are not a word of ZooKeeper are a length, which ends
  the connection if it is out of bounds.
- A figure that this server does not have is not invented: its line is left out of `mntr`, and Java's properties
  are <NA> in `envi`.

Source: `FourLetterCommands`, `CommandExecutor` and the commands; `ServerStats.toString`,
`ServerCnxn.dumpConnectionInfo`, `WatchManager`.
"""

import os
import platform
import resource
import socket
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from refimpl.clients.backend import Backend, ServerStatus
from refimpl.clients.connection import Connection
from refimpl.clients.final_processor import FinalProcessor
from refimpl.clients.settings import ClientSettings
from refimpl.clients.statistics import ServerStatistics
from refimpl.system import system
from refimpl.tree import ROOT_AGAIN
from spec.packages import DISTRIBUTION, NODE

NOT_SERVING = "This ZooKeeper instance is not currently serving requests\n"
COMPATIBLE = "3.8.4"
"""The ZooKeeper version whose formats this server uses."""
TRACE_MASK = 306
"""ZooKeeper's default trace mask (`ZooTrace`)."""
_TELNET_CLOSE = bytes.fromhex("fff4fffd")


class MonitoredPort(Protocol):
    """The client port, as the four-letter words see it: its figures."""

    settings: ClientSettings
    statistics: ServerStatistics
    processor: FinalProcessor
    backend: Backend | None
    now: int
    in_process: int

    @property
    def connections(self) -> tuple[Connection, ...]:
        """All connections, oldest first."""

    def connected_by_expiry(self) -> Iterator[tuple[int, tuple[Connection, ...]]]:
        """The connections by the time at which each one times out, on the clock of `now`."""


class FourLetterWords:
    """Answers the words for one client port."""

    def __init__(self, clients: MonitoredPort) -> None:
        self._clients = clients
        self._started = system().monotonic_ms()
        self._always: dict[str, Callable[[], str]] = {
            "ruok": lambda: "imok",
            "envi": lambda: "Environment:\n" + "".join(f"{name}={value}\n" for name, value in environment().items()),
            "isro": lambda: (
                "null" if clients.backend is None else "rw" if clients.backend.read_only(0) is None else "ro"
            ),
            "gtmk": lambda: str(TRACE_MASK),
            "telnet close": lambda: "",
        }
        self._serving: dict[str, Callable[[Backend], str]] = {
            "srvr": self._srvr,
            "stat": self._stat,
            "mntr": self._mntr,
            "conf": self._conf,
            "cons": self._cons,
            "crst": self._crst,
            "srst": self._srst,
            "dirs": self._dirs,
            "dump": self._dump,
            "wchs": self._wchs,
            "wchc": self._wchc,
            "wchp": self._wchp,
            "hash": lambda serving: "".join(f"{zxid:x}: {digest}\n" for zxid, digest in serving.status().digests),
        }

    def answer(self, connection: Connection, opening: bytes) -> bool:
        """Answer a four-letter word and end the connection; return whether it began with one."""
        word = "telnet close" if opening[:4] == _TELNET_CLOSE else opening[:4].decode("latin-1")
        if word not in self._always and word not in self._serving and word != "stmk":
            return False
        connection.statistics.received += 1
        self._clients.statistics.received += 1
        text = self._text(word, opening[4:])
        # The answer counts as sent only afterwards, as in ZooKeeper.
        connection.send(text.encode())
        connection.finish(f"after {word}")
        return True

    def _text(self, word: str, rest: bytes) -> str:
        allowed = self._clients.settings.words
        if "*" not in allowed and word not in allowed:
            return f"{word} is not executed because it is not in the whitelist.\n"
        if word == "stmk":
            # This server does not trace; it reads the mask and repeats it.
            return str(int.from_bytes(rest[:8], "big", signed=True)) if len(rest) >= 8 else ""
        if word in self._always:
            return self._always[word]()
        backend = self._clients.backend
        return NOT_SERVING if backend is None else self._serving[word](backend)

    def _srvr(self, backend: Backend) -> str:
        return _version_line() + self._summary(backend)

    def _stat(self, backend: Backend) -> str:
        clients = "".join(f"{_brief(connection)})\n" for connection in self._clients.connections)
        return f"{_version_line()}Clients:\n{clients}\n{self._summary(backend)}"

    def _summary(self, backend: Backend) -> str:
        statistics, status = self._clients.statistics, backend.status()
        latency = statistics.latency
        lines = [
            f"Latency min/avg/max: {latency.least}/{latency.average}/{latency.greatest}",
            f"Received: {statistics.received}",
            f"Sent: {statistics.sent}",
            f"Connections: {len(self._clients.connections)}",
            f"Outstanding: {self._clients.in_process}",
            f"Zxid: 0x{backend.last_zxid:x}",
            f"Mode: {status.mode}",
            f"Node count: {len(backend.tree) + ROOT_AGAIN}",
        ]
        if status.proposals is not None:
            lines.append("Proposal sizes last/min/max: {}/{}/{}".format(*status.proposals))
        return "".join(line + "\n" for line in lines)

    def _mntr(self, backend: Backend) -> str:
        return "".join(f"zk_{name}\t{value}\n" for name, value in self.monitored(backend, backend.status()))

    @property
    def uptime(self) -> int:
        """The time since the start of the server, in milliseconds."""
        return system().monotonic_ms() - self._started

    def monitored(self, backend: Backend, status: ServerStatus) -> Iterator[tuple[str, int | float | str]]:
        """The figures of `mntr`, without the prefix of their names."""
        statistics, tree = self._clients.statistics, backend.tree
        yield "version", version_text()
        yield "server_state", status.mode
        yield "ephemerals_count", sum(len(tree.ephemerals(session)) for session in tree.owners())
        yield "num_alive_connections", len(self._clients.connections)
        yield "avg_latency", statistics.latency.average
        yield "outstanding_requests", self._clients.in_process
        yield "znode_count", len(tree) + ROOT_AGAIN
        yield "global_sessions", len(tree.sessions)
        yield "packets_sent", statistics.sent
        yield "packets_received", statistics.received
        yield "connection_drop_probability", 0.0
        yield "watch_count", self._clients.processor.watches
        yield "auth_failed_count", statistics.auth_failed
        yield "min_latency", statistics.latency.least
        yield "max_file_descriptor_count", resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        yield "approximate_data_size", tree.bytes_of_data
        yield "open_file_descriptor_count", _open_files()
        yield "local_sessions", 0
        yield "uptime", self.uptime
        yield "max_latency", statistics.latency.greatest
        yield "connection_rejected", statistics.refused
        yield from status.monitored

    def _conf(self, backend: Backend) -> str:
        status, lines = backend.status(), list(self._clients.settings.conf)
        for after, size in (("dataDir", status.data_dir_size), ("dataLogDir", status.log_dir_size)):
            place = next((place for place, line in enumerate(lines) if line.startswith(after + "=")), None)
            if place is not None:
                lines.insert(place + 1, f"{_SIZE_OF[after]}={size}")
        if status.membership:
            lines += ["membership: ", *status.membership.splitlines()]
        return "".join(line + "\n" for line in lines)

    def _cons(self, _backend: Backend) -> str:
        return "".join(_full(connection) + "\n" for connection in self._clients.connections) + "\n"

    def _crst(self, _backend: Backend) -> str:
        for connection in self._clients.connections:
            connection.statistics.reset()
        return "Connection stats reset.\n"

    def _srst(self, _backend: Backend) -> str:
        self._clients.statistics.reset()
        return "Server stats reset.\n"

    def _dirs(self, backend: Backend) -> str:
        status = backend.status()
        return f"datadir_size: {status.data_dir_size}\nlogdir_size: {status.log_dir_size}\n"

    def _dump(self, backend: Backend) -> str:
        expiring, tree, wall = backend.status().expiring, backend.tree, system().wall_ms() / 1000
        lines = ["SessionTracker dump:"]
        lines.append(f"Session Sets ({len(expiring)})/({sum(len(sessions) for _, sessions in expiring)}):")
        for when, sessions in expiring:
            lines.append(f"{len(sessions)} expire at {_date(when)}:")
            lines += [f"\t{_hexadecimal(session)}" for session in sessions]
        lines += ["ephemeral nodes dump:", f"Sessions with Ephemerals ({len(tree.owners())}):"]
        for session in tree.owners():
            lines.append(f"{_hexadecimal(session)}:")
            lines += [f"\t{path}" for path in tree.ephemerals(session)]
        connected = tuple(self._clients.connected_by_expiry())
        lines.append("Connections dump:")
        lines.append(f"Connections Sets ({len(connected)})/({sum(len(group) for _, group in connected)}):")
        for when, connections in connected:
            lines.append(f"{len(connections)} expire at {_date(wall + (when - self._clients.now) / 1000)}:")
            lines += [
                f"\tip: {_socket(connection)} sessionId: {_hexadecimal(connection.session)}"
                for connection in connections
            ]
        return "".join(line + "\n" for line in lines)

    def _wchs(self, _backend: Backend) -> str:
        connections, paths, total = self._clients.processor.watch_totals()
        return f"{connections} connections watching {paths} paths\nTotal watches:{total}\n"

    def _wchc(self, _backend: Backend) -> str:
        by_watcher: dict[Connection, list[str]] = {}
        for path, watchers in self._clients.processor.data_watches():
            for watcher in watchers:
                by_watcher.setdefault(watcher, []).append(path)
        blocks = (_block(_hexadecimal(watcher.session), paths) for watcher, paths in by_watcher.items())
        return "".join(blocks) + "\n"

    def _wchp(self, _backend: Backend) -> str:
        watches = self._clients.processor.data_watches()
        blocks = (_block(path, [_hexadecimal(watcher.session) for watcher in watchers]) for path, watchers in watches)
        return "".join(blocks) + "\n"


_SIZE_OF = {"dataDir": "dataDirSize", "dataLogDir": "dataLogSize"}


def _block(head: str, lines: list[str]) -> str:
    return head + "\n" + "".join(f"\t{line}\n" for line in lines)


def _hexadecimal(session: int) -> str:
    return f"0x{session % (1 << 64):x}"


def _date(seconds: float) -> str:
    """Format a date as Java does."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(seconds))


def _socket(connection: Connection) -> str:
    return f"/{connection.remote}"


def _brief(connection: Connection) -> str:
    """Format a connection as `stat` does, without the closing bracket."""
    statistics = connection.statistics
    return (
        f" {_socket(connection)}[{connection.interest():x}](queued={len(connection.waiting)}"
        f",recved={statistics.received},sent={statistics.sent}"
    )


def _full(connection: Connection) -> str:
    if not connection.session:
        return _brief(connection) + ")"
    statistics = connection.statistics
    latency = statistics.latency
    cxid = f",lcxid=0x{statistics.cxid:x}" if statistics.cxid >= 0 else ""
    return (
        f"{_brief(connection)},sid={_hexadecimal(connection.session)},lop={statistics.operation}"
        f",est={connection.established},to={connection.timeout}{cxid},lzxid={_hexadecimal(statistics.zxid)}"
        f",lresp={statistics.answered_at},llat={statistics.last_latency},minlat={latency.least}"
        f",avglat={int(latency.average)},maxlat={latency.greatest})"
    )


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def version_text() -> str:
    """Return ZooKeeper's version, then this package's, then its installation time; tools parse the beginning."""
    ours = next(filter(None, map(_installed, (DISTRIBUTION, NODE))), "unknown")
    built = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(Path(__file__).stat().st_mtime))
    return f"{COMPATIBLE}-quorate-{ours}, built on {built}"


def _version_line() -> str:
    return f"Zookeeper version: {version_text()}\n"


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counting needs no Path objects
    except OSError:
        return -1


def environment() -> dict[str, str]:
    """The environment for `envi`; there is no Java, so its properties are <NA>."""
    memory = os.sysconf("SC_PAGE_SIZE") // 1024 * os.sysconf("SC_PHYS_PAGES") // 1024
    return {
        "zookeeper.version": version_text(),
        "host.name": socket.gethostname(),
        **dict.fromkeys(("java.version", "java.vendor", "java.home", "java.class.path"), "<NA>"),
        **dict.fromkeys(("java.library.path", "java.io.tmpdir", "java.compiler"), "<NA>"),
        "os.name": platform.system(),
        "os.arch": platform.machine(),
        "os.version": platform.release(),
        "user.name": os.environ.get("USER", "<NA>"),
        "user.home": str(Path.home()),
        "user.dir": str(Path.cwd()),
        "os.memory.free": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_AVPHYS_PAGES') // 2**20}MB",
        "os.memory.max": f"{memory}MB",
        "os.memory.total": f"{memory}MB",
        "python.version": platform.python_version(),
    }
