"""The history that the invariants of Zab read: the recorded facts and their form.

Expected values: the rules at the top of `checker/models/ensemble/history.py`, and the invariants of section 6 of the
facts file that read the parts.
"""

import pytest

from checker.engine import Property, Read
from checker.models.ensemble.effects import Misapplied
from checker.models.ensemble.history import (
    EstablishedEpoch,
    FirstCommit,
    History,
    HistoryPart,
    ProposedTxn,
    concerns,
    history_actor,
    part,
    parts_read,
)
from checker.models.ensemble.setup import HISTORY, server_name
from spec.effects import Fact
from spec.txn import Txn, make_zxid
from spec.zab.events import (
    Broadcast,
    Committed,
    Delivered,
    EpochEstablished,
    MessageKind,
    SyncAnswered,
    Truncated,
    Unexpected,
)

A, B = Txn(make_zxid(1, 1), "a"), Txn(make_zxid(1, 2), "b")
OTHER = Txn(A.zxid, "another")
ALL = frozenset(HistoryPart)


def folded(*facts: Fact, kept: frozenset[HistoryPart] = ALL) -> History:
    actor, history = history_actor(kept), History()
    for fact in facts:
        done = actor.step((history,), fact)
        assert done is not None
        (history,) = done.values
    return history


def reading(*parts: HistoryPart) -> Property:
    reads = (Read(server_name(1)), *(Read(HISTORY, part(which)) for which in parts))
    return Property("reads", reads, lambda *_: None)


# Recorded facts.


def test_without_a_property_that_reads_the_history_nothing_is_kept() -> None:
    assert parts_read([reading()]) == frozenset()
    assert folded(Committed(3, 1, A), Broadcast(3, 1, A), kept=frozenset()) == History()


def test_what_any_property_reads_is_kept() -> None:
    assert parts_read([reading(HistoryPart.ESTABLISHED), reading(HistoryPart.BROADCAST)]) == {
        HistoryPart.ESTABLISHED,
        HistoryPart.BROADCAST,
    }


def test_to_know_what_was_lost_what_was_committed_must_be_kept() -> None:
    assert parts_read([reading(HistoryPart.LOST)]) == {HistoryPart.LOST, HistoryPart.COMMITTED}


def test_equal_projections_are_one_object_so_that_properties_share_their_lookups() -> None:
    assert part(HistoryPart.COMMITTED) is part(HistoryPart.COMMITTED)
    assert part(HistoryPart.COMMITTED)(History(committed=(FirstCommit(A, 1),))) == (FirstCommit(A, 1),)


@pytest.mark.parametrize(
    ("fact", "parts"),
    [
        (EpochEstablished(3, 1, ()), {HistoryPart.ESTABLISHED}),
        (Committed(3, 1, A), {HistoryPart.COMMITTED, HistoryPart.COUNTED}),
        (Delivered(1, 1, (A,)), {HistoryPart.COMMITTED}),
        (Broadcast(3, 1, A), {HistoryPart.BROADCAST}),
        (Truncated(1, 2, (A,)), {HistoryPart.LOST}),
        (Unexpected(1, MessageKind.ACK, "x"), {HistoryPart.UNEXPECTED}),
        (Misapplied(1, 1, (B,), (A, B)), {HistoryPart.MISAPPLIED}),
        (SyncAnswered(1, A.zxid), {HistoryPart.SYNCS}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_fact_is_sent_only_to_a_history_that_keeps_what_it_tells(fact: Fact, parts: set[HistoryPart]) -> None:
    assert {which for which in HistoryPart if concerns(fact, frozenset({which}))} == parts


# The parts.


def test_a_write_is_counted_once_by_its_leader_and_not_where_a_server_applies_it() -> None:
    assert folded(Delivered(1, 1, (A,))).counted == ()
    assert folded(Committed(3, 1, A), Committed(2, 2, A), Delivered(1, 2, (A, B))).counted == (FirstCommit(A, 1),)


def test_a_log_with_one_transaction_twice_has_one_commit() -> None:
    assert folded(Delivered(1, 1, (A, A))).committed == (FirstCommit(A, 1),)


def test_reigns_stand_in_the_order_of_their_epochs() -> None:
    later, earlier = EpochEstablished(2, 5, (A,)), EpochEstablished(3, 4, ())

    assert folded(later, earlier).established == (EstablishedEpoch(4, 3, ()), EstablishedEpoch(5, 2, (A,)))


def test_two_leaders_of_one_epoch_are_both_remembered() -> None:
    """The invariant Leadership must be able to see both."""
    done = folded(EpochEstablished(3, 1, ()), EpochEstablished(2, 1, ()))

    assert [reign.leader for reign in done.established] == [2, 3]


def test_an_epoch_that_one_leader_establishes_twice_is_remembered_twice() -> None:
    """The second reign may begin with other transactions, and assigns their zxids again."""
    first, second = EpochEstablished(3, 1, ()), EpochEstablished(3, 1, (A,))

    assert folded(second, first).established == (EstablishedEpoch(1, 3, ()), EstablishedEpoch(1, 3, (A,)))
    assert folded(first, first).established == (EstablishedEpoch(1, 3, ()), EstablishedEpoch(1, 3, ()))


def test_a_transaction_is_committed_once_by_its_leader_or_by_whoever_delivers_it_first() -> None:
    assert folded(Committed(3, 1, A), Delivered(1, 1, (A,)), Committed(3, 1, B)).committed == (
        FirstCommit(A, 1),
        FirstCommit(B, 1),
    )
    assert folded(Delivered(1, 2, (A, B)), Committed(3, 3, A)).committed == (FirstCommit(A, 2), FirstCommit(B, 2))


def test_two_transactions_of_one_zxid_are_two() -> None:
    """This happened on a real ensemble with disjoint views (facts, 2)."""
    assert folded(Committed(3, 1, A), Committed(5, 1, OTHER)).committed == (FirstCommit(A, 1), FirstCommit(OTHER, 1))


def test_the_order_of_broadcasts_is_theirs_and_not_that_of_their_reports() -> None:
    one, two = Broadcast(3, 1, A), Broadcast(2, 2, B)

    assert folded(one, two).broadcast == folded(two, one, two).broadcast == (ProposedTxn(1, 3, A), ProposedTxn(2, 2, B))


def test_a_committed_transaction_that_a_later_leader_has_truncated_is_lost() -> None:
    done = folded(Committed(3, 1, A), Truncated(2, 2, (A, B)))

    assert done.lost == ((2, A),)


def test_what_was_never_committed_is_not_lost_by_a_truncation() -> None:
    assert folded(Truncated(2, 2, (A,))).lost == ()
    assert folded(Committed(3, 1, OTHER), Truncated(2, 2, (A,))).lost == ()


def test_a_truncation_by_the_leader_of_the_same_epoch_is_no_loss() -> None:
    """The leader has the transaction, and sends it again."""
    assert folded(Committed(3, 1, A), Truncated(2, 1, (A,))).lost == ()


def test_of_each_family_of_unexpected_messages_the_first_is_kept() -> None:
    first, second, other = (
        Unexpected(1, MessageKind.ACK, "x"),
        Unexpected(2, MessageKind.ACK, "y"),
        Unexpected(1, MessageKind.STATE, "z"),
    )

    assert folded(first, second, other).unexpected == (first, other)


def test_of_each_server_the_first_step_that_misapplies_is_kept() -> None:
    first, second, other = (Misapplied(1, 1, (B,), (A, B)), Misapplied(1, 2, (), (A,)), Misapplied(2, 1, (A, A), (A,)))

    assert folded(first, second, other).misapplied == (first, other)


def test_equal_pasts_are_one_value() -> None:
    """A fact without new information leaves the history unchanged."""
    once = folded(
        Committed(3, 1, A), EpochEstablished(3, 1, ()), Broadcast(3, 1, A), Unexpected(1, MessageKind.ACK, "x")
    )
    again = folded(
        *(Committed(3, 1, A), EpochEstablished(3, 1, ()), Broadcast(3, 1, A), Unexpected(1, MessageKind.ACK, "x")),
        *(Delivered(1, 1, (A,)), Broadcast(3, 1, A), Unexpected(1, MessageKind.ACK, "y")),
    )

    assert again == once
