"""The proofs hold with ZooKeeper's rules, and fail with a correct counterexample when a rule is changed."""

import pytest

from checker.symbolic import proofs
from checker.symbolic.proofs import OpenStatement, Proof, Refutation, Share, Sizes, Theorem, WeightedSets, Weights
from spec.quorum import Hierarchical, hierarchical_view, majority_view


def sizes(proof: Proof) -> Sizes:
    assert isinstance(proof, Refutation)
    assert isinstance(proof.counterexample, Sizes)
    return proof.counterexample


def sets(proof: Proof) -> WeightedSets:
    assert isinstance(proof, Refutation)
    assert isinstance(proof.counterexample, WeightedSets)
    return proof.counterexample


def grouped(case: WeightedSets) -> Hierarchical:
    """Return the counterexample's ensemble as a view of ZooKeeper."""
    flat = [weight for group in case.weights for weight in group]
    sids = iter(range(1, len(flat) + 1))
    groups = {gid: [next(sids) for _ in group] for gid, group in enumerate(case.weights, start=1)}
    quorums = hierarchical_view(groups, dict(enumerate(flat, start=1))).quorums
    assert isinstance(quorums, Hierarchical)
    return quorums


@pytest.mark.parametrize("proof", proofs.all_proofs(), ids=lambda proof: proof.statement)
def test_every_statement_holds_with_zookeepers_rules(proof: Proof) -> None:
    assert isinstance(proof, Theorem)


def test_half_of_the_voters_need_not_meet() -> None:
    case = sizes(proofs.majorities_meet(Share.HALF))
    assert case["common"] == 0
    assert case["a"] + case["b"] == case["union"] <= case["n"]
    assert 2 * min(case["a"], case["b"]) >= case["n"]


def test_half_of_the_weight_need_not_meet() -> None:
    case = sets(proofs.weights_meet(Share.HALF))
    (weights,) = case.weights
    assert not case.a & case.b
    for chosen in (case.a, case.b):
        assert 2 * sum(weights[sid - 1] for sid in chosen) >= sum(weights)


def test_with_weights_below_zero_zookeepers_own_quorums_need_not_meet() -> None:
    for proof in (proofs.weights_meet(weights=Weights.ANY), proofs.groups_meet(weights=Weights.ANY)):
        case = sets(proof)
        assert not case.a & case.b
        assert grouped(case).contains_quorum(case.a)
        assert grouped(case).contains_quorum(case.b)


def test_half_of_the_groups_need_not_meet() -> None:
    case = sets(proofs.groups_meet(groups=Share.HALF))
    groups = grouped(case).groups
    assert not case.a & case.b
    assert len(groups) % 2 == 0
    # Each wins half of the groups and not more, so the strict rule would have refused both.
    assert not grouped(case).contains_quorum(case.a)
    assert not grouped(case).contains_quorum(case.b)


def test_half_of_the_weight_inside_the_groups_need_not_meet() -> None:
    case = sets(proofs.groups_meet(inside=Share.HALF))
    totals = grouped(case).totals()
    weight = grouped(case).weight
    assert not case.a & case.b
    for chosen in (case.a, case.b):
        parts = [(sum(weight(sid) for sid in group if sid in chosen), total) for group, total in totals]
        assert sum(part >= 1 and 2 * part >= total for part, total in parts) > len(totals) // 2


def test_a_sum_that_equals_the_union_is_not_enough() -> None:
    case = sizes(proofs.two_views_rule(strict=False))
    a, b = case["only_a"] + case["both"], case["only_b"] + case["both"]
    union = case["only_a"] + case["only_b"] + case["both"]
    assert (a // 2 + 1) + (b // 2 + 1) == union


def test_the_rule_speaks_of_views_that_have_voters() -> None:
    case = sizes(proofs.two_views_rule(empty_views=True))
    assert 0 in (case["only_a"] + case["both"], case["only_b"] + case["both"])


@pytest.mark.parametrize("added", [2, 3, 4])
def test_adding_more_than_one_server_at_once_can_split(added: int) -> None:
    n = sizes(proofs.one_server_at_a_time(added))["n"]
    # The new servers, and as many old ones as their quorum needs, leave the other old servers as an old quorum.
    old, new = range(1, n + 1), range(1, n + added + 1)
    first, last = old[: n // 2 + 1], new[-((n + added) // 2 + 1) :]
    assert not set(first) & set(last)
    assert majority_view(old).contains_quorum(set(first))
    assert majority_view(new).contains_quorum(set(last))


def test_an_induction_that_is_too_weak_is_not_called_a_refutation() -> None:
    # Negative weights break the step of the induction; without a counterexample that proves nothing either way.
    obligations = proofs._server_induction(Weights.ANY)
    assert proofs._by_induction("claim", obligations, None) == OpenStatement("claim", "one more server")
