"""The premises of the invariants of Zab: an invariant counts as examined only where it could fail.

Expected values: the parts of each invariant's violation. Two reigns of one epoch need two reigns, two transactions
under one zxid need two transactions, and only a TRUNC or a SNAP loses a transaction.
"""

from functools import cache

import pytest
from msgspec.structs import replace

from checker.engine import TRIVIAL, Exploration, Finding, Stop
from checker.engine.search import explore
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.models.ensemble.history import EstablishedEpoch, FirstCommit
from checker.properties import ENSEMBLE_PROPERTIES
from checker.properties.projections import truncates
from spec.durable import Durable
from spec.quorum import majority_view
from spec.server import Server
from spec.txn import Txn, make_zxid
from spec.zab.state import Learner, LearnerPhase, SyncMode, ZabRules

A, B = Txn(make_zxid(1, 1), "a"), Txn(make_zxid(1, 2), "b")
VIEW = majority_view([1, 2, 3])


def settled(asynchronous_disk: bool = False, **budgets: int) -> Setup:
    """Return a setup of three servers that have elected one leader before the exploration."""
    members = tuple(Member(sid, File("zoo.cfg", VIEW)) for sid in (1, 2, 3))
    rules = ZabRules(asynchronous_disk=asynchronous_disk)
    return Setup(members, Grain.ORACLE, (Prologue((1, 2, 3)),), budgets=Budgets(**budgets), zab=rules)


@cache
def explored(asynchronous_disk: bool = False, **budgets: int) -> Exploration:
    setup = settled(asynchronous_disk, **budgets)
    done = explore(ensemble("premises", setup, ENSEMBLE_PROPERTIES.build_defaults(setup)))
    assert done.stop is Stop.EXHAUSTED
    return done


def one_write() -> Exploration:
    """One reign and one write."""
    return explored(elections=1, writes=1)


def a_leader_returns() -> Exploration:
    """Two reigns and two writes; a leader crashes with a write on its disk alone, and returns."""
    return explored(asynchronous_disk=True, elections=2, writes=2, crashes=1, restarts=1)


NEEDS_MORE = (
    "Leadership",
    "CommittedLogDurability",
    "OneTxnPerZxid",
    "AppliedInOrder",
    "PrefixConsistency",
    "Agreement",
    "TotalOrder",
    "CommittedLogMonotonicity",
)
NEEDS_A_WRITE = ("HistoryConsistency", "CommitConsistency", "ReplicasAgree")


@pytest.mark.parametrize("name", NEEDS_MORE)
def test_one_reign_and_one_write_do_not_exercise(name: str) -> None:
    assert one_write().evaluations[name].premise == 0


@pytest.mark.parametrize("name", NEEDS_A_WRITE)
def test_servers_without_a_transaction_do_not_exercise(name: str) -> None:
    assert explored(elections=1).evaluations[name].premise == 0
    assert one_write().evaluations[name].premise > 0


@pytest.mark.parametrize("name", NEEDS_MORE)
def test_two_reigns_two_writes_and_a_truncation_exercise(name: str) -> None:
    assert a_leader_returns().evaluations[name].premise > 0


# Each premise by its values.


def test_a_leader_that_establishes_an_epoch_twice_violates_leadership() -> None:
    """The zxids of the second reign name other transactions than those of the first."""
    check = ENSEMBLE_PROPERTIES.build(settled(), "Leadership").check
    assert isinstance(check((EstablishedEpoch(1, 3, ()), EstablishedEpoch(1, 3, (A,))), ()), Finding)
    assert check((EstablishedEpoch(1, 3, ()), EstablishedEpoch(2, 3, ())), ()) is None
    assert check((EstablishedEpoch(1, 3, ()),), ()) is TRIVIAL


def test_durability_of_the_log_is_examined_while_a_server_truncates() -> None:
    check = ENSEMBLE_PROPERTIES.build(settled(), "CommittedLogDurability").check
    committed = (FirstCommit(A, 1),)
    assert check((), committed, False, False, False) is TRIVIAL
    assert check((), (), True, False, False) is TRIVIAL
    assert check((), committed, True, False, False) is None
    assert isinstance(check(((1, A),), committed, False, False, False), Finding)


def test_a_snapshot_without_a_transaction_on_disk_truncates_it() -> None:
    learner = Learner(3, LearnerPhase.SYNCHRONIZATION, 2, tree=(A,))
    server = Server(1, VIEW, Durable(1, 1, log=(A, B)), zab=learner)
    modes = {mode: truncates(replace(server, zab=replace(learner, mode=mode))) for mode in SyncMode}
    assert modes == {SyncMode.DIFF: False, SyncMode.TRUNC: True, SyncMode.SNAP: True}
    assert not truncates(replace(server, zab=replace(learner, mode=SyncMode.SNAP, tree=(A, B))))
