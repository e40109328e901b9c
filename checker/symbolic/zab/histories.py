"""The first half of the invariant: promises, epochs, and logs that are prefixes of histories.

Each function is a clause, and its first line states it. One idea carries TRUNC, DIFF and SNAP: every durable
log is a prefix, by zxid, of the history of one established reign, its `source`.
"""

from __future__ import annotations

from z3 import And, Implies, Not, Or

from checker.symbolic.zab.system import AbstractZab, ZabState
from checker.symbolic.zab.universe import Formula


def established_begun(z: AbstractZab, s: ZabState) -> Formula:
    """Only a reign that has begun is established."""
    return z.all("reign", lambda r: Implies(s.established(r), s.begun(r)))


def zero_reign(z: AbstractZab, s: ZabState) -> Formula:
    """The zero reign is established, and its history is empty."""
    empty = z.all("txn", lambda t: And(Not(s.history(z.zero, t)), Not(s.initial(z.zero, t))))
    return And(s.established(z.zero), empty)


def promise_accepts(z: AbstractZab, s: ZabState) -> Formula:
    """A server that promised to a reign has accepted its epoch, or a later one."""
    return z.all(
        "node reign",
        lambda n, r: Implies(s.promised(n, r), And(s.begun(r), s.accepted(n) >= z.epoch(r), r != z.zero)),
    )


def promise_once(z: AbstractZab, s: ZabState) -> Formula:
    """A server promises to one reign of an epoch."""
    return z.all(
        "node reign reign",
        lambda n, r1, r2: Implies(And(s.promised(n, r1), s.promised(n, r2), z.epoch(r1) == z.epoch(r2)), r1 == r2),
    )


def established_by_quorum(z: AbstractZab, s: ZabState) -> Formula:
    """A reign is established by a quorum of its view."""
    return z.all("reign", lambda r: Implies(And(s.established(r), r != z.zero), z.establishes(r, s.via(r))))


def established_by_promises(z: AbstractZab, s: ZabState) -> Formula:
    """All servers of this quorum have promised."""
    return z.all(
        "reign node",
        lambda r, n: Implies(And(s.established(r), r != z.zero, z.member(n, s.via(r))), s.promised(n, r)),
    )


def one_leader(z: AbstractZab, s: ZabState) -> Formula:
    """Two established reigns of one epoch are one reign."""
    return z.all(
        "reign reign",
        lambda r1, r2: Implies(And(s.established(r1), s.established(r2), z.epoch(r1) == z.epoch(r2)), r1 == r2),
    )


def epochs_ordered(z: AbstractZab, s: ZabState) -> Formula:
    """currentEpoch <= epoch of the source <= acceptedEpoch, and the first two are established."""
    return z.all(
        "node",
        lambda n: And(
            z.epoch(s.current(n)) <= z.epoch(s.source(n)),
            z.epoch(s.source(n)) <= s.accepted(n),
            s.established(s.current(n)),
            s.established(s.source(n)),
        ),
    )


def candidate_epochs(z: AbstractZab, s: ZabState) -> Formula:
    """The same of the server of a reign, when the reign began; and the epoch of the reign is higher."""
    return z.all(
        "reign",
        lambda r: Implies(
            And(s.begun(r), r != z.zero),
            And(
                z.epoch(s.began_in(r)) <= z.epoch(s.began_from(r)),
                z.epoch(s.began_from(r)) < z.epoch(r),
                s.established(s.began_in(r)),
                s.established(s.began_from(r)),
            ),
        ),
    )


def history_established(z: AbstractZab, s: ZabState) -> Formula:
    """Only an established reign has a history."""
    return z.all("reign txn", lambda r, t: Implies(s.history(r, t), s.established(r)))


def history_initial_or_own(z: AbstractZab, s: ZabState) -> Formula:
    """A history consists of the initial transactions of the reign and its own proposals."""

    def split(r: Formula, t: Formula) -> Formula:
        return And(
            Implies(s.initial(r, t), And(s.history(r, t), z.origin(t) != r)),
            Implies(s.history(r, t), Or(s.initial(r, t), z.origin(t) == r)),
        )

    return z.all("reign txn", lambda r, t: Implies(s.established(r), split(r, t)))


def history_origin(z: AbstractZab, s: ZabState) -> Formula:
    """A transaction in a history is in that of the reign that proposed it, which is not later."""
    return z.all(
        "reign txn",
        lambda r, t: Implies(s.history(r, t), And(s.history(z.origin(t), t), z.epoch(z.origin(t)) <= z.epoch(r))),
    )


def history_bound(z: AbstractZab, s: ZabState) -> Formula:
    """No transaction of a history has a zxid above its last."""
    return z.all("reign txn", lambda r, t: Implies(s.history(r, t), z.zxid(t) <= s.history_last(r)))


def initial_bound(z: AbstractZab, s: ZabState) -> Formula:
    """No initial transaction of a reign has a zxid above the last one of that log."""
    return z.all("reign txn", lambda r, t: Implies(And(s.begun(r), s.initial(r, t)), z.zxid(t) <= s.initial_last(r)))


def initial_before_own(z: AbstractZab, s: ZabState) -> Formula:
    """The initial transactions of a reign come before its own proposals."""
    return z.all(
        "reign txn",
        lambda r, t: Implies(And(s.established(r), s.history(r, t), z.zxid(t) <= s.initial_last(r)), s.initial(r, t)),
    )


def bounds_ordered(z: AbstractZab, s: ZabState) -> Formula:
    """A history ends no earlier than the initial transactions of the reign."""
    return z.all("reign", lambda r: Implies(s.established(r), s.initial_last(r) <= s.history_last(r)))


def log_is_prefix(z: AbstractZab, s: ZabState) -> Formula:
    """A log is the history of its source, up to the last zxid of the log."""
    return z.all("node txn", lambda n, t: s.log(n, t) == And(s.history(s.source(n), t), z.zxid(t) <= s.last(n)))


def log_within_source(z: AbstractZab, s: ZabState) -> Formula:
    """A log ends no later than the history of its source."""
    return z.all("node", lambda n: s.last(n) <= s.history_last(s.source(n)))


def initial_is_prefix(z: AbstractZab, s: ZabState) -> Formula:
    """The initial transactions of a reign are a prefix of the history of one reign as well."""
    return z.all(
        "reign txn",
        lambda r, t: Implies(
            And(s.begun(r), r != z.zero),
            s.initial(r, t) == And(s.history(s.began_from(r), t), z.zxid(t) <= s.initial_last(r)),
        ),
    )


def initial_within_source(z: AbstractZab, s: ZabState) -> Formula:
    """And it ends no later than that history."""
    return z.all(
        "reign",
        lambda r: Implies(And(s.begun(r), r != z.zero), s.initial_last(r) <= s.history_last(s.began_from(r))),
    )


def log_matching(z: AbstractZab, s: ZabState) -> Formula:
    """Two histories with a common transaction agree on all before it."""
    return z.all(
        "reign reign txn txn",
        lambda r1, r2, t, u: Implies(
            And(s.history(r1, t), s.history(r2, t), s.history(r1, u), z.zxid(u) <= z.zxid(t)), s.history(r2, u)
        ),
    )


def one_txn_a_zxid(z: AbstractZab, s: ZabState) -> Formula:
    """Two transactions of histories with one zxid are one transaction."""
    return z.all(
        "reign reign txn txn",
        lambda r1, r2, t, u: Implies(And(s.history(r1, t), s.history(r2, u), z.zxid(t) == z.zxid(u)), t == u),
    )


HISTORY_CLAUSES = (
    established_begun,
    zero_reign,
    promise_accepts,
    promise_once,
    established_by_quorum,
    established_by_promises,
    one_leader,
    epochs_ordered,
    candidate_epochs,
    history_established,
    history_initial_or_own,
    history_origin,
    history_bound,
    initial_bound,
    initial_before_own,
    bounds_ordered,
    log_is_prefix,
    log_within_source,
    initial_is_prefix,
    initial_within_source,
    log_matching,
    one_txn_a_zxid,
)
