"""The form of a fact: a table of observations at real servers, the functions that measure it, and its place in a page.

Rules of this module:

- A table is the same in every run, so that `--check` can compare it with the page. Ports are fixed by `Members.plain`,
  and zxids are too, since sessions are local. Times are not compared: they are in tables that are `timed`.
- A cell is observed at a server, and never an expectation.
"""

import re
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from harness.processes import LOOPBACK, ServerError, wait_until
from harness.reproduce.proxies import Way
from harness.servers import SERVE_SECONDS
from harness.session import Session, receive_exactly
from research.reconfig.servers import NEXT, RECONFIG, ReconfigServers, brief
from spec.quorum import Sid


@dataclass(frozen=True)
class FactTable:
    """A table of the page; `timed` tables contain times, which differ from run to run."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    timed: bool = False

    def markdown(self) -> str:
        """The table in Markdown."""
        head = ["| " + " | ".join(self.columns) + " |", "|" + " --- |" * len(self.columns)]
        return "\n".join(head + ["| " + " | ".join(row) + " |" for row in self.rows])


@dataclass(frozen=True)
class FactBench:
    """The place and the release for the servers of one measurement; `shim` is the library of the disk gates."""

    directory: Path
    release: str
    shim: Path | None = None

    def servers(self, name: str, sids: Iterable[Sid], **options: object) -> ReconfigServers:
        """Servers in a new folder of this name; they do not run yet."""
        folder = self.directory / name
        folder.mkdir(parents=True)
        return ReconfigServers(folder, sids, self.release, **options)  # type: ignore[arg-type]


OUTSIDER = 200
"""An id that no configuration has. It is greater than the others, so the server keeps the connection."""
SECONDS = 5.0
OPENING = struct.Struct(">qqi")
ONE_ADDRESS = -65536
NOTIFICATION = struct.Struct(">iqqqqii")
Measure = Callable[[FactBench], Iterable[FactTable]]
COLUMNS = ("srvr", "config node", "active file", ".next", "gossip")
"""The columns of `Sight.cells`."""


@dataclass(frozen=True)
class Sight:
    """The answers and files of one server: each part a short text, or `-`."""

    mode: str
    node: str
    active: str
    next: str
    gossip: str

    def cells(self) -> tuple[str, ...]:
        """The parts as cells of a table."""
        return (self.mode, self.node, self.active, self.next, self.gossip)


def look(servers: ReconfigServers, sid: Sid) -> Sight:
    """Look at the answers and the files of a server."""
    gossip = gossip_of(servers, sid)
    next_file = servers.file(sid, NEXT)
    return Sight(
        mode=(servers.role(sid) or "not serving") if servers.alive(sid) else "down",
        node=brief(servers.config(sid)) if servers.role(sid) else "-",
        active=servers.active_file(sid).removeprefix("zoo.cfg") or "-",
        next=brief(next_file) if next_file else "-",
        gossip=brief(gossip[1]) if gossip else "-",
    )


def gossip_of(servers: ReconfigServers, sid: Sid) -> tuple[int, str] | None:
    """The format and the configuration in a notification of a server; None if it does not run or does not answer.

    The question is a notification of a server outside the configuration, which every server answers in any state. It
    has a readable configuration of version 0, which is not newer than that of the server.

    Source: `FastLeaderElection.Messenger.WorkerReceiver.run` (validVoter), `buildMsg`;
    `QuorumCnxManager.handleConnection`.
    """
    if not servers.alive(sid):
        return None
    address, config_text = f"{LOOPBACK}:9".encode(), "\n".join(servers.members.lines(servers.sids)).encode()
    question = NOTIFICATION.pack(0, OUTSIDER, 0, 0, 0, 2, len(config_text)) + config_text
    with suppress(ServerError, OSError):
        port = servers.members[sid].election_port
        with socket.create_connection((LOOPBACK, port), SECONDS) as connection:
            opening = OPENING.pack(ONE_ADDRESS, OUTSIDER, len(address)) + address
            connection.sendall(opening + struct.pack(">i", len(question)) + question)
            (length,) = struct.unpack(">i", receive_exactly(connection, 4))
            answer = receive_exactly(connection, length)
        *_, version, size = NOTIFICATION.unpack_from(answer)
        return version, answer[NOTIFICATION.size : NOTIFICATION.size + size].decode("utf-8")
    return None


def wait_logged(servers: ReconfigServers, sids: Iterable[Sid], zxid: int) -> None:
    """Wait until the logs of these servers contain a transaction. Raises ServerError."""
    for sid in sids:
        wait_until(lambda sid=sid: zxid in servers.logged(sid), 20.0, f"server {sid} logs {zxid:#x}")  # type: ignore[misc]


def wait_config(servers: ReconfigServers, sids: Iterable[Sid], config: str, seconds: float = SERVE_SECONDS) -> None:
    """Wait until clients read a configuration, in brief, from these servers. Raises ServerError."""
    for sid in sids:
        condition = f"server {sid} has {config}"
        wait_until(lambda sid=sid: brief(servers.config(sid)) == config, seconds, condition)  # type: ignore[misc]


def drop_links(servers: ReconfigServers, server: Sid) -> None:
    """End the quorum connections of a server."""
    for peer in servers.sids:
        if peer != server and (link := servers.network.link(peer, server)):
            link.drop()


PLACE = re.compile(r"<!-- table: ([a-z-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
"""The place of a table in the page, between two comments."""


def places(page: str) -> dict[str, str]:
    """The text in each place of a page, by the name of its table."""
    return {place[1]: place[2].strip() for place in PLACE.finditer(page)}


def shown(page: str, name: str) -> FactTable | None:
    """A table of a page; None if the page has none of this name."""
    text = places(page).get(name, "")
    lines = [tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in text.splitlines()]
    return FactTable(name, lines[0], tuple(lines[2:])) if lines else None


def written(page: str, tables: Iterable[FactTable]) -> str:
    """A page with these tables in their places; other places stay as they are."""
    texts = {table.name: f"\n{table.markdown()}\n\n" for table in tables}
    return PLACE.sub(lambda place: f"<!-- table: {place[1]} -->\n{texts.get(place[1], place[2])}<!-- end -->", page)


def differences(page: str, tables: Iterable[FactTable]) -> tuple[str, ...]:
    """A line for each table that the page lacks, and for each row that differs; timed tables are not compared."""
    texts = places(page)
    lines: list[str] = []
    for table in tables:
        if table.name not in texts:
            lines.append(f"table {table.name}: the page has no place for it")
        elif not table.timed:
            rows = zip_longest(texts[table.name].splitlines(), table.markdown().splitlines(), fillvalue="nothing")
            lines += [
                f"table {table.name}, line {number}: the page has {page_line}; the servers gave {server_line}"
                for number, (page_line, server_line) in enumerate(rows, 1)
                if page_line != server_line
            ]
    return tuple(lines)


ZXID = 0x100000001
NEW = "0x100000001: {3, 4, 5}"
OLD_SIDE, NEW_SIDE = (1, 2), (3, 4, 5)
"""{1, 2, 3} becomes {3, 4, 5}: the scene of several defects."""


@contextmanager
def ensemble(bench: FactBench, name: str) -> Iterator[ReconfigServers]:
    """Servers 1, 2 and 3, led by 3, and the joiners 4 and 5, which follow without a vote."""
    with bench.servers(name, (1, 2, 3, 4, 5), keys={"syncLimit": "16"}) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        for sid in (4, 5):
            servers.begin(sid, (1, 2, 3, sid))
        servers.wait_serving([4, 5])
        yield servers


def log_everywhere(servers: ReconfigServers) -> Session:
    """Ask for the change at 3, and wait for the logs of 1, 3, 4 and 5; return the client, which waits for its reply.

    Server 2 gets no proposal, and all acknowledgements are held. The callers decide which of them count, and who learns
    of the commit.
    """
    servers.hold(2, 3, Way.DOWN)
    for sid in (1, 4, 5):
        servers.hold(sid, 3, Way.UP)
    client = servers.connect(3)
    client.send(RECONFIG, *servers.change(join=[4, 5], leave=[1, 2]))
    wait_logged(servers, (1, 3, 4, 5), ZXID)
    return client
