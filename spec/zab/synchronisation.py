"""How a leader brings a learner up to date: the choice of DIFF, TRUNC or SNAP, and the packets that follow.

Rules this module keeps:

- The choice depends on the learner's last zxid and on the leader's own log, and on nothing else.
- `committedLog` and the transaction log are one here: what is beyond the snapshot and was applied. The real server
  reads the first from memory and the second from disk, and treats both alike.
- A leader that has begun its epoch has applied "epoch:0", which no log contains, until its first transaction.

Source: `LearnerHandler.syncFollower`, `queueCommittedProposals`, `Leader.startForwarding`.
"""

import msgspec

from spec.durable import Durable
from spec.txn import Txn, counter_of, epoch_of, make_zxid
from spec.variants import Variant
from spec.zab.packets import Commit, Diff, NewLeader, Proposal, QuorumPacket, Snap, Trunc
from spec.zab.state import Leader, LeaderPhase, logged_and_queued

NO_PREVIOUS = 0
"""To where a log is truncated that has nothing in common with the leader's."""


class History(msgspec.Struct, frozen=True):
    """What a leader can synchronise from: what it has applied, up to `last_processed`, and where its log begins.

    `available` are the applied transactions beyond the snapshot; `applied` are all of them.
    """

    last_processed: int
    snapshot: int
    applied: tuple[Txn, ...]

    @property
    def available(self) -> tuple[Txn, ...]:
        """What can be sent transaction by transaction."""
        return tuple(txn for txn in self.applied if txn.zxid > self.snapshot)


def history_of(durable: Durable, leader: Leader, tree: int | None = None) -> History:
    """What a leader has applied: before it serves all that it logged, afterwards what it has committed.

    `tree` is the zxid of a tree that lags behind its log (ZOOKEEPER-2845).
    """
    txns = logged_and_queued(durable, leader.queue)
    if leader.phase is not LeaderPhase.BROADCAST:
        last = durable.last_zxid if tree is None else tree
        return History(last, durable.snapshot, tuple(txn for txn in txns if txn.zxid <= last))
    applied = leader.commits[0] - 1 if leader.commits else leader.committed
    return History(applied, durable.snapshot, tuple(txn for txn in txns if txn.zxid <= applied))


def stream(
    history: History, peer_last: int, leader: Leader, durable: Durable, *, observer: bool, variants: frozenset[Variant]
) -> tuple[QuorumPacket, ...]:
    """Everything from DIFF, TRUNC or SNAP to NEWLEADER, for a learner whose last zxid is `peer_last`."""
    first, seen = _choice(history, peer_last)
    if isinstance(first, Trunc) and Variant.NO_TRUNCATION in variants:
        first = Diff(history.last_processed)
    sent: list[QuorumPacket] = [first]
    for txn in history.available if not isinstance(first, Snap) else ():
        if txn.zxid > seen:
            sent += (Proposal(txn), Commit(txn.zxid))
    if Variant.SYNC_WITHOUT_TAIL in variants and isinstance(first, Diff) and len(sent) > 1:
        del sent[-2:]
    return (*sent, *_forwarded(durable, leader, max(seen, history.last_processed), observer=observer),
            NewLeader(leader.epoch))  # fmt: skip


def _choice(history: History, peer_last: int) -> tuple[QuorumPacket, int]:
    """DIFF, TRUNC or SNAP, and up to where the learner then has what the leader has.

    The cases are those of `syncFollower`, in its order.
    """
    available = history.available
    snap = Snap(history.last_processed, history.applied), history.last_processed
    newest = available[-1].zxid if available else history.last_processed
    if peer_last == history.last_processed:
        return Diff(peer_last), peer_last
    if peer_last > newest and not _begins_an_epoch(peer_last):
        return Trunc(newest), newest
    if not available or peer_last < history.snapshot or peer_last > newest:
        return snap
    return _within_log(available, peer_last, newest) or snap


def _within_log(available: tuple[Txn, ...], peer_last: int, newest: int) -> tuple[QuorumPacket, int] | None:
    """`queueCommittedProposals`: DIFF if the learner's zxid is in the log or begins an epoch, else TRUNC.

    None where the next transaction is of another epoch: a TRUNC cannot cross epochs, so a SNAP is sent.
    """
    if _begins_an_epoch(peer_last) or any(txn.zxid == peer_last for txn in available):
        return Diff(newest), peer_last
    following = next(txn.zxid for txn in available if txn.zxid > peer_last)
    if epoch_of(following) != epoch_of(peer_last):
        return None
    previous = max((txn.zxid for txn in available if txn.zxid < peer_last), default=NO_PREVIOUS)
    return Trunc(previous), previous


def _forwarded(durable: Durable, leader: Leader, seen: int, *, observer: bool) -> tuple[QuorumPacket, ...]:
    """`startForwarding`: what is committed and not yet applied with its COMMIT; to followers, what is outstanding."""
    txns = {txn.zxid: txn for txn in logged_and_queued(durable, leader.queue)}
    sent: list[QuorumPacket] = []
    for zxid in leader.commits:
        if zxid > seen:
            sent += (Proposal(txns[zxid]), Commit(zxid))
    if not observer:
        sent += [Proposal(txns[each.zxid]) for each in leader.outstanding if each.zxid > seen]
    return tuple(sent)


def _begins_an_epoch(zxid: int) -> bool:
    """Whether this is "epoch:0", which a learner has after a SNAP from a leader without transactions."""
    return counter_of(zxid) == 0


def begins(epoch: int) -> int:
    """The zxid that a leader has applied when it begins its epoch."""
    return make_zxid(epoch)
