"""The theorems that the invariant implies. They hold in every reachable state of abstract Zab."""

from __future__ import annotations

from z3 import And, Implies, Or

from checker.symbolic.zab.invariant import NamedClause, named
from checker.symbolic.zab.system import AbstractZab, ZabState
from checker.symbolic.zab.universe import Formula


def one_leader_an_epoch(z: AbstractZab, s: ZabState) -> Formula:
    """Two established reigns of one epoch are one."""
    return z.all(
        "reign reign",
        lambda r1, r2: Implies(And(s.established(r1), s.established(r2), z.epoch(r1) == z.epoch(r2)), r1 == r2),
    )


def leader_completeness(z: AbstractZab, s: ZabState) -> Formula:
    """Every established reign of a higher epoch began with every transaction that a reign committed."""
    return z.all(
        "reign reign txn quorum",
        lambda r1, r2, t, q: Implies(
            And(s.committed(r1, t, q), s.established(r2), z.epoch(r1) < z.epoch(r2)), s.initial(r2, t)
        ),
    )


def agreement(z: AbstractZab, s: ZabState) -> Formula:
    """Two committed transactions of one zxid are one."""
    return z.all(
        "reign reign txn txn quorum quorum",
        lambda r1, r2, t, u, q1, q2: Implies(
            And(s.committed(r1, t, q1), s.committed(r2, u, q2), z.zxid(t) == z.zxid(u)), t == u
        ),
    )


def total_order(z: AbstractZab, s: ZabState) -> Formula:
    """Of two committed transactions, a log that has the one of the higher zxid has the other."""
    return z.all(
        "reign reign txn txn quorum quorum node",
        lambda r1, r2, t, u, q1, q2, n: Implies(
            And(s.committed(r1, t, q1), s.committed(r2, u, q2), z.zxid(t) < z.zxid(u), s.log(n, u)), s.log(n, t)
        ),
    )


def prefixes_agree(z: AbstractZab, s: ZabState) -> Formula:
    """Of the committed parts of two logs, one is a prefix of the other."""
    return z.all(
        "reign reign txn txn quorum quorum node node",
        lambda r1, r2, t, u, q1, q2, n, m: Implies(
            And(s.committed(r1, t, q1), s.committed(r2, u, q2), s.log(n, t), s.log(m, u)),
            Or(s.log(m, t), s.log(n, u)),
        ),
    )


def durability(z: AbstractZab, s: ZabState) -> Formula:
    """A committed transaction, which a client may know, is in the log of each server of its quorum for ever."""
    return z.all(
        "reign txn quorum node",
        lambda r, t, q, n: Implies(And(s.committed(r, t, q), z.member(n, q)), s.log(n, t)),
    )


def durability_in_later_epochs(z: AbstractZab, s: ZabState) -> Formula:
    """Every server whose currentEpoch is later has it in its log."""
    return z.all(
        "reign txn quorum node",
        lambda r, t, q, n: Implies(And(s.committed(r, t, q), z.epoch(s.current(n)) > z.epoch(r)), s.log(n, t)),
    )


THEOREMS: tuple[NamedClause, ...] = tuple(
    map(
        named,
        (
            one_leader_an_epoch,
            leader_completeness,
            agreement,
            total_order,
            prefixes_agree,
            durability,
            durability_in_later_epochs,
        ),
    )
)
"""The theorems, in the order of their proofs: a later one may use the earlier ones."""
