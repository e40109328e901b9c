"""One leader in one epoch: the specification must be able to send its packets.

Rules of this module:

- A leader reads delivered packets as late as possible: only so far as an observed packet needs it. The
  order between connections does not matter then, except where a learner returns: see `LeaderTrack._returned`.
- The leader commits when a COMMIT is first seen on any connection, or needed by another packet. At that moment a
  quorum must have acknowledged: by ACKs that were delivered before, or the leader itself, whose log then must have the
  record. An ACK is void once its learner has been sent a history that ends before it.
- Proposals and commits of one connection follow each other without a gap, from the end of the history that the
  learner has after DIFF, TRUNC or SNAP. The choice between these must be that of the specification for one of the
  zxids that the leader may have committed at that time. A SNAP is always allowed.
- The threads of a real leader queue NEWLEADER and forwarded packets in any order, so NEWLEADER may come after more
  packets than in the specification, but not before the history that the learner lacks.
- A step takes a state and returns the state after the least that a packet needs, or a reason against it.
- A reason names the packet that the specification allows instead.

Source: `spec.zab.leader.step`, `spec.zab.leader_broadcast.ServingLeader`, `spec.zab.leader_sync.plan_for`;
`LearnerHandler.run`, `Leader.startForwarding`.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations

import msgspec
from msgspec.structs import replace

from checker.validate.candidates import fitting
from checker.validate.recording.worlds import UNSEEN, LearnerStream, Rest, distinct, same, with_last
from spec.durable import Durable
from spec.effects import Effects, Observe
from spec.election.state import Peer
from spec.quorum import Sid, View
from spec.txn import Txn, counter_of, epoch_of, format_zxid, make_zxid
from spec.variants import Variant
from spec.zab import leader as zab_leader
from spec.zab import memory
from spec.zab.events import ClientWrite, LearnerGone, Receive, Synced, Unexpected, ZabEvent
from spec.zab.leader_broadcast import ServingLeader
from spec.zab.leader_sync import History, history_of, plan_for
from spec.zab.packets import Ack, AckEpoch, Diff, FollowerInfo, QuorumPacket, Snap, Trunc, described
from spec.zab.state import Leader, LeaderPhase, Stage, StaleMemory, ZabRules, logged


class Leading(msgspec.Struct, frozen=True):
    """A possible state of a leader: its disk, its state, and how much it has read of each connection, by its number.

    `late` are ACKs from ended connections that it has not counted yet.
    """

    rest: Rest
    leader: Leader
    read: dict[int, int] = {}
    late: tuple[tuple[Sid, int], ...] = ()

    def known(self) -> tuple[Txn, ...]:
        """Its log with its own proposals."""
        queued = (append.txn for append in self.leader.queue)  # type: ignore[attr-defined]
        return (*self.rest.durable.log, *queued)


class LeaderTrack:
    """The possible states of the leader `sid` in `epoch`; `streams` are its connections."""

    def __init__(self, sid: Sid, view: View, epoch: int, rules: ZabRules, rests: Sequence[Rest]) -> None:
        self.sid, self.view, self.epoch, self.rules = sid, view, epoch, rules
        self.streams: list[LearnerStream] = []
        self.committed: dict[int, object] = {}  # its own transactions
        self.last_committed = 0  # the last of them
        self.established = False
        starts = ((rest, zab_leader.begin(self._peer(rest.durable), rules)) for rest in rests)
        self.worlds = [
            Leading(replace(rest, durable=start.durable), start.state)
            for rest, start in starts
            if isinstance(start.state, Leader)
        ]

    # --- packets of the leader; each method raises Unfit

    def leader_info(self, stream: LearnerStream, epoch: int) -> None:
        """LEADERINFO: a quorum has told its accepted epochs, and the epoch is above all of them."""
        self.worlds = fitting(self._with_epoch(world, stream, epoch) for world in self.worlds)

    def begins(self, stream: LearnerStream, packet: QuorumPacket, everything: dict[int, object]) -> str:
        """DIFF, TRUNC or SNAP: a quorum has accepted the epoch, and the choice is right.

        `everything` are the known commits of all leaders. The result names those that the history of a new leader
        lacks (LeaderLogCompleteness); it is empty if nothing is missing.
        """
        begins, self.established = not self.established, True
        if begins:
            self.worlds = [self._revealed(world, packet) for world in self.worlds]
        self.worlds = fitting(self._established(world, stream) for world in self.worlds)
        self.worlds = fitting(self._chosen(world, stream, packet) for world in self.worlds)
        stream.begin(packet)
        self._note_commits()
        return self._incomplete(everything) if begins else ""

    def _incomplete(self, everything: dict[int, object]) -> str:
        """Keep the states that have everything; without such a state, name the commits that the first one lacks."""
        lacking = [_lacking(world, everything) for world in self.worlds]
        complete = [world for world, lack in zip(self.worlds, lacking, strict=True) if not lack]
        self.worlds = complete or self.worlds
        return "" if complete else lacking[0]

    def proposal(self, stream: LearnerStream, txn: Txn) -> None:
        """PROPOSAL, or the first half of INFORM: the next transaction of the history, or a new one."""
        self.worlds = fitting(self._proposed(world, stream, txn) for world in self.worlds)
        stream.proposed(txn.zxid)

    def commit(self, stream: LearnerStream, zxid: int) -> None:
        """COMMIT: the oldest proposal on this connection that is not committed there, and a quorum has it."""
        stream.committed(zxid)
        self.commit_to(zxid)

    def commit_to(self, zxid: int) -> None:
        """The leader has committed this zxid, unless it belongs to an earlier epoch."""
        if epoch_of(zxid) != self.epoch or zxid <= self.last_committed:
            return
        self.worlds = fitting(self._with_commit(world, zxid) for world in self.worlds)
        self._note_commits()

    def _note_commits(self) -> None:
        world = self.worlds[0]
        last = min(candidate.leader.committed for candidate in self.worlds)
        for zxid in range(max(self.last_committed, make_zxid(self.epoch)) + 1, last + 1):
            txn = logged(world.rest.durable, world.leader.queue, zxid)
            self.committed[zxid] = UNSEEN if txn is None else txn.value
            self.last_committed = zxid

    def new_leader(self, stream: LearnerStream) -> None:
        """NEWLEADER: the learner has been sent all of the history that it lacked."""
        floor = stream.floor if counter_of(stream.floor) else 0
        stream.new_leader(max(floor, min(map(self._last_initial, self.worlds))))

    def _last_initial(self, world: Leading) -> int:
        """The zxid of the last transaction that the leader began with."""
        log = world.rest.durable.log
        return next((txn.zxid for txn in reversed(log) if epoch_of(txn.zxid) < self.epoch), 0)

    def up_to_date(self, stream: LearnerStream) -> None:
        """UPTODATE: this learner and a quorum have acknowledged NEWLEADER."""
        stream.up_to_date()
        self.worlds = fitting(self._serving(world, stream) for world in self.worlds)

    @property
    def floor(self) -> int:
        """A zxid that the leader has certainly committed; 0 if it may not serve yet."""
        serves = all(world.leader.serves for world in self.worlds)
        return max(self.last_committed, make_zxid(self.epoch)) if serves else 0

    def history(self) -> tuple[Txn, ...]:
        """The known log of the leader, with its own proposals."""
        return self.worlds[0].known()

    def ends(self, *, crash: bool) -> list[Rest]:
        """The possible states after the end of the role. Its log may have more than the connections show."""
        rests = []
        for world in self._possible_ends():
            serves = world.leader.phase is LeaderPhase.BROADCAST
            led, began = (self.epoch, self.epoch) if serves else (world.rest.led, world.rest.began)
            if not crash:
                durable, _ = memory.shut_down(world.rest.durable, world.leader, StaleMemory(), self.rules)
                rests.append(replace(world.rest, durable=durable, led=led, began=began))
                continue
            state: Leading | None = world
            while state is not None:
                rests.append(replace(state.rest, led=0 if state.leader.queue else led))
                state = self._written(state)
        return distinct(rests)

    def _possible_ends(self) -> list[Leading]:
        ends = list(self.worlds)
        for world in self.worlds:
            if world.leader.phase is LeaderPhase.BROADCAST:
                continue
            for streams in (self.streams, self.streams[::-1]):
                state = world
                for stream in (*streams, *streams):
                    state = self._fed_while(state, stream, (FollowerInfo, AckEpoch))
                    ends.append(state)
        return ends

    # --- possible states

    def _peer(self, durable: Durable) -> Peer:
        return Peer(self.sid, self.view, durable)

    def _step(self, world: Leading, event: ZabEvent) -> Leading | str | None:
        result = zab_leader.step(self._peer(world.rest.durable), world.leader, event, self.rules)
        if result is None or not isinstance(result.state, Leader):
            return None
        if bad := _unexpected(result.effects):
            return f"the leader must not read {bad}"
        return replace(world, rest=replace(world.rest, durable=result.durable), leader=result.state)

    def _written(self, world: Leading) -> Leading | None:
        after = self._step(world, Synced())
        return after if isinstance(after, Leading) else None

    def _fed(self, world: Leading, stream: LearnerStream) -> Leading | str | None:
        """The state after the leader has read the next packet of a connection; None if it cannot."""
        place = world.read.get(stream.number, 0)
        if place >= len(stream.delivered):
            return None
        packet = stream.delivered[place]
        if isinstance(packet, FollowerInfo) and world.leader.handler(stream.learner) is not None:
            world = self._returned(world, stream)
        after = self._step(world, Receive(stream.learner, packet))
        if not isinstance(after, Leading):
            return after
        return replace(after, read={**world.read, stream.number: place + 1})

    def _returned(self, world: Leading, stream: LearnerStream) -> Leading:
        """The state when a learner returns on another connection; ACKs of the old one may still be counted."""
        late = list(world.late)
        counts = dict(world.read)
        for old in self.streams:
            if old.learner == stream.learner and old is not stream:
                rest = old.delivered[counts.get(old.number, 0) :]
                late += [(old.learner, packet.zxid) for packet in rest if isinstance(packet, Ack)]
                counts[old.number] = len(old.delivered)
        result = self._step(world, LearnerGone(stream.learner))
        assert isinstance(result, Leading)
        return replace(result, late=tuple(late), read=counts)

    def _with_epoch(self, world: Leading, stream: LearnerStream, epoch: int) -> Leading | str:
        unread = [s for s in self.streams if not world.read.get(s.number) and s.delivered]
        if world.leader.phase is not LeaderPhase.FOLLOWERINFO:
            after = world if world.read.get(stream.number) else self._fed(world, stream)
            return after if isinstance(after, Leading) else "no LEADERINFO before FOLLOWERINFO"
        epochs = set()
        for order in permutations(unread):
            state: Leading = world
            for source in order:
                if state.leader.phase is LeaderPhase.FOLLOWERINFO or source is stream:
                    after = self._fed(state, source)
                    state = after if isinstance(after, Leading) else state
            if state.leader.phase is not LeaderPhase.FOLLOWERINFO:
                if state.leader.epoch == epoch and state.read.get(stream.number):
                    return state
                epochs.add(state.leader.epoch)
        if not epochs:
            return "no LEADERINFO: no quorum has registered"
        return " or ".join(f"LEADERINFO epoch {other_epoch}" for other_epoch in sorted(epochs))

    def _established(self, world: Leading, stream: LearnerStream) -> Leading | str:
        state = world
        for source in (stream, *(candidate for candidate in self.streams if candidate is not stream)):
            if source is stream or state.leader.phase in (LeaderPhase.FOLLOWERINFO, LeaderPhase.ACKEPOCH):
                state = self._fed_while(state, source, (FollowerInfo, AckEpoch))
        handler = state.leader.handler(stream.learner)
        if state.leader.phase in (LeaderPhase.FOLLOWERINFO, LeaderPhase.ACKEPOCH):
            return "nothing: no quorum has accepted the epoch"
        if handler is None or handler.stage < Stage.SYNCING:
            return "nothing: the learner has not accepted the epoch, or has a later history than the leader"
        return state

    def _fed_while(self, world: Leading, stream: LearnerStream, types: tuple[type[QuorumPacket], ...]) -> Leading:
        while world.read.get(stream.number, 0) < len(stream.delivered):
            if not isinstance(stream.delivered[world.read.get(stream.number, 0)], types):
                break
            after = self._fed(world, stream)
            if not isinstance(after, Leading):
                break
            world = after
        return world

    def _with_commit(self, world: Leading, zxid: int) -> Leading | str:
        """The state after the commit of a zxid: count the ACKs that were delivered, then the leader's own."""
        state = self._serving(world, None)
        while not isinstance(state, str) and state.leader.committed < zxid:
            if not state.leader.outstanding:
                return f"no COMMIT {format_zxid(zxid)}: it was not proposed"
            state = self._next_commit(state, state.leader.outstanding[0].zxid)
        return state

    def _next_commit(self, world: Leading, zxid: int) -> Leading | str:
        state = world
        for stream in self.streams:
            fed = self._fed_acks(state, stream, zxid)
            if isinstance(fed, str):
                return fed
            state = fed
        for sid, acked in state.late:
            if acked == zxid:
                serving = ServingLeader(self._peer(state.rest.durable), state.leader, self.rules)
                serving.ack(sid, acked)
                state = replace(state, leader=serving.part)
        while state.leader.committed < zxid and state.leader.queue and state.leader.queue[0].txn.zxid <= zxid:  # type: ignore[attr-defined]
            successor = self._written(state)
            if successor is None:
                break
            state = successor
        if state.leader.committed >= zxid:
            return state
        acks = state.leader.outstanding[0].acks
        servers = f"servers {', '.join(map(str, acks))}" if acks[1:] else f"server {acks[0]}" if acks else "no server"
        return (
            f"no COMMIT {format_zxid(zxid)} yet: in its present synchronisation only {servers} can have acknowledged "
            "it, which is no quorum"
        )

    def _fed_acks(self, world: Leading, stream: LearnerStream, zxid: int) -> Leading | str:
        """The state after the leader has read a connection up to the ACK of a zxid, if that has arrived."""
        place = next((n for n in range(world.read.get(stream.number, 0), len(stream.delivered))
                      if stream.delivered[n] == Ack(zxid)), None)  # fmt: skip
        while place is not None and world.read.get(stream.number, 0) <= place:
            after = self._fed(world, stream)
            if isinstance(after, str):
                return after
            if after is None:
                break
            world = after
        return world

    def _serving(self, world: Leading, stream: LearnerStream | None) -> Leading | str:
        """The state once a quorum, and this learner, have acknowledged NEWLEADER."""
        state = world
        for source in ([stream] if stream else []) + [s for s in self.streams if s is not stream]:
            handler = state.leader.handler(source.learner)
            needed = source is stream or state.leader.phase is LeaderPhase.NEWLEADER_ACK
            if needed and handler is not None and handler.stage is Stage.SYNCING and source.is_current(state.read):
                after = self._fed(state, source)
                if isinstance(after, str):
                    return after
                state = after or state
        if state.leader.phase is not LeaderPhase.BROADCAST:
            return "nothing: no quorum has acknowledged NEWLEADER"
        if stream is not None:
            handler = state.leader.handler(stream.learner)
            if handler is None or handler.stage < Stage.SYNCED:
                return "nothing: the learner has not acknowledged NEWLEADER"
        return state

    # --- DIFF, TRUNC and SNAP

    def _revealed(self, world: Leading, packet: QuorumPacket) -> Leading:
        """The state with the transactions of its earlier epoch that the zxid of its first packet shows."""
        rest = with_last(world.rest, packet.zxid) if isinstance(packet, Diff | Trunc | Snap) else None
        return world if rest is None else replace(world, rest=rest)

    def _chosen(self, world: Leading, stream: LearnerStream, packet: QuorumPacket) -> Leading | str:
        """The state if the choice is that of the specification, with its consequences: commits, and void ACKs."""
        if isinstance(packet, Snap):
            return self._voided(world, stream.learner, packet.zxid)
        allowed = []
        for committed in self._may_have_committed(world, stream):
            for history in self._histories(world, committed, stream):
                plan = plan_for(history, stream.last_zxid, self.rules.variants)
                agree = type(plan.first) is type(packet)
                if agree and not (isinstance(packet, Trunc) and packet != plan.first):
                    state: Leading | str = world
                    if world.leader.serves and committed > world.leader.committed:
                        state = self._with_commit(world, committed)
                    return state if isinstance(state, str) else self._voided(state, stream.learner, plan.seen)
                allowed.append(described(plan.first))
        return " or ".join(dict.fromkeys(allowed))

    def _may_have_committed(self, world: Leading, stream: LearnerStream) -> Iterator[int]:
        """The zxids that the leader may have committed last when it chose, the most likely first."""
        leader = world.leader
        yield leader.committed
        if leader.serves:
            yield from range(leader.committed + 1, leader.last_proposed + 1)
            lowest = max(stream.floor, make_zxid(self.epoch))
            yield from range(leader.committed - 1, lowest - 1, -1)

    def _histories(self, world: Leading, committed: int, stream: LearnerStream) -> Iterator[History]:
        """The history that the leader sends from: its records after the last snapshot, or all that it remembers."""
        leader = replace(world.leader, committed=committed, commits=())
        history = history_of(world.rest.durable, leader, None, self.rules.variants - {Variant.SYNC_FROM_APPLIED})
        yield history
        if leader.serves and not stream.floor:  # it may have chosen before it served
            initial = replace(leader, phase=LeaderPhase.NEWLEADER_ACK, queue=())
            log = tuple(txn for txn in world.rest.durable.log if epoch_of(txn.zxid) < self.epoch)
            yield history_of(replace(world.rest.durable, log=log), initial, None, self.rules.variants)
        if Variant.SYNC_FROM_APPLIED in self.rules.variants and leader.serves and committed > make_zxid(self.epoch):
            lower = replace(leader, committed=committed - 1)
            yield history_of(world.rest.durable, lower, None, self.rules.variants)
        if history.snapshot:
            yield replace(history, snapshot=0)

    def _voided(self, world: Leading, learner: Sid, seen: int) -> Leading:
        """The state without late ACKs of transactions that the learner is sent again."""
        if Variant.ACKS_SURVIVE_TRUNCATION in self.rules.variants:
            return world
        return replace(world, late=tuple(ack for ack in world.late if ack[0] != learner or ack[1] <= seen))

    # --- proposals and commits

    def _proposed(self, world: Leading, stream: LearnerStream, txn: Txn) -> Leading | str:
        log = world.known()
        expected = stream.following(log)
        if stream.may_repeat(txn.zxid):
            expected = next((logged_txn for logged_txn in reversed(log) if logged_txn.zxid == txn.zxid), expected)
        if expected is not None:
            if txn.zxid != expected.zxid:
                return f"PROPOSAL {format_zxid(expected.zxid)}"
            if same(expected.value, txn.value):
                return world if expected.value != UNSEEN else _seen(world, txn)
            return f"PROPOSAL {format_zxid(txn.zxid)} with another transaction"
        state = self._serving(world, None)
        if isinstance(state, str):
            return state
        if txn.zxid != state.leader.last_proposed + 1:
            return f"PROPOSAL {format_zxid(state.leader.last_proposed + 1)}"
        after = self._step(state, ClientWrite(txn.value))
        return after if isinstance(after, Leading) else "no PROPOSAL"


def _lacking(world: Leading, everything: dict[int, object]) -> str:
    values = {txn.zxid: txn.value for txn in world.rest.durable.log}
    lacking = [zxid for zxid, value in everything.items() if zxid not in values or not same(values[zxid], value)]
    if not lacking:
        return ""
    more = f" and {len(lacking) - 1} more" if lacking[1:] else ""
    return f"its history lacks {format_zxid(min(lacking))}{more}, which was committed"


def _seen(world: Leading, txn: Txn) -> Leading:
    """The state with the value of a transaction; before, only its zxid was known."""
    durable = world.rest.durable
    log = tuple(txn if logged_txn.zxid == txn.zxid else logged_txn for logged_txn in durable.log)
    return replace(world, rest=replace(world.rest, durable=replace(durable, log=log)))


def _unexpected(effects: Effects) -> str:
    reasons = (
        effect.fact.what for effect in effects if isinstance(effect, Observe) and isinstance(effect.fact, Unexpected)
    )
    return next(reasons, "")
