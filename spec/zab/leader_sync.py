"""The leader's synchronisation of a learner: the choice of DIFF, TRUNC or SNAP, and the packets that follow.

Rules of this module:

- The choice depends only on the learner's last zxid and on the leader's own log.
- `committedLog` and the transaction log are one here: the applied transactions beyond the snapshot. The real server
  reads the first from memory and the second from disk. It sends a SNAP if the first is empty and the second has a gap.
  Here it sends one if no available transaction is at or before the learner's zxid.
- A leader that has begun its epoch has applied "epoch:0", which no log contains, until its first transaction. If it
  gives up without a transaction, the real server still votes with that zxid in its next election. The model omits this:
  its server votes with the end of its log.
- A leader that does not serve yet sends its whole log in a SNAP, committed or not. The learner's snapshot has it then.

Source: `LearnerHandler.syncFollower`, `queueCommittedProposals`, `Leader.startForwarding`.
"""

import msgspec

from spec.durable import Durable
from spec.quorum import View
from spec.txn import Layout, Txn, counter_of, epoch_of
from spec.variants import Variant
from spec.zab.packets import Commit, Diff, NewLeader, Proposal, QuorumPacket, Snap, Trunc
from spec.zab.state import Leader, logged_and_queued


class History(msgspec.Struct, frozen=True):
    """The history that a leader synchronises from: its applied transactions, and the range of its log.

    `last_processed` is the last zxid that was applied, and `snapshot` the zxid after which the log begins. `available`
    are the applied transactions beyond the snapshot; `applied` are all of them. `unlisted` are the zxids of applied
    transactions that `committedLog` lacks, in variants only. `layout` is the leader's, by which it reads all zxids.
    """

    last_processed: int
    snapshot: int
    applied: tuple[Txn, ...]
    unlisted: tuple[int, ...] = ()
    layout: Layout | None = None

    @property
    def available(self) -> tuple[Txn, ...]:
        """The transactions that can be sent one by one."""
        return tuple(txn for txn in self.applied if txn.zxid > self.snapshot and txn.zxid not in self.unlisted)


def history_of(
    durable: Durable,
    leader: Leader,
    tree: int | None = None,
    variants: frozenset[Variant] = frozenset(),
    unlisted: tuple[int, ...] = (),
) -> History:
    """The history to synchronise from: the leader's whole log before it serves, its committed transactions afterwards.

    3.9.4 uses only the applied ones of these (`sync-from-applied`). `tree` is the zxid of a tree that lags behind its
    log (ZOOKEEPER-2845), `unlisted` the zxids that its `committedLog` lacks (ZOOKEEPER-4925).
    """
    txns = logged_and_queued(durable, leader.queue)
    if not leader.serves:
        last = durable.last_zxid if tree is None else tree
    else:
        last = leader.applied if Variant.SYNC_FROM_APPLIED in variants else leader.committed
    applied = tuple(txn for txn in txns if txn.zxid <= last)
    return History(last, durable.snapshot, applied, (*unlisted, *_only_in_snapshot(durable)), durable.layout)


def _only_in_snapshot(durable: Durable) -> tuple[int, ...]:
    """The zxids of the transactions that only a dirty snapshot has: `committedLog` is filled from the records."""
    dirty = durable.dirty
    return () if dirty is None else tuple(txn.zxid for txn in dirty.txns if txn not in durable.log)


class Plan(msgspec.Struct, frozen=True):
    """The synchronisation of a learner: its first packet, and the learner's history after that packet.

    `seen` is the zxid up to which the learner then has the leader's history. `omit_last` leaves out the last missing
    transaction (`sync-without-tail`).
    """

    first: QuorumPacket
    seen: int
    omit_last: bool = False


def plan_for(history: History, peer_last: int, variants: frozenset[Variant] = frozenset()) -> Plan:
    """DIFF, TRUNC or SNAP for a learner whose last zxid is `peer_last`."""
    plan = _choice(history, peer_last)
    if isinstance(plan.first, Trunc) and Variant.NO_TRUNCATION in variants:
        return Plan(Diff(history.last_processed), plan.seen)
    if isinstance(plan.first, Diff) and Variant.SYNC_WITHOUT_TAIL in variants:
        return Plan(plan.first, plan.seen, omit_last=True)
    return plan


def stream(
    plan: Plan, history: History, leader: Leader, durable: Durable, *, observer: bool, view: View | None = None
) -> tuple[QuorumPacket, ...]:
    """All packets from DIFF, TRUNC or SNAP to NEWLEADER, which has the `view` that the leader has seen last.

    The COMMIT of a reconfiguration in the history activates nothing: NEWLEADER and UPTODATE do.
    """
    missing = [txn for txn in history.available if txn.zxid > plan.seen and not isinstance(plan.first, Snap)]
    packets: list[QuorumPacket] = [plan.first]
    for txn in missing[:-1] if plan.omit_last else missing:
        packets += (Proposal(txn), Commit(txn.zxid))
    packets += _forwarded(durable, leader, max(plan.seen, history.last_processed), observer=observer)
    return (*packets, NewLeader(leader.epoch, view))


def _choice(history: History, peer_last: int) -> Plan:
    """The cases of `syncFollower`, in its order."""
    available = history.available
    snap = Plan(Snap(history.last_processed, history.applied), history.last_processed)
    newest = available[-1].zxid if available else history.last_processed
    if peer_last == history.last_processed:
        return Plan(Diff(peer_last), peer_last)
    if peer_last > newest and not _begins_an_epoch(peer_last, history.layout):
        return Plan(Trunc(newest), newest)
    if not available or not available[0].zxid <= peer_last <= newest:
        return snap
    return _within_log(available, peer_last, newest, history.layout) or snap


def _within_log(available: tuple[Txn, ...], peer_last: int, newest: int, layout: Layout | None) -> Plan | None:
    """`queueCommittedProposals`: DIFF if the learner's zxid is in the log or begins an epoch, else TRUNC.

    None if the next transaction is of another epoch: a TRUNC cannot cross epochs, so a SNAP is sent.
    """
    if _begins_an_epoch(peer_last, layout) or any(txn.zxid == peer_last for txn in available):
        return Plan(Diff(newest), peer_last)
    following = next(txn.zxid for txn in available if txn.zxid > peer_last)
    if epoch_of(following, layout) != epoch_of(peer_last, layout):
        return None
    previous = max(txn.zxid for txn in available if txn.zxid < peer_last)
    return Plan(Trunc(previous), previous)


def _forwarded(durable: Durable, leader: Leader, seen: int, *, observer: bool) -> tuple[QuorumPacket, ...]:
    """`startForwarding`: the transactions beyond `seen` that are not yet applied.

    A committed one is sent with its COMMIT. The outstanding ones are sent to followers only.
    """
    txns = {txn.zxid: txn for txn in (*logged_and_queued(durable, leader.queue), *leader.blocked)}
    packets: list[QuorumPacket] = []
    for zxid in leader.commits:
        if zxid > seen:
            packets += (Proposal(txns[zxid]), Commit(zxid))
    if not observer:
        packets += [Proposal(txns[proposal.zxid]) for proposal in leader.outstanding if proposal.zxid > seen]
    return tuple(packets)


def _begins_an_epoch(zxid: int, layout: Layout | None) -> bool:
    """Whether this is "epoch:0", which a learner has after a SNAP from a leader without transactions."""
    return counter_of(zxid, layout) == 0
