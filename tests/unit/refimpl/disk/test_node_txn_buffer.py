"""The end of the log in memory behaves like the tuple in the checker, whatever the order of extensions."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.disk import txn_buffer
from refimpl.disk.txn_buffer import LIMIT, LogBytes, TxnBuffer
from spec.durable import Durable
from spec.txn import Txn


def txns(first: int, count: int) -> tuple[Txn, ...]:
    return tuple(Txn(zxid, f"value {zxid}") for zxid in range(first, first + count))


LOG = txns(1, 8)

operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), st.integers(0, 4)),
        st.tuples(st.just("slice"), st.integers(0, 9), st.tuples(*[st.none() | st.integers(-9, 9)] * 2)),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(operations)
def test_every_value_ever_made_stays_equal_to_its_tuple(done: list[tuple[str, int, object]]) -> None:
    # Each operation takes one of the earlier values, not always the newest: they share their lists.
    made: list[tuple[TxnBuffer, tuple[Txn, ...]]] = [(TxnBuffer(), ()), (TxnBuffer(LOG), LOG)]
    for number, (what, which, how) in enumerate(done):
        value, model = made[which % len(made)]
        if what == "add":
            assert isinstance(how, int)
            more = txns(100 * (number + 1), how)
            made.append((value + more, model + more))
        else:
            assert isinstance(how, tuple)
            made.append((value[slice(*how)], model[slice(*how)]))
    for value, model in made:
        assert tuple(value) == model
        assert (len(value), bool(value)) == (len(model), bool(model))
        assert tuple(reversed(value)) == model[::-1]
        assert [value[place] for place in range(-len(model), len(model))] == [*model, *model]
        assert value == model
        assert value == TxnBuffer(model)
        assert hash(value) == hash(TxnBuffer(model))


@pytest.mark.parametrize("place", [8, -9])
def test_a_place_outside_is_an_index_error_as_with_a_tuple(place: int) -> None:
    with pytest.raises(IndexError, match="has 8 elements"):
        TxnBuffer(LOG)[place]


def test_a_part_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="without gaps"):
        TxnBuffer(LOG)[::2]


def test_values_that_differ_in_one_transaction_differ() -> None:
    assert TxnBuffer(LOG) != (*LOG[:-1], Txn(8, "another"))
    assert TxnBuffer(LOG) != LOG[:-1]


@pytest.mark.parametrize("step", [1, 7])
def test_beyond_its_limit_the_newest_are_kept_and_older_values_do_not_change(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(txn_buffer, "LIMIT", 10)
    value, model = TxnBuffer(), ()
    for first in range(1, 200, step):
        before, old = value, tuple(value)
        value, model = (value + txns(first, step)).trimmed(first + step), model + txns(first, step)
        assert tuple(before) == old
        assert tuple(value) == model[-len(value) :]
        assert min(len(model), 10) <= len(value) <= 2 * 10 + step


def test_what_is_not_applied_is_never_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(txn_buffer, "LIMIT", 10)
    value = TxnBuffer()
    for zxid in range(1, 101):
        value = (value + txns(zxid, 1)).trimmed(applied=5)
    assert tuple(value)[-96:] == txns(5, 96)
    assert len(value.trimmed(applied=100)) == 10


def test_what_a_server_knows_of_its_disk_can_hold_one() -> None:
    durable = Durable(1, 1, 0, TxnBuffer(LOG))
    assert durable.last_zxid == 8
    assert durable.appended(Txn(9)).txns == (*LOG, Txn(9))
    assert durable.truncated(5).txns == LOG[:5]
    assert durable.txns == LOG


def test_large_transactions_are_kept_in_smaller_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never fewer than ZooKeeper keeps, and never without one that is not applied."""
    monkeypatch.setattr(txn_buffer, "BYTES", 1000)
    monkeypatch.setattr(txn_buffer, "LEAST", 5)
    sizes, value = LogBytes(), TxnBuffer()
    for zxid in range(1, 101):
        sizes.add(zxid, 100)
        value = (value + txns(zxid, 1)).trimmed(zxid, sizes)
        assert min(zxid, 5) <= len(value) <= 10
        assert sizes.total == 100 * len(value)
    for zxid in range(101, 131):
        sizes.add(zxid, 100)
        value = (value + txns(zxid, 1)).trimmed(100, sizes)
    assert value[0].zxid == 101

    huge = LogBytes()
    for zxid in range(1, 11):
        huge.add(zxid, 10_000)
    assert len(TxnBuffer(txns(1, 10)).trimmed(10, huge)) == 5


def test_the_sizes_of_small_transactions_are_forgotten_with_them_a_few_at_a_time() -> None:
    """100,000 transactions of 50 bytes are far below `BYTES`, so nothing but their number limits their sizes."""
    sizes, buffer, lengths = LogBytes(), TxnBuffer(), [0]
    for zxid in range(1, 100_001):
        sizes.add(zxid, 50)
        buffer = (buffer + txns(zxid, 1)).trimmed(zxid, sizes)
        lengths.append(len(sizes))
    assert max(lengths) <= 2 * LIMIT
    assert max(before - after for before, after in pairwise(lengths)) <= LIMIT
    assert sizes.total == 50 * len(buffer)


def test_a_log_that_was_cut_forgets_the_sizes_behind_the_cut() -> None:
    sizes = LogBytes()
    for zxid, size in ((1, 10), (2, 20), (3, 30), (2, 5)):
        sizes.add(zxid, size)
    assert (len(sizes), sizes.total) == (2, 15)
