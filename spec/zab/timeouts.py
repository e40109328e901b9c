"""The time limits between a leader and its learners: who has been silent for too long, and when a leader resigns.

Rules of this module:

- No clock. The caller measures times, and passes them in the unit of the limits.
- A peer may be silent for initLimit until it is synchronised, and for syncLimit afterwards. A leader sends no PING
  before it serves, so a learner that waits for UPTODATE may be silent for initLimit. ZooKeeper gives it syncLimit, and
  a quorum that assembles slowly loses it again.
- A leader resigns when a phase before BROADCAST lasts longer than initLimit, and when the synchronised learners are no
  longer a quorum. It also resigns instead of a proposal that would need a zxid beyond its epoch
  (`spec.txn.is_last`).

Source: `LearnerCnxAcceptor`, `LearnerHandler.run`, `Learner.connectToLeader`, `syncWithLeader` (setSoTimeout);
`Leader.lead`, `getEpochToPropose`, `waitForEpochAck`, `waitForNewLeaderAck`, `propose` (XidRolloverException).
"""

import enum
from collections.abc import Mapping

import msgspec

from spec.election.state import Peer
from spec.quorum import Sid
from spec.zab.leader import is_supported
from spec.zab.state import Leader, LeaderPhase, Learner, Stage


class TimeLimits(msgspec.Struct, frozen=True):
    """The times initLimit and syncLimit of a configuration, in any unit (there they count ticks)."""

    init: float
    sync: float

    def silence(self, synchronised: bool) -> float:
        """The longest silence of a peer that is not an error."""
        return self.sync if synchronised else self.init


class Resignation(enum.Enum):
    """The reason why a leader gives up leading."""

    NO_QUORUM = "too few learners are left"
    PHASE_TIMEOUT = "no quorum within initLimit"
    ZXIDS_EXHAUSTED = "the zxids of its epoch are used up"


def is_late(waited: float, limits: TimeLimits) -> bool:
    """Whether a connection without FOLLOWERINFO or OBSERVERINFO has lasted for too long."""
    return waited > limits.silence(synchronised=False)


def silent_learners(leader: Leader, silence: Mapping[Sid, float], limits: TimeLimits) -> tuple[Sid, ...]:
    """The learners that have been silent for too long; `silence` has the time since the last packet of each one."""
    return tuple(
        handler.sid
        for handler in leader.handlers
        if silence.get(handler.sid, 0) > limits.silence(handler.stage is Stage.SERVING)
    )


def is_leader_silent(learner: Learner, silence: float, limits: TimeLimits) -> bool:
    """Whether the leader of this learner has been silent for too long."""
    return silence > limits.silence(learner.serves)


def resignation(peer: Peer, leader: Leader, in_phase: float, limits: TimeLimits) -> Resignation | None:
    """The reason why a leader must give up now, after this time in its phase; None if it may continue."""
    if leader.phase is not LeaderPhase.BROADCAST:
        return Resignation.PHASE_TIMEOUT if in_phase > limits.init else None
    return None if is_supported(peer, leader) else Resignation.NO_QUORUM
