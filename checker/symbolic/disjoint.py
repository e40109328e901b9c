"""Finds two disjoint quorums, one of each of two views, or proves that there are none.

That is the whole question of a configuration change: servers that still act on the old file and servers that
act on the new one are safe together iff every quorum of the one meets every quorum of the other.

Rules this module keeps:

- Each voter is a 0/1 integer for each view, and 0 + 0, 1 + 0 or 0 + 1 over both: sums of integers are what
  the solver's linear arithmetic refutes at once, where plain booleans would be a pigeonhole puzzle.
- First it is only asked whether there is an answer; the smallest answer is sought only if there is one.
- The witnesses found are tried on `View.contains_quorum` before they are given away.

Source: the definitions in `spec.quorum`, translated clause by clause.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec
import z3

from spec.quorum import Hierarchical, Majority, QuorumSystem, Sid, View
from spec.quorum.systems import java_half

Chosen: TypeAlias = Mapping[Sid, z3.ArithRef]
"""For each voter of a view the variable that is 1 if it belongs to the quorum sought, and 0 if not."""


class DisjointQuorums(msgspec.Struct, frozen=True):
    """A quorum of view a and a quorum of view b that share no server."""

    a: frozenset[Sid]
    b: frozenset[Sid]

    @property
    def size(self) -> int:
        """How many servers the two have together."""
        return len(self.a) + len(self.b)


class UndecidedError(RuntimeError):
    """The solver gave up without an answer."""


def disjoint_quorums(a: View, b: View) -> DisjointQuorums | None:
    """The smallest pair of disjoint quorums, or None when it is proved that every two quorums meet.

    Smallest: fewest servers together. Of several smallest pairs the one whose quorum of `a` has the lowest
    ids is taken, so the answer is the same in every run. Raises UndecidedError if the solver gives up.
    """
    in_a, in_b = _choice(a, "a"), _choice(b, "b")
    constraints = [
        *_zero_or_one(in_a),
        *_zero_or_one(in_b),
        *(in_a[sid] + in_b[sid] <= 1 for sid in in_a.keys() & in_b.keys()),
        _is_quorum(a.quorums, in_a),
        _is_quorum(b.quorums, in_b),
    ]
    solver = z3.Solver()
    solver.add(*constraints)
    answer = solver.check()
    if answer == z3.unsat:
        return None
    if answer != z3.sat:
        raise UndecidedError(f"z3 could not decide whether the quorums meet: {solver.reason_unknown()}")
    return _confirmed(a, b, _smallest(constraints, in_a, in_b))


def _choice(view: View, name: str) -> dict[Sid, z3.ArithRef]:
    return {sid: z3.Int(f"{name}{sid}") for sid in sorted(view.voters)}


def _zero_or_one(chosen: Chosen) -> list[z3.BoolRef]:
    return [z3.And(variable >= 0, variable <= 1) for variable in chosen.values()]


def _is_quorum(quorums: QuorumSystem, chosen: Chosen) -> z3.BoolRef:
    """That the chosen voters are a quorum."""
    if isinstance(quorums, Majority):
        return _total(chosen) >= quorums.quorum_size
    won = [z3.If(_wins(quorums, group, total, chosen), 1, 0) for group, total in quorums.totals()]
    return z3.Sum(won) > quorums.groups_to_exceed()


def _wins(quorums: Hierarchical, group: tuple[Sid, ...], total: int, chosen: Chosen) -> z3.BoolRef:
    """That the chosen voters of a group outweigh half of it, and that there is one."""
    present = {sid: chosen[sid] for sid in group if sid in chosen}
    weight = z3.Sum([quorums.weight(sid) * variable for sid, variable in present.items()])
    return z3.And(_total(present) >= 1, weight > java_half(total))


def _total(chosen: Chosen) -> z3.ArithRef:
    return z3.Sum(list(chosen.values()))


def _smallest(constraints: list[z3.BoolRef], in_a: Chosen, in_b: Chosen) -> DisjointQuorums:
    """The smallest of the solutions the constraints are known to have."""
    optimizer = z3.Optimize()
    optimizer.add(*constraints)
    optimizer.minimize(_total(in_a) + _total(in_b))
    for chosen in (in_a, in_b):
        ranks = (rank * variable for rank, variable in enumerate(chosen.values()))
        optimizer.minimize(z3.Sum(list(ranks)))
    if optimizer.check() != z3.sat:
        raise UndecidedError(f"z3 could not find the smallest pair: {optimizer.reason_unknown()}")
    model = optimizer.model()
    return DisjointQuorums(_read(model, in_a), _read(model, in_b))


def _read(model: z3.ModelRef, chosen: Chosen) -> frozenset[Sid]:
    return frozenset(s for s, var in chosen.items() if model.eval(var, model_completion=True).as_long() == 1)


def _confirmed(a: View, b: View, pair: DisjointQuorums) -> DisjointQuorums:
    """The pair, once the specification itself agrees that it is what it claims to be."""
    if pair.a & pair.b or not a.contains_quorum(pair.a) or not b.contains_quorum(pair.b):
        raise UndecidedError(
            f"z3's answer {pair} is not a pair of disjoint quorums: the translation is wrong"
        )
    return pair
