"""The notifications that a server in an election sends, and the facts that it reports.

Rules this module keeps:

- Every notification carries the sender's present state, round and configuration; only the vote depends on the place
  that sends it (see `answer_to_outsider`).
- This module decides nothing. The record of votes changes only by a server's own vote, which it hears immediately.

Sources: `FastLeaderElection.sendNotifications`, `Messenger.WorkerReceiver.run`.
"""

from typing import TypeAlias

from msgspec.structs import replace

from spec.effects import Effects, Observe, Send
from spec.election.messages import Notification, VoteReceived
from spec.election.state import Ballot, Election, Peer, put
from spec.election.vote import NO_DATABASE, ServerState, Vote
from spec.quorum import Sid

Progress: TypeAlias = tuple[Election, Effects]


def send_notifications(peer: Peer, election: Election) -> Progress:
    """`sendNotifications`: the proposal goes to every voter of the view, including this server.

    A server that is not a voter in its view sends as well, but hears nothing from itself.
    """
    message = notification(peer, election, election.vote)
    voters = {voter for view in peer.views for voter in view.voters}
    sends = tuple(Send(voter, message) for voter in sorted(voters) if voter != peer.sid)
    if not peer.hears_itself:
        return election, sends
    recvset = put(election.recvset, peer.sid, Ballot(election.vote, ServerState.LOOKING))
    return replace(election, recvset=recvset), (
        *sends,
        *own_vote(peer, election.vote, election.round, ServerState.LOOKING),
    )


def notification(peer: Peer, election: Election, vote: Vote) -> Notification:
    """A notification with the present state of this server; it includes the configuration if that has a version."""
    config = peer.view if peer.view.version > 0 else None
    return Notification(election.state, vote, election.round, config)


def answer_to_outsider(peer: Peer, election: Election) -> Notification:
    """The answer to a sender that is not a voter of this view, whatever its message: `self.getCurrentVote()`.

    While LOOKING the answer is **not** the proposal but the last decision (or the server itself, since it booted), with
    the present round. Raises ValueError when the rules of the run exclude such senders.
    """
    if election.state is not ServerState.LOOKING:
        return notification(peer, election, election.vote)
    if election.announced is None:
        raise ValueError(f"server {peer.sid} heard from outside its view, but Rules.outsiders is False")
    return notification(peer, election, election.announced)


def observed(peer: Peer, election: Election, source: Sid, heard: Notification) -> Effects:
    """The fact that a vote was received; a vote that cannot be counted is not reported (see `VoteReceived`)."""
    looking = election.state is ServerState.LOOKING
    late = looking and heard.state is ServerState.LOOKING and heard.election_epoch < election.round
    mute = looking and heard.state is ServerState.LOOKING and NO_DATABASE in (peer.initial_vote.zxid, heard.vote.zxid)
    if heard.state is ServerState.OBSERVING or late or mute or not peer.is_voter(heard.vote.leader):
        return ()
    return (Observe(VoteReceived(peer.sid, source, heard.vote, heard.election_epoch, heard.state)),)


def own_vote(peer: Peer, vote: Vote, election_round: int, state: ServerState) -> Effects:
    """The fact that a voter received its own vote, for its own receive bucket."""
    if not peer.view.is_voter(peer.sid):
        return ()
    return (Observe(VoteReceived(peer.sid, peer.sid, vote, election_round, state)),)
