"""The induction behind the proofs: a walk over the servers of an ensemble, one at a time.

A walk keeps four values for the servers seen so far: their total weight, the weights of the two sets A and B, and
whether a server was in both. Over groups the same walk counts groups in place of weights.

Rules this module keeps:

- `met` is the invariant. It holds for a walk of any length, since base and step are proved separately.
- The same walk, unrolled over a few servers, yields real counterexamples, which an induction alone cannot.

Sources: `QuorumHierarchical.computeGroupWeight` and `containsQuorum`, which add up weights in this way.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import product
from typing import NamedTuple

import msgspec
import z3

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
    """The state of a walk: total, weight of A, weight of B, and whether a server was in both."""

    total: z3.ArithRef
    a: z3.ArithRef
    b: z3.ArithRef
    common: z3.BoolRef

    @classmethod
    def start(cls) -> "Walk":
        """The walk before the first server."""
        return cls(z3.IntVal(0), z3.IntVal(0), z3.IntVal(0), z3.BoolVal(False))

    @classmethod
    def anywhere(cls) -> "Walk":
        """A walk in an arbitrary state."""
        return cls(z3.Int("total"), z3.Int("a"), z3.Int("b"), z3.Bool("common"))

    def step(self, weight: z3.ArithRef, in_a: z3.BoolRef, in_b: z3.BoolRef, shared: z3.BoolRef) -> "Walk":
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


class _Group(NamedTuple):
    """The variables of one group in an unrolled walk."""

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
        found = _solve([_variables(g, size) for g, size in enumerate(shape)], groups, inside, weights)
        if found is not None:
            return found
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
        counted = z3.If(walk.total != 0, 1, 0)
        # A group is won only by a set with a server in it; the proofs do not need this fact.
        a = z3.And(z3.Or(*group.in_a), inside.reached(walk.a, walk.total))
        b = z3.And(z3.Or(*group.in_b), inside.reached(walk.b, walk.total))
        outer = outer.step(counted, a, b, walk.common)
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
