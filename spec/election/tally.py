"""The counting of votes: whether the votes that a server has heard make a leader.

Three counts exist in the protocol, and they compare votes differently, because `Vote.equals` does:

- for its own proposal, a server compares everything (one side of the comparison is LOOKING);
- for a decided sender of the same round, it compares everything with the votes of LOOKING senders, and only
  the leader with those of decided ones: the votes in recvset are made without a format version, the
  notification has one, and with that mix `Vote.equals` skips the epoch too;
- among decided senders of whatever round, it compares leader and epoch.

Rules this module keeps:

- Only voters of the counting server's own view are ever in the maps, and its own view says what a quorum is. A later
  view that the server has seen last has voters and quorums too, and then both quorums are needed.
- Nothing here changes a state.

Sources: `FastLeaderElection.getVoteTracker` and `checkLeader`, `Vote.equals` (Vote.java:107),
`SyncedLearnerTracker.hasAllQuorums`.
"""

from spec.election.messages import Notification
from spec.election.state import Ballot, Claim, Election, ElectionRules, Pairs, Peer
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid
from spec.variants import Variant


def proposal_has_quorum(peer: Peer, election: Election) -> bool:
    """Whether the votes of this round that equal the server's own proposal come from a quorum of its view."""
    return peer.has_all_quorums({sid for sid, ballot in election.recvset if ballot.vote == election.vote})


def leader_of_this_round(peer: Peer, election: Election, heard: Notification, rules: ElectionRules) -> bool:
    """Whether recvset, with what was heard just now in it, makes the sender's leader the leader."""
    leader = heard.vote.leader
    supporters = {sid for sid, ballot in election.recvset if _agrees(heard.vote, ballot)}
    return peer.has_all_quorums(supporters) and check_leader(
        peer, election, heard, is_leading(election.recvset, leader), rules
    )


def leader_of_others(peer: Peer, election: Election, heard: Notification, rules: ElectionRules) -> bool:
    """Whether the decided servers, with the one heard just now, are a quorum behind its leader."""
    leader = heard.vote.leader
    supporters = {
        sid
        for sid, claim in election.outofelection
        if (claim.leader, claim.peer_epoch) == (leader, heard.vote.peer_epoch)
    }
    leading = any(sid == leader and claim.leading for sid, claim in election.outofelection)
    return peer.has_all_quorums(supporters) and check_leader(peer, election, heard, leading, rules)


def check_leader(peer: Peer, election: Election, heard: Notification, leading: bool, rules: ElectionRules) -> bool:
    """Whether the leader others agree on may be believed (`FastLeaderElection.checkLeader`).

    Another server must have said itself that it leads, else a crashed one would be elected over and over.
    This server itself needs the same round, else messages of an election long over would make it a leader
    again (ZOOKEEPER-1514).
    """
    if heard.vote.leader != peer.sid:
        return leading
    return heard.election_epoch == election.round or Variant.LEADER_OF_AN_OLD_ROUND in rules.variants


def is_leading(recvset: Pairs[Ballot], leader: Sid) -> bool:
    """Whether the leader's own entry says that it leads."""
    return any(sid == leader and ballot.state is ServerState.LEADING for sid, ballot in recvset)


def claim_of(heard: Notification) -> Claim:
    """What is kept of a decided server's notification in outofelection."""
    return Claim(heard.vote.leader, heard.vote.peer_epoch, heard.state is ServerState.LEADING)


def _agrees(decided: Vote, ballot: Ballot) -> bool:
    """`Vote.equals` between a decided sender's vote and an entry of recvset; rounds are equal already."""
    if ballot.state is ServerState.LOOKING:
        return ballot.vote == decided
    return ballot.vote.leader == decided.leader
