"""The form of a fact: a table of observations at real servers, and the functions that measure it.

Rules of this module:

- A table is the same in every run, so that `--check` can compare it with the page. Ports are fixed by `Members.plain`,
  and zxids are too, since sessions are local. Times are not compared: they are in tables that are `timed`.
- A cell is observed at a server, and never an expectation.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.processes import ServerError, wait_until
from harness.reconfig.members import brief
from harness.reconfig.probe import Gossip, gossip
from harness.reconfig.servers import NEXT, SERVE_SECONDS, ReconfigServers
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
    said = gossip_of(servers, sid)
    next_file = servers.file(sid, NEXT)
    return Sight(
        mode=(servers.mode(sid) or "not serving") if servers.alive(sid) else "down",
        node=brief(servers.config(sid)) if servers.mode(sid) else "-",
        active=servers.active_file(sid).removeprefix("zoo.cfg") or "-",
        next=brief(next_file) if next_file else "-",
        gossip=brief(said.config) if said else "-",
    )


def gossip_of(servers: ReconfigServers, sid: Sid) -> Gossip | None:
    """The notification of a server; None if it does not run or does not answer."""
    if not servers.alive(sid):
        return None
    known = "\n".join(servers.members.lines(servers.sids))
    try:
        return gossip(servers.members[sid].election_port, known)
    except ServerError:
        return None


def wait_logged(servers: ReconfigServers, sids: Iterable[Sid], zxid: int) -> None:
    """Wait until the logs of these servers contain a transaction. Raises ServerError."""
    for sid in sids:
        wait_until(lambda sid=sid: zxid in servers.logged(sid), 20.0, f"server {sid} logs {zxid:#x}")  # type: ignore[misc]


def wait_config(servers: ReconfigServers, sids: Iterable[Sid], config: str, seconds: float = SERVE_SECONDS) -> None:
    """Wait until clients read a configuration, in brief, from these servers. Raises ServerError."""
    for sid in sids:
        what = f"server {sid} has {config}"
        wait_until(lambda sid=sid: brief(servers.config(sid)) == config, seconds, what)  # type: ignore[misc]


def drop_links(servers: ReconfigServers, server: Sid) -> None:
    """End the quorum connections of a server."""
    for other in servers.sids:
        if other != server and (link := servers.network.link(other, server)):
            link.drop()
