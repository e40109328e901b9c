"""A standalone server, the support that a leader needs, and a feature of the node only: trees outside of packets.

Expected values: `ZooKeeperServerMain` (a standalone server starts with the epoch of its last zxid), the loop of
`Leader.lead`, `Learner.syncWithLeader` of 3.9.4.
"""

import pytest

from spec.durable import Durable
from spec.effects import Apply, Observe, Persist, WriteEpochs
from spec.election import Peer
from spec.election.messages import QuorumLost
from spec.quorum import majority_view, standalone_view
from spec.server import Server, crash, start, step
from spec.txn import Txn, make_zxid
from spec.zab import leader, learner
from spec.zab.events import ClientWrite, Delivered, LogFailed, Receive, StartAlone, Synced, Truncated
from spec.zab.packets import Ack, FollowerInfo, Snap, UpToDate
from spec.zab.state import Append, Handler, Leader, LeaderPhase, Learner, LearnerPhase, Stage, SyncMode, ZabRules

RULES = ZabRules()
OLD = Txn(make_zxid(1, 1), "old")
ALONE = majority_view([0])
THREE = majority_view([1, 2, 3])


def test_a_server_alone_serves_at_once_in_the_epoch_of_its_last_transaction() -> None:
    started = step(Server(0, ALONE, Durable(1, 1, 0, (OLD,))), StartAlone(), zab=RULES)
    assert started is not None
    assert started.state.zab == Leader(LeaderPhase.BROADCAST, 1, (), committed=OLD.zxid)
    assert started.effects == (Apply(OLD.zxid), Observe(Delivered(0, 1, (OLD,))))


def test_a_server_alone_commits_when_its_own_disk_has_the_transaction() -> None:
    started = step(Server(0, ALONE), StartAlone(), zab=RULES)
    assert started is not None
    asked = step(started.state, ClientWrite("a"), zab=RULES)
    assert asked is not None
    new = Txn(make_zxid(0, 1), "a")
    assert Persist(Append(new)) in asked.effects
    assert Apply(new.zxid) not in asked.effects
    synced = step(asked.state, Synced(), zab=RULES)
    assert synced is not None
    assert Apply(new.zxid) in synced.effects
    assert synced.state.durable.txns == (new,)


def test_a_server_that_runs_cannot_start_alone() -> None:
    started = step(Server(0, ALONE), StartAlone(), zab=RULES)
    assert started is not None
    assert step(started.state, StartAlone(), zab=RULES) is None


def test_a_leader_is_supported_by_a_quorum_of_learners_that_have_acknowledged_newleader() -> None:
    peer = Peer(1, majority_view([1, 2, 3]), Durable())
    serving = Leader(LeaderPhase.BROADCAST, 1, ())
    for stage, supported in ((Stage.SYNCING, False), (Stage.SYNCED, True), (Stage.SERVING, True)):
        assert leader.is_supported(peer, Leader(LeaderPhase.BROADCAST, 1, (), (Handler(2, stage),))) is supported
    assert not leader.is_supported(peer, serving)


def test_an_observer_supports_nobody() -> None:
    peer = Peer(1, majority_view([1, 2, 3], [4]), Durable())
    watched = Leader(LeaderPhase.BROADCAST, 1, (), (Handler(4, Stage.SERVING, observer=True),))
    assert not leader.is_supported(peer, watched)


def test_a_leader_that_does_not_serve_yet_has_as_long_as_initlimit_allows() -> None:
    peer = Peer(1, majority_view([1, 2, 3]), Durable())
    assert leader.is_supported(peer, Leader(LeaderPhase.FOLLOWERINFO, 1, (1,)))


def test_of_a_snapshot_without_its_transactions_only_those_beyond_it_are_known_to_be_lost() -> None:
    last, beyond = Txn(make_zxid(1, 2), "last"), Txn(make_zxid(1, 3), "beyond")
    peer = Peer(2, majority_view([1, 2, 3]), Durable(2, 1, 0, (OLD, last, beyond)))
    waiting = Learner(1, LearnerPhase.SYNCHRONIZATION, 2)
    done = learner.step(peer, waiting, Receive(1, Snap(make_zxid(1, 2), None)), RULES)
    assert done is not None
    assert done.effects == (Observe(Truncated(2, 2, (beyond,))),)
    assert isinstance(done.state, Learner)
    assert (done.state.mode, done.state.tree, done.state.snapshot) == (SyncMode.SNAP, (), make_zxid(1, 2))


def test_a_learner_applies_what_it_was_synchronised_with_before_it_says_that_it_is_up_to_date() -> None:
    peer = Peer(2, majority_view([1, 2, 3]), Durable(2, 2, 0, (OLD,)))
    synced = Learner(1, LearnerPhase.SYNCED, 2)
    done = learner.step(peer, synced, Receive(1, UpToDate()), RULES)
    assert done is not None
    assert done.effects[0] == Apply(OLD.zxid)


def test_a_leader_applies_what_it_begins_its_epoch_with_when_it_serves() -> None:
    peer = Peer(1, majority_view([1, 2, 3]), Durable(2, 2, 0, (OLD,)))
    waiting = Leader(LeaderPhase.NEWLEADER_ACK, 2, (1,), (Handler(2, Stage.SYNCING),))
    done = leader.step(peer, waiting, Receive(2, Ack(make_zxid(2))), RULES)
    assert done is not None
    assert done.effects[0] == Apply(OLD.zxid)


# The file that makes a server run standalone, and the disk that it leaves.


def test_a_file_without_an_ensemble_starts_a_server_alone_and_no_peer_reaches_it() -> None:
    started = start(Server(1, THREE, Durable(0, 0, 0)), standalone_view(1), zab=RULES)
    assert started is not None and started.state.runs_standalone and started.state.view == standalone_view(1)
    assert step(started.state, Receive(2, FollowerInfo(0)), zab=RULES) is None
    assert step(started.state, QuorumLost(), zab=RULES) is None
    assert start(started.state, THREE, zab=RULES) is None
    assert start(Server(1, THREE), standalone_view(2), zab=RULES) is None


def test_a_server_alone_keeps_its_epochs_and_what_is_on_its_disk_when_it_crashes() -> None:
    durable = Durable(2, 1, 0, (OLD,))
    started = start(Server(1, THREE, durable), standalone_view(1), zab=RULES)
    assert started is not None
    written = step(started.state, ClientWrite("new"), zab=ZabRules(asynchronous_disk=False))
    assert written is not None and not any(isinstance(each, WriteEpochs) for each in written.effects)
    after = crash(written.state, RULES)
    assert after is not None and not after.runs
    assert after.durable == durable.appended(Txn(make_zxid(1, 2), "new"))


def test_a_disk_that_cannot_be_written_ends_the_process_of_a_server_alone() -> None:
    started = start(Server(1, THREE), standalone_view(1), zab=RULES)
    assert started is not None
    asked = step(started.state, ClientWrite("lost"), zab=RULES)
    assert asked is not None
    failed = step(asked.state, LogFailed(), zab=RULES)
    assert failed is not None and failed.state == Server(1, standalone_view(1))


@pytest.mark.parametrize(
    ("disk", "epochs"),
    [
        (Durable(), (0, 0)),  # both files are absent, and the last zxid is 0
        (Durable(log=(Txn(make_zxid(0, 7)),)), (0, 0)),  # written alone, from the first transaction on
        (Durable(log=(OLD,)), (1, 1)),  # both files are absent, and the last zxid is of epoch 1
        (Durable(snapshot=make_zxid(3, 2)), (3, 3)),
        (Durable(2, 1, log=(OLD,)), (2, 1)),  # the files of an earlier life in an ensemble
    ],
)
def test_a_member_of_an_ensemble_has_the_epochs_that_its_disk_gives_it(disk: Durable, epochs: tuple[int, int]) -> None:
    """`QuorumPeer.loadDataBase`: a missing file counts as the epoch of the last zxid."""
    started = start(Server(1, standalone_view(1), disk), THREE, zab=RULES)
    assert started is not None
    durable = started.state.durable
    assert (durable.accepted_epoch, durable.current_epoch) == epochs and durable.log == disk.log
