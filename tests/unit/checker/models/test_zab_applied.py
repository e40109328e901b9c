"""The transactions that servers apply, compared with their logs: a server that skips a committed one is detected.

Source of the expected verdicts: Junqueira, Reed, Serafini, "Zab" (DSN 2011), section 2. A follower that applies 1:2 and
never 1:1, behind a leader that applied both, violates total order and local primary order.
"""

import pytest

from checker.engine import Exploration, Stop, plain
from checker.engine.search import explore
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.models.ensemble.effects import Misapplied, misapplied
from checker.properties import ENSEMBLE_PROPERTIES
from spec.durable import Durable
from spec.effects import Observe
from spec.quorum import majority_view
from spec.server import Server
from spec.txn import Txn, make_zxid
from spec.zab.events import Delivered
from spec.zab.learner_broadcast import ServingLearner
from spec.zab.state import Learner, LearnerPhase, ZabRules

A, B, C = (Txn(make_zxid(1, counter), name) for counter, name in ((1, "a"), (2, "b"), (3, "c")))
VIEW = majority_view([1, 2, 3])


def two_commits_wait(writes: int = 2) -> Setup:
    """Return a setup of three servers, one election, two writes; a commit processor is late by any time."""
    members = tuple(Member(sid, File("zoo.cfg", VIEW)) for sid in (1, 2, 3))
    rules = ZabRules(asynchronous_commits=True)
    budgets = Budgets(elections=1, writes=writes)
    return Setup(members, Grain.ORACLE, (Prologue((1, 2, 3)),), budgets=budgets, zab=rules)


def explored(name: str, setup: Setup) -> Exploration:
    model = ensemble("applied", setup, [ENSEMBLE_PROPERTIES.build(setup, name)])
    done = explore(model)
    assert (done.states, done.stop) == ((same := plain.explore(model)).states, same.stop)
    return done


APPLY = ServingLearner.apply


def skipping(learner: ServingLearner, zxid: int) -> None:
    """The commit processor applies the newest commit of its queue and forgets the others."""
    while len(learner.commits) > 1:
        zxid = learner.commits[1]
        learner.commits.popleft()
    APPLY(learner, zxid)


def twice(learner: ServingLearner, zxid: int) -> None:
    """The commit processor applies the oldest commit of its queue twice."""
    APPLY(learner, zxid)
    learner.commits.appendleft(zxid)
    APPLY(learner, zxid)


SEES_A_GAP = (
    "AppliedInOrder",
    "PrefixConsistency",
    "TotalOrder",
    "LocalPrimaryOrder",
    "CommittedLogMonotonicity",
    "CommitConsistency",
)


@pytest.mark.parametrize("name", SEES_A_GAP)
def test_a_server_that_skips_a_committed_transaction_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explored(name, two_commits_wait()).stop is Stop.EXHAUSTED
    monkeypatch.setattr(ServingLearner, "apply", skipping)
    assert explored(name, two_commits_wait()).stop is Stop.FOUND


def test_a_server_that_applies_a_transaction_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServingLearner, "apply", twice)
    assert explored("AppliedInOrder", two_commits_wait()).stop is Stop.FOUND


def test_the_invariant_is_examined_only_where_a_server_has_applied_two_transactions() -> None:
    once, two = (explored("AppliedInOrder", two_commits_wait(writes)) for writes in (1, 2))
    premises = [each.evaluations["AppliedInOrder"].premise for each in (once, two)]
    assert premises[0] == 0 < premises[1]


def test_every_ensemble_that_broadcasts_is_held_to_it_by_default() -> None:
    assert "AppliedInOrder" in ENSEMBLE_PROPERTIES.defaults(two_commits_wait())


# One step.


def follower(*log: Txn, applied: int) -> Server:
    part = Learner(3, LearnerPhase.BROADCAST, 1, delivered=applied)
    return Server(1, VIEW, Durable(1, 1, log=log), zab=part)


def reported(*txns: Txn) -> tuple[Observe]:
    return (Observe(Delivered(1, 1, txns)),)


def test_a_step_that_applies_the_next_transactions_is_not_reported() -> None:
    before, log = follower(A, B, C, applied=A.zxid), (A, B, C)
    assert misapplied(before, follower(*log, applied=C.zxid), reported(B, C)) is None
    assert misapplied(before, follower(*log, applied=A.zxid), ()) is None
    assert misapplied(Server(1, VIEW), follower(*log, applied=B.zxid), reported(A, B)) is None


@pytest.mark.parametrize(
    ("txns", "applied"), [((C,), C), ((B,), C), ((C, B), C), ((B, B), B), ((A,), B), ((), B)], ids=str
)
def test_any_other_step_is_reported_with_what_was_applied(txns: tuple[Txn, ...], applied: Txn) -> None:
    before, after = follower(A, B, C, applied=A.zxid), follower(A, B, C, applied=applied.zxid)
    logged = (A, B, C)[: applied.zxid - A.zxid + 1]
    assert misapplied(before, after, reported(*txns)) == Misapplied(1, 1, (A, *txns), logged)


def test_a_log_that_is_not_in_zxid_order_is_not_applied_in_order() -> None:
    before, after = follower(B, A, applied=0), follower(B, A, applied=B.zxid)
    assert misapplied(before, after, reported(B, A)) is not None
