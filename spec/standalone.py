"""A standalone server: it serves clients alone, with neither an election nor a quorum port.

Rules of this module:

- Its state is that of a `Leader` in BROADCAST without learners: a write is logged, then applied, then answered.
- No packet and no notification reaches it: it opens no peer port.
- Its zxids continue after the last one on its disk. It reads no epoch and writes none, so two lives of its disk, in an
  ensemble and alone, may use one epoch. `Durable.with_epochs` has the epochs of such a disk as that of a member.
- It ends with its process. A log that cannot be written ends it, too.

Source: `QuorumPeerMain.initializeAndRun` (`QuorumPeerConfig.isDistributed`), `ZooKeeperServerMain.runFromConfig`,
`ZooKeeperServer.loadData` (zxids), `ZooKeeperServer.setupRequestProcessors` (log, apply, answer),
`ZooKeeperServerShutdownHandler`.
"""

from spec.effects import Apply, Observe
from spec.election.state import Peer
from spec.txn import epoch_of
from spec.zab import leader
from spec.zab.events import Applied, ClientSync, ClientWrite, Delivered, Synced, ZabEvent
from spec.zab.state import Leader, LeaderPhase, ZabResult, ZabRules

_OWN_EVENTS = (Synced, Applied, ClientWrite, ClientSync)
"""The events of its clients and its disk."""


def begin(peer: Peer) -> ZabResult:
    """Serve immediately, with all transactions on the disk, also those that no quorum has acknowledged."""
    last = peer.last_zxid
    serving = Leader(LeaderPhase.BROADCAST, epoch_of(last), (), committed=last)
    delivered = (Observe(Delivered(peer.sid, serving.epoch, tuple(peer.durable.txns))),) if peer.durable.txns else ()
    return ZabResult(peer.durable, serving, (Apply(last), *delivered))


def step(peer: Peer, serving: Leader, event: ZabEvent, rules: ZabRules) -> ZabResult | None:
    """Handle one event of a standalone server; None if it is impossible, as every packet is."""
    return leader.step(peer, serving, event, rules) if isinstance(event, _OWN_EVENTS) else None
