"""The invariants of the order of delivery against their definitions, which compare every pair of transactions.

The invariants compare neighbours, or prefixes, since that takes less time. Here each definition is written as it is in
the paper, and both must judge random servers alike, damaged ones included.
"""

from collections.abc import Iterator
from itertools import combinations, permutations
from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st

from checker.engine import TRIVIAL, Finding
from checker.models.ensemble import File, Member, Setup
from checker.models.ensemble.history import ProposedTxn
from checker.models.ensemble.setup import server_name
from checker.properties import ENSEMBLE_PROPERTIES
from checker.properties.projections import ServerStatus
from spec.quorum import majority_view
from spec.txn import Txn, epoch_of, make_zxid
from spec.zab.state import ZabRules

SIDS = (1, 2, 3)
SETUP = Setup(members=tuple(Member(sid, File(server_name(sid), majority_view(SIDS))) for sid in SIDS), zab=ZabRules())

txns = st.builds(lambda epoch, counter: Txn(make_zxid(epoch, counter), "x"), st.integers(1, 2), st.integers(1, 3))
in_any_order = st.lists(txns, max_size=5).map(tuple)
sequences = in_any_order | in_any_order.map(lambda some: tuple(sorted(some, key=attrgetter("zxid"))))
servers = st.tuples(*(sequences for _ in SIDS))
proposals = st.sets(st.builds(ProposedTxn, st.integers(1, 2), st.sampled_from(SIDS), txns), max_size=6)


def judged(name: str, delivered: tuple[tuple[Txn, ...], ...], proposed: tuple[ProposedTxn, ...] | None = None) -> str:
    """The answer of an invariant about followers that have delivered these transactions."""
    views = (ServerStatus(False, 1, 2, True, each) for each in delivered)
    history = ((),) if proposed is None else ((), proposed, ())
    answer = ENSEMBLE_PROPERTIES.build(SETUP, name).check(*history, *views)
    return "violated" if isinstance(answer, Finding) else "trivial" if answer is TRIVIAL else "holds"


def is_before(one: Txn, other: Txn, delivered: tuple[Txn, ...]) -> bool:
    return one in delivered[: delivered.index(other)]


def by_definition(is_concerned: bool, wrong: Iterator[object]) -> str:
    return "violated" if any(True for _ in wrong) else "holds" if is_concerned else "trivial"


@given(servers)
def test_total_order(delivered: tuple[tuple[Txn, ...], ...]) -> None:
    pairs = [(one, other) for one, other in permutations(delivered, 2) if len(one) > 1 and other]
    wrong = (
        (before, after)
        for one, other in pairs
        for before, after in combinations(one, 2)
        if after in other and not is_before(before, after, other)
    )
    assert judged("TotalOrder", delivered) == by_definition(bool(pairs), wrong)


@given(servers, proposals)
def test_local_primary_order(delivered: tuple[tuple[Txn, ...], ...], proposed: set[ProposedTxn]) -> None:
    in_order = tuple(sorted(proposed, key=lambda each: (each.epoch, each.leader, each.txn.zxid)))
    concerned = [
        (a.txn, b.txn, each)
        for a, b in combinations(in_order, 2)
        if (a.epoch, a.leader) == (b.epoch, b.leader)
        for each in delivered
        if b.txn in each
    ]
    wrong = (each for each in concerned if not is_before(*each))
    assert judged("LocalPrimaryOrder", delivered, in_order) == by_definition(bool(concerned), wrong)


@given(servers)
def test_global_primary_order(delivered: tuple[tuple[Txn, ...], ...]) -> None:
    concerned = any(len({epoch_of(txn.zxid) for txn in each}) > 1 for each in delivered)
    pairs = (pair for each in delivered for pair in combinations(each, 2))
    wrong = (pair for pair in pairs if epoch_of(pair[0].zxid) > epoch_of(pair[1].zxid))
    assert judged("GlobalPrimaryOrder", delivered) == by_definition(concerned, wrong)
