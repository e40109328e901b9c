"""FastLeaderElection of one server, as a step function.

A server that looks for a leader tells every voter of its view whom it votes for, changes its vote to any
better one it hears, and decides when a quorum of its view has had the same vote for a while. A server that
has decided answers with its decision.

Three counts of votes exist in the protocol, and they compare votes differently, because `Vote.equals` does:

- for its own proposal, a server compares everything (one side of the comparison is LOOKING);
- for a decided sender of the same round, it compares everything with the votes of LOOKING senders, and only
  the leader with those of decided ones: the votes in recvset are made without a format version, the
  notification has one, and with that mix `Vote.equals` skips the epoch too;
- among decided senders of whatever round, it compares leader and epoch.

Rules this module keeps:

- Only `peer.view`, the server's own view, defines the voters and the quorums. A later view that the server has seen
  last, which may be committed, has voters and quorums too: then votes need both quorums (`Peer.has_all_quorums`).
- A notification is handled in one step, although two threads do it in the real server: first the rule of
  WorkerReceiver (adopt a newer configuration, answer), then that of `lookForLeader`. A server whose view has
  a version has reconfiguration enabled.
- A server's own notification reaches it immediately, so recvset always has its present vote. The real one passes
  through two queues of one process, with no network between. No other server can see whether it has come
  back: it is never answered, and the only thing that waits for it is the start of FinalizeWait. So every run
  here is a run of the real server, one whose loopback is fast. A slow loopback can differ in one way: a vote
  that waits in the queue ahead of it is recorded, where here it is dropped because FinalizeWait has begun.
- `step` returns None for an event that cannot happen in this state. It fails on no message, except where the
  rules of the run exclude it (`ElectionRules.outsiders`).
- Only voters of the counting server's own view are ever in the maps, and its own view says what a quorum is. A later
  view that the server has seen last has voters and quorums too, and then both quorums are needed.
- Every notification carries the sender's present state, round and configuration; only the vote depends on the place
  that sends it (see `answer_to_outsider`).
- The record of votes changes only by a server's own vote, which it hears immediately.

Sources: `FastLeaderElection.lookForLeader` (with `receivedFollowingNotification`), its
`Messenger.WorkerReceiver.run`, `sendNotifications`, `getVoteTracker` and `checkLeader`; `Vote.equals` (Vote.java:107);
`SyncedLearnerTracker.hasAllQuorums`; and `QuorumPeer.run` for what begins an election.
Left out: the QuorumOracleMaj of two-server ensembles.
"""

from typing import TypeAlias

from msgspec.structs import replace

from spec.effects import Arm, Configure, Disarm, Effects, Observe, ResetConnections, Send, ServerStep, Step, Timer
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
    ViewHeard,
    VoteReceived,
)
from spec.election.state import Ballot, Claim, Election, ElectionRules, Pairs, Peer, next_round, put
from spec.election.vote import NO_DATABASE, ServerState, Vote, is_better, is_observer
from spec.quorum import Sid, View, same_members
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


LOOKING, FOLLOWING, LEADING, OBSERVING = ServerState
DEFAULT_RULES = ElectionRules()

_LEAVING = {LeaderLost: {FOLLOWING, OBSERVING}, QuorumLost: {LEADING}}
"""The states that allow each of the two events."""


def step(
    peer: Peer, election: Election | None, event: ElectionEvent, rules: ElectionRules = DEFAULT_RULES
) -> ServerStep[Election] | None:
    """One event of one server; `election` is None while the server does not run.

    Returns None when the event is impossible: a second start, a start with a file that does not name the
    server (`QuorumPeer.start` throws), a timer that is not armed, the loss of a leader one does not have, an
    election beyond `rules.round_limit`, or anything that happens to a server which does not run. `Start`
    brings its own view and `peer.view` is not looked at; an effect `Configure` means that the view changed.
    """
    if isinstance(event, Start):
        is_member = peer.sid in event.view.members
        possible = election is None and is_member and rules.allows_round(1)
        return _boot(replace(peer, view=event.view), rules) if possible else None
    return None if election is None else _step_running(peer, election, event, rules)


def _step_running(
    peer: Peer, election: Election, event: ElectionEvent, rules: ElectionRules
) -> ServerStep[Election] | None:
    match event:
        case Deliver(source=source, notification=heard) if source != peer.sid:
            return _receive(peer, election, source, heard, rules)
        case Fired(timer=timer) if timer is _running_timer(election):
            return _fire(peer, election)
        case LeaderLost() | QuorumLost() if election.state in _LEAVING[type(event)]:
            # Back to LOOKING with the same FastLeaderElection object: logicalclock continues (`QuorumPeer.run`).
            following = next_round(election.round)
            if not rules.allows_round(following):
                return None
            return _look_for_leader(peer, following, election.vote, rules)
        case EpochBegun(epoch=epoch) if election.state is not LOOKING:
            return Step(replace(election, vote=replace(election.vote, peer_epoch=epoch)))
        case Elected(vote=vote, election_epoch=election_round) if election.state is LOOKING:
            decided, effects = _decide(peer, vote, election_round)
            return Step(decided, (*effects, *_timers(_running_timer(election), decided)))
        case ViewHeard(view=view) if election.state is LOOKING and view.version > peer.view.version:
            # The part of `WorkerReceiver.run` about a later view; the vote that came with it is not read.
            if same_members(view, peer.view):
                return Step(election, (Configure(view),))
            return _begin_with(peer, view, rules)
    return None


# Beginning an election.


def _boot(peer: Peer, rules: ElectionRules) -> ServerStep[Election]:
    """A new FastLeaderElection object, whose logicalclock is 0 (`QuorumPeer.startLeaderElection`)."""
    return _look_for_leader(peer, 1, peer.boot_vote, rules)


def _begin_with(peer: Peer, view: View, rules: ElectionRules) -> ServerStep[Election]:
    """Adopt a later view with other members: the election is shut down with its connections, and begins again.

    The notification that brought the view is forgotten too (`WorkerReceiver.run`, `QuorumPeer.processReconfig`).
    """
    restarted = _boot(replace(peer, view=view), rules)
    return replace(restarted, effects=(Configure(view), ResetConnections(), *restarted.effects))


def _look_for_leader(peer: Peer, election_round: int, current: Vote, rules: ElectionRules) -> ServerStep[Election]:
    """The first lines of `lookForLeader`: a fresh record, the initial vote, and a notification to every voter."""
    announced = current if rules.outsiders else None
    fresh = Election(LOOKING, election_round, peer.initial_vote, announced)
    election, effects = send_notifications(peer, fresh)
    election = _count_own(peer, election)
    return Step(election, (Observe(Looked(peer.sid, election_round)), *effects, *_timers(None, election)))


# One notification.


def _receive(
    peer: Peer, election: Election, source: Sid, heard: Notification, rules: ElectionRules
) -> ServerStep[Election]:
    """`WorkerReceiver.run`: configuration first, then strangers, then the queue or an answer."""
    adopted: Effects = ()
    if election.state is LOOKING and heard.config is not None and heard.config.version > peer.view.version:
        if not same_members(heard.config, peer.view):
            return _begin_with(peer, heard.config, rules)
        adopted = (Configure(heard.config),)
        peer = replace(peer, view=heard.config)
    if not peer.is_voter(source):
        return Step(election, (*adopted, Send(source, answer_to_outsider(peer, election))))
    answered: Effects = ()
    if heard.state is LOOKING and _must_answer(election, heard):
        answered = (Send(source, notification(peer, election, election.vote)),)
    reported = observed(peer, election, source, heard)
    if election.state is not LOOKING:
        return Step(election, (*adopted, *answered, *reported))
    after, effects = _take_from_queue(peer, election, source, heard, rules)
    running = _running_timer(election)
    return Step(after, (*adopted, *answered, *reported, *effects, *_timers(running, after)))


def _must_answer(election: Election, heard: Notification) -> bool:
    """Whether a LOOKING voter gets this server's vote back: it lags behind, or this server has decided.

    A decided server answers with the round of its vote, which is its logicalclock: every way to decide makes
    the two equal, and nothing changes either before the next election.
    """
    return election.state is not LOOKING or heard.election_epoch < election.round


def _take_from_queue(
    peer: Peer, election: Election, source: Sid, heard: Notification, rules: ElectionRules
) -> Progress:
    """`recvqueue.poll`, in the loop that waits before a decision or in the one that does not.

    While FinalizeWait runs, a vote that is not better is taken from the queue and lost.
    A better one of **any** sender, decided or of another round or for a stranger, ends the wait and is then
    handled as if there had been none; the quorum that was reached is only looked at again when another
    LOOKING vote is counted.
    """
    if election.finalizing:
        if not is_better(peer.view, heard.vote, election.vote, rules.variants):
            return election, ()
        election = replace(election, finalizing=False)
    if not peer.is_voter(heard.vote.leader):
        return election, ()
    match heard.state:
        case ServerState.LOOKING:
            return _hear_looking(peer, election, source, heard, rules)
        case ServerState.FOLLOWING | ServerState.LEADING:
            return _hear_decided(peer, election, source, heard, rules)
        case ServerState.OBSERVING:
            return _hear_decided(peer, election, source, heard, rules) if rules.hears_observers else (election, ())


def _hear_looking(peer: Peer, election: Election, source: Sid, heard: Notification, rules: ElectionRules) -> Progress:
    """A vote of a server that looks too: case LOOKING of `lookForLeader`."""
    initial = peer.initial_vote
    if NO_DATABASE in (initial.zxid, heard.vote.zxid) or heard.election_epoch < election.round:
        return election, ()
    effects: Effects = ()
    if heard.election_epoch > election.round:
        best = heard.vote if is_better(peer.view, heard.vote, initial, rules.variants) else initial
        joined = replace(election, round=heard.election_epoch, vote=best, recvset=())
        election, effects = send_notifications(peer, joined)
    elif is_better(peer.view, heard.vote, election.vote, rules.variants):
        election, effects = send_notifications(peer, replace(election, vote=heard.vote))
    recvset = put(election.recvset, source, Ballot(heard.vote, LOOKING))
    return _finalize_if_agreed(peer, replace(election, recvset=recvset)), effects


def _hear_decided(peer: Peer, election: Election, source: Sid, heard: Notification, rules: ElectionRules) -> Progress:
    """A vote of a server that has decided: `receivedFollowingNotification`.

    The decision is the sender's vote and round, not this server's own: a latecomer joins an established
    leader in the round of that leader's election.
    """
    if heard.election_epoch == election.round:
        recvset = put(election.recvset, source, Ballot(heard.vote, heard.state))
        election = replace(election, recvset=recvset)
        if leader_of_this_round(peer, election, heard, rules):
            return _decide(peer, heard.vote, heard.election_epoch)
    election = replace(election, outofelection=put(election.outofelection, source, claim_of(heard)))
    if leader_of_others(peer, election, heard, rules):
        return _decide(peer, heard.vote, heard.election_epoch)
    return election, ()


# Timers and decisions.


def _fire(peer: Peer, election: Election) -> ServerStep[Election]:
    """FinalizeWait decides for the proposal; NotificationTimeout sends the vote again.

    The real server calls `connectAll` instead when every send queue is full, so that nothing is delivered at
    all. Sending again then has the same effect: the queues to voters hold the present vote already, and a send
    connects too.
    """
    if election.finalizing:
        decided, effects = _decide(peer, election.vote, election.round)
        return Step(decided, effects)
    again, messages = send_notifications(peer, election)
    again = _count_own(peer, again)
    return Step(again, (*messages, *_timers(None, again)))


def _decide(peer: Peer, vote: Vote, election_round: int) -> Progress:
    """`setPeerState` and `leaveInstance`: the votes of this election are forgotten."""
    fact: Led | Followed
    if vote.leader == peer.sid:
        state, fact = LEADING, Led(peer.sid, election_round)
    else:
        state = OBSERVING if is_observer(peer.sid, peer.view) else FOLLOWING
        fact = Followed(peer.sid, vote.leader, election_round)
    return Election(state, election_round, vote), (
        *own_vote(peer, vote, election_round, state),
        Observe(fact),
    )


def _count_own(peer: Peer, election: Election) -> Election:
    """Count after a server's own notification has come back; only a voter sends one to itself.

    For a lone voter this is the whole election. Later, it is what notices again that a quorum agrees after
    FinalizeWait was cancelled.
    """
    return _finalize_if_agreed(peer, election) if peer.hears_itself else election


def _finalize_if_agreed(peer: Peer, election: Election) -> Election:
    """`voteSet.hasAllQuorums` after a LOOKING vote was recorded: a quorum agrees, so the wait begins."""
    return replace(election, finalizing=proposal_has_quorum(peer, election))


def _running_timer(election: Election) -> Timer | None:
    """The timer that runs in this state: one of two while LOOKING, none afterwards."""
    if election.state is not LOOKING:
        return None
    return Timer.FINALIZE_WAIT if election.finalizing else Timer.NOTIFICATION_TIMEOUT


def _timers(running: Timer | None, after: Election) -> Effects:
    """From the timer that ran before to the one that runs now, which begins anew: each poll has its own."""
    timer = _running_timer(after)
    disarm = (Disarm(running),) if running is not None and running is not timer else ()
    return disarm if timer is None else (*disarm, Arm(timer))
