"""Leader election: FastLeaderElection, the connections it uses, and an oracle that stands for both.

- `fast_leader_election.step`: one server, one event.
- `channel`: one direction of the connection between two servers.
- `oracle`: the possible outcomes of an election, without its messages.

Source: ZooKeeper's `FastLeaderElection`, `QuorumCnxManager`, `Vote` and the election part of `QuorumPeer`.
"""

from spec.election.fast_leader_election import step
from spec.election.messages import (
    Deliver,
    Elected,
    ElectionEvent,
    EpochBegun,
    Fired,
    Followed,
    LeaderLost,
    Led,
    Looked,
    Notification,
    QuorumLost,
    Start,
    VoteReceived,
)
from spec.election.state import Ballot, Claim, Election, ElectionRules, Peer
from spec.election.vote import LONG_MIN, ServerState, Vote, initial_vote, is_better
from spec.variants import Variant

__all__ = [
    "LONG_MIN",
    "Ballot",
    "Claim",
    "Deliver",
    "Elected",
    "Election",
    "ElectionEvent",
    "ElectionRules",
    "EpochBegun",
    "Fired",
    "Followed",
    "LeaderLost",
    "Led",
    "Looked",
    "Notification",
    "Peer",
    "QuorumLost",
    "ServerState",
    "Start",
    "Variant",
    "Vote",
    "VoteReceived",
    "initial_vote",
    "is_better",
    "step",
]
