"""The clauses of the invariant. Each function is a clause, and its first line states it.

The first clauses are about promises, epochs, and logs that are prefixes of histories. One idea carries TRUNC, DIFF and
SNAP: every durable log is a prefix, by zxid, of the history of one established reign, its `source`.

A transaction t is `dead` for a reign r if a later established reign began without t. The heart of the proof is that r
can then never commit t, and that t stays on every disk that acknowledged it until then:

1. `dead_is_blocked`: each quorum of r has a server that has accepted a later epoch, and has not acknowledged t to r;
2. `acked_stays`: an acknowledged transaction stays on disk, unless it is dead;
3. `entered_has_initial`: a server that entered r has all initial transactions of r that are not dead;
4. `candidate_has_initial`: so has a reign whose server had entered r;
5. `promised_is_known`: a reign began with every transaction that its promisers had acknowledged to earlier ones;
6. `dead_if_missing` and `dead_below`: the definition of `dead`.

The other clauses keep the books. `THEOREMS` are implied by the invariant. They hold in every reachable state of
abstract Zab.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from z3 import And, Implies, Not, Or

from checker.symbolic.premise import Premise
from checker.symbolic.zab import premises, rollout
from checker.symbolic.zab.system import AbstractZab, Formula, Symbol, ZabState


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


def acked_known(z: AbstractZab, s: ZabState) -> Formula:
    """An acknowledged transaction is in the history of the reign, and the server has entered its epoch."""
    return z.all(
        "node reign txn",
        lambda n, r, t: Implies(s.acked(n, r, t), And(s.history(r, t), z.epoch(s.current(n)) >= z.epoch(r))),
    )


def entered_acked(z: AbstractZab, s: ZabState) -> Formula:
    """A server that acknowledged NEWLEADER has acknowledged all initial transactions."""
    return z.all("node reign txn", lambda n, r, t: Implies(And(s.entered(n, r), s.initial(r, t)), s.acked(n, r, t)))


def entered_established(z: AbstractZab, s: ZabState) -> Formula:
    """NEWLEADER of an established reign alone is acknowledged."""
    return z.all("node reign", lambda n, r: Implies(s.entered(n, r), s.established(r)))


def dead_if_missing(z: AbstractZab, s: ZabState) -> Formula:
    """A transaction that an established reign lacks from its begin is dead for every earlier reign."""
    return z.all(
        "reign reign txn",
        lambda r1, r2, t: Implies(
            And(s.established(r2), z.epoch(r1) < z.epoch(r2), Not(s.initial(r2, t))), s.dead(r1, t)
        ),
    )


def dead_below(z: AbstractZab, s: ZabState) -> Formula:
    """A transaction that is dead for a reign is dead for every earlier one."""
    return z.all(
        "reign reign txn", lambda r1, r2, t: Implies(And(s.dead(r2, t), z.epoch(r1) < z.epoch(r2)), s.dead(r1, t))
    )


def _dead_is_blocked(premise: Premise) -> Clause:
    def dead_is_blocked(z: AbstractZab, s: ZabState) -> Formula:
        """A dead transaction cannot be committed: some server of each quorum has promised without it."""
        blocks: Symbol = lambda n, r, t: And(s.accepted(n) > z.epoch(r), Not(s.acked(n, r, t)))  # noqa: E731

        def can_matter(r: Formula, q: Formula) -> Formula:
            may_be = premises.may_be_established(premise, z, s, r)
            return And(z.commits(r, q), r != z.zero, may_be, premises.is_usable(premise, z, s, r, q))

        return z.all(
            "reign txn quorum",
            lambda r, t, q: Implies(
                And(s.dead(r, t), can_matter(r, q)),
                z.some("node", lambda n: And(z.member(n, q), blocks(n, r, t))),
            ),
        )

    return dead_is_blocked


def acked_stays(z: AbstractZab, s: ZabState) -> Formula:
    """An acknowledged transaction stays in the log, unless it is dead."""
    return z.all("node reign txn", lambda n, r, t: Implies(And(s.acked(n, r, t), Not(s.dead(r, t))), s.log(n, t)))


def entered_has_initial(z: AbstractZab, s: ZabState) -> Formula:
    """The log of a server has all initial transactions of its current reign that are not dead."""
    return z.all("node txn", lambda n, t: Implies(s.initial(s.current(n), t), Or(s.log(n, t), s.dead(s.current(n), t))))


def candidate_has_initial(z: AbstractZab, s: ZabState) -> Formula:
    """A reign began with all initial transactions of the current reign of its server that are not dead."""
    return z.all(
        "reign txn",
        lambda r, t: Implies(
            And(s.begun(r), r != z.zero, s.initial(s.began_in(r), t)),
            Or(s.initial(r, t), s.dead(s.began_in(r), t)),
        ),
    )


def promised_is_known(z: AbstractZab, s: ZabState) -> Formula:
    """A reign began with all that its promisers had acknowledged to earlier reigns and that is not dead."""
    return z.all(
        "node reign reign txn",
        lambda n, r1, r2, t: Implies(
            And(s.promised(n, r2), s.acked(n, r1, t), z.epoch(r1) < z.epoch(r2), Not(s.dead(r1, t))),
            s.initial(r2, t),
        ),
    )


def committed_acked(z: AbstractZab, s: ZabState) -> Formula:
    """A committed transaction was acknowledged by all servers of a quorum."""
    return z.all(
        "reign txn quorum node",
        lambda r, t, q, n: Implies(And(s.committed(r, t, q), z.member(n, q)), s.acked(n, r, t)),
    )


def committed_by_quorum(z: AbstractZab, s: ZabState) -> Formula:
    """A committed transaction is in the history, and its quorum belongs to the reign."""
    return z.all(
        "reign txn quorum",
        lambda r, t, q: Implies(s.committed(r, t, q), And(z.commits(r, q), s.history(r, t), r != z.zero)),
    )


def served_committed(z: AbstractZab, s: ZabState) -> Formula:
    """A reign that serves has committed its initial transactions."""
    return z.all(
        "reign quorum txn", lambda r, q, t: Implies(And(s.served(r, q), s.initial(r, t)), s.committed(r, t, q))
    )


def served_by_quorum(z: AbstractZab, s: ZabState) -> Formula:
    """A reign that serves is established, and serves with a quorum of its view."""
    return z.all(
        "reign quorum",
        lambda r, q: Implies(s.served(r, q), And(z.commits(r, q), s.established(r), r != z.zero)),
    )


Clause: TypeAlias = Callable[[AbstractZab, ZabState], Formula]


class NamedClause(NamedTuple):
    """A clause of the invariant: its name, its sentence, and its formula in a state."""

    name: str
    sentence: str
    formula: Clause


def named(clause: Clause) -> NamedClause:
    """A clause with the name of its function, and the first line of its documentation."""
    return NamedClause(clause.__name__, (clause.__doc__ or "").partition("\n")[0], clause)


def clauses(premise: Premise) -> tuple[NamedClause, ...]:
    """The whole invariant under a premise."""
    named_clauses = (
        acked_known,
        entered_acked,
        entered_established,
        dead_if_missing,
        dead_below,
        _dead_is_blocked(premise),
        acked_stays,
        entered_has_initial,
        candidate_has_initial,
        promised_is_known,
        committed_acked,
        committed_by_quorum,
        served_committed,
        served_by_quorum,
    )
    staged = rollout.STAGED_CLAUSES if premise.is_rollout else ()
    growth = rollout.GROWTH_CLAUSES if premise is Premise.ONE_GO else ()
    return tuple(map(named, (*HISTORY_CLAUSES, *named_clauses, *staged, *growth)))


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
