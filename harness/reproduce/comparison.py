"""The comparison of real servers with a state of the model: everything that can be observed from outside.

Rules of this module:

- Observed are roles (`srvr`), zxids in the log files and at the gates, connections and packets in flight at the
  proxies, replies, and the last applied zxid (`srvr`) of a server that applies a commit late. The epoch of the history
  is read from its file, and a snapshot where its content matters (`Durable.dirty`).
- Observed are the configuration files, too, where servers can be reconfigured: the active one, and `.dynamic.next`.
- A transaction that only the newest snapshot has counts as logged, as in the model (`spec.zab.disk`).
- Servers may be ahead of the model where the model lets a step be late: packets in flight have the model's packets as
  a prefix, and a reply may be early.
- A leader that has lost its quorum may notice earlier than in the model.
- A client has no reply if its server has stopped serving since the write.
"""

from collections.abc import Iterator
from pathlib import Path

from checker.engine.model import Row
from checker.models.ensemble.connection import Connection
from harness.reproduce.disks import newest_snapshot_paths, path_of, read_current_epoch, snapshot_paths
from harness.reproduce.gates import ServerThread
from harness.reproduce.lab import Lab
from harness.reproduce.proxies import Way, WirePacket
from harness.reproduce.schedule import Schedule, applied_zxid, pending_appends, wire_form, written_epoch
from harness.zoo_cfg import NEXT, active_config, brief, in_brief
from refimpl.wire.packet import PacketType
from spec.quorum import Sid, View
from spec.server import Server
from spec.txn import format_zxid
from spec.zab.packets import QuorumPacket
from spec.zab.reconfiguration import view_of
from spec.zab.state import Leader, Learner


class Comparison:
    """Compares the servers of a lab with states of a schedule."""

    def __init__(self, schedule: Schedule, lab: Lab) -> None:
        self._schedule, self._lab = schedule, lab
        self._unanswered: set[int] = set()  # the writes whose session has ended

    def differences(self, row: Row) -> list[str]:
        """The observable differences between the servers and a state of the model, which follows the last one."""
        compared = (
            self.roles, self.logs, self.views, self._epochs, self._snapshots,
            self._late_commits, self._connections, self._in_flight, self._replies,
        )  # fmt: skip
        return [difference for find in compared for difference in find(row)]

    def roles(self, row: Row) -> list[str]:
        """The servers whose role is not that of the model."""
        faults = []
        for sid in self._lab.sids:
            expected = role_of(self._schedule.server(row, sid), sid)
            role = self._lab.role(sid)
            early = role is None and self._schedule.leads_without_quorum(row, sid)
            if role != expected and not early:
                faults.append(f"server {sid} is {role or 'not serving'}, and the model has {expected or 'not serving'}")
        return faults

    def logs(self, row: Row) -> list[str]:
        """The servers whose log files, or whose next write, are not those of the model."""
        problems = []
        for sid in self._lab.sids:
            server = self._schedule.server(row, sid)
            expected = tuple(txn.zxid for txn in server.durable.records)
            zxids = tuple(zxid for zxid in self._lab.logged(sid) if zxid > server.durable.snapshot)
            if not set(expected) <= set(zxids):
                zxids = tuple(sorted({*zxids, *self._only_in_snapshot(sid, server)}))
            if zxids != expected:
                problems.append(
                    f"the log of server {sid} has {list_zxids(zxids)}, and the model has {list_zxids(expected)}"
                )
            awaited = pending_appends(server)[:1]
            if awaited and self._lab.alive(sid) and not self._is_about_to_write(sid, awaited[0]):
                problems.append(f"server {sid} does not write {list_zxids(awaited)}")
        return problems

    def _only_in_snapshot(self, sid: Sid, server: Server) -> set[int]:
        """The zxids of the model's records that the newest snapshot has: after a TRUNC they count as logged there."""
        paths = newest_snapshot_paths(self._lab.data(sid))
        return {txn.zxid for txn in server.durable.records if path_of(txn.zxid, txn.value) in paths}

    def _is_about_to_write(self, sid: Sid, zxid: int) -> bool:
        """Whether the write waits at the gate, or the thread that would write rests."""
        threads = self._lab.threads[sid]
        return zxid in self._lab.gates[sid].waiting() or (
            threads.is_closed(ServerThread.SYNC) and threads.is_held(ServerThread.SYNC)
        )

    def views(self, row: Row) -> list[str]:
        """The configuration files that have not the views of the model."""
        return [text for sid in self._lab.sids for text in self.view_of(row, sid)]

    def view_of(self, row: Row, sid: Sid) -> list[str]:
        """The configuration files of a server that have not the model's views, where servers can be reconfigured."""
        if not self._schedule.setup.gossip:
            return []
        server = self._schedule.server(row, sid)
        home, problems = self._lab.home(sid), []
        expected, active = text_of_view(server.view), active_config(home)
        if active is None or brief(active) != expected:
            text = "none" if active is None else brief(active)
            problems.append(f"the configuration of server {sid} is {text}, and the model has {expected}")
        seen, last_seen = next_config(home), seen_view(server)
        if seen != last_seen and not sees_early(server):
            text = f"server {sid} has seen the configuration {seen or 'of no proposal'}"
            problems.append(f"{text}, and the model has {last_seen or 'none'}")
        return problems

    def _epochs(self, row: Row) -> Iterator[str]:
        for sid in self._lab.sids:
            server = self._schedule.server(row, sid)
            expected, epoch = written_epoch(server), read_current_epoch(self._lab.data(sid))
            if expected is not None and epoch != expected:
                yield f"currentEpoch of server {sid} is {epoch}, and the model has {expected}"

    def _snapshots(self, row: Row) -> Iterator[str]:
        """The snapshots whose content is not that of the log, where the files have no such snapshot."""
        for sid in self._lab.sids:
            dirty = self._schedule.server(row, sid).durable.dirty
            if dirty is None:
                continue
            # A reconfiguration creates no znode; its server writes the config node anew when it begins to lead.
            expected = frozenset(path_of(txn.zxid, txn.value) for txn in dirty.txns if view_of(txn) is None)
            paths = snapshot_paths(self._lab.data(sid), dirty.zxid)
            if paths != expected:
                text = "is not there" if paths is None else f"has {', '.join(sorted(paths)) or 'nothing'}"
                name = f"the snapshot {format_zxid(dirty.zxid)} of server {sid}"
                yield f"{name} {text}, and the model has {', '.join(sorted(expected))}"

    def _late_commits(self, row: Row) -> Iterator[str]:
        for sid in self._lab.sids:
            server = self._schedule.server(row, sid)
            if server.zab is not None and server.zab.commits:
                expected, applied = applied_zxid(server), self._lab.applied(sid)
                if applied != expected:
                    text = "nothing" if applied is None else format_zxid(applied)
                    yield f"server {sid} has applied {text}, and the model has {format_zxid(expected)}"

    def _connections(self, row: Row) -> Iterator[str]:
        """The sides that hold a connection which they have closed in the model."""
        for connection in self._schedule.connections(row):
            learner, leader = connection.learner, connection.leader
            link = self._lab.network.link(learner, leader)
            holds = {learner: connection.learner_holds, leader: connection.leader_holds}
            for sid, way in ((learner, Way.UP), (leader, Way.DOWN)):
                if link is not None and not holds[sid] and way not in link.ended:
                    yield f"server {sid} has not closed its connection with server {leader + learner - sid}"

    def _in_flight(self, row: Row) -> list[str]:
        return [text for connection in self._schedule.connections(row) for text in self._in_flight_of(connection)]

    def _in_flight_of(self, connection: Connection) -> Iterator[str]:
        learner, leader = connection.learner, connection.leader
        link = self._lab.network.link(learner, leader)
        for way, packets in ((Way.UP, connection.up), (Way.DOWN, connection.down)):
            arrivals = () if link is None else link.waiting(way)
            same = [agree(packet, wire) for packet, wire in zip(packets, arrivals, strict=False)]
            if len(arrivals) < len(packets) or not all(same):
                ends = (learner, leader) if way is Way.UP else (leader, learner)
                wire = ", ".join(f"{arrival.name}{zxid_of(arrival)}" for arrival in arrivals) or "nothing"
                model = ", ".join(map(text_of, packets))
                yield f"from {ends[0]} to {ends[1]} is in flight: {wire}; and the model has: {model}"

    def _replies(self, row: Row) -> list[str]:
        refused = [write for write in self._lab.reconfigs if write.error]
        problems = [f"server {write.sid} refuses the reconfiguration with {write.error}" for write in refused]
        for number, write in self._lab.writes.items():
            server = self._schedule.server(row, write.sid)
            if not self._schedule.serves(row, write.sid):
                self._unanswered.add(number)
            zxid = self._schedule.zxids.get(number)
            awaited = zxid is not None and applied_zxid(server) >= zxid and number not in self._unanswered
            if awaited and write.error is None:
                problems.append(f"the client of server {write.sid} has no reply to its write of {write.path}")
        return problems


def role_of(server: Server, sid: Sid) -> str | None:
    """The role of a server that serves, as `srvr` names it; None if it does not serve."""
    part = server.zab
    if part is None or not part.serves:
        return None
    if isinstance(part, Leader):
        return "leader"
    return "observer" if sid in server.view.observers else "follower"


def text_of_view(view: View) -> str:
    """A view of the model in brief, as `harness.zoo_cfg.brief` has a configuration."""
    return in_brief(view.version, view.voters, view.observers)


def seen_view(server: Server) -> str | None:
    """The view in the file `.dynamic.next` of a server, in brief; None without the file."""
    return None if server.last_seen is None or server.next_deleted else text_of_view(server.last_seen)


def next_config(directory: Path) -> str | None:
    """The configuration in the file `.dynamic.next`, in brief; None without the file."""
    try:
        return brief((directory / NEXT).read_text("utf-8"))
    except OSError:
        return None


def sees_early(server: Server) -> bool:
    """Whether a server has read a proposal of a view, and the model sees the view only when it is logged.

    Source: `Learner.syncWithLeader` (PROPOSAL, setLastSeenQuorumVerifier).
    """
    part = server.zab
    return isinstance(part, Learner) and any(view_of(txn) is not None for txn in part.not_logged)


def agree(packet: QuorumPacket, wire: WirePacket) -> bool:
    """Whether a packet on the wire is the packet of the model."""
    name, zxid = wire_form(packet)
    return name == wire.name and (zxid is None or zxid == wire.zxid)


def text_of(packet: QuorumPacket) -> str:
    """The type and the zxid of a packet of the model."""
    name, zxid = wire_form(packet)
    return name if zxid is None else f"{name} {format_zxid(zxid)}"


def zxid_of(packet: WirePacket) -> str:
    """The zxid of a packet on the wire, after a space; empty for a type that the model has without a zxid."""
    types = (PacketType.PROPOSAL, PacketType.COMMIT, PacketType.ACK, PacketType.TRUNC, PacketType.NEWLEADER,
             PacketType.COMMITANDACTIVATE, PacketType.INFORMANDACTIVATE)  # fmt: skip
    return f" {format_zxid(packet.zxid)}" if packet.type in types else ""


def list_zxids(zxids: tuple[int, ...]) -> str:
    """Zxids in brackets."""
    return "[" + ", ".join(map(format_zxid, zxids)) + "]"
