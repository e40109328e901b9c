"""A twin of the specification has no misfit, and a twin of a variant has one that names the variant.

The server under test is the specification itself (`harness.twin.imitation`), so the expected values follow from what
the variant is: with `commit-before-quorum` the first COMMIT comes after the write of the leader alone.
"""

import random

import pytest

from checker.models.ensemble.actions import ServerAction
from harness.twin.campaign import Episode, Misfit, build, event_text, explained_by
from harness.twin.candidates import Outlook, Sight, agree
from harness.twin.coverage import Coverage
from harness.twin.imitation import Imitation
from spec.quorum import majority_view
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.packets import Ack, Commit, Diff, Proposal

VIEW = majority_view((1, 2, 3))
SID = 2


def episode(seed: int, *defects: Variant) -> Episode:
    imitation = Imitation(build(SID, VIEW, frozenset(defects)))
    return Episode(build(SID, VIEW), imitation, Coverage(), random.Random(seed))


def misfit_of(run: Episode, events: int) -> Misfit | None:
    return next((misfit for _ in range(events) if (misfit := run.take()) is not None), None)


def found(*defects: Variant) -> tuple[Episode, Misfit]:
    """The first misfit of a variant, in short episodes."""
    for seed in range(20):
        run = episode(seed, *defects)
        misfit = misfit_of(run, 200)
        if misfit is not None:
            return run, misfit
    pytest.fail(f"{defects} are not found")


def commits(shown: Outlook | Sight) -> bool:
    """Whether a commit shows: by its packet, or by the last applied zxid."""
    return bool(shown.applied) or any(isinstance(packet, Commit) for _, packet in shown.emitted)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_specification_is_always_explained(seed: int) -> None:
    run = episode(seed)
    assert misfit_of(run, 300) is None
    assert {action for action, *_ in run.coverage.events} > {ServerAction.ELECT, ServerAction.RECEIVE}


def test_a_leader_that_commits_early_is_found_at_its_first_commit_and_named() -> None:
    run, misfit = found(Variant.COMMIT_BEFORE_QUORUM)
    sight = misfit.step.sight
    assert sight is not None
    assert commits(sight)
    assert not any(map(commits, misfit.outlooks))
    choices = [Variant.HALF_IS_A_QUORUM, Variant.ACK_BEFORE_LOG, Variant.COMMIT_BEFORE_QUORUM]
    assert explained_by(SID, VIEW, run.steps, choices) == (Variant.COMMIT_BEFORE_QUORUM,)
    assert explained_by(SID, VIEW, run.steps, choices[1:2]) is None


def test_a_follower_that_acknowledges_before_its_log_is_found_at_its_first_early_ack() -> None:
    _, misfit = found(Variant.ACK_BEFORE_LOG)
    assert isinstance(misfit.step.move.arguments[2], Proposal)
    assert misfit.step.sight is not None
    assert [type(packet) for _, packet in misfit.step.sight.emitted] == [Ack]


def test_a_saved_run_leads_to_the_same_misfit() -> None:
    run, _ = found(Variant.COMMIT_BEFORE_QUORUM)
    again = episode(99, Variant.COMMIT_BEFORE_QUORUM)
    results = [again.repeat(event_text(step.move)) for step in run.steps]
    assert results[:-1] == [None] * (len(results) - 1)
    assert results[-1] is not None


def test_a_packet_agrees_only_with_its_own_type_and_zxid() -> None:
    zxid = make_zxid(2) + 1
    assert agree(Commit(zxid), Commit(zxid))
    assert not agree(Commit(zxid), Commit(zxid + 1))
    assert not agree(Commit(zxid), Ack(zxid))
    assert not agree(None, Ack(zxid))
    assert not agree(Proposal(Txn(zxid, 1)), Proposal(Txn(zxid, 2)))
    assert agree(Diff(zxid), Diff(zxid + 1))  # a leader without a transaction of its epoch names "epoch:0"


def test_nothing_fits_a_sight_that_no_outlook_has() -> None:
    run = episode(1)
    candidates = run.candidates
    move = next(move for move in run.ensemble.moves(candidates.rows[0]) if move.action == ServerAction.ELECT)
    before = list(candidates.rows)
    outlooks = candidates.outlooks(move)
    assert not candidates.fit(outlooks, Sight(emitted=((1, Commit(make_zxid(9))),)))
    assert candidates.rows == before
