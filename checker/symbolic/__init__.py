"""Questions answered by the solver z3 instead of by exploring: do quorums meet, and why; is there a best vote.

Rules this package keeps:

- An answer is a value that names its witnesses: two disjoint quorums, the numbers that refute a claim, a cycle.
- The solver is believed when it says no, and checked when it says yes: every witness is put before
  `spec` again.
- z3 takes a while to load. Importing this package or `report` does not load it; asking a question does.

`disjoint` asks about two given views, `proofs` about any number of servers, `vote_order` about any votes;
`report` words the answer for the person who asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checker.symbolic.proofs import Proof

__all__ = ["every_proof", "vote_order_lines"]


def every_proof() -> tuple[Proof, ...]:
    """Every statement that is proved with ZooKeeper's own rules: of quorums, and of the order of votes."""
    from checker.symbolic import proofs, vote_order  # noqa: PLC0415

    return (*proofs.all_proofs(), *vote_order.all_proofs())


def vote_order_lines() -> tuple[str, ...]:
    """What is proved of the order of votes, and the cycles that it had before ZOOKEEPER-1419, for a reader."""
    from checker.symbolic import vote_order  # noqa: PLC0415

    return vote_order.lines()
