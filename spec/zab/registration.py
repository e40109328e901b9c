"""The introduction of a learner: whether a leader believes it.

Rules of this module:

- A learner with a later configuration is refused. It knows of servers that this leader does not know.
- The two other checks are additions to ZooKeeper. A learner cannot have the id of its leader, and its epoch must be
  credible (`believed_epochs`, `followed_epochs`).

An epoch is the upper half of a signed 64-bit zxid, so `LAST_EPOCH` is the end of the protocol: an ensemble that reaches
it never serves again. ZooKeeper 3.9 takes any epoch from any learner, and one forged packet ends the ensemble.

A leader is elected for the newest history of its quorum. A voter of that quorum is ahead of it only by epochs that
were accepted and never established, and each of these costs an election. At one failed election a second without a
pause, `MAX_JUMP` is 12 days. A learner may also lag behind its leader, by the epochs that began while it was down.

Source: `Leader.getEpochToPropose`, `Learner.registerWithLeader`; `LearnerHandler.run`
("Follower is ahead of the leader (has a later activeConfiguration)").
"""

import enum

from spec.election.state import Peer
from spec.quorum import Sid

LAST_EPOCH = (1 << 31) - 1
"""The highest epoch of a zxid that is not negative."""
MAX_JUMP = 1 << 20
"""The largest believed difference between the acceptedEpoch of a server and that of a peer."""


class Refusal(enum.Enum):
    """The reason why the introduction of a learner is not believed."""

    LATER_CONFIGURATION = "its configuration is later than that of the leader"
    SAME_ID = "its id is that of the leader"
    INCREDIBLE_EPOCH = "its acceptedEpoch is not credible"


def refusal(peer: Peer, learner: Sid, accepted_epoch: int, config_version: int) -> Refusal | None:
    """The reason why this leader does not believe a learner's FOLLOWERINFO or OBSERVERINFO; None if it does."""
    if config_version > peer.view.version:
        return Refusal.LATER_CONFIGURATION
    if learner == peer.sid:
        return Refusal.SAME_ID
    if accepted_epoch not in believed_epochs(peer.durable.accepted_epoch):
        return Refusal.INCREDIBLE_EPOCH
    return None


def believed_epochs(accepted: int) -> range:
    """The acceptedEpochs of a learner that a leader with this acceptedEpoch believes; an epoch follows each of them."""
    return range(min(accepted + MAX_JUMP, LAST_EPOCH - 1) + 1)


def followed_epochs(accepted: int) -> range:
    """The LEADERINFO epochs that a learner with this acceptedEpoch accepts.

    A server that has accepted no epoch yet, as with an empty disk, accepts any.
    """
    return range(accepted, (min(accepted + MAX_JUMP, LAST_EPOCH) if accepted else LAST_EPOCH) + 1)
