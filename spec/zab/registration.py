"""The introduction of a learner: whether a leader believes it.

Rules of this module:

- A learner with a later configuration is refused. It knows of servers that this leader does not know.
- The two other checks are additions to ZooKeeper. A learner cannot have the id of its leader, and its epoch must be
  credible (`spec.zab.epochs`).

Source: `LearnerHandler.run` ("Follower is ahead of the leader (has a later activeConfiguration)").
"""

import enum

from spec.election.state import Peer
from spec.quorum import Sid
from spec.zab.epochs import believed_epochs


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
