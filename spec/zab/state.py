"""The volatile state of a leader and of a learner.

Rules of this module:

- State that can never matter again is dropped: a leader forgets the counted servers once the quorum is complete, and a
  learner its synchronisation as soon as it serves. The checker counts every distinct value as another state.
- A disk operation is in `queue` from its request until it is durable. A crash drops the queue.
- Sets of servers and maps by server are tuples in ascending order of the server.

Sources: the fields of `Leader`, `LearnerHandler`, `Learner`, `FollowerZooKeeperServer`, `SyncRequestProcessor`.
"""

import enum
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import DiskOperation, Effect
from spec.quorum import Sid, View
from spec.txn import Layout, Txn, last_counter
from spec.variants import Variant
from spec.zab.packets import CommitAndActivate


class Rollover(enum.Enum):
    """What a leader does at the end of the counter: as released, or as the pull request 2208 (ZOOKEEPER-4883, open).

    There the last transaction of an epoch, with the counter `0xffffffff`, ends the epoch when it is committed, and the
    same leader goes on with the next epoch. That begins with the counter 0, or 1 with a correction of ours.
    """

    ELECTION = "election"
    IN_PLACE = "in-place"
    IN_PLACE_FROM_1 = "in-place-from-1"


class ZabRules(msgspec.Struct, frozen=True):
    """The rules of a run, equal for all its servers.

    - `asynchronous_disk`: a disk operation ends with a separate event; else in the step that asks for it.
    - `asynchronous_commits`: the same for applying a commit (`CommitProcessor`).
    - `variants`: the defects to reproduce.
    - `zxids`: the number of transactions that an epoch has room for, where the counter starts near its end
      (`zookeeper.testingonly.initialZxid`); None where it starts at 1.
    - `rollover`: what a leader does when its epoch has no zxid left.
    - `first_version`: a leader whose view has no version proposes one, the zxid of its NEWLEADER. A node with
      `reconfigEnabled=true` does so; in the checker the files have versions (ZOOKEEPER-1783).
    - `hold_commits`: a leader sends a follower no COMMIT or COMMITANDACTIVATE between NEWLEADER and UPTODATE, and the
      held ones right after UPTODATE. `Leader.tryToCommit` does not wait. A follower with ZOOKEEPER-4394 fails on such a
      COMMIT.
    - `observers_log_first`: an observer logs what is committed before it acknowledges NEWLEADER, as a follower does.
      `Learner.syncWithLeader` logs it after UPTODATE, which an observer that becomes a voter may never reach
      (docs/findings/observer-becomes-voter.md).
    - `sees_early`: a learner sees the view of a proposal before UPTODATE, as `syncWithLeader` does. The specification
      sees it with UPTODATE: until then the view that it has seen last may be committed.
    """

    asynchronous_disk: bool = True
    asynchronous_commits: bool = False
    variants: frozenset[Variant] = frozenset()
    hold_commits: bool = False
    observers_log_first: bool = False
    sees_early: bool = False
    first_version: bool = False
    zxids: int | None = None
    rollover: Rollover = Rollover.ELECTION

    def first_counter(self, layout: Layout | None) -> int:
        """The counter of the first transaction of an epoch."""
        return 1 if self.zxids is None else last_counter(layout) + 1 - self.zxids


# The disk.


class Append(DiskOperation, frozen=True):
    """Log a transaction; with `ack`, then acknowledge it to the leader (`SendAckRequestProcessor`)."""

    txn: Txn
    ack: bool = True


class TakeSnapshot(DiskOperation, frozen=True):
    """Write the tree that a SNAP or a TRUNC left in memory. `snapshot` is the zxid of the SNAP, 0 after a TRUNC.

    `covered` is that of the disk after it (`Durable.covered`).
    """

    txns: tuple[Txn, ...]
    snapshot: int
    covered: int = 0


class EnterEpoch(DiskOperation, frozen=True):
    """Write currentEpoch, then with `ack` acknowledge NEWLEADER; without it in variants only."""

    epoch: int
    ack: bool = True


# The leader.


class LeaderPhase(enum.Enum):
    """The condition that a leader waits for; the quorum of one phase is complete before the next begins."""

    FOLLOWERINFO = 0
    ACKEPOCH = 1
    NEWLEADER_ACK = 2
    BROADCAST = 3


class Stage(enum.IntEnum):
    """The progress of a LearnerHandler with its learner."""

    REGISTERED = 0
    """FOLLOWERINFO has arrived; LEADERINFO waits until the epoch is chosen."""
    EPOCH_SENT = 1
    """LEADERINFO was sent."""
    EPOCH_ACKED = 2
    """ACKEPOCH has arrived; the rest waits until a quorum has acknowledged the epoch."""
    SYNCING = 3
    """Everything up to NEWLEADER was sent; from this stage on proposals are forwarded."""
    SYNCED = 4
    """The first ACK has arrived, which should be that of NEWLEADER."""
    SERVING = 5
    """UPTODATE was acknowledged."""


class HeldCommits(msgspec.Struct, frozen=True):
    """COMMITs of consecutive zxids that wait for UPTODATE: two numbers, however many there are."""

    first: int
    last: int


class Handler(msgspec.Struct, frozen=True):
    """The leader's record of one connected learner; `knows_wide`: its software knows the wide layout of zxids.

    `last_zxid` is the learner's last zxid, from ACKEPOCH until synchronisation. `held` are the packets of commits that
    wait for UPTODATE, in their order (`ZabRules.hold_commits`).
    """

    sid: Sid
    stage: Stage
    observer: bool = False
    last_zxid: int = 0
    held: tuple[HeldCommits | CommitAndActivate, ...] = ()
    knows_wide: bool = False


def handler_of(handlers: Iterable[Handler], sid: Sid) -> Handler | None:
    """The handler of a learner, if it is among these."""
    for handler in handlers:
        if handler.sid == sid:
            return handler
    return None


def forwarding_followers(handlers: Iterable[Handler]) -> Iterator[Sid]:
    """The followers that get proposals (`Leader.forwardingFollowers`)."""
    return (handler.sid for handler in handlers if handler.stage >= Stage.SYNCING and not handler.observer)


class Outstanding(msgspec.Struct, frozen=True):
    """A proposal that is not committed yet, and the servers that acknowledged it (`Leader.Proposal`).

    `views` are the views whose quorums it needs, from a reconfiguration on until that is committed; empty where it
    needs a quorum of the leader's active view only.
    """

    zxid: int
    acks: tuple[Sid, ...] = ()
    views: tuple[View, ...] = ()


class Leader(msgspec.Struct, frozen=True):
    """A leading server, from its election to the loss of its quorum.

    - `epoch`: the epoch that it will propose or leads; while it waits for FOLLOWERINFO, the lowest free one so far.
    - `counted`: the servers counted in this phase, itself included (`connectingFollowers`, `electingFollowers`, the ack
      set of NEWLEADER); empty in BROADCAST.
    - `committed`: the last committed zxid, epoch:0 when BROADCAST begins; `commits` are committed and not yet applied
      (`toBeApplied`).
    - `syncs`: learners that wait for a sync, each with the proposal it waits for (`pendingSyncs`).
    - `blocked`: proposals of the next epoch, which no disk gets before the end of this one is committed
      (`ParticipantRequestSyncer.nextEpochTxns`); only with `Rollover.IN_PLACE`.
    - `successor`: the designated leader of a new view in which this server does not vote. It commits nothing more
      (`allowedToCommit`), and follows the successor once its learners have left.
    """

    phase: LeaderPhase
    epoch: int
    counted: tuple[Sid, ...]
    handlers: tuple[Handler, ...] = ()
    outstanding: tuple[Outstanding, ...] = ()
    queue: tuple[DiskOperation, ...] = ()
    committed: int = 0
    commits: tuple[int, ...] = ()
    syncs: tuple[tuple[int, Sid], ...] = ()
    successor: Sid | None = None
    blocked: tuple[Txn, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether it has reached BROADCAST."""
        return self.phase is LeaderPhase.BROADCAST

    @property
    def applied(self) -> int:
        """The last zxid that it has applied, once it serves."""
        return self.commits[0] - 1 if self.commits else self.committed

    @property
    def last_proposed(self) -> int:
        """The zxid of its last proposal; epoch:0 before the first one."""
        return self.outstanding[-1].zxid if self.outstanding else self.committed

    def handler(self, sid: Sid) -> Handler | None:
        """The handler of a learner, if it is connected."""
        return handler_of(self.handlers, sid)


# The learner.


class LearnerPhase(enum.Enum):
    """The phases of a learner (`QuorumPeer.ZabState`, with SYNCHRONIZATION in two parts)."""

    DISCOVERY = 1
    SYNCHRONIZATION = 2
    SYNCED = 3
    """NEWLEADER was acknowledged, UPTODATE has not arrived."""
    BROADCAST = 4


class SyncMode(enum.Enum):
    """The method that brings a learner up to date."""

    DIFF = "DIFF"
    TRUNC = "TRUNC"
    SNAP = "SNAP"


class Learner(msgspec.Struct, frozen=True):
    """A follower or an observer, from its decision for a leader to the loss of that leader.

    - `epoch`: the leader's epoch, once LEADERINFO has arrived.
    - `mode`: set by DIFF, TRUNC or SNAP, until NEWLEADER is acknowledged. `tree`: the transactions in memory where they
      differ from the log: after a TRUNC or a SNAP, until the snapshot is written. `snapshot` is the zxid of a SNAP.
    - `not_logged`, `packets_committed`: proposals and commits received during synchronisation; `last_queued`: the zxid
      of the last of these proposals.
    - `queue`: requested from the disk. A snapshot is first in it, and only until NEWLEADER is acknowledged.
    - `pending`: proposals to be committed, oldest first (`FollowerZooKeeperServer.pendingTxns`). `blocked`: later ones
      of the next epoch, as at a leader.
    - `commits`: committed and not yet applied. `delivered`: the last zxid that was applied while serving.
    - `owes_ack`: NEWLEADER is handled except for its ACK; ZOOKEEPER-4685 only. `unlisted`: zxids of transactions that
      were applied during synchronisation; ZOOKEEPER-4925 only.
    - `syncs`: the number of clients' syncs that wait for a reply.
    - `new_view`: the view of NEWLEADER, until UPTODATE activates it (`newLeaderQV`).
    """

    leader: Sid
    phase: LearnerPhase = LearnerPhase.DISCOVERY
    epoch: int = 0
    mode: SyncMode | None = None
    tree: Sequence[Txn] | None = None
    snapshot: int = 0
    not_logged: Sequence[Txn] = ()
    packets_committed: Sequence[int] = ()
    last_queued: int = 0
    queue: tuple[DiskOperation, ...] = ()
    pending: tuple[int, ...] = ()
    commits: tuple[int, ...] = ()
    delivered: int = 0
    owes_ack: bool = False
    syncs: int = 0
    unlisted: tuple[int, ...] = ()
    new_view: View | None = None
    blocked: tuple[Txn, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether it has reached BROADCAST."""
        return self.phase is LearnerPhase.BROADCAST

    @property
    def may_resume(self) -> bool:
        """Whether it can send the ACK of NEWLEADER that it owes: its snapshot and its epoch are on disk."""
        return self.owes_ack and all(isinstance(operation, Append) for operation in self.queue)


class StaleMemory(msgspec.Struct, frozen=True):
    """The state that outlives a leader or a learner in the memory of its process, in variants only.

    - `queue`: transactions of a sync thread that still runs (ZOOKEEPER-4712).
    - `tree`: the zxid of the tree, where the tree is behind the log (ZOOKEEPER-2845).
    - `unlogged`: transactions of the tree that are not on the disk (ZOOKEEPER-3642, 4712, 4882, 5094).
    - `unlisted`: zxids of logged transactions that are missing in `committedLog` (ZOOKEEPER-4925).
    - `database`: the data before a restore, with which the next part begins (`restore-undone`). `unfiled`: since that
      restore the log goes on in a file that the operator has moved away.
    """

    queue: tuple[Txn, ...] = ()
    tree: int | None = None
    unlogged: tuple[Txn, ...] = ()
    unlisted: tuple[int, ...] = ()
    database: Durable | None = None
    unfiled: bool = False


class ZabResult(msgspec.Struct, frozen=True):
    """The result of an event: disk, state and effects. With a state of None the server looks for a leader again.

    With `exits` the process ends before, and begins again at once. With a `successor`, its part ends in order too, and
    the server then follows that server, or leads if it is the successor itself, without an election (`reconfigFlag`).
    """

    durable: Durable
    state: Leader | Learner | None
    effects: tuple[Effect, ...] = ()
    successor: Sid | None = None
    exits: bool = False

    def after(self, effects: tuple[Effect, ...]) -> "ZabResult":
        """A copy with these effects before its own."""
        return replace(self, effects=(*effects, *self.effects))


def logged_and_queued(durable: Durable, queue: tuple[DiskOperation, ...]) -> tuple[Txn, ...]:
    """The transactions on disk and those still queued for it, in their order; a queued snapshot replaces the former."""
    snapshot = next((operation for operation in queue if isinstance(operation, TakeSnapshot)), None)
    before = durable.txns if snapshot is None else snapshot.txns
    return (*before, *(operation.txn for operation in queue if isinstance(operation, Append)))


def merged(txns: Iterable[Txn], unlogged: tuple[Txn, ...]) -> tuple[Txn, ...]:
    """Transactions with those that are only in memory (`StaleMemory.unlogged`), in the order of their zxids."""
    return tuple(sorted({*txns, *unlogged}, key=lambda txn: txn.zxid)) if unlogged else tuple(txns)


def last_logged(durable: Durable, queue: Sequence[DiskOperation]) -> int:
    """The zxid of the last transaction on disk or queued, or of the snapshot if there is none."""
    last = next((operation.txn for operation in reversed(queue) if isinstance(operation, Append)), None)
    return durable.last_zxid if last is None else last.zxid


def logged(durable: Durable, queue: Sequence[DiskOperation], zxid: int) -> Txn | None:
    """The transaction of this zxid, on disk or queued; the likely positions are searched first."""
    txns = durable.txns
    behind = durable.last_zxid - zxid  # in a log without gaps
    if behind in range(len(txns)):
        txn = txns[~behind]
        if txn.zxid == zxid:
            return txn
    oldest = next(iter(queue), None)
    place = zxid - oldest.txn.zxid if type(oldest) is Append else len(queue)  # in a queue without gaps
    guess = queue[place] if place in range(len(queue)) else None
    if type(guess) is Append and guess.txn.zxid == zxid:
        return guess.txn
    for operation in queue:
        if type(operation) is Append:
            if operation.txn.zxid == zxid:
                return operation.txn
            if operation.txn.zxid > zxid:
                break
    return next((txn for txn in reversed(txns) if txn.zxid == zxid), None)


def with_sid(sids: tuple[Sid, ...], sid: Sid) -> tuple[Sid, ...]:
    """A set of servers with this one added."""
    return sids if sid in sids else tuple(sorted((*sids, sid)))
