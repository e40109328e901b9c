"""A possible state of a leader, and its steps: its reads, counts and writes before it sends a packet.

Rules of this module:

- A method takes a state and returns the state after the least that a packet needs, or a reason against it.
- A reason names the packet that the specification allows instead.

Source: `spec.zab.leader.step`, `spec.zab.leader_broadcast.ack`.
"""

from __future__ import annotations

from itertools import permutations

import msgspec
from msgspec.structs import replace

from checker.validate.recording.streams import LearnerStream
from checker.validate.recording.worlds import Rest
from spec.durable import Durable
from spec.effects import Effects, Observe
from spec.election.state import Peer
from spec.quorum import Sid, View
from spec.txn import Txn, format_zxid
from spec.zab import leader as zab_leader
from spec.zab import leader_broadcast
from spec.zab.events import LearnerGone, Receive, Synced, Unexpected, ZabEvent
from spec.zab.packets import Ack, AckEpoch, FollowerInfo, QuorumPacket
from spec.zab.state import Leader, LeaderPhase, Stage, ZabRules


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
        queued = (each.txn for each in self.leader.queue)  # type: ignore[attr-defined]
        return (*self.rest.durable.log, *queued)


class LeaderSteps:
    """The steps of the leader `sid` in `epoch`; `streams` are its connections."""

    def __init__(self, sid: Sid, view: View, epoch: int, rules: ZabRules) -> None:
        self.sid, self.view, self.epoch, self.rules = sid, view, epoch, rules
        self.streams: list[LearnerStream] = []

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
        read = dict(world.read)
        for old in self.streams:
            if old.learner == stream.learner and old is not stream:
                rest = old.delivered[read.get(old.number, 0) :]
                late += [(old.learner, each.zxid) for each in rest if isinstance(each, Ack)]
                read[old.number] = len(old.delivered)
        result = self._step(world, LearnerGone(stream.learner))
        assert isinstance(result, Leading)
        return replace(result, late=tuple(late), read=read)

    def _with_epoch(self, world: Leading, stream: LearnerStream, epoch: int) -> Leading | str:
        unread = [each for each in self.streams if not world.read.get(each.number) and each.delivered]
        if world.leader.phase is not LeaderPhase.FOLLOWERINFO:
            after = world if world.read.get(stream.number) else self._fed(world, stream)
            return after if isinstance(after, Leading) else "no LEADERINFO before FOLLOWERINFO"
        seen = set()
        for order in permutations(unread):
            at: Leading = world
            for each in order:
                if at.leader.phase is LeaderPhase.FOLLOWERINFO or each is stream:
                    after = self._fed(at, each)
                    at = after if isinstance(after, Leading) else at
            if at.leader.phase is not LeaderPhase.FOLLOWERINFO:
                if at.leader.epoch == epoch and at.read.get(stream.number):
                    return at
                seen.add(at.leader.epoch)
        if not seen:
            return "no LEADERINFO: no quorum has registered"
        return " or ".join(f"LEADERINFO epoch {each}" for each in sorted(seen))

    def _established(self, world: Leading, stream: LearnerStream) -> Leading | str:
        at = world
        for each in (stream, *(other for other in self.streams if other is not stream)):
            if each is stream or at.leader.phase in (LeaderPhase.FOLLOWERINFO, LeaderPhase.ACKEPOCH):
                at = self._fed_while(at, each, (FollowerInfo, AckEpoch))
        handler = at.leader.handler(stream.learner)
        if at.leader.phase in (LeaderPhase.FOLLOWERINFO, LeaderPhase.ACKEPOCH):
            return "nothing: no quorum has accepted the epoch"
        if handler is None or handler.stage < Stage.SYNCING:
            return "nothing: the learner has not accepted the epoch, or has a later history than the leader"
        return at

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
        at = self._serving(world, None)
        while not isinstance(at, str) and at.leader.committed < zxid:
            if not at.leader.outstanding:
                return f"no COMMIT {format_zxid(zxid)}: it was not proposed"
            at = self._next_commit(at, at.leader.outstanding[0].zxid)
        return at

    def _next_commit(self, world: Leading, zxid: int) -> Leading | str:
        at = world
        for stream in self.streams:
            fed = self._fed_acks(at, stream, zxid)
            if isinstance(fed, str):
                return fed
            at = fed
        for sid, acked in at.late:
            if acked == zxid:
                done = leader_broadcast.ack(self._peer(at.rest.durable), at.leader, sid, acked, self.rules)
                assert isinstance(done.state, Leader)
                at = replace(at, leader=done.state)
        while at.leader.committed < zxid and at.leader.queue and at.leader.queue[0].txn.zxid <= zxid:  # type: ignore[attr-defined]
            written = self._written(at)
            if written is None:
                break
            at = written
        if at.leader.committed >= zxid:
            return at
        acks = at.leader.outstanding[0].acks
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
        at = world
        for each in ([stream] if stream else []) + [other for other in self.streams if other is not stream]:
            handler = at.leader.handler(each.learner)
            wanted = each is stream or at.leader.phase is LeaderPhase.NEWLEADER_ACK
            if wanted and handler is not None and handler.stage is Stage.SYNCING and each.is_current(at.read):
                after = self._fed(at, each)
                if isinstance(after, str):
                    return after
                at = after or at
        if at.leader.phase is not LeaderPhase.BROADCAST:
            return "nothing: no quorum has acknowledged NEWLEADER"
        if stream is not None:
            handler = at.leader.handler(stream.learner)
            if handler is None or handler.stage < Stage.SYNCED:
                return "nothing: the learner has not acknowledged NEWLEADER"
        return at


def _unexpected(effects: Effects) -> str:
    found = (
        effect.fact.what for effect in effects if isinstance(effect, Observe) and isinstance(effect.fact, Unexpected)
    )
    return next(found, "")
