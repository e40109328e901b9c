"""Abstract Zab with a mistake: each mutant breaks a condition of the proof, and most have a run that breaks a theorem.

A proof that survives its mutants has no value. A mutant drops conditions of an action, replaces one, leaves something
unwritten, adds an action, or drops an axiom of the premise. The names are those of `spec.variants` where these exist.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from z3 import And, Implies

from checker.symbolic.zab import premises
from checker.symbolic.zab.actions import ZabAction, ZabStep, also, at
from checker.symbolic.zab.premises import Premise
from checker.symbolic.zab.system import AbstractZab, Formula, Symbol, Term, ZabState

Change: TypeAlias = Callable[[ZabAction], ZabAction]


@dataclass(frozen=True)
class ZabMutant:
    """A mistake: the action that breaks a clause, the changes by action, and the axioms that are dropped."""

    name: str
    sentence: str
    action: str
    changes: Mapping[str, Change] = field(default_factory=dict)
    premise: Premise = Premise.VIEWS
    dropped: tuple[str, ...] = ()

    def actions(self) -> dict[str, ZabAction]:
        """The actions with the mistake."""
        actions = premises.actions(self.premise)
        for name, change in self.changes.items():
            actions[name] = change(actions[name] if name in actions else _NEW[name])
        return actions


def without(*names: str) -> Change:
    """The action without these conditions. Raises KeyError if it has no such condition."""
    return _changed(lambda _z, _s, _p, step: step._replace(conditions=_dropped(step.conditions, names)))


def unwritten(*names: str) -> Change:
    """The action leaves these parts of the state as they were."""
    return _changed(
        lambda _z, s, _p, step: step._replace(after=step.after._replace(**{n: getattr(s, n) for n in names}))
    )


def instead(name: str, condition: Symbol) -> Change:
    """The action with another condition in place of the one of this name."""

    def change(z: AbstractZab, s: ZabState, parameters: Mapping[str, Term], step: ZabStep) -> ZabStep:
        return step._replace(conditions={**_dropped(step.conditions, [name]), name: condition(z, s, **parameters)})

    return _changed(change)


def both(first: Change, second: Change) -> Change:
    """Two changes of one action."""
    return lambda action: second(first(action))


def _same(action: ZabAction) -> ZabAction:
    return action


def _changed(change: Callable[[AbstractZab, ZabState, Mapping[str, Term], ZabStep], ZabStep]) -> Change:
    def of(action: ZabAction) -> ZabAction:
        def step(z: AbstractZab, s: ZabState, **parameters: Term) -> ZabStep:
            return change(z, s, parameters, action.step(z, s, **parameters))

        step.__doc__ = action.step.__doc__
        return replace(action, step=step)

    return of


def _dropped(conditions: Mapping[str, Formula], names: Iterable[str]) -> dict[str, Formula]:
    unknown = set(names) - set(conditions)
    if unknown:
        raise KeyError(f"no condition {sorted(unknown)}; there are {sorted(conditions)}")
    return {name: formula for name, formula in conditions.items() if name not in set(names)}


def _lose_accepted(z: AbstractZab, s: ZabState, n: Term, epoch: Term) -> ZabStep:
    """A crash loses acceptedEpoch."""
    del z
    return ZabStep({"it was higher": epoch < s.accepted(n)}, s._replace(accepted=at(s.accepted, n, epoch)))


def _lose_current(z: AbstractZab, s: ZabState, n: Term, r: Term) -> ZabStep:
    """A crash loses currentEpoch."""
    older = And(s.established(r), z.epoch(r) < z.epoch(s.current(n)))
    return ZabStep({"it was higher": older}, s._replace(current=at(s.current, n, r)))


def _lose_log(z: AbstractZab, s: ZabState, n: Term, to: Term) -> ZabStep:
    """A crash loses the end of a log."""
    kept: Symbol = lambda m, t: And(s.log(m, t), Implies(m == n, z.zxid(t) <= to))  # noqa: E731
    return ZabStep({"it was longer": to < s.last(n)}, s._replace(last=at(s.last, n, to), log=kept))


def _append_any(z: AbstractZab, s: ZabState, n: Term, r: Term, t: Term) -> ZabStep:
    """A server logs a proposal, though one before it is missing."""
    mine = And(s.current(n) == r, s.accepted(n) == z.epoch(r), s.history(r, t), z.zxid(t) > s.last(n))
    return ZabStep({"it is a later proposal": mine}, s._replace(last=at(s.last, n, z.zxid(t)), log=also(s.log, n, t)))


def _new(name: str, step: Callable[..., ZabStep], **parameters: str) -> ZabAction:
    return ZabAction(name, parameters, "none", "none", step)


_NEW = {
    action.name: action
    for action in (
        _new("lose_accepted", _lose_accepted, n="node", epoch="int"),
        _new("lose_current", _lose_current, n="node", r="reign"),
        _new("lose_log", _lose_log, n="node", to="int"),
        _new("append_any", _append_any, n="node", r="reign", t="txn"),
    )
}

_HIGHER = "the epoch is higher than any that the server accepted"
_NO_LATER = "the server has accepted no later epoch"
_ON_DISK = "all initial transactions are on disk"
_MEET = "quorums of all views meet"


def _mutant(name: str, sentence: str, action: str, *changes: Change, premise: Premise = Premise.VIEWS) -> ZabMutant:
    """A mutant that changes one action."""
    change = changes[0] if len(changes) == 1 else both(*changes)
    return ZabMutant(name, sentence, action, {action: change}, premise)


def _premise_dropped(premise: Premise, axiom: str, action: str = "establish") -> ZabMutant:
    name = f"{premise.name.lower()} without: {axiom}"
    return ZabMutant(name, "Quorums need not meet.", action, premise=premise, dropped=(axiom,))


MUTANTS: dict[str, ZabMutant] = {
    mutant.name: mutant
    for mutant in (
        # The premises, dropped one by one.
        _premise_dropped(Premise.VIEWS, _MEET),
        _premise_dropped(Premise.USED, "quorums that establish one epoch meet"),
        _premise_dropped(Premise.USED, "quorums that commit meet quorums that establish later"),
        _premise_dropped(Premise.SERVED, "quorums that establish one epoch meet"),
        _premise_dropped(Premise.STAGED, "quorums of neighbouring stages meet"),
        _premise_dropped(Premise.ONE_GO, "running quorums of neighbouring stages meet"),
        _mutant(
            "base-meets-nothing",
            "A reign need not meet the reigns since its base.",
            "establish",
            without("the quorum meets the quorums that may commit since the base"),
            premise=Premise.SERVED,
        ),
        _mutant(
            "base-has-not-served",
            "The base need not have served.",
            "establish",
            without("the base has served"),
            premise=Premise.SERVED,
        ),
        # The rule of the operator, dropped part by part.
        _mutant(
            "next-stage-before-all-have-this-one",
            "The next stage begins while a server has a file of the stage before.",
            "raise_high",
            without("all servers have the newest file"),
            premise=Premise.STAGED,
        ),
        _mutant(
            "no-wait-for-a-quorum",
            "The next stage begins before a quorum follows the leader.",
            "raise_high",
            without("a quorum follows the leader now"),
            premise=Premise.STAGED,
        ),
        _mutant(
            "others-still-lead",
            "The next stage begins while another leader may lead.",
            "raise_high",
            unwritten("over"),
            premise=Premise.ONE_GO,
        ),
        _mutant(
            "no-leader-before-the-last-start",
            "The last server is first started before a leader by the new file serves.",
            "raise_high",
            without("a leader by the newest file serves"),
            premise=Premise.ONE_GO,
        ),
        _mutant(
            "promises-before-it-runs",
            "A server of a later stage promises already.",
            "promise",
            without("the server runs"),
            premise=Premise.ONE_GO,
        ),
        ZabMutant(
            "acknowledges-before-it-runs",
            "A server acknowledges to a leader that stopped before the server was started.",
            "ack",
            {name: without("the server runs while the leader leads") for name in ("enter", "ack")},
            Premise.ONE_GO,
        ),
        # A new epoch.
        _mutant(
            "old-epoch-begun", "A reign begins with an epoch that its server has accepted.", "begin", without(_HIGHER)
        ),
        _mutant("leader-does-not-accept", "A leader does not write acceptedEpoch.", "begin", unwritten("accepted")),
        _mutant(
            "minus-one-counted",
            "An ACKEPOCH counts though the server has accepted this epoch from another leader.",
            "promise",
            instead(_HIGHER, lambda z, s, n, r: s.accepted(n) <= z.epoch(r)),
        ),
        _mutant(
            "follower-does-not-accept", "A follower does not write acceptedEpoch.", "promise", unwritten("accepted")
        ),
        _mutant(
            "ahead-is-counted",
            "The ACKEPOCH of a server that is ahead counts.",
            "promise",
            without("currentEpoch is not ahead", "the log is not ahead"),
        ),
        _mutant("last-zxid-not-compared", "Last zxids are not compared.", "promise", without("the log is not ahead")),
        _mutant(
            "current-epoch-not-compared",
            "Last zxids alone are compared.",
            "promise",
            without("currentEpoch is not ahead"),
            instead("the log is not ahead", lambda _, s, n, r: s.last(n) <= s.initial_last(r)),
        ),
        _mutant(
            "established-before-quorum",
            "A reign is established before a quorum has promised.",
            "establish",
            without("all its servers have promised"),
        ),
        # Synchronisation.
        _mutant(
            "sync-drops-common",
            "A synchronisation drops what the server has in common with the leader.",
            "synchronise",
            without("the common part with the initial transactions stays"),
        ),
        _mutant(
            "acks-survive-truncation",
            "An acknowledgement counts after the transaction was truncated.",
            "synchronise",
            without("acknowledged transactions of the reign stay"),
        ),
        _mutant(
            "synchronised-after-promise",
            "A server writes what a leader sends after it accepted a later epoch.",
            "synchronise",
            without(_NO_LATER),
        ),
        _mutant(
            "epoch-before-log",
            "currentEpoch is written before the log (ZOOKEEPER-4643).",
            "enter",
            without(_ON_DISK),
            unwritten("entered", "acked"),
        ),
        _mutant("epoch-not-written", "NEWLEADER is acknowledged without currentEpoch.", "enter", unwritten("current")),
        _mutant(
            "newleader-acked-before-log",
            "NEWLEADER is acknowledged before the log is on disk (ZOOKEEPER-4646).",
            "enter",
            without(_ON_DISK),
        ),
        # Broadcast.
        _mutant(
            "zxid-used-again",
            "A leader gives one zxid to two transactions.",
            "propose",
            without("the zxid is higher than all before"),
        ),
        _mutant("foreign-epoch", "A proposal has another epoch's zxid.", "propose", without("the zxid has its epoch")),
        _mutant(
            "ack-before-newleader",
            "A proposal is acknowledged before the epoch is entered.",
            "ack",
            without("the server has entered the epoch"),
        ),
        ZabMutant(
            "ack-after-promise",
            "A proposal is acknowledged after a later epoch was accepted.",
            "ack",
            {"ack": without(_NO_LATER), "synchronise": without(_NO_LATER)},
        ),
        _mutant(
            "ack-without-log",
            "A proposal is acknowledged before it is on disk.",
            "ack",
            without("the transaction is on disk"),
        ),
        _mutant(
            "truncates-committed",
            "A leader voids acknowledgements of what it committed.",
            "void_acks",
            without("transactions committed with the server stay"),
        ),
        _mutant(
            "served-before-quorum",
            "A leader serves before a quorum has acknowledged NEWLEADER.",
            "serve",
            without("all its servers have acknowledged NEWLEADER"),
        ),
        _mutant(
            "commit-before-quorum",
            "A transaction is committed before a quorum has acknowledged it.",
            "commit",
            without("all its servers have acknowledged it"),
        ),
        # Disks that forget.
        ZabMutant("accepted-epoch-lost", "A crash loses acceptedEpoch.", "lose_accepted", {"lose_accepted": _same}),
        ZabMutant("current-epoch-lost", "A crash loses currentEpoch.", "lose_current", {"lose_current": _same}),
        ZabMutant("log-lost", "A crash loses the end of a log.", "lose_log", {"lose_log": _same}),
        ZabMutant(
            "proposal-logged-behind-a-gap",
            "A server logs a proposal, though one before it is missing.",
            "append_any",
            {"append_any": _same},
        ),
    )
}
"""The mutants, by name."""
