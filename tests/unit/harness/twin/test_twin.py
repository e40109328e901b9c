"""A twin of the specification has no misfit, and a twin of a variant has one that names the variant.

The server under test is the specification itself (`harness.twin.imitation`), so the expected values follow from what
the variant is: with `commit-before-quorum` the first COMMIT comes after the write of the leader alone.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.setup import server_name
from harness.processes import ServerError
from harness.twin.campaign import Cast, Episode, Misfit, build, casts, event_text, explained_by
from harness.twin.candidates import HOLD_READER, Ensemble, Event, Outlook, Sight, agree, explains, synchronisations
from harness.twin.command import Campaign, add_options
from harness.twin.coverage import Coverage
from harness.twin.imitation import Imitation
from spec.durable import Durable
from spec.election.vote import Vote
from spec.quorum import majority_view
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.leader_sync import History
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    Diff,
    InformAndActivate,
    NewLeader,
    Proposal,
    QuorumPacket,
    Snap,
    Trunc,
)

CAST = Cast(majority_view((1, 2, 3)))
SID = 2


def episode(seed: int, *defects: Variant) -> Episode:
    imitation = Imitation(build(SID, CAST, frozenset(defects)))
    return Episode(build(SID, CAST), imitation, Coverage(), random.Random(seed))


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
    assert misfit_of(run, 200) is None
    assert {action for action, *_ in run.coverage.events} > {ServerAction.ELECT, ServerAction.RECEIVE}


def test_a_leader_that_commits_early_is_found_at_its_first_commit_and_named() -> None:
    run, misfit = found(Variant.COMMIT_BEFORE_QUORUM)
    sight = misfit.step.sight
    assert sight is not None
    assert commits(sight)
    assert not any(map(commits, misfit.outlooks))
    choices = [Variant.HALF_IS_A_QUORUM, Variant.ACK_BEFORE_LOG, Variant.COMMIT_BEFORE_QUORUM]
    assert explained_by(SID, CAST, run.steps, choices) == (Variant.COMMIT_BEFORE_QUORUM,)
    assert explained_by(SID, CAST, run.steps, choices[1:2]) is None


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
    assert agree(AckEpoch(zxid, 2), AckEpoch(zxid, 2))
    assert not agree(AckEpoch(zxid, 2), AckEpoch(zxid, 1))
    assert agree(AckEpoch(zxid, 2), AckEpoch(make_zxid(3), 2), accepted=3)  # an epoch without a transaction
    assert not agree(AckEpoch(zxid, 2), AckEpoch(make_zxid(4), 2), accepted=3)
    assert not agree(AckEpoch(zxid, 2), AckEpoch(make_zxid(2), 2), accepted=3)
    assert agree(Diff(zxid), Diff(zxid + 1))  # a leader without a transaction of its epoch names "epoch:0"


def test_nothing_fits_a_sight_that_no_outlook_has() -> None:
    run = episode(1)
    candidates = run.candidates
    move = next(move for move in run.ensemble.moves(candidates.rows[0]) if move.action == ServerAction.ELECT)
    before = list(candidates.rows)
    outlooks = candidates.outlooks(move)
    assert not candidates.fit(outlooks, Sight(emitted=((1, Commit(make_zxid(9))),)))
    assert candidates.rows == before


def deliver(run: Episode, *sids: int, before: type[QuorumPacket] | None = None) -> None:
    """Deliver packets and complete writes among servers, until nothing is left or a packet of this type is next."""
    while True:
        zxids = run.subject.waiting()
        writes = [run.ensemble.write(zxids)] if zxids else []
        for move in (*writes, *run.ensemble.moves(run.candidates.rows[0])):
            concerned = {argument for argument in move.arguments[:2] if isinstance(argument, int)}
            waits = before is not None and isinstance(move.arguments[-1], before)
            if move.action in (ServerAction.RECEIVE, ServerAction.SYNC) and concerned <= {*sids} and not waits:
                assert run.follow(move) is None
                break
        else:
            return


def joining(assumed: frozenset[Variant], *defects: Variant) -> Episode:
    """Server 2 joins leader 3, which has committed a transaction that 2 lacks, and NEWLEADER is next."""
    imitation = Imitation(build(SID, CAST, assumed.union(defects)))
    run = Episode(build(SID, CAST, assumed), imitation, Coverage(), random.Random(1))
    assert run.repeat("elect (3, (1, 3))") is None
    deliver(run, 1, 3)
    assert run.repeat("client write (3, 1)") is None
    deliver(run, 1, 3)
    assert run.repeat("elect (3, (2,))") is None
    deliver(run, 2, 3, before=NewLeader)
    return run


def test_a_follower_that_acknowledges_before_its_log_is_found_at_its_first_early_ack() -> None:
    run = joining(frozenset(), Variant.ACK_BEFORE_LOG)
    deliver(run, 2, 3)
    assert run.repeat("client write (3, 2)") is None
    misfit = run.repeat(f"receive (3, 2, {Proposal(Txn(make_zxid(2) + 2, 2))!r})")
    assert misfit is not None
    assert misfit.step.sight is not None
    assert misfit.step.sight.emitted == ((3, Ack(make_zxid(2) + 2)),)


AS_IN_3_8_0 = frozenset({Variant.NEWLEADER_ACK_BEFORE_SYNC})


def test_a_reading_thread_that_rests_shows_the_early_ack_of_a_proposal() -> None:
    run = joining(AS_IN_3_8_0, Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK)
    assert run.repeat(f"{HOLD_READER} (2,)") is None
    misfit = run.repeat("receive (3, 2, NewLeader(epoch=2, view=None))")
    assert misfit is not None
    assert misfit.step.sight is not None
    assert misfit.step.sight.emitted == ()
    choices = [Variant.QUEUE_SURVIVES_SHUTDOWN, Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK]
    assert explained_by(SID, CAST, run.steps, choices, AS_IN_3_8_0) == (Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK,)


def test_a_thread_that_was_not_woken_does_not_rest() -> None:
    run = joining(frozenset())
    assert run.repeat(f"{HOLD_READER} (2,)") is None
    assert run.repeat("receive (3, 2, NewLeader(epoch=2, view=None))") is None
    assert not run.candidates.lingers


def test_an_episode_ends_with_records_in_the_queue_of_an_earlier_part() -> None:
    assumed = AS_IN_3_8_0 | {Variant.QUEUE_SURVIVES_SHUTDOWN}
    run = joining(assumed)
    assert run.repeat("receive (3, 2, NewLeader(epoch=2, view=None))") is None
    assert not run.is_over
    assert run.repeat("disconnect (2, 3)") is None
    assert run.is_over


def test_a_leader_without_a_transaction_may_truncate_to_the_beginning_of_its_epoch() -> None:
    txn, begin = Txn(make_zxid(4) + 1, 1), make_zxid(5)
    history = History(begin, 0, (txn,))
    snap = Snap(begin, (txn,))
    assert synchronisations([Trunc(txn.zxid), None], history, 0) == [
        [Trunc(txn.zxid), None], [snap, None], [Trunc(begin), None]
    ]  # fmt: skip
    assert synchronisations([Diff(txn.zxid)], history, 0) == [[Diff(txn.zxid)], [snap]]
    assert synchronisations([Commit(txn.zxid)], history, 0) == [[Commit(txn.zxid)]]


def test_a_leader_may_send_what_its_log_keeps_from_before_a_snapshot() -> None:
    old, new = Txn(make_zxid(4) + 1, 1), Txn(make_zxid(5) + 1, 2)
    history, snap = History(new.zxid, 0, (old, new)), Snap(new.zxid, (old, new))
    diff: list[QuorumPacket | None] = [Diff(new.zxid), Proposal(new), Commit(new.zxid), NewLeader(6)]
    assert synchronisations([snap, NewLeader(6)], history, old.zxid) == [[snap, NewLeader(6)], diff]
    assert synchronisations([snap, NewLeader(6)], history, old.zxid + 1) == [[snap, NewLeader(6)]]


def test_nothing_seen_contradicts_no_write_unless_it_was_looked_for() -> None:
    ensemble = build(SID, CAST)
    outlook = Outlook(ensemble.model.initial(), queued=(make_zxid(2) + 1,))
    assert explains(outlook, Sight(), ensemble)
    assert explains(outlook, Sight(waiting=(make_zxid(2) + 1,)), ensemble)
    assert not explains(outlook, Sight(waiting=()), ensemble)
    assert not explains(outlook, Sight(waiting=(make_zxid(2) + 2,)), ensemble)


@pytest.mark.parametrize(
    ("defects", "zxid", "fits"),
    [
        ((), make_zxid(4, 1), True),
        ((), make_zxid(3, 1), False),
        ((Variant.TRUNC_AFTER_SNAP,), make_zxid(3, 1), True),
        ((Variant.TRUNC_AFTER_SNAP,), make_zxid(3, 2), False),
    ],
)
def test_a_vote_may_have_the_zxid_of_a_snapshot_where_a_truncation_keeps_a_record(
    defects: tuple[Variant, ...], zxid: int, fits: bool
) -> None:
    ensemble = build(SID, CAST, frozenset(defects))
    kept = Durable(4, 4, snapshot=make_zxid(3, 1), log=(Txn(make_zxid(4, 1), 1),))
    row, place = list(ensemble.model.initial()), ensemble.model.index[server_name(SID)]
    row[place] = replace(row[place], durable=kept)
    outlook = Outlook(tuple(row), vote=Vote(SID, kept.last_zxid, 4))
    assert explains(outlook, Sight(vote=Vote(SID, zxid, 4)), ensemble) is fits


def test_one_more_server_observes_in_some_episodes() -> None:
    views = [cast.view for cast in casts(SID, 3)]
    assert {len(view.voters) for view in views} == {3}
    assert {view.observers for view in views} == {frozenset(), frozenset({4}), frozenset({SID})}


@pytest.mark.parametrize("cast", casts(SID, 3)[2:])
def test_the_specification_is_explained_in_every_cast(cast: Cast) -> None:
    run = Episode(build(SID, cast), Imitation(build(SID, cast)), Coverage(), random.Random(3))
    assert misfit_of(run, 80) is None


CHANGING = Cast(majority_view((1, 2, 3), {4}), changing=4)


def reconfigured(*defects: Variant) -> Episode:
    """Server 2 leads, 4 observes, and 2 has proposed to make 4 a voter, which no other server has acknowledged."""
    imitation = Imitation(build(SID, CHANGING, frozenset(defects)))
    run = Episode(build(SID, CHANGING), imitation, Coverage(), random.Random(1))
    assert run.repeat("elect (2, (1, 2, 3, 4))") is None
    deliver(run, 1, 2, 3, 4)
    assert run.repeat("plan 1: reconfig +4 (2,)") is None
    return run


def test_a_change_of_a_role_is_committed_and_activated() -> None:
    run = reconfigured()
    deliver(run, 1, 2, 3, 4)
    assert run.coverage.packets["COMMITANDACTIVATE", "leader BROADCAST"] > 0
    assert run.coverage.packets["INFORMANDACTIVATE", "leader BROADCAST"] > 0
    assert run.ensemble.server(run.candidates.rows[0]).view.voters == {1, 2, 3, 4}


def test_a_peer_whose_role_changes_opens_another_connection_in_that_event() -> None:
    run = reconfigured()
    events: list[Event] = []
    cause = run.subject.cause
    run.subject.cause = lambda event: (events.append(event), cause(event))[1]  # type: ignore[method-assign]
    deliver(run, 1, 2, 3, 4)
    ((opening, packet),) = [(event.opening, event.move.arguments[2]) for event in events if event.opening]
    assert opening == {4}
    assert isinstance(packet, InformAndActivate)


def test_the_view_of_newleader_shows_a_proposal_that_is_not_committed() -> None:
    run = reconfigured(Variant.PENDING_VIEW_ACTIVATED)
    assert run.repeat("disconnect (2, 4)") is None
    assert run.repeat("elect (2, (4,))") is None
    misfit = None
    while misfit is None:
        (move,) = [
            move for move in run.ensemble.moves(run.candidates.rows[0])
            if move.action == ServerAction.RECEIVE and {*move.arguments[:2]} == {SID, 4}
        ]  # fmt: skip
        misfit = run.follow(move)
    sight = misfit.step.sight
    assert sight is not None
    (sent,) = [packet for _, packet in sight.emitted if isinstance(packet, NewLeader)]
    assert sent.view is not None
    assert sent.view.voters == {1, 2, 3, 4}
    choices = [Variant.COMMIT_BEFORE_QUORUM, Variant.PENDING_VIEW_ACTIVATED]
    assert explained_by(SID, CHANGING, run.steps, choices) == (Variant.PENDING_VIEW_ACTIVATED,)


class Failing(Imitation):
    """The specification, which cannot be looked at after the tenth look of an episode."""

    def __init__(self) -> None:
        self.looks = 0

    def begin(self, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self.looks = 0

    def look(self, outlooks: Sequence[Outlook]) -> Sight:
        self.looks += 1
        if self.looks > 10:
            raise ServerError("it does not answer")
        return super().look(outlooks)


def test_a_failure_ends_its_episode_and_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = parser.parse_args(["--release", "3.9.5", "--steps", "100", "--save", str(tmp_path)])
    assert Campaign(options, Failing()).run(None) == 3
    files = sorted(tmp_path.iterdir())
    assert len(files) > 1
    output = capsys.readouterr().out
    assert f"{len(files)} times the server or the harness failed" in output
    assert "not done: it does not answer" in output
    header, servers, assumed, *events = files[0].read_text(encoding="utf-8").splitlines()
    assert header == "quorate twin 1"
    assert servers.startswith("voters ")
    assert assumed == "assumed: "
    assert len(events) > 10
