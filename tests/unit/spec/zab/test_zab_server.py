"""A server as a whole, once it leads or follows: the first steps after an election, and the state after either end.

Expected values: `QuorumPeer.run`, `Leader.shutdown`, `Learner.shutdown`, `ZooKeeperServer.shutdown`,
`LearnerZooKeeperServer.shutdownComponents` and `QuorumPeer.updateElectionVote` of 3.9.4.
"""

import pytest

from spec.durable import Durable
from spec.effects import Connect, Disconnect, Send, ServerStep, Timer
from spec.election import Elected, Election, Fired, LeaderLost, QuorumLost, ServerState, Vote
from spec.quorum import View, majority_view
from spec.server import Event, Server, crash, start, step
from spec.txn import Txn, make_zxid
from spec.zab.events import ClientWrite, LearnerGone, Receive, Synced, ZabEvent
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    Diff,
    FollowerInfo,
    LeaderInfo,
    NewLeader,
    Proposal,
    QuorumPing,
    Snap,
    UpToDate,
)
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, ZabRules

LATER = ZabRules(asynchronous_disk=True)
THREE = majority_view({1, 2, 3}, observers={4})
ALONE = majority_view({3})
OLD, A, B = (Txn(make_zxid(1, counter)) for counter in (1, 2, 3))
DISK = Durable(accepted_epoch=1, current_epoch=1, log=(OLD,))


def off(sid: int = 1, durable: Durable = DISK, view: View = THREE) -> Server:
    return Server(sid, view, durable)


def run(server: Server, *events: Event, zab: ZabRules | None = LATER) -> ServerStep[Server]:
    """Boot the server, and return the result of the last of these events."""
    done = start(server, zab=zab)
    assert done is not None
    for event in events:
        after = step(done.state, event, zab=zab)
        assert after is not None, f"impossible: {event}"
        done = after
    return done


def elected(leader: int = 3) -> Elected:
    return Elected(Vote(leader, OLD.zxid, 1), 1)


def from_leader(*packets: object) -> list[Event]:
    return [Receive(3, packet) for packet in packets]  # type: ignore[arg-type]


JOINED = [elected(), *from_leader(LeaderInfo(2), Diff(OLD.zxid), NewLeader(2))]
SERVED = [*JOINED, *from_leader(UpToDate())]
LED: list[Event] = [
    elected(),
    Receive(1, FollowerInfo(1)),
    Receive(1, AckEpoch(OLD.zxid, 1)),
    Receive(1, Ack(make_zxid(2))),
]


def election(server: Server) -> Election:
    assert server.election is not None
    return server.election


# Beginning.


def test_a_server_that_was_elected_leads() -> None:
    done = run(off(3), elected(3))

    assert isinstance(done.state.zab, Leader)
    assert election(done.state).state is ServerState.LEADING


@pytest.mark.parametrize(("sid", "observer"), [(1, False), (4, True)], ids=["follower", "observer"])
def test_a_server_that_decided_for_another_connects_to_it(sid: int, observer: bool) -> None:
    done = run(off(sid), elected(3))

    assert done.state.zab == Learner(3)
    assert Connect(3, FollowerInfo(1, observer)) in done.effects


def test_without_rules_of_zab_a_server_has_its_election_and_nothing_else() -> None:
    done = run(off(3), elected(3), zab=None)

    assert done.state.zab is None
    assert step(done.state, Receive(1, FollowerInfo(0))) is None


@pytest.mark.parametrize("event", [Receive(3, QuorumPing()), Synced(), ClientWrite("x"), LearnerGone(2)])
def test_a_server_that_looks_for_a_leader_does_none_of_it(event: ZabEvent) -> None:
    assert step(run(off()).state, event, zab=LATER) is None


@pytest.mark.parametrize(("sid", "events"), [(1, SERVED), (3, LED)], ids=["a learner", "a leader"])
def test_who_serves_tells_the_new_epoch_with_its_vote(sid: int, events: list[Event]) -> None:
    """QuorumPeer.updateElectionVote (ZOOKEEPER-1732): on UPTODATE, and when the leader has its quorum of ACKs."""
    before, after = run(off(sid), *events[:-1]), run(off(sid), *events)

    assert election(before.state).vote.peer_epoch == 1
    assert election(after.state).vote.peer_epoch == 2


def test_a_lone_voter_serves_as_soon_as_it_has_decided() -> None:
    done = run(off(3, Durable(), ALONE), Fired(Timer.FINALIZE_WAIT))

    assert isinstance(done.state.zab, Leader)
    assert done.state.zab.phase is LeaderPhase.BROADCAST
    assert done.state.durable == Durable(1, 1)


def test_a_lone_voter_that_gave_up_leads_the_next_epoch() -> None:
    decided = Fired(Timer.FINALIZE_WAIT)
    done = run(off(3, Durable(), ALONE), decided, QuorumLost(), decided)

    assert done.state.durable.current_epoch == 2


# A crash.


def test_a_crash_keeps_the_disk_and_the_file_and_forgets_what_was_queued() -> None:
    served = run(off(), *SERVED, *from_leader(Proposal(Txn(make_zxid(2, 1))))).state

    assert served.zab is not None
    assert served.zab.queue
    assert crash(served, LATER) == off(durable=Durable(2, 2, log=(OLD,)))


def test_a_crash_while_newleader_is_handled_leaves_what_the_disk_has_ended() -> None:
    """The epoch is written after the transactions (ZOOKEEPER-4643)."""
    joined = [elected(), *from_leader(LeaderInfo(2), Diff(B.zxid))]
    two = [*joined, *from_leader(Proposal(A), Commit(A.zxid), Proposal(B), Commit(B.zxid), NewLeader(2))]

    for ended, txns, epoch in ((0, (OLD,), 1), (1, (OLD, A), 1), (2, (OLD, A, B), 1), (3, (OLD, A, B), 2)):
        assert crash(run(off(), *two, *[Synced()] * ended).state, LATER) == off(durable=Durable(2, epoch, log=txns))


def test_a_crash_forgets_a_snapshot_that_is_only_in_memory() -> None:
    got = run(off(), elected(), *from_leader(LeaderInfo(2), Snap(A.zxid, (OLD, A)))).state

    assert crash(got, LATER) == off(durable=Durable(2, 1, log=(OLD,)))


def test_what_was_logged_and_never_committed_is_voted_with_after_a_restart() -> None:
    """QuorumPeer.getLastLoggedZxid: the zxid of the tree, into which the whole log is replayed (ZOOKEEPER-2845)."""
    new = Txn(make_zxid(2, 1))
    crashed = crash(run(off(), *SERVED, *from_leader(Proposal(new)), Synced()).state, LATER)
    assert crashed is not None

    assert election(run(crashed).state).vote == Vote(1, new.zxid, 2)


# An orderly shutdown.


def test_a_learner_that_loses_its_leader_writes_what_it_has_queued() -> None:
    """LearnerZooKeeperServer.shutdownComponents waits for the sync thread before the next election begins."""
    new = Txn(make_zxid(2, 1))
    done = run(off(), *SERVED, *from_leader(Proposal(new)), LeaderLost())

    assert done.state.durable == Durable(2, 2, log=(OLD, new))
    assert election(done.state).state is ServerState.LOOKING
    assert election(done.state).vote == Vote(1, new.zxid, 2)


def test_the_connection_is_closed_before_the_queue_is_written_so_nobody_hears_of_it() -> None:
    """Learner.shutdown: closeSocket, then the server; acknowledgements find no socket."""
    done = run(off(), *SERVED, *from_leader(Proposal(Txn(make_zxid(2, 1)))), LeaderLost())

    assert Disconnect(3) in done.effects
    assert not [each for each in done.effects if isinstance(each, Send) and isinstance(each.message, Ack)]


def test_a_leader_that_loses_its_quorum_writes_its_queue_and_leaves_everybody() -> None:
    done = run(off(3), *LED, ClientWrite("x"), QuorumLost())

    assert done.state.durable.txns == (OLD, Txn(make_zxid(2, 1), "x"))
    assert done.effects[0] == Disconnect(None)
    assert done.state.zab is None


def test_a_snapshot_in_memory_is_forgotten_by_an_end_in_order_too() -> None:
    """Learner.shutdown clears the database if SNAP is not finished."""
    got = [elected(), *from_leader(LeaderInfo(2), Snap(A.zxid, (OLD, A)))]

    assert run(off(), *got, LeaderLost()).state.durable == Durable(2, 1, log=(OLD,))


def test_proposals_kept_for_uptodate_are_forgotten() -> None:
    """They are a local variable of syncWithLeader."""
    done = run(off(), *JOINED, *from_leader(Proposal(A)), LeaderLost())

    assert done.state.durable == Durable(2, 2, log=(OLD,))


def test_a_learner_notices_nothing_while_it_handles_newleader() -> None:
    """The thread that would notice is waiting for the disk."""
    handled = [elected(), *from_leader(LeaderInfo(2), Diff(A.zxid), Proposal(A), Commit(A.zxid), NewLeader(2))]

    assert step(run(off(), *handled).state, LeaderLost(), zab=LATER) is None
    assert step(run(off(), *handled, Synced(), Synced()).state, LeaderLost(), zab=LATER) is not None


def test_a_learner_that_gives_its_leader_up_itself_looks_for_another() -> None:
    """Here the reason is that the leader's epoch is lower than the one it accepted."""
    done = run(off(durable=Durable(5, 1)), elected(), *from_leader(LeaderInfo(4)))

    assert election(done.state).state is ServerState.LOOKING
    assert done.state.durable == Durable(5, 1)
    assert Disconnect(3) in done.effects


def test_a_learner_that_was_synchronised_keeps_the_epoch_without_having_served() -> None:
    """currentEpoch is written with the ACK of NEWLEADER, and becomes part of its later votes."""
    done = run(off(), *JOINED, LeaderLost())

    assert isinstance(run(off(), *JOINED).state.zab, Learner)
    assert election(done.state).vote == Vote(1, OLD.zxid, 2)


def test_a_learner_cannot_lose_a_quorum_nor_a_leader_its_leader() -> None:
    follower, leads = run(off(), *SERVED).state, run(off(3), *LED).state
    assert isinstance(follower.zab, Learner)
    assert follower.zab.phase is LearnerPhase.BROADCAST

    assert step(follower, QuorumLost(), zab=LATER) is None
    assert step(leads, LeaderLost(), zab=LATER) is None
