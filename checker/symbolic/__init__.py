"""Questions that are answered without exploration: whether quorums meet, and why; whether there is a best vote.

Rules this package keeps:

- An answer is a value that names its witnesses: two disjoint quorums, the numbers that refute a claim, or a cycle.
- The solver's "unsatisfiable" is trusted, its "satisfiable" is checked: every witness is evaluated by `spec` again.
- z3 takes a while to load, and need not be installed. `disjoint` and `report` do without it; the proofs load it.

`disjoint` compares two given views, `proofs` covers any number of servers, and `vote_order` any votes; `report` words
the answer for the user. The package `zab` proves the safety of an abstract Zab.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from checker.symbolic.proofs import Proof
    from checker.symbolic.solvers import Solver

__all__ = ["cycle_lines", "every_proof", "vote_order_lines"]


def every_proof(solvers: Iterable[Solver] = ()) -> tuple[Proof, ...]:
    """Every statement that is proved with ZooKeeper's own rules: on quorums, and on the order of votes.

    z3 proves them, and each of these solvers that is another one has to prove them too.
    """
    from checker.symbolic import proofs, vote_order  # noqa: PLC0415
    from checker.symbolic.solvers import Solver  # noqa: PLC0415

    results = (*proofs.all_proofs(), *vote_order.all_proofs())
    for solver in {*solvers} - {Solver.Z3}:
        results = tuple(proofs.seconded(proof, solver) for proof in results)
    return results


def vote_order_lines() -> tuple[str, ...]:
    """The proved statements on the order of votes, and its cycles before ZOOKEEPER-1419, as lines of text."""
    from checker.symbolic import vote_order  # noqa: PLC0415

    return vote_order.lines()


def cycle_lines() -> tuple[str, ...]:
    """The smallest cycles of votes before ZOOKEEPER-1419, as lines of text."""
    from checker.symbolic import vote_order  # noqa: PLC0415

    return vote_order.cycle_lines()
