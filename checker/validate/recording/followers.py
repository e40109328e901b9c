"""One learner on one connection: the specification must be able to send its packets.

Rules of this module:

- The learner reads the delivered packets in order, at any time, and its disk completes writes at any time. Both happen
  here as late as possible: only so far as a packet that was seen needs it (`sent`). This loses no run, because a
  learner's packets depend only on the order of its reads and writes.
- When the role ends, the learner may have read any number of the other delivered packets; in an orderly end its disk
  queue is completed, in a crash any number of its writes (`ends`).

Source: `spec.zab.learner.step`, `spec.zab.memory.shut_down`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from checker.validate.recording.worlds import Rest, distinct, with_last
from spec.durable import Durable
from spec.effects import Connect, Effects, Message, Send
from spec.election.state import Peer
from spec.quorum import Sid, View
from spec.txn import counter_of
from spec.zab import learner as zab_learner
from spec.zab import memory
from spec.zab.events import Receive, Resumed, Synced, ZabEvent
from spec.zab.packets import Ack, AckEpoch, QuorumPacket, described
from spec.zab.state import Append, Learner, LearnerPhase, StaleMemory, SyncMode, ZabRules


class Following(msgspec.Struct, frozen=True):
    """A possible state of a learner: its disk, its state, and the packets that it has read and still has to send."""

    rest: Rest
    learner: Learner
    read: int = 0
    unsent: tuple[Message, ...] = ()


class FollowerTrack:
    """The possible states of the learner `sid` on one connection; `delivered` grows while the connection lasts."""

    def __init__(self, sid: Sid, view: View, leader: Sid, rules: ZabRules, rests: Sequence[Rest]) -> None:
        self.sid, self.view, self.leader, self.rules = sid, view, leader, rules
        self.delivered: list[QuorumPacket] = []
        self.worlds: list[Following] = []
        for rest in rests:
            begun = zab_learner.begin(self._peer(rest.durable), leader)
            assert isinstance(begun.state, Learner)
            first = tuple(effect.first for effect in begun.effects if isinstance(effect, Connect))
            self.worlds.append(Following(rest, begun.state, unsent=first))

    def _peer(self, durable: Durable) -> Peer:
        return Peer(self.sid, self.view, durable)

    def sent(self, packet: QuorumPacket) -> str | None:
        """Note a packet of the learner; return None, or the packet of the specification at this place."""
        kept, reasons = [], []
        for world in self.worlds:
            after = self._sends(world, packet)
            if isinstance(after, Following):
                kept.append(after)
            else:
                reasons.append(after)
        if not kept:
            return "; or ".join(dict.fromkeys(reasons))
        self.worlds = kept
        return None

    def _sends(self, world: Following, packet: QuorumPacket) -> Following | str:
        while not world.unsent:
            event = self._towards(world, packet)
            after = None if event is None else self._step(world, event)
            if after is None:
                return self._instead(world)
            if isinstance(after, str):
                return after
            world = after
        head, *others = world.unsent
        if isinstance(head, AckEpoch):
            return self._with_last(world, head, packet) or _text(head)
        return replace(world, unsent=tuple(others)) if head == packet else _text(head)

    def _with_last(self, world: Following, head: AckEpoch, packet: QuorumPacket) -> Following | None:
        """The state with the last zxid of an ACKEPOCH, which may be beyond the known log of a server that led."""
        if not isinstance(packet, AckEpoch) or head.current_epoch != packet.current_epoch:
            return None
        rest = with_last(world.rest, packet.last_zxid)
        return None if rest is None else replace(world, rest=rest, unsent=world.unsent[1:])

    def _towards(self, world: Following, packet: QuorumPacket) -> ZabEvent | None:
        """The next event on the way to a packet; None without one."""
        learner = world.learner
        if isinstance(packet, Ack) and counter_of(packet.zxid):
            if any(isinstance(each, Append) and each.ack and each.txn.zxid == packet.zxid for each in learner.queue):
                return Synced()
        elif learner.owes_ack:
            return Resumed() if learner.may_resume else Synced()
        if world.read < len(self.delivered) and zab_learner.may_leave(learner):
            return Receive(self.leader, self.delivered[world.read])
        if learner.may_resume:
            return Resumed()
        return Synced() if learner.queue and not zab_learner.may_leave(learner) else None

    def _step(self, world: Following, event: ZabEvent) -> Following | str | None:
        """A state after an event; the reason why the learner gives up; None if the event is impossible."""
        before = world.learner
        result = zab_learner.step(self._peer(world.rest.durable), before, event, self.rules)
        if result is None:
            return None
        if not isinstance(result.state, Learner):
            return f"nothing: it gives up its leader after {_what(event)}"
        rest = replace(world.rest, durable=result.durable)
        acknowledges = before.phase is LearnerPhase.SYNCHRONIZATION and result.state.phase is LearnerPhase.SYNCED
        if acknowledges and before.mode in (SyncMode.TRUNC, SyncMode.SNAP):
            tree = before.tree[-1].zxid if before.tree else 0
            rest = replace(rest, covered=max(rest.covered, result.durable.last_zxid, before.snapshot, tree))
        read = world.read + isinstance(event, Receive)
        return Following(rest, _once(result.state), read, (*world.unsent, *_messages(result.effects)))

    def _instead(self, world: Following) -> str:
        while not world.unsent:
            event = self._eager(world)
            after = None if event is None else self._step(world, event)
            if not isinstance(after, Following):
                return after or "nothing, after all that was delivered to it"
            world = after
        return _text(world.unsent[0])

    def _eager(self, world: Following) -> ZabEvent | None:
        learner = world.learner
        if learner.queue:
            return Synced()
        if learner.owes_ack:
            return Resumed()
        return Receive(self.leader, self.delivered[world.read]) if world.read < len(self.delivered) else None

    # --- the end of the role

    def ends(self, *, crash: bool) -> list[Rest]:
        """The possible states after the end of the role."""
        found: list[Rest] = []
        for world in self.worlds:
            found += self._ends_of(world, crash=crash)
        return distinct(found)

    def _ends_of(self, world: Following, *, crash: bool) -> list[Rest]:
        found = []
        todo = [world]
        while todo:
            at = todo.pop()
            if crash:
                found.append(at.rest)
            elif zab_learner.may_leave(at.learner):
                durable, remains = memory.shut_down(at.rest.durable, at.learner, StaleMemory(), self.rules)
                found.append(replace(at.rest, durable=durable, late=(*at.rest.late, *remains.queue)))
            event = self._eager(at)
            after = None if event is None else self._step(at, event)
            if isinstance(after, Following):
                todo.append(after)
                if (
                    after.learner.may_resume and not at.learner.may_resume
                ):  # its ACK may come before the writes, or after
                    resumed = self._step(after, Resumed())
                    todo += [resumed] if isinstance(resumed, Following) else []
        return found


def _messages(effects: Effects) -> tuple[Message, ...]:
    return tuple(effect.message for effect in effects if isinstance(effect, Send))


def _once(learner: Learner) -> Learner:
    """The learner without a transaction that the snapshot of a SNAP has already; the tree applies it once."""
    tree = learner.tree
    if tree is None or len(tree) < 2 or tree[-1].zxid > tree[-2].zxid:
        return learner
    return replace(learner, tree=tree[:-1])


def _text(message: Message) -> str:
    return described(message) if isinstance(message, QuorumPacket) else str(message)


def _what(event: ZabEvent) -> str:
    return described(event.packet) if isinstance(event, Receive) else type(event).__name__
