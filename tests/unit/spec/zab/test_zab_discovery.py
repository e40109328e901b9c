"""Discovery: the epoch that a leader proposes, the servers that count for it, and the answers of a learner.

Expected values: ZooKeeper's Zab1_0Test, and `Leader.getEpochToPropose`, `Leader.waitForEpochAck` and
`Learner.registerWithLeader` of 3.9.4.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Connect, Disconnect, Observe, Send, WriteEpochs
from spec.election import Peer
from spec.quorum import View, majority_view
from spec.txn import Txn, make_zxid
from spec.zab import leader, learner
from spec.zab.events import EpochEstablished, LearnerGone, Receive, ZabEvent
from spec.zab.packets import Ack, AckEpoch, Diff, FollowerInfo, LeaderInfo, NewLeader, QuorumPacket, QuorumRequest
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, ZabResult, ZabRules

RULES = ZabRules()
THREE = majority_view({1, 2, 3})
FIVE = majority_view({1, 2, 3, 4, 5})
WATCHED = majority_view({1, 2, 3}, observers={4})


def server(sid: int = 3, durable: Durable = Durable(), view: View = THREE) -> Peer:
    return Peer(sid, view, durable)


def lead(me: Peer, *events: ZabEvent) -> ZabResult:
    """Return the result of the last of these events, or of the leader's start."""
    done = leader.begin(me, RULES)
    for event in events:
        assert isinstance(done.state, Leader)
        after = leader.step(replace(me, durable=done.durable), done.state, event, RULES)
        assert after is not None, f"impossible: {event}"
        done = after
    return done


def follow(me: Peer, packet: QuorumPacket, leader_sid: int = 3) -> ZabResult:
    done = learner.step(me, Learner(leader_sid), Receive(leader_sid, packet), RULES)
    assert done is not None
    return done


def info(sid: int, accepted: int = 0, *, observer: bool = False) -> Receive:
    return Receive(sid, FollowerInfo(accepted, observer))


def ack(sid: int, last_zxid: int = 0, current_epoch: int = 0) -> Receive:
    return Receive(sid, AckEpoch(last_zxid, current_epoch))


def sent(done: ZabResult) -> list[tuple[int, object]]:
    return [(each.peer, each.message) for each in done.effects if isinstance(each, Send)]


def phase(done: ZabResult) -> LeaderPhase:
    assert isinstance(done.state, Leader)
    return done.state.phase


# The proposed epoch.


def test_a_leader_waits_for_a_quorum_of_followerinfo_and_counts_itself() -> None:
    assert phase(lead(server(view=FIVE), info(1))) is LeaderPhase.FOLLOWERINFO
    assert phase(lead(server(view=FIVE), info(1), info(2))) is LeaderPhase.ACKEPOCH


@pytest.mark.parametrize(
    ("own", "theirs", "epoch"),
    [
        pytest.param(0, 0, 1, id="testNormalRun"),
        pytest.param(5, 0, 6, id="testLeaderInConnectingFollowers: the leader's own is the highest"),
        pytest.param(5, 6, 7, id="testLastAcceptedEpoch: a follower accepted what the leader had in mind"),
        pytest.param(0, 20, 21, id="testLeaderBehind"),
    ],
)
def test_the_epoch_is_above_all_that_a_quorum_has_accepted(own: int, theirs: int, epoch: int) -> None:
    """Zab1_0Test."""
    done = lead(server(durable=Durable(accepted_epoch=own)), info(1, accepted=theirs))

    assert sent(done) == [(1, LeaderInfo(epoch))]
    assert done.durable.accepted_epoch == epoch


def test_the_leader_accepts_the_epoch_before_it_tells_anybody() -> None:
    """getEpochToPropose: setAcceptedEpoch, and only then are the handlers notified."""
    done = lead(server(), info(1))

    assert done.effects == (WriteEpochs(1, 0), Send(1, LeaderInfo(1)))


def test_whoever_is_gone_again_stays_counted() -> None:
    """testLeaderInConnectingFollowers: a follower that timed out remains in connectingFollowers, with its epoch."""
    done = lead(server(view=FIVE), info(1, accepted=4), LearnerGone(1), info(2))

    assert sent(done) == [(2, LeaderInfo(5))]


@pytest.mark.parametrize("stranger", [4, 9], ids=["an observer", "a server outside the view"])
@pytest.mark.parametrize("observer", [True, False], ids=["OBSERVERINFO", "FOLLOWERINFO"])
def test_only_voters_raise_the_epoch(stranger: int, observer: bool) -> None:
    """An epoch is unique because a quorum of voters accepts it, so no other server needs to be heard.

    getEpochToPropose compares every lastAcceptedEpoch, and a stranger with 2^31 - 2 uses up all epochs.
    """
    alone = lead(server(view=WATCHED), info(stranger, accepted=7, observer=observer))
    joined = lead(server(view=WATCHED), info(stranger, accepted=7, observer=observer), info(1))

    assert phase(alone) is LeaderPhase.FOLLOWERINFO
    assert sent(joined) == [(1, LeaderInfo(1)), (stranger, LeaderInfo(1))]


@pytest.mark.parametrize("sid", [1, 4, 9], ids=["a voter", "an observer", "a server outside the view"])
@pytest.mark.parametrize("accepted", [-1, -(2**31), 3 + 2**20 + 1, 2**31 - 2, 2**31 - 1])
def test_an_epoch_that_no_honest_server_has_is_refused(sid: int, accepted: int) -> None:
    """The connection ends, and neither the epoch nor the quorum changes."""
    me = server(durable=Durable(accepted_epoch=3), view=WATCHED)
    refused = lead(me, info(sid, accepted))

    assert refused.effects == (Disconnect(sid),)
    assert refused.state == lead(me).state
    assert sent(lead(me, info(sid, accepted), info(2))) == [(2, LeaderInfo(4))]


def test_a_voter_may_be_many_epochs_ahead() -> None:
    """Each election that fails after LEADERINFO leaves its epoch accepted: 2^20 of them are believed."""
    assert sent(lead(server(durable=Durable(accepted_epoch=3)), info(1, 3 + 2**20))) == [(1, LeaderInfo(4 + 2**20))]


def test_the_last_epoch_is_never_exceeded() -> None:
    """A leader may propose the last epoch, and never a higher one."""
    last = 2**31 - 1
    near = server(durable=Durable(accepted_epoch=last - 5))

    assert sent(lead(near, info(1, last - 1))) == [(1, LeaderInfo(last))]
    assert lead(near, info(1, last)).effects == (Disconnect(1),)


def test_a_latecomer_is_told_the_epoch_that_was_chosen_whatever_it_accepted() -> None:
    """getEpochToPropose returns the epoch once waitingForNewEpoch is false; the learner then gives up."""
    assert sent(lead(server(), info(1), info(2, accepted=30))) == [(2, LeaderInfo(1))]


def test_a_connection_begins_with_followerinfo() -> None:
    """LearnerHandler.run: any other first packet ends the connection."""
    assert Disconnect(1) in lead(server(), Receive(1, QuorumRequest("x"))).effects


def test_nothing_is_read_from_a_learner_that_waits_for_the_epoch() -> None:
    """Its handler's thread is inside getEpochToPropose."""
    waiting = lead(server(view=FIVE), info(1))
    assert isinstance(waiting.state, Leader)

    assert leader.step(server(view=FIVE), waiting.state, ack(1), RULES) is None


# The servers that accepted it.


def test_an_epoch_that_nobody_acknowledged_is_not_begun() -> None:
    """testAbandonBeforeACKEpoch (ZOOKEEPER-1192): acceptedEpoch is 1, currentEpoch stays 0."""
    done = lead(server(), info(1))

    assert (done.durable.accepted_epoch, done.durable.current_epoch) == (1, 0)


def test_with_a_quorum_of_ackepoch_the_leader_is_established() -> None:
    """Leader.lead: setCurrentEpoch follows waitForEpochAck."""
    txn = Txn(make_zxid(1, 1), "a")
    done = lead(server(durable=Durable(1, 1, log=(txn,))), info(1, accepted=1), ack(1, txn.zxid, current_epoch=1))

    assert done.effects[:2] == (WriteEpochs(2, 2), Observe(EpochEstablished(3, 2, (txn,))))
    assert done.durable.current_epoch == 2


def test_minus_one_is_not_counted_and_is_served_all_the_same() -> None:
    """Learner.registerWithLeader: -1 does not count as an ack for the epoch; the follower is synchronised."""
    only_that = lead(server(), info(1), ack(1, current_epoch=-1))
    with_another = lead(server(), info(1), ack(1, current_epoch=-1), info(2), ack(2))

    assert phase(only_that) is LeaderPhase.ACKEPOCH
    assert sent(with_another) == [(1, Diff(0)), (1, NewLeader(1)), (2, Diff(0)), (2, NewLeader(1))]


@pytest.mark.parametrize("stranger", [4, 9], ids=["an observer", "a server outside the view"])
def test_the_ackepoch_of_who_does_not_vote_is_not_counted(stranger: int) -> None:
    """waitForEpochAck: isParticipant."""
    done = lead(server(view=WATCHED), info(1), info(stranger, observer=True), ack(stranger))

    assert phase(done) is LeaderPhase.ACKEPOCH


@pytest.mark.parametrize(
    ("epoch", "zxid", "ahead"),
    [
        pytest.param(2, make_zxid(2, 5), False, id="the same"),
        pytest.param(3, make_zxid(1, 1), True, id="a later epoch, whatever the zxid"),
        pytest.param(2, make_zxid(2, 6), True, id="the same epoch, a later zxid"),
        pytest.param(1, make_zxid(2, 9), False, id="an earlier epoch, whatever the zxid"),
    ],
)
def test_a_follower_that_is_ahead_of_the_leader_is_sent_away(epoch: int, zxid: int, ahead: bool) -> None:
    """waitForEpochAck throws for a summary that is more recent (StateSummary.isMoreRecentThan)."""
    mine = Durable(accepted_epoch=2, current_epoch=2, log=(Txn(make_zxid(2, 5)),))
    done = lead(server(durable=mine), info(1, accepted=3), ack(1, zxid, epoch))

    assert (Disconnect(1) in done.effects) is ahead
    assert (phase(done) is LeaderPhase.ACKEPOCH) is ahead


def test_once_the_epoch_is_established_nobody_is_sent_away() -> None:
    """waitForEpochAck returns immediately when electionFinished is set."""
    done = lead(server(), info(1), info(2), ack(1), ack(2, make_zxid(7, 7), current_epoch=7))

    assert Disconnect(2) not in done.effects
    assert 2 in [sid for sid, _ in sent(done)]


def test_a_learner_must_answer_leaderinfo_with_ackepoch() -> None:
    """LearnerHandler.run: another packet ends the connection."""
    assert Disconnect(1) in lead(server(), info(1), Receive(1, Ack(0))).effects


def test_a_lone_voter_is_established_and_serves_without_anybody() -> None:
    """It alone is a quorum in each of getEpochToPropose, waitForEpochAck and waitForNewLeaderAck."""
    done = lead(server(1, view=majority_view({1})))

    assert phase(done) is LeaderPhase.BROADCAST
    assert (done.durable.accepted_epoch, done.durable.current_epoch) == (1, 1)


# The learner.


@pytest.mark.parametrize(("sid", "observer"), [(1, False), (4, True)], ids=["FOLLOWERINFO", "OBSERVERINFO"])
def test_a_learner_presents_itself_with_the_epoch_it_accepted(sid: int, observer: bool) -> None:
    """Follower.followLeader and Observer.observeLeader; the role is that of the learner's own view."""
    done = learner.begin(server(sid, Durable(accepted_epoch=6), WATCHED), 3)

    assert done.effects == (Disconnect(), Connect(3, FollowerInfo(6, observer)))


def test_a_learner_accepts_a_higher_epoch_before_it_says_so() -> None:
    """testNormalFollowerRun: after ACKEPOCH acceptedEpoch is the new one and currentEpoch still the old one."""
    mine = Durable(accepted_epoch=2, current_epoch=1, log=(Txn(make_zxid(1, 4)),))
    done = follow(server(1, mine), LeaderInfo(3))

    assert done.effects == (WriteEpochs(3, 1), Send(3, AckEpoch(make_zxid(1, 4), 1)))
    assert (done.durable.accepted_epoch, done.durable.current_epoch) == (3, 1)


def test_a_learner_that_accepted_the_epoch_before_answers_minus_one() -> None:
    """registerWithLeader: it must not be counted twice, and still sends its last zxid."""
    mine = Durable(accepted_epoch=3, current_epoch=1, snapshot=make_zxid(1, 2))

    assert sent(follow(server(1, mine), LeaderInfo(3))) == [(3, AckEpoch(make_zxid(1, 2), -1))]


def test_a_learner_gives_up_a_leader_whose_epoch_is_lower_than_what_it_accepted() -> None:
    """registerWithLeader throws, and nothing is written or sent."""
    mine = Durable(accepted_epoch=3)

    assert follow(server(1, mine), LeaderInfo(2)) == ZabResult(mine, None)


@pytest.mark.parametrize("epoch", [3 + 2**20 + 1, 2**31 - 1, 2**31])
def test_a_learner_gives_up_a_leader_whose_epoch_is_not_credible(epoch: int) -> None:
    """Once written to acceptedEpoch, the last epoch would exclude this server from every later epoch."""
    mine = Durable(accepted_epoch=3)

    assert follow(server(1, mine), LeaderInfo(epoch)) == ZabResult(mine, None)


@pytest.mark.parametrize(("accepted", "epoch"), [(3, 3 + 2**20), (0, 2**31 - 1)], ids=["far behind", "an empty disk"])
def test_a_learner_follows_a_leader_that_is_many_epochs_ahead(accepted: int, epoch: int) -> None:
    done = follow(server(1, Durable(accepted_epoch=accepted)), LeaderInfo(epoch))

    assert done.durable.accepted_epoch == epoch


def test_a_learner_gives_up_a_leader_that_begins_with_anything_else() -> None:
    """registerWithLeader: the first packet must be LEADERINFO."""
    assert follow(server(1), NewLeader(1)).state is None


def test_after_leaderinfo_a_learner_waits_to_be_synchronised() -> None:
    after = follow(server(1), LeaderInfo(1)).state

    assert isinstance(after, Learner)
    assert (after.phase, after.epoch) == (LearnerPhase.SYNCHRONIZATION, 1)
