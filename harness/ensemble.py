"""An ensemble on this machine: each server real or ours, each in a separate directory.

Rules of this module:

- Server ids are 1, 2, ... in the order of `kinds`. A server keeps its ports and its data directory for its whole life,
  also when its kind changes.
- The release of a real server is 3.8.0 unless the caller chooses another; it says nothing about a node.
- A node's journal is `journal.jsonl` in its directory.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path

from harness import node, real
from harness.processes import LOOPBACK, Process, ServerError
from harness.releases import DEBIAN
from harness.servers import Servers
from harness.zoo_cfg import Member, View, members, write_zoo_cfg

KINDS = {"real": real.available, "node": node.available}
"""The kinds of server; calling a value returns None, or the reason why that kind cannot be started here."""


def releases_of(sids: Sequence[int], release: str | Mapping[int, str] | Sequence[str]) -> dict[int, str]:
    """The release of each server; a server that a mapping does not name has Debian's.

    Raises ServerError if a mapping names other servers, or if a sequence has another length.
    """
    if isinstance(release, str):
        return dict.fromkeys(sids, release)
    if not isinstance(release, Mapping):
        if len(release) != len(sids):
            raise ServerError(f"{len(sids)} servers need as many releases, and {len(release)} were given: {release}")
        return dict(zip(sids, release, strict=True))
    if strangers := sorted(set(release) - set(sids)):
        raise ServerError(f"a release was given for server {strangers[0]}; the servers are {', '.join(map(str, sids))}")
    return {sid: release.get(sid, DEBIAN) for sid in sids}


class Ensemble(Servers):
    """Servers 1 to n of the given kinds in `directory`; no process runs before `start` or `start_all`.

    `observers` are the ids that do not vote; `tick_time` is in milliseconds; `extra` are further keys of every
    `zoo.cfg`; with `standalone` the only server runs without Zab; with `journal` our nodes write their facts to
    `journal.jsonl`; `heap` and `java_options` (`-Dname=value`) are those of a real server; `release` is the release of
    all real servers, or a mapping by id, or a sequence with one release for each server.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        directory: Path,
        *,
        observers: Collection[int] = (),
        tick_time: int = 500,
        extra: Mapping[str, str] | None = None,
        standalone: bool = False,
        journal: bool = False,
        heap: str = "128m",
        java_options: Sequence[str] = (),
        release: str | Mapping[int, str] | Sequence[str] = DEBIAN,
    ) -> None:
        sids = tuple(range(1, len(kinds) + 1))
        if standalone and len(kinds) != 1:
            raise ServerError(f"a standalone server is one server, and {len(kinds)} were asked for")
        lines = members(sids, frozenset(observers))
        view = View(lines, tick_time=tick_time, extra=extra or {}, standalone=standalone)
        super().__init__(sids, directory)
        self._journal = journal
        self._java = (f"-Xmx{heap}", *java_options)
        self._members: dict[int, Member] = {member.sid: member for member in lines}
        self._views: dict[int, View] = dict.fromkeys(sids, view)
        self._kinds: dict[int, str] = dict(zip(sids, kinds, strict=True))
        self._releases = releases_of(sids, release)
        for sid, kind in self._kinds.items():
            self._set_up(sid, kind)

    def _set_up(self, sid: int, kind: str) -> None:
        if kind not in KINDS:
            raise ServerError(f"server {sid}: no kind of server is called {kind!r}; write {' or '.join(KINDS)}")
        home = self.home(sid)
        zoo_cfg = write_zoo_cfg(self._views[sid], self._members[sid], home)
        if kind == "real":
            command, environment = real.command(zoo_cfg, self._java, self._releases[sid]), {}
        else:
            command = node.command(zoo_cfg, self.journal(sid) if self._journal else None)
            environment = node.environment()
        self._kinds[sid] = kind
        self._processes[sid] = Process(command, home, home / "log.txt", environment)

    # --- ids and addresses

    @property
    def connect_string(self) -> str:
        """All client addresses, as a connect string for client libraries."""
        return ",".join(self.address(sid) for sid in self.sids)

    def address(self, sid: int) -> str:
        """`host:port` of a server's client port."""
        return f"{LOOPBACK}:{self._members[sid].client_port}"

    def client_port(self, sid: int) -> int:
        """The port for the clients of a server."""
        return self._members[sid].client_port

    def member(self, sid: int) -> Member:
        """All three ports of a server."""
        return self._members[sid]

    def name(self, sid: int) -> str:
        """The name of a server in error messages, with its kind."""
        return f"server {sid} ({self._kinds[sid]})"

    def kind(self, sid: int) -> str:
        """The kind of a server: `real` or `node`."""
        return self._kinds[sid]

    def release(self, sid: int) -> str:
        """The release of a server while it is a real one."""
        return self._releases[sid]

    def journal(self, sid: int) -> Path:
        """The file for the facts of a node, if the ensemble was made with `journal`."""
        return self.home(sid) / "journal.jsonl"

    # --- lifecycle

    def start_all(self, members: Sequence[int] = ()) -> None:
        """Start every server that does not run, and wait until all of them serve; `members` are all by default."""
        for sid in members or self.sids:
            if not self._processes[sid].alive:
                self.start(sid)
        self.wait_serving()

    def start_led_by(self, leader: int, members: Sequence[int] = ()) -> None:
        """Start empty servers so that this one leads, and wait until all serve; `members` are all by default.

        A quorum of the leader and the voters with the lowest ids starts first: an election needs a quorum, and servers
        with equal logs vote for the highest id. If all started together, or while the leader is LOOKING, the others
        would wait for it for at most 0.2 s (`finalizeWait`), and a busy machine may delay it for longer.

        Raises ServerError if too few voters have lower ids than the leader.
        """
        started = members or self.sids
        voters = sorted(sid for sid in started if not self._members[sid].observer)
        followers = [sid for sid in voters if sid < leader][: len(voters) // 2]
        if leader not in voters or len(followers) < len(voters) // 2:
            raise ServerError(f"server {leader} cannot be made the leader: too few voters of {voters} have lower ids")
        for sid in (leader, *followers):
            self.start(sid)
        self.wait_serving()
        self.start_all(started)

    def replace(self, sid: int, kind: str, release: str | None = None) -> None:
        """Stop a server and start it as another kind or another release, over the same data."""
        self.stop(sid)
        if release is not None:
            self._releases[sid] = release
        self._set_up(sid, kind)
        self.start(sid)

    def tell(self, sid: int, known: Iterable[int]) -> None:
        """Write a `zoo.cfg` that lists only these members; the server reads it at its next start."""
        lines = tuple(self._members[member] for member in known)
        self._write(sid, replaced(self._views[sid], members=lines, standalone=False))

    def set_keys(self, sid: int, extra: Mapping[str, str]) -> None:
        """Write a `zoo.cfg` with these further keys instead of the old ones; the server reads it at its next start."""
        self._write(sid, replaced(self._views[sid], extra=extra))

    def tell_alone(self, sid: int) -> None:
        """Write a `zoo.cfg` that lists no member: from its next start on the server runs standalone."""
        self._write(sid, replaced(self._views[sid], standalone=True))

    def _write(self, sid: int, view: View) -> None:
        self._views[sid] = view
        write_zoo_cfg(view, self._members[sid], self.home(sid))
