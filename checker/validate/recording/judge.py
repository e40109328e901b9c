"""All servers of a recording, in the order of its lines: each observation is compared with the specification.

Rules of this module:

- A server rests, follows or leads. It begins to follow when it sends FOLLOWERINFO, and to lead an epoch with its first
  LEADERINFO of it; the role before ends in order, unless the process was killed.
- A packet is sent when its line is read. Its causes were delivered in earlier lines.
- The first observation that no possible state explains is the mismatch; nothing behind it is judged.
- A judge with variants looks for their consequences. A leader without committed transactions, and a server without an
  acknowledged write, are then `losses`, and not the end.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from checker.validate.candidates import Unfit
from checker.validate.recording.leaders import LeaderTrack
from checker.validate.recording.reader import (
    DiskRecord,
    FateRecord,
    LinkRecord,
    PacketRecord,
    ProcessRecord,
    RecordedEvent,
    ReplyRecord,
    TreeRecord,
)
from checker.validate.recording.worlds import FollowerTrack, LearnerStream, Rest, distinct, on_disk, same
from spec.durable import Durable
from spec.quorum import Sid, View
from spec.txn import epoch_of, format_zxid
from spec.variants import Variant
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    Diff,
    FollowerInfo,
    Inform,
    LeaderInfo,
    NewLeader,
    Proposal,
    QuorumPacket,
    Snap,
    Trunc,
    UpToDate,
    described,
)
from spec.zab.state import ZabRules


@dataclass(frozen=True)
class RecordedMisfit:
    """The first observation that does not fit: its line and time, the server, and the allowed observations."""

    line: int
    time: float
    sid: Sid
    event: str
    clause: str
    values: tuple[tuple[str, object], ...] = ()


@dataclass
class Counts:
    """The sizes of a recording, up to the first misfit."""

    lines: int = 0
    packets: int = 0
    connections: int = 0
    lives: int = 0
    disks: int = 0
    replies: int = 0
    epochs: int = 0
    kinds: dict[str, int] = field(default_factory=dict)


class ServerTrack:
    """A server: its possible states at rest, or its role."""

    def __init__(self, sid: Sid, view: View, rests: list[Rest]) -> None:
        self.sid, self.view, self.rests = sid, view, rests
        self.runs = True
        self.follows: FollowerTrack | None = None
        self.leads: LeaderTrack | None = None
        self.followed: LearnerStream | None = None  # the connection on which it follows
        self.registered: list[LearnerStream] = []  # connections of learners without LEADERINFO yet
        self.cut = ""  # the last TRUNC that was delivered, and its line

    def rest(self, *, crash: bool) -> None:
        """End the role, if there is one."""
        role = self.follows or self.leads
        if role is not None:
            self.rests = role.ends(crash=crash)
        self.follows = self.leads = self.followed = None

    def give_up(self, rules: ZabRules, *, crash: bool) -> None:
        """End the role, and one that no packet shows."""
        self.rest(crash=crash)
        self.rests = distinct([*self.rests, *self.unseen(rules, self.registered, crash=crash)])
        self.registered = []

    def unseen(self, rules: ZabRules, registered: list[LearnerStream], *, crash: bool = False) -> list[Rest]:
        """The possible states after it has begun to lead the learners that have registered, and given up."""
        if not registered:
            return []
        role = LeaderTrack(self.sid, self.view, 0, rules, self.rests)
        role.streams = registered
        return role.ends(crash=crash)


class Judge:
    """The ensemble of a recording; `take` judges one line."""

    def __init__(self, variants: frozenset[Variant] = frozenset()) -> None:
        self.losses: list[RecordedMisfit] = []
        self._rules = ZabRules(asynchronous_disk=True, variants=variants)
        self._servers: dict[Sid, ServerTrack] = {}
        self._streams: dict[int, LearnerStream] = {}
        self._held: dict[tuple[int, bool], deque[QuorumPacket | None]] = {}
        self.committed: dict[int, object] = {}
        self._replies: dict[int, str] = {}  # paths of acknowledged writes, by zxid
        self._lack = ""  # the missing history of a leader that has just begun an epoch
        self.counts = Counts()

    def take(self, event: RecordedEvent) -> RecordedMisfit | None:
        """Judge one line; return the finding if it does not fit."""
        self.counts.lines += 1
        match event:
            case ProcessRecord():
                return self._process(event)
            case LinkRecord(opens=True):
                self.counts.connections += 1
                self._streams[event.connection] = LearnerStream(event.connection, event.learner, event.leader)
            case LinkRecord():
                self._stream(event.connection).closed = True
            case PacketRecord():
                return self._packet(event)
            case FateRecord():
                packets = self._held.get((event.connection, event.up))
                if not packets:
                    raise ValueError(f"no packet of connection {event.connection} is held in this direction")
                packet = packets.popleft()
                if event.delivered and packet is not None:
                    self._deliver(self._stream(event.connection), event, packet)
            case ReplyRecord():
                return self._reply(event)
            case TreeRecord() if event.absent:
                return self._lost(self._absent(event))
        return None

    def _lost(self, finding: RecordedMisfit) -> RecordedMisfit | None:
        """A violated invariant: the finding, or with variants one of their consequences."""
        if not self._rules.variants:
            return finding
        self.losses.append(finding)
        return None

    # --- look-ups; each raises ValueError for a number that no line has introduced

    def _track(self, sid: Sid) -> ServerTrack:
        if sid not in self._servers:
            raise ValueError(f"server {sid} has not started; its start line is missing")
        return self._servers[sid]

    def _stream(self, connection: int) -> LearnerStream:
        if connection not in self._streams:
            raise ValueError(f"connection {connection} has not begun; its open line is missing")
        return self._streams[connection]

    # --- processes and disks

    def _process(self, event: ProcessRecord) -> RecordedMisfit | None:
        self.counts.disks += 1
        runs = event.sid in self._servers and self._servers[event.sid].runs
        if runs is (event.view is not None):
            lack = "runs already; its kill" if runs else "does not run; its start"
            raise ValueError(f"server {event.sid} {lack} line is missing")
        if event.view is not None:
            self.counts.lives += 1
            if event.sid not in self._servers:
                self._servers[event.sid] = ServerTrack(event.sid, event.view, [_first_rest(event.disk)])
                return None
            track = self._track(event.sid)
            track.view, track.runs = event.view, True
            verb = "starts"
        else:
            track = self._track(event.sid)
            track.give_up(self._rules, crash=True)
            track.runs, verb = False, "is killed"
        return self._compare(event, track, verb)

    def _compare(self, event: ProcessRecord, track: ServerTrack, what: str) -> RecordedMisfit | None:
        results = [on_disk(rest, event.disk) for rest in track.rests]
        fitting = distinct(result for result in results if isinstance(result, Rest))
        if fitting:
            track.rests = fitting
            return None
        reasons = tuple(dict.fromkeys(result for result in results if isinstance(result, str)))
        log = event.disk.log
        records = f"{len(log)} records" + (f", the last {format_zxid(log[-1].zxid)}" if log else "")
        allowed = " or ".join(sorted({format_zxid(rest.durable.last_zxid) for rest in track.rests}))
        values = [("the log has", records), ("the specification's ends with", allowed)]
        if track.cut:
            values.append(("before", track.cut))
        clause = f"its disk does not fit: {reasons[-1]}"
        return RecordedMisfit(event.line, event.time, event.sid, f"server {event.sid} {what}", clause, tuple(values))

    # --- packets

    def _packet(self, event: PacketRecord) -> RecordedMisfit | None:
        self.counts.packets += 1
        self.counts.kinds[event.kind] = self.counts.kinds.get(event.kind, 0) + 1
        stream = self._stream(event.connection)
        if event.packet is not None:
            sender, receiver = (stream.learner, stream.leader) if event.up else (stream.leader, stream.learner)
            allowed = self._allowed(event, stream, event.packet)
            lack, self._lack = self._lack, ""
            if lack and allowed is None:
                lost = self._lost(self._incomplete(event, stream, lack))
                if lost is not None:
                    return lost
            if allowed is not None:
                where = f"connection {stream.number} from learner {stream.learner} to leader {stream.leader}"
                text = f"{described(event.packet)} to server {receiver}, on {where}"
                values = (("seen", described(event.packet)), ("the specification allows", allowed))
                return RecordedMisfit(
                    event.line, event.time, sender, text, f"it cannot send {described(event.packet)}", values
                )
        if event.held:
            self._held.setdefault((event.connection, event.up), deque()).append(event.packet)
        elif event.packet is not None:
            self._deliver(stream, event, event.packet)
        return None

    def _incomplete(self, event: PacketRecord, stream: LearnerStream, lack: str) -> RecordedMisfit:
        assert event.packet is not None
        leads = self._track(stream.leader).leads
        epoch = 0 if leads is None else leads.epoch
        text = f"{described(event.packet)} to server {stream.learner}, on connection {stream.number}"
        clause = f"it cannot begin to lead epoch {epoch}: {lack}"
        return RecordedMisfit(event.line, event.time, stream.leader, text, clause)

    def _deliver(self, stream: LearnerStream, event: PacketRecord | FateRecord, packet: QuorumPacket) -> None:
        if event.up:
            leader = self._track(stream.leader)
            stream.delivered.append(packet)
            if isinstance(packet, FollowerInfo):
                leader.registered.append(stream)
            if isinstance(packet, AckEpoch) and leader.leads is not None:
                stream.floor = leader.leads.floor
            return
        learner = self._track(stream.learner)
        if learner.followed is stream and learner.follows is not None:
            if isinstance(packet, Trunc):
                learner.cut = f"{described(packet)} in line {event.line}"
            if isinstance(packet, Snap):
                packet = Snap(packet.zxid, self._content(stream, packet.zxid))
            learner.follows.delivered.append(packet)

    def _content(self, stream: LearnerStream, zxid: int) -> tuple:  # type: ignore[type-arg]
        leads = self._track(stream.leader).leads
        return () if leads is None else tuple(txn for txn in leads.history() if txn.zxid <= zxid)

    def _allowed(self, event: PacketRecord, stream: LearnerStream, packet: QuorumPacket) -> str | None:
        """Judge a packet; return None, or the allowed one."""
        allowed = ""
        try:
            (self._sent_up if event.up else self._sent_down)(stream, packet)
        except Unfit as unfit:
            allowed = str(unfit)
        return allowed or ("the counter 0" if event.counter else None)

    def _sent_up(self, stream: LearnerStream, packet: QuorumPacket) -> None:
        """Judge a packet of a learner. Raises Unfit."""
        track = self._track(stream.learner)
        if isinstance(packet, FollowerInfo) and track.followed is not stream:
            track.give_up(self._rules, crash=False)
            track.follows = FollowerTrack(track.sid, track.view, stream.leader, self._rules, track.rests)
            track.followed = stream
        if track.followed is not stream or track.follows is None:
            if track.runs:
                raise Unfit("nothing: it follows on another connection, or leads")
        elif isinstance(packet, FollowerInfo | AckEpoch | Ack):
            track.follows.sent(packet)
        else:
            raise Unfit("no packet of a leader")

    def _sent_down(self, stream: LearnerStream, packet: QuorumPacket) -> None:
        """Judge a packet of a leader. Raises Unfit."""
        track = self._track(stream.leader)
        leads = track.leads
        if isinstance(packet, LeaderInfo):
            self._lead(track, packet.epoch).leader_info(stream, packet.epoch)
        elif leads is not None and stream in leads.streams and stream.delivered:
            self._judge(leads, stream, packet)
            self._note_committed(leads)
        elif track.runs:
            raise Unfit("nothing: it does not lead")

    def _judge(self, leads: LeaderTrack, stream: LearnerStream, packet: QuorumPacket) -> None:
        match packet:
            case Diff() | Trunc() | Snap():
                if not stream.has_accepted:
                    raise Unfit("nothing before ACKEPOCH")
                self._lack = leads.begins(stream, packet, self.committed)
            case Proposal(txn=txn):
                leads.proposal(stream, txn)
            case Commit(zxid=zxid):
                leads.commit(stream, zxid)
            case Inform(txn=txn):
                leads.proposal(stream, txn)
                leads.commit(stream, txn.zxid)
            case NewLeader(epoch=epoch):
                if epoch != leads.epoch:
                    raise Unfit(described(NewLeader(leads.epoch)))
                leads.new_leader(stream)
            case UpToDate():
                leads.up_to_date(stream)
            case _:
                raise Unfit("no packet of a learner")

    def _lead(self, track: ServerTrack, epoch: int) -> LeaderTrack:
        leads = track.leads
        if leads is None or leads.epoch != epoch:
            track.rest(crash=False)
            track.rests = distinct(
                [*track.rests, *track.unseen(self._rules, [stream for stream in track.registered if stream.closed])]
            )
            leads = track.leads = LeaderTrack(track.sid, track.view, epoch, self._rules, track.rests)
            self.counts.epochs += 1
        leads.streams += track.registered
        track.registered.clear()
        return leads

    def _note_committed(self, leads: LeaderTrack) -> None:
        """Note new commits. Raises Unfit if another transaction of that zxid was committed before."""
        last = leads.last_committed
        while last and last not in self.committed and last in leads.committed:
            last -= 1
        for zxid in range(last + 1, leads.last_committed + 1):
            self.committed[zxid] = leads.committed[zxid]
        if last in leads.committed and not same(self.committed[last], leads.committed[last]):
            raise Unfit(f"no other transaction {format_zxid(last)} than the one that was committed before")

    # --- clients

    def _reply(self, event: ReplyRecord) -> RecordedMisfit | None:
        self.counts.replies += 1
        try:
            self._acknowledge(event)
        except Unfit as unfit:
            text = f"reply to the write of {event.path} as {format_zxid(event.zxid)}"
            values = (("the specification allows", str(unfit)),)
            return RecordedMisfit(event.line, event.time, event.sid, text, "it cannot acknowledge this write", values)
        return None

    def _acknowledge(self, event: ReplyRecord) -> None:
        """Judge a reply: the write is committed, or its leader commits it now. Raises Unfit."""
        path, leads = self._replies.setdefault(event.zxid, event.path), self._track(event.sid).leads
        if event.zxid not in self.committed:
            if leads is None or epoch_of(event.zxid) > leads.epoch:
                raise Unfit("no reply: the transaction was not committed")
            leads.commit_to(event.zxid)
            self._note_committed(leads)
        elif path != event.path:
            raise Unfit(f"no other reply than that to the write of {path}")

    def _absent(self, event: TreeRecord) -> RecordedMisfit:
        zxids = {path: zxid for zxid, path in self._replies.items()}
        path = min(event.absent, key=lambda each: zxids.get(each, 0))
        zxid = zxids.get(path)
        name = f"{path}" + (f", {format_zxid(zxid)}" if zxid else "")
        values = (("absent", len(event.absent)), ("the first", name))
        text = f"server {event.sid} is asked for all acknowledged writes"
        return RecordedMisfit(
            event.line, event.time, event.sid, text, f"it lacks {name}, which was acknowledged", values
        )

    def lives(self) -> Iterable[Sid]:
        """The servers of the recording."""
        return self._servers.keys()


def _first_rest(disk: DiskRecord) -> Rest:
    """The state of a server with this disk, the first one that is known. Its log may continue a snapshot."""
    snapshot = max(disk.snapshots, default=0)
    whole = bool(disk.log) and disk.log[0].zxid <= snapshot
    return Rest(Durable(disk.accepted, disk.current, 0 if whole else snapshot, disk.log))
