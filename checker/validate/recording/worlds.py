"""The possible states of a server that does not lead, and of its disk; and one connection of a leader.

A recording shows packets and, now and then, a disk. The time when a server reads a packet, or when its disk completes a
write, is not in it, so a server has a set of possible states (`Rest`, `Following`). Each observation removes the states
that it contradicts. An observation that removes all of them does not fit the specification.

Rules of this module:

- A disk fits a state if the log has every record that the state has, and no other one, beyond the last snapshot that
  came from a leader. Older records may stay: ZooKeeper does not delete them.
- A snapshot that a server took on its own changes nothing, so its name is only compared after SNAP and TRUNC.
- A leader may have proposed more than its connections show. Its log may therefore end with more transactions of that
  epoch (`Rest.led`).

A connection with a learner is seen from the leader's side. The order of its packets:

- DIFF, TRUNC or SNAP comes first, NEWLEADER once, UPTODATE once and after it.
- Proposals follow each other without a gap in the leader's history; a COMMIT is for the oldest proposal on this
  connection that has none.
- After a SNAP, proposals may begin before its zxid: the leader reads the zxid of the snapshot after it has begun to
  forward proposals.

Source: `spec.zab.leader_sync.stream`; `LearnerHandler.run`, `LearnerHandler.syncFollower`; `spec.zab.learner.step`,
`spec.zab.memory.shut_down`.

The specification must be able to send the packets of a learner:

- The learner reads the delivered packets in order, at any time, and its disk completes writes at any time. Both happen
  here as late as possible: only so far as a packet that was seen needs it (`sent`). This loses no run, because a
  learner's packets depend only on the order of its reads and writes.
- When the role ends, the learner may have read any number of the other delivered packets; in an orderly end its disk
  queue is completed, in a crash any number of its writes (`ends`).
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from checker.validate.candidates import Unfit, fitting, reached
from checker.validate.recording.reader import DiskRecord
from spec.durable import Durable
from spec.effects import Connect, Effects, Message, Send
from spec.election.state import Peer
from spec.quorum import Sid, View
from spec.txn import Txn, counter_of, epoch_of, format_zxid, make_zxid
from spec.zab import learner as zab_learner
from spec.zab import memory
from spec.zab.events import Receive, Resumed, Synced, ZabEvent
from spec.zab.packets import Ack, AckEpoch, Commit, QuorumPacket, Snap, Trunc, described
from spec.zab.state import Append, Learner, LearnerPhase, StaleMemory, SyncMode, ZabRules

UNSEEN = "unseen"
"""The value of a transaction with a known zxid and unknown content."""
MOST_UNSEEN = 100_000


class Rest(msgspec.Struct, frozen=True):
    """A possible state between two roles, or while the process does not run.

    - `covered`: the zxid up to which a snapshot may stand in for records; it was taken after SNAP or TRUNC.
    - `led`: the epoch that the server has just led, if its log may have more transactions of it than are known.
    - `began`: the epoch that this process has led last; without a transaction its zxid in memory is "epoch:0".
    - `late`: transactions that a sync thread may still write (ZOOKEEPER-4712).
    """

    durable: Durable
    covered: int = 0
    led: int = 0
    began: int = 0
    late: tuple[Txn, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal states, among the possible states of one server."""
        durable = self.durable
        return (durable.accepted_epoch, durable.current_epoch, durable.snapshot, durable.last_zxid, len(durable.log),
                self.covered, self.led, self.began, len(self.late))  # fmt: skip


def distinct(rests: Iterable[Rest]) -> list[Rest]:
    """The states without repetitions."""
    return list({rest.key: rest for rest in rests}.values())


def same(one: object, other: object) -> bool:
    """Whether the values of two transactions with one zxid agree, as far as they are known."""
    return one == other or UNSEEN in (one, other)


def with_last(rest: Rest, zxid: int) -> Rest | None:
    """The state if its last zxid is this one, with further transactions of the epoch that it led; None if not.

    From then on its log is known.
    """
    last = rest.durable.last_zxid
    if zxid == last:
        return replace(rest, led=0)
    if rest.began and zxid == make_zxid(rest.began) and epoch_of(last) < rest.began:
        # A leader without a transaction keeps "epoch:0" in memory (`Leader.startZkServer`).
        return replace(rest, led=0)
    first = max(last, make_zxid(rest.led)) + 1
    if not rest.led or epoch_of(zxid) != rest.led or not 0 <= zxid - first < MOST_UNSEEN:
        return None
    unseen = tuple(Txn(number, UNSEEN) for number in range(first, zxid + 1))
    return replace(rest, durable=replace(rest.durable, log=(*rest.durable.log, *unseen)), led=0)


def on_disk(rest: Rest, disk: DiskRecord) -> Rest | str:
    """The state as this disk completes it, or the reason why the disk does not fit."""
    durable = rest.durable
    epochs = (disk.accepted, disk.current)
    expected = (durable.accepted_epoch, durable.current_epoch)
    if epochs != expected:
        return (
            f"acceptedEpoch and currentEpoch are {epochs[0]} and {epochs[1]}, and not {expected[0]} and {expected[1]}"
        )
    records = without_late(disk.log, rest)
    beyond = [txn for txn in records if txn.zxid > durable.snapshot]
    value_of = {txn.zxid: txn.value for txn in durable.log}
    wrong = next((two.zxid for low, two in pairwise(records) if low.zxid >= two.zxid), None)
    if wrong is not None:
        return f"the log has {format_zxid(wrong)} out of order"
    for txn in beyond:
        if txn.zxid in value_of and not same(value_of[txn.zxid], txn.value):
            return f"the log has another transaction {format_zxid(txn.zxid)}"
    last = durable.last_zxid
    extra = [txn for txn in beyond if txn.zxid not in value_of]
    tail = _unseen(extra, last, rest.led)
    if len(tail) < len(extra):
        first = next(txn for txn in extra if txn not in tail)
        return (
            f"the log has {format_zxid(first.zxid)}, which should not be there; it should end with {format_zxid(last)}"
        )
    zxids = {txn.zxid for txn in disk.log}
    missing = [txn for txn in durable.log if txn.zxid not in zxids and txn.zxid > rest.covered]
    if missing:
        return f"the log lacks {format_zxid(missing[0].zxid)}" + (
            f" and {len(missing) - 1} more" if missing[1:] else ""
        )
    if rest.covered and not any(zxid >= rest.covered for zxid in disk.snapshots) and not _holds(disk, durable, rest):
        return f"no snapshot reaches {format_zxid(rest.covered)}"
    values = {txn.zxid: txn.value for txn in beyond}
    log = (
        tuple(Txn(txn.zxid, values.get(txn.zxid, txn.value)) for txn in durable.log)
        if UNSEEN in value_of.values()
        else durable.log
    )
    return replace(rest, durable=replace(durable, log=(*log, *tail)), led=0, began=0)


def _unseen(extra: list[Txn], last: int, led: int) -> list[Txn]:
    """The transactions that a leader of the epoch `led` may have proposed after `last`: without a gap."""
    following = max(last, make_zxid(led)) + 1
    expected = (Txn(zxid, txn.value) for zxid, txn in enumerate(extra, following))
    return [txn for txn, right in zip(extra, expected, strict=True) if led and txn == right]


def without_late(log: tuple[Txn, ...], rest: Rest) -> tuple[Txn, ...]:
    """The records of a log without those that a late sync thread has written."""
    if not rest.late:
        return log
    late, log_of_rest = set(rest.late), set(rest.durable.log)
    last = {txn: place for place, txn in enumerate(log)}
    return tuple(txn for place, txn in enumerate(log) if txn not in late or (txn in log_of_rest and last[txn] == place))


def _holds(disk: DiskRecord, durable: Durable, rest: Rest) -> bool:
    """Whether the log has everything beyond the snapshot that came from a leader, so that no later one is needed."""
    zxids = {txn.zxid for txn in disk.log}
    covered = (txn for txn in durable.log if durable.snapshot < txn.zxid <= rest.covered)
    received = not durable.snapshot or any(zxid >= durable.snapshot for zxid in disk.snapshots)
    return received and all(txn.zxid in zxids for txn in covered)


class LearnerStream:
    """A connection. `delivered` are the learner's packets that reached the leader; `floor` is a zxid that the leader
    had certainly committed when it chose DIFF, TRUNC or SNAP.
    """

    def __init__(self, number: int, learner: Sid, leader: Sid) -> None:
        self.number, self.learner, self.leader = number, learner, leader
        self.delivered: list[QuorumPacket] = []
        self.floor = 0
        self.closed = False
        self._first: QuorumPacket | None = None
        self._last = 0  # the last zxid that the learner has, or was sent
        self._snap = False  # a SNAP was the last packet
        self._uncommitted: deque[int] = deque()
        self._new_leader = self._up_to_date = False

    @property
    def last_zxid(self) -> int:
        """The learner's last zxid, from its ACKEPOCH."""
        return next(packet.last_zxid for packet in self.delivered if isinstance(packet, AckEpoch))

    @property
    def has_accepted(self) -> bool:
        """Whether ACKEPOCH has reached the leader."""
        return any(isinstance(packet, AckEpoch) for packet in self.delivered[:2])

    def is_current(self, read: Mapping[int, int]) -> bool:
        """Whether the leader has read the beginning of this connection."""
        return bool(read.get(self.number))

    def begin(self, packet: QuorumPacket) -> None:
        """DIFF, TRUNC or SNAP. Raises Unfit for a second one."""
        if self._first is not None:
            raise Unfit(f"nothing of this kind after {described(self._first)}")
        self._first, self._snap = packet, isinstance(packet, Snap)
        self._last = packet.zxid if isinstance(packet, Snap | Trunc) else self.last_zxid

    def following(self, known: tuple[Txn, ...]) -> Txn | None:
        """The next transaction of the leader's history for this learner; None if it has all known ones.

        Raises Unfit before DIFF, TRUNC or SNAP.
        """
        if self._first is None:
            raise Unfit("DIFF, TRUNC or SNAP first")
        low, high = 0, len(known)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if known[middle].zxid <= self._last else (low, middle)
        return known[low] if low < len(known) else None

    def may_repeat(self, zxid: int) -> bool:
        """Whether a proposal may be one that the snapshot of the SNAP before it has."""
        return self._snap and self.floor < zxid <= self._last

    def proposed(self, zxid: int) -> None:
        """Note a proposal."""
        self._last, self._snap = zxid, False
        self._uncommitted.append(zxid)

    def committed(self, zxid: int) -> None:
        """Note a COMMIT. Raises Unfit if it is not that of the oldest uncommitted proposal."""
        if not self._uncommitted:
            raise Unfit("no COMMIT: every proposal of this connection is committed")
        if self._uncommitted[0] != zxid:
            raise Unfit(described(Commit(self._uncommitted[0])))
        self._uncommitted.popleft()

    def new_leader(self, needed: int) -> None:
        """Note NEWLEADER. Raises Unfit for a second one, or if the learner lacks a transaction up to `needed`."""
        if self._first is None:
            raise Unfit("DIFF, TRUNC or SNAP first")
        if self._new_leader:
            raise Unfit("no second NEWLEADER")
        if self._last < needed:
            raise Unfit(f"the transactions up to {format_zxid(needed)}, which was committed, before NEWLEADER")
        if self._uncommitted and self._uncommitted[0] <= needed:
            raise Unfit(f"COMMIT {format_zxid(self._uncommitted[0])} before NEWLEADER")
        self._new_leader = True

    def up_to_date(self) -> None:
        """Note UPTODATE. Raises Unfit for a second one, or before NEWLEADER."""
        if not self._new_leader or self._up_to_date:
            raise Unfit("no second UPTODATE" if self._up_to_date else "NEWLEADER before UPTODATE")
        self._up_to_date = True


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
            start = zab_learner.begin(self._peer(rest.durable), leader)
            assert isinstance(start.state, Learner)
            first = tuple(effect.first for effect in start.effects if isinstance(effect, Connect))
            self.worlds.append(Following(rest, start.state, unsent=first))

    def _peer(self, durable: Durable) -> Peer:
        return Peer(self.sid, self.view, durable)

    def sent(self, packet: QuorumPacket) -> None:
        """Note a packet of the learner. Raises Unfit with the packet of the specification at this place."""
        self.worlds = fitting(self._sends(world, packet) for world in self.worlds)

    def _sends(self, world: Following, packet: QuorumPacket) -> Following | str:
        while not world.unsent:
            event = self._towards(world, packet)
            after = None if event is None else self._step(world, event)
            if after is None:
                return self._instead(world)
            if isinstance(after, str):
                return after
            world = after
        head, *rest = world.unsent
        if isinstance(head, AckEpoch):
            return self._with_last(world, head, packet) or _text(head)
        return replace(world, unsent=tuple(rest)) if head == packet else _text(head)

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
            if any(isinstance(item, Append) and item.ack and item.txn.zxid == packet.zxid for item in learner.queue):
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
        count = world.read + isinstance(event, Receive)
        return Following(rest, _once(result.state), count, (*world.unsent, *_messages(result.effects)))

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
        rests: list[Rest] = []
        for world in self.worlds:
            rests += self._ends_of(world, crash=crash)
        return distinct(rests)

    def _ends_of(self, world: Following, *, crash: bool) -> list[Rest]:
        rests = []
        for state, _ in reached([world], self._next):
            if crash:
                rests.append(state.rest)
            elif zab_learner.may_leave(state.learner):
                durable, remains = memory.shut_down(state.rest.durable, state.learner, StaleMemory(), self.rules)
                rests.append(replace(state.rest, durable=durable, late=(*state.rest.late, *remains.queue)))
        return rests

    def _next(self, world: Following) -> Iterator[Following]:
        """The states after a step that no packet needs."""
        event = self._eager(world)
        after = None if event is None else self._step(world, event)
        if isinstance(after, Following):
            yield after
            if after.learner.may_resume and not world.learner.may_resume:
                resumed = self._step(after, Resumed())  # its ACK may come before the writes, or after
                if isinstance(resumed, Following):
                    yield resumed


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
