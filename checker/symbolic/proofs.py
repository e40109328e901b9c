"""Proofs that quorums meet, for any number of servers and groups.

The statements, and their proofs:

- **Majorities** of one set: from the sizes of the two sets, their union and their intersection, for all integers. The
  one borrowed fact about sets is |A| + |B| = |A u B| + |A n B|.
- **Weights**: by induction over the servers, as a `Walk` that passes one server at a time. The invariant (`Walk.met`):
  if no server so far is in both sets, A and B together weigh at most as much as all servers. Base, step and conclusion
  are three obligations of linear arithmetic. The proof makes no assumption about the number of servers or their
  weights, and borrows no fact.
- **Groups**: by the same induction, twice. Inside a group it gives a lemma: two sets that both win the group share a
  server in it, and a group whose total is 0 is won by no set. Over the groups it counts groups won, and uses only the
  lemma about each group. The groups may be of any number, size and weight.
- **Two views**: the arithmetic rule is right in both directions. Where it promises nothing, the sizes of two disjoint
  quorums are given as terms and checked; sets of these sizes obviously exist.

Rules this module keeps:

- Each statement takes its rule as a parameter, so that a *mutant* can replace it: half for more than half, weights
  below zero. A proof that survives its mutant has no value.
- A `Refutation` always has a concrete counterexample. An obligation that fails without one gives an `OpenStatement`:
  the induction was too weak, and the statement may still hold.
- The walk of the induction, unrolled over a few servers, yields the real counterexamples.

Sources: `QuorumMaj.containsQuorum`; `QuorumHierarchical.computeGroupWeight` and `containsQuorum`, which add up weights
as a walk does. The Zab paper (Junqueira, Reed, Serafini, DSN 2011) assumes that quorums intersect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import product
from typing import ClassVar, NamedTuple, TypeAlias

import msgspec
import z3

from checker.symbolic.solvers import ProofFinding, Solver, ask, smt_lib
from spec.quorum import Sid


class Share(Enum):
    """The part of a total that makes a quorum: ZooKeeper's rule, and the mutant that must be refuted."""

    MORE_THAN_HALF = "more than half"
    HALF = "half or more"

    def reached(self, part: z3.ArithRef, total: z3.ArithRef) -> z3.BoolRef:
        """The condition that `part` is enough; halves are rounded towards zero, as in Java."""
        if self is Share.HALF:
            # The mutant must not win with a count of zero.
            return z3.And(part >= 1, 2 * part >= total)
        return part > z3.If(total >= 0, total / 2, -(-total / 2))


class Weights(Enum):
    """The weights that a server may have: the sensible ones, or the mutant, which ZooKeeper accepts."""

    NOT_NEGATIVE = "0 or more"
    ANY = "any, below 0 too"

    def allowed(self, weight: z3.ArithRef) -> z3.BoolRef:
        """The condition that one server may have this weight."""
        return weight >= 0 if self is Weights.NOT_NEGATIVE else z3.BoolVal(True)


class WeightedSets(msgspec.Struct, frozen=True):
    """Two sets of servers with no common server: a counterexample. Servers are numbered from 1, group by group.

    `weights` holds one tuple per group, one weight per server.
    """

    weights: tuple[tuple[int, ...], ...]
    a: frozenset[Sid]
    b: frozenset[Sid]


class Walk(NamedTuple):
    """The state of a walk over servers: total weight, weights of the sets A and B, whether a server was in both.

    Over groups the same walk counts groups in place of weights.
    """

    total: z3.ArithRef
    a: z3.ArithRef
    b: z3.ArithRef
    common: z3.BoolRef

    @classmethod
    def start(cls) -> Walk:
        """The walk before the first server."""
        return cls(z3.IntVal(0), z3.IntVal(0), z3.IntVal(0), z3.BoolVal(False))

    @classmethod
    def anywhere(cls) -> Walk:
        """A walk in an arbitrary state."""
        return cls(z3.Int("total"), z3.Int("a"), z3.Int("b"), z3.Bool("common"))

    def step(self, weight: z3.ArithRef, in_a: z3.BoolRef, in_b: z3.BoolRef, shared: z3.BoolRef) -> Walk:
        """The walk after one more server (or group); `shared` is the condition that it puts a server in both sets."""
        return Walk(
            self.total + weight,
            self.a + z3.If(in_a, weight, 0),
            self.b + z3.If(in_b, weight, 0),
            z3.Or(self.common, shared),
        )

    def met(self) -> z3.BoolRef:
        """The invariant: no set weighs more than the total, and two disjoint sets together do not either."""
        apart = z3.Or(self.common, self.a + self.b <= self.total)
        return z3.And(self.a <= self.total, self.b <= self.total, apart)


class Sizes(msgspec.Struct, frozen=True):
    """A counterexample in sizes of sets, by name."""

    values: tuple[tuple[str, int], ...]

    def __getitem__(self, name: str) -> int:
        return dict(self.values)[name]


class Theorem(msgspec.Struct, frozen=True):
    """A statement and the obligations that the solver found valid, with the scripts that ask for them."""

    RESULT: ClassVar[str] = "proved"
    statement: str
    obligations: tuple[str, ...]
    scripts: tuple[str, ...]


class Refutation(msgspec.Struct, frozen=True):
    """A statement that does not hold, and a case where it fails."""

    RESULT: ClassVar[str] = "refuted"
    statement: str
    counterexample: Sizes | WeightedSets


class OpenStatement(msgspec.Struct, frozen=True):
    """A statement with neither proof nor counterexample: the obligation that failed."""

    RESULT: ClassVar[str] = "unproved"
    statement: str
    obligation: str


Proof: TypeAlias = Theorem | Refutation | OpenStatement
_Obligation: TypeAlias = tuple[str, z3.BoolRef]


def majorities_meet(share: Share = Share.MORE_THAN_HALF) -> Proof:
    """Two sets that each hold the share of n voters have a voter in common, for every n."""
    n, a, b, union, common = z3.Ints("n a b union common")
    sets = z3.And(*(size >= 0 for size in (n, a, b, union, common)))
    facts = z3.And(sets, a + b == union + common, union <= n, common <= a, common <= b)
    claim = z3.Implies(z3.And(facts, share.reached(a, n), share.reached(b, n)), common >= 1)
    statement = f"two sets with {share.value} of n voters meet, for every n"
    return _by_sizes(statement, [("the sizes leave a common voter", claim)], (n, a, b, union, common))


def weights_meet(share: Share = Share.MORE_THAN_HALF, weights: Weights = Weights.NOT_NEGATIVE) -> Proof:
    """Two sets that each hold the share of the total weight have a server in common."""
    statement = f"two sets with {share.value} of the weight meet, weights being {weights.value}"
    walk = Walk.anywhere()
    conclusion = z3.Implies(
        z3.And(walk.met(), share.reached(walk.a, walk.total), share.reached(walk.b, walk.total)), walk.common
    )
    obligations = [*_server_induction(weights), ("two quorums share a server", conclusion)]
    return _by_induction(statement, obligations, disjoint_sets(None, share, weights, most=(1, 4)))


def groups_meet(
    groups: Share = Share.MORE_THAN_HALF,
    inside: Share = Share.MORE_THAN_HALF,
    weights: Weights = Weights.NOT_NEGATIVE,
) -> Proof:
    """Two sets that each win the share of the groups, each group by the share of its weight, meet."""
    statement = (
        f"two sets that win {groups.value} of the groups by {inside.value} of the weight meet, "
        f"weights being {weights.value}"
    )
    obligations = [*_server_induction(weights), *_group_lemma(inside), *_group_induction(groups)]
    return _by_induction(statement, obligations, disjoint_sets(groups, inside, weights, most=(3, 3)))


def two_views_rule(strict: bool = True, empty_views: bool = False) -> Proof:
    """For majorities: every two quorums of two views meet iff quorum(A) + quorum(B) > |A u B|.

    Mutants: `strict=False` reads >= for >; `empty_views` admits a view without voters, which has no quorum, so that all
    its quorums meet for every sum.
    """
    only_a, only_b, common = z3.Ints("only_a only_b both")
    voters_a, voters_b, union = only_a + common, only_b + common, only_a + only_b + common
    quorum_a, quorum_b = voters_a / 2 + 1, voters_b / 2 + 1
    least = 0 if empty_views else 1
    views = z3.And(only_a >= 0, only_b >= 0, common >= 0, voters_a >= least, voters_b >= least)
    enough = quorum_a + quorum_b > union if strict else quorum_a + quorum_b >= union

    # Disjoint quorums: from_a servers of A only and both_a of the common ones, and likewise for B.
    from_a, both_a, from_b, both_b = z3.Ints("from_a both_a from_b both_b")
    disjoint = _disjoint_sizes(only_a, only_b, common, from_a, both_a, from_b, both_b)
    quorums = z3.And(disjoint, from_a + both_a >= quorum_a, from_b + both_b >= quorum_b)

    # The two quorums to take if the sum is too small: first from outside the common part.
    take_a, take_b = _smaller(quorum_a, only_a), _smaller(quorum_b, only_b)
    choice = _disjoint_sizes(only_a, only_b, common, take_a, quorum_a - take_a, take_b, quorum_b - take_b)
    obligations = [
        (
            "where the sum is enough, no two quorums are disjoint",
            z3.Implies(z3.And(views, enough), z3.Not(quorums)),
        ),
        ("where it is not, two are", z3.Implies(z3.And(views, z3.Not(enough)), choice)),
    ]
    statement = f"all quorums of A and B meet iff quorum(A) + quorum(B) {'>' if strict else '>='} |A u B|"
    return _by_sizes(statement, obligations, (only_a, only_b, common))


def one_server_at_a_time(added: int = 1) -> Proof:
    """Growing (or, read backwards, shrinking) by one voter keeps every two quorums meeting, for every n >= 1.

    The mutant adds several voters together: with two, 3 to 5 is the counterexample.
    """
    n = z3.Int("n")
    claim = z3.Implies(n >= 1, (n / 2 + 1) + ((n + added) / 2 + 1) > n + added)
    statement = f"from n voters to n + {added}, all quorums of old and new view meet"
    return _by_sizes(statement, [("quorum(n) + quorum(n + added) > n + added", claim)], (n,))


def all_proofs() -> tuple[Proof, ...]:
    """Every statement with ZooKeeper's rules."""
    return (majorities_meet(), weights_meet(), groups_meet(), two_views_rule(), one_server_at_a_time())


def seconded(proof: Proof, solver: Solver) -> Proof:
    """The proof, if another solver proves its obligations too. Raises ModuleNotFoundError if it is not installed."""
    if isinstance(proof, Theorem):
        for script in proof.scripts:
            finding = ask(solver, script).finding
            if finding is not ProofFinding.PROVED:
                return OpenStatement(proof.statement, f"{solver.value} has not proved an obligation: {finding.value}")
    return proof


def _server_induction(weights: Weights) -> list[_Obligation]:
    """The obligations for `Walk.met` after any number of servers."""
    walk = Walk.anywhere()
    weight, in_a, in_b = z3.Int("weight"), z3.Bool("in_a"), z3.Bool("in_b")
    after = walk.step(weight, in_a, in_b, z3.And(in_a, in_b))
    step = z3.Implies(z3.And(walk.met(), weights.allowed(weight)), after.met())
    return [("no server yet", Walk.start().met()), ("one more server", step)]


def _group_lemma(inside: Share) -> list[_Obligation]:
    """The consequences for a group of the walk over its servers."""
    walk = Walk.anywhere()
    a, b = inside.reached(walk.a, walk.total), inside.reached(walk.b, walk.total)
    shared = z3.Implies(z3.And(walk.met(), a, b), walk.common)
    nobody = z3.Implies(z3.And(walk.met(), walk.total == 0), z3.Not(z3.Or(a, b)))
    return [
        ("who both win a group share a server in it", shared),
        ("nobody wins a group of weight 0", nobody),
    ]


def _group_induction(groups: Share) -> list[_Obligation]:
    """The obligations for meeting quorums, from the walk over groups that are arbitrary except for the lemma."""
    walk = Walk.anywhere()
    weighs, won_a, won_b, shared = z3.Bools("weighs won_a won_b shared")
    lemma = z3.And(z3.Implies(z3.And(won_a, won_b), shared), z3.Implies(z3.Not(weighs), z3.Not(z3.Or(won_a, won_b))))
    after = walk.step(z3.If(weighs, 1, 0), won_a, won_b, shared)
    quorums = z3.And(groups.reached(walk.a, walk.total), groups.reached(walk.b, walk.total))
    return [
        ("no group yet", Walk.start().met()),
        ("one more group", z3.Implies(z3.And(walk.met(), lemma), after.met())),
        ("two quorums share a server", z3.Implies(z3.And(walk.met(), quorums), walk.common)),
    ]


def _disjoint_sizes(only_a: z3.ArithRef, only_b: z3.ArithRef, both: z3.ArithRef, *taken: z3.ArithRef) -> z3.BoolRef:
    """The condition that sets of these sizes exist: some of A alone, of the common part, of B alone, of the rest."""
    from_a, both_a, from_b, both_b = taken
    return z3.And(*(size >= 0 for size in taken), from_a <= only_a, from_b <= only_b, both_a + both_b <= both)


def _smaller(left: z3.ArithRef, right: z3.ArithRef) -> z3.ArithRef:
    return z3.If(left <= right, left, right)


def _failing(obligations: Iterable[_Obligation]) -> tuple[str, z3.Solver] | None:
    """The first obligation that is not valid, with the solver that refutes it."""
    for name, claim in obligations:
        solver = z3.Solver()
        solver.add(z3.Not(claim))
        if solver.check() != z3.unsat:
            return name, solver
    return None


def _theorem(statement: str, obligations: Iterable[_Obligation]) -> Theorem:
    names, claims = zip(*obligations, strict=True)
    return Theorem(statement, names, tuple(smt_lib((), claim) for claim in claims))


def _by_sizes(statement: str, obligations: list[_Obligation], names: tuple[z3.ArithRef, ...]) -> Proof:
    """A proof whose failing obligations are counterexamples, because their variables are the whole case."""
    failing = _failing(obligations)
    if failing is None:
        return _theorem(statement, obligations)
    name, solver = failing
    if solver.check() != z3.sat:
        return OpenStatement(statement, name)
    model = solver.model()
    values = ((str(v), model.eval(v, model_completion=True).as_long()) for v in names)
    return Refutation(statement, Sizes(tuple(values)))


def _by_induction(statement: str, obligations: list[_Obligation], counterexample: WeightedSets | None) -> Proof:
    """A proof by induction. A failing obligation refutes nothing, so the counterexample comes from another search."""
    if counterexample is not None:
        return Refutation(statement, counterexample)
    failing = _failing(obligations)
    if failing is not None:
        return OpenStatement(statement, failing[0])
    return _theorem(statement, obligations)


# The search for counterexamples: a walk over a few servers.


class _Group(NamedTuple):
    weights: tuple[z3.ArithRef, ...]
    in_a: tuple[z3.BoolRef, ...]
    in_b: tuple[z3.BoolRef, ...]

    def walk(self) -> Walk:
        walk = Walk.start()
        for weight, in_a, in_b in zip(*self, strict=True):
            walk = walk.step(weight, in_a, in_b, z3.And(in_a, in_b))
        return walk


def disjoint_sets(groups: Share | None, inside: Share, weights: Weights, most: tuple[int, int]) -> WeightedSets | None:
    """Two disjoint sets that are both quorums, among few servers; None if there are no such sets.

    `groups` is the share of the groups that a quorum must win, None for weights without groups. `most` bounds the
    number of groups and of servers in each; smaller ensembles are tried first.
    """
    for shape in _shapes(*most):
        sets = _solve([_variables(g, size) for g, size in enumerate(shape)], groups, inside, weights)
        if sets is not None:
            return sets
    return None


def _shapes(most_groups: int, most_servers: int) -> Iterator[tuple[int, ...]]:
    shapes = (shape for n in range(1, most_groups + 1) for shape in product(range(1, most_servers + 1), repeat=n))
    return iter(sorted(shapes, key=lambda shape: (sum(shape), shape)))


def _variables(group: int, size: int) -> _Group:
    names = [f"{group}.{server}" for server in range(size)]
    return _Group(
        tuple(z3.Int(f"w{name}") for name in names),
        tuple(z3.Bool(f"a{name}") for name in names),
        tuple(z3.Bool(f"b{name}") for name in names),
    )


def _solve(groups: list[_Group], share: Share | None, inside: Share, weights: Weights) -> WeightedSets | None:
    walks = [group.walk() for group in groups]
    outer = Walk.start()
    for group, walk in zip(groups, walks, strict=True):
        weight = z3.If(walk.total != 0, 1, 0)
        # A group is won only by a set with a server in it; the proofs do not need this fact.
        a = z3.And(z3.Or(*group.in_a), inside.reached(walk.a, walk.total))
        b = z3.And(z3.Or(*group.in_b), inside.reached(walk.b, walk.total))
        outer = outer.step(weight, a, b, walk.common)
    solver = z3.Solver()
    # The limit keeps the counterexample readable; it only makes the search less complete.
    solver.add(*(z3.And(weights.allowed(w), w >= -3, w <= 3) for group in groups for w in group.weights))
    share = share or Share.MORE_THAN_HALF
    solver.add(z3.Not(outer.common), share.reached(outer.a, outer.total), share.reached(outer.b, outer.total))
    if solver.check() != z3.sat:
        return None
    return _read(solver.model(), groups)


def _read(model: z3.ModelRef, groups: list[_Group]) -> WeightedSets:
    def value(expression: z3.ExprRef) -> z3.ExprRef:
        return model.eval(expression, model_completion=True)

    def members(flags: list[z3.BoolRef]) -> frozenset[Sid]:
        return frozenset(sid for sid, flag in enumerate(flags, start=1) if z3.is_true(value(flag)))

    return WeightedSets(
        tuple(tuple(value(w).as_long() for w in group.weights) for group in groups),
        members([flag for group in groups for flag in group.in_a]),
        members([flag for group in groups for flag in group.in_b]),
    )
