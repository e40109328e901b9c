"""The possible states of a server that does not lead or follow, and of its disk; and one connection of a leader.

A recording shows packets and, now and then, a disk. The time when a server reads a packet, or when its disk completes a
write, is not in it, so a server has a set of possible states (`Rest`). Each observation removes the states that it
contradicts. An observation that removes all of them does not fit the specification.

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

Source: `spec.zab.leader_sync.stream`; `LearnerHandler.run`, `LearnerHandler.syncFollower`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from checker.validate.recording.reader import DiskRecord
from spec.durable import Durable
from spec.quorum import Sid
from spec.txn import Txn, epoch_of, format_zxid, make_zxid
from spec.zab.packets import AckEpoch, Commit, QuorumPacket, Snap, Trunc, described

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
    known = {txn.zxid: txn.value for txn in durable.log}
    wrong = next((two.zxid for one, two in pairwise(records) if one.zxid >= two.zxid), None)
    if wrong is not None:
        return f"the log has {format_zxid(wrong)} out of order"
    for txn in beyond:
        if txn.zxid in known and not same(known[txn.zxid], txn.value):
            return f"the log has another transaction {format_zxid(txn.zxid)}"
    last = durable.last_zxid
    extra = [txn for txn in beyond if txn.zxid not in known]
    tail = _unseen(extra, last, rest.led)
    if len(tail) < len(extra):
        first = next(txn for txn in extra if txn not in tail)
        return (
            f"the log has {format_zxid(first.zxid)}, which should not be there; it should end with {format_zxid(last)}"
        )
    written = {txn.zxid for txn in disk.log}
    missing = [txn for txn in durable.log if txn.zxid not in written and txn.zxid > rest.covered]
    if missing:
        return f"the log lacks {format_zxid(missing[0].zxid)}" + (
            f" and {len(missing) - 1} more" if missing[1:] else ""
        )
    if rest.covered and not any(zxid >= rest.covered for zxid in disk.snapshots) and not _holds(disk, durable, rest):
        return f"no snapshot reaches {format_zxid(rest.covered)}"
    values = {txn.zxid: txn.value for txn in beyond}
    log = (
        tuple(Txn(txn.zxid, values.get(txn.zxid, txn.value)) for txn in durable.log)
        if UNSEEN in known.values()
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
    late, own = set(rest.late), set(rest.durable.log)
    last = {txn: place for place, txn in enumerate(log)}
    return tuple(txn for place, txn in enumerate(log) if txn not in late or (txn in own and last[txn] == place))


def _holds(disk: DiskRecord, durable: Durable, rest: Rest) -> bool:
    """Whether the log has everything beyond the snapshot that came from a leader, so that no later one is needed."""
    written = {txn.zxid for txn in disk.log}
    covered = (txn for txn in durable.log if durable.snapshot < txn.zxid <= rest.covered)
    received = not durable.snapshot or any(zxid >= durable.snapshot for zxid in disk.snapshots)
    return received and all(txn.zxid in written for txn in covered)


class Unfit(Exception):  # noqa: N818 - it is a finding, and not an error of the program
    """An observation does not fit; the message names the allowed one."""


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
        return next(each.last_zxid for each in self.delivered if isinstance(each, AckEpoch))

    @property
    def has_accepted(self) -> bool:
        """Whether ACKEPOCH has reached the leader."""
        return any(isinstance(each, AckEpoch) for each in self.delivered[:2])

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
