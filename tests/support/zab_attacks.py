"""The scripts of runs that must exist: witnesses that the system does something, and attacks by a mutant.

An attack ends in a state that breaks a theorem. z3 finds its parameters in a small world, mostly of three servers with
majorities. The same script without the mistake has no such run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from z3 import And, BoolVal, Not

from checker.symbolic.zab import premises
from checker.symbolic.zab.invariant import THEOREMS
from checker.symbolic.zab.premises import Premise
from checker.symbolic.zab.proof import THREE_SERVERS, Goal, ScriptedRun, majorities, run
from checker.symbolic.zab.system import AbstractZab, Formula, ZabState
from tests.support.zab_mutants import MUTANTS

World = Callable[[AbstractZab], list[Formula]]


@dataclass(frozen=True)
class WitnessScript:
    """A run that must exist: its actions, the premise, the world, and what holds at its end."""

    sentence: str
    actions: tuple[str, ...]
    goal: Goal
    premise: Premise = Premise.VIEWS
    world: World = majorities
    sizes: Mapping[str, int] | None = None

    def look(self) -> ScriptedRun:
        """Look for the run."""
        return run(
            self.actions,
            premises.actions(self.premise),
            self.goal,
            premise=self.premise,
            sizes=self.sizes or THREE_SERVERS,
            world=self.world,
        )


@dataclass(frozen=True)
class AttackScript:
    """A run with a mutant that ends by breaking a theorem."""

    mutant: str
    actions: tuple[str, ...]
    theorem: str = "leader_completeness"
    sizes: Mapping[str, int] | None = None
    world: World = majorities

    def look(self, *, mistaken: bool = True) -> ScriptedRun:
        """Look for the run, with the mistake or without it."""
        mutant = MUTANTS[self.mutant]
        actions = mutant.actions()
        if not mistaken:
            actions |= premises.actions(mutant.premise)
        theorem = next(each for each in THEOREMS if each.name == self.theorem)
        return run(
            self.actions,
            actions,
            lambda z, s: Not(theorem.formula(z, s)),
            premise=mutant.premise,
            dropped=mutant.dropped if mistaken else (),
            sizes=self.sizes or THREE_SERVERS,
            world=self.world,
        )


def no_world(_: AbstractZab) -> list[Formula]:
    """Any quorums that the premise admits."""
    return []


def three_to_five(*stages: int) -> World:
    """Servers 1 to 3 grow to 5; 4 is first started in stage 1, and 5 in stage 2. `stages` are those of the reigns.

    Stage 0 has the old file, in which a quorum is {1, 2}; stages 1 and 2 have the new one, with {1, 2, 4} and
    {3, 4, 5}. Only the quorums that a run uses are listed.
    """

    def facts(z: AbstractZab) -> list[Formula]:
        nodes, quorums, reigns = (z.universe.elements[sort] for sort in ("node", "quorum", "reign"))
        members = ({0, 1}, {0, 1, 3}, {2, 3, 4})
        found = [z.member(n, q) == BoolVal(i in members[j]) for i, n in enumerate(nodes) for j, q in enumerate(quorums)]
        found += [z.first_run(n) == {3: 1, 4: 2}.get(i, 0) for i, n in enumerate(nodes)]
        for r, stage in zip(reigns[1:], stages, strict=True):
            found.append(z.stage(r) == stage)
            found += [z.commits(r, q) == BoolVal((j == 0) == (stage == 0)) for j, q in enumerate(quorums)]
        return [*found, *(Not(z.commits(reigns[0], q)) for q in quorums)]

    return facts


BEGIN = ("begin", "promise", "establish")
ENTER = ("synchronise", "enter")
LOG = ("synchronise", "ack")
COMMIT = (*BEGIN, *ENTER, *ENTER, "propose", *LOG, *LOG, "commit")
LOSE = (*COMMIT, *BEGIN)
FOUR_REIGNS = {"node": 3, "quorum": 3, "reign": 4, "txn": 1}
FIVE_REIGNS = {"node": 3, "quorum": 3, "reign": 5, "txn": 2}
ONE_TXN = {"node": 3, "quorum": 3, "reign": 3, "txn": 1}


def _is_committed(z: AbstractZab, s: ZabState, reign: int, txn: int) -> Formula:
    r, t = z.universe.elements["reign"][reign], z.universe.elements["txn"][txn]
    return z.some("quorum", lambda q: s.committed(r, t, q))


def _both_commit(z: AbstractZab, s: ZabState) -> Formula:
    return And(*(_is_committed(z, s, reign, txn) for reign, txn in ((1, 0), (2, 0), (2, 1))))


def _survives(z: AbstractZab, s: ZabState) -> Formula:
    """The third reign has the transaction that the first committed, and their quorums do not meet."""
    first, third = z.universe.elements["reign"][1], z.universe.elements["reign"][3]
    apart = Not(z.meet(s.via(first), s.via(third)))
    return And(s.established(third), _is_committed(z, s, 1, 0), s.initial(third, z.universe.elements["txn"][0]), apart)


def in_stages(*stages: int) -> World:
    """The stages of the reigns, but the zero reign."""
    return lambda z: [z.stage(r) == stage for r, stage in zip(z.universe.elements["reign"][1:], stages, strict=True)]


WITNESSES: tuple[WitnessScript, ...] = (
    *(
        WitnessScript(
            f"Two reigns commit, and the second begins with the transaction of the first ({premise.name}).",
            (*BEGIN, *ENTER, *ENTER, "serve", "propose", *LOG, *LOG, "commit") * 2,
            _both_commit,
            premise,
        )
        for premise in (Premise.VIEWS, Premise.USED, Premise.SERVED)
    ),
    WitnessScript(
        "A roll-out of three stages: the last reign has the transaction of the first; their quorums do not meet.",
        (
            *(*BEGIN, *ENTER, "serve", "propose", *LOG, "commit", "raise_high"),
            *(*BEGIN, *ENTER, *ENTER, "serve", "raise_low", "raise_high", *BEGIN),
        ),
        _survives,
        Premise.STAGED,
        in_stages(0, 1, 2),
        {"node": 4, "quorum": 3, "reign": 4, "txn": 1},
    ),
    WitnessScript(
        "Three to five in the order 4, 1, 3, 2, 5: a quorum of 3, 4 and 5 has the transaction that 1 and 2 committed.",
        (
            *(*BEGIN, *ENTER, *ENTER, "serve", "propose", *LOG, *LOG, "commit", "raise_high"),
            *("begin", "promise", "promise", "establish", *ENTER, *ENTER, *ENTER, "serve", "raise_low", "raise_high"),
            *(*LOG[:1], "begin", "promise", "promise", "establish"),
        ),
        _survives,
        Premise.ONE_GO,
        three_to_five(0, 1, 2),
        {"node": 5, "quorum": 3, "reign": 4, "txn": 1},
    ),
)
"""Runs that show the abilities of the system."""

ATTACKS: dict[str, AttackScript] = {
    attack.mutant: attack
    for attack in (
        AttackScript(
            "views without: quorums of all views meet",
            BEGIN + BEGIN,
            "one_leader_an_epoch",
            {"node": 4, "quorum": 2, "reign": 3, "txn": 1},
            no_world,
        ),
        AttackScript(
            "used without: quorums that establish one epoch meet",
            BEGIN + BEGIN,
            "one_leader_an_epoch",
            {"node": 4, "quorum": 2, "reign": 3, "txn": 1},
            no_world,
        ),
        AttackScript(
            "used without: quorums that commit meet quorums that establish later",
            (*BEGIN, *ENTER, "propose", *LOG, "commit", *BEGIN),
            sizes={"node": 4, "quorum": 2, "reign": 3, "txn": 1},
            world=no_world,
        ),
        AttackScript("old-epoch-begun", BEGIN + BEGIN, "one_leader_an_epoch"),
        AttackScript("leader-does-not-accept", ("begin", "promise", "establish") * 2, "one_leader_an_epoch"),
        AttackScript(
            "minus-one-counted",
            ("begin", "begin", "promise", "promise", "establish", "establish"),
            "one_leader_an_epoch",
        ),
        AttackScript(
            "follower-does-not-accept",
            ("begin", "begin", "promise", "promise", "establish", "establish"),
            "one_leader_an_epoch",
        ),
        AttackScript("ahead-is-counted", LOSE, sizes=ONE_TXN),
        AttackScript(
            "last-zxid-not-compared",
            ("begin", "promise", "promise", "establish", *ENTER * 3, "propose", *LOG, *LOG, "commit", *BEGIN),
            sizes=ONE_TXN,
        ),
        AttackScript(
            "current-epoch-not-compared",
            (
                *(*BEGIN, *ENTER, "propose", "synchronise", *BEGIN, *ENTER, "propose", "synchronise"),
                *(*BEGIN, *ENTER, *ENTER, "serve", *BEGIN),
            ),
            sizes=FIVE_REIGNS,
        ),
        AttackScript("established-before-quorum", (*COMMIT, "begin", "establish"), sizes=ONE_TXN),
        AttackScript("sync-drops-common", (*COMMIT, *BEGIN, "synchronise", *BEGIN), sizes=FOUR_REIGNS),
        AttackScript(
            "acks-survive-truncation",
            (*BEGIN, *ENTER, *ENTER, "propose", *LOG, *LOG, "synchronise", "commit", *BEGIN),
            sizes=ONE_TXN,
        ),
        AttackScript("epoch-before-log", (*COMMIT, *BEGIN, "enter", *BEGIN), sizes=FOUR_REIGNS),
        AttackScript(
            "newleader-acked-before-log",
            (*BEGIN, *ENTER, "propose", "synchronise", *BEGIN, *ENTER, "enter", "serve", *BEGIN),
            sizes=FOUR_REIGNS,
        ),
        AttackScript(
            "zxid-used-again",
            (*BEGIN, *ENTER, *ENTER, "propose", *LOG, *LOG, "commit", "propose", *LOG, *LOG, "commit"),
            "agreement",
        ),
        AttackScript(
            "ack-without-log", (*BEGIN, *ENTER, *ENTER, "propose", "ack", "ack", "commit"), "durability", ONE_TXN
        ),
        AttackScript(
            "ack-after-promise",
            (*BEGIN, *ENTER, *ENTER, "propose", *LOG, "begin", "promise", "establish", *LOG, "commit"),
            sizes=ONE_TXN,
        ),
        AttackScript("truncates-committed", (*COMMIT, "void_acks", "synchronise", *BEGIN), sizes=ONE_TXN),
        AttackScript(
            "served-before-quorum",
            (*BEGIN, *ENTER, "propose", "synchronise", *BEGIN, "serve", *BEGIN),
            sizes=FOUR_REIGNS,
        ),
        AttackScript("commit-before-quorum", (*BEGIN, "propose", "commit", *BEGIN), sizes=ONE_TXN),
        AttackScript("accepted-epoch-lost", (*BEGIN, "lose_accepted", *BEGIN), "one_leader_an_epoch"),
        AttackScript("log-lost", (*COMMIT, "lose_log"), "durability", ONE_TXN),
        AttackScript(
            "current-epoch-lost",
            (
                *(*BEGIN, *ENTER, "propose", "synchronise", *BEGIN, *ENTER, *ENTER, "propose", *LOG, *LOG, "commit"),
                *("lose_current", "begin", "promise", "establish"),
            ),
            sizes=FOUR_REIGNS | {"txn": 2},
        ),
        AttackScript(
            "proposal-logged-behind-a-gap",
            (
                *("begin", "promise", "promise", "establish", *ENTER * 3, "propose", *LOG, *LOG, "commit"),
                *("propose", "append_any", "ack", *LOG, "commit"),
            ),
            "total_order",
        ),
        AttackScript(
            "base-meets-nothing",
            (*BEGIN, *ENTER, "propose", *LOG, "commit", *BEGIN),
            sizes={"node": 4, "quorum": 2, "reign": 3, "txn": 1},
            world=no_world,
        ),
        AttackScript(
            "base-has-not-served",
            (*BEGIN, *ENTER, "propose", *LOG, "commit", *BEGIN, *BEGIN),
            sizes={"node": 4, "quorum": 3, "reign": 4, "txn": 1},
            world=no_world,
        ),
        AttackScript(
            "epoch-not-written",
            (
                *(*BEGIN, *ENTER, "propose", "synchronise", *BEGIN, *ENTER, "propose", "synchronise"),
                *(*BEGIN, *ENTER, *ENTER, "serve", *BEGIN),
            ),
            sizes=FIVE_REIGNS,
        ),
        AttackScript(
            "ack-before-newleader",
            (*BEGIN, *ENTER, *BEGIN, "propose", *LOG, *LOG, "commit", *BEGIN),
            sizes=FOUR_REIGNS,
        ),
        AttackScript("synchronised-after-promise", (*BEGIN, *COMMIT, "synchronise"), "durability", ONE_TXN),
        *(
            AttackScript(
                name, BEGIN + BEGIN, "one_leader_an_epoch", {"node": 4, "quorum": 2, "reign": 3, "txn": 1}, no_world
            )
            for name in (
                "served without: quorums that establish one epoch meet",
                "staged without: quorums of neighbouring stages meet",
                "one_go without: running quorums of neighbouring stages meet",
            )
        ),
        AttackScript(
            "next-stage-before-all-have-this-one",
            (
                *(*BEGIN, *ENTER, "serve", "raise_high", *BEGIN, *ENTER, *ENTER, "serve", "raise_high"),
                *(*BEGIN, *ENTER, "propose", *LOG, "commit", *BEGIN),
            ),
            sizes={"node": 4, "quorum": 3, "reign": 5, "txn": 1},
            world=in_stages(0, 1, 2, 0),
        ),
        AttackScript(
            "no-wait-for-a-quorum",
            (
                *(*BEGIN, *ENTER, "serve", "raise_high", *BEGIN, *ENTER, *ENTER, "serve"),
                *(*BEGIN, *ENTER, "propose", *LOG, "commit", "raise_low", "raise_high", *BEGIN),
            ),
            sizes={"node": 4, "quorum": 3, "reign": 5, "txn": 1},
            world=in_stages(0, 1, 0, 2),
        ),
        AttackScript(
            "no-leader-before-the-last-start",
            (*COMMIT, "raise_high", "raise_low", "raise_high", "begin", "promise", "promise", "establish"),
            sizes={"node": 5, "quorum": 3, "reign": 4, "txn": 1},
            world=three_to_five(0, 1, 2),
        ),
        AttackScript(
            "promises-before-it-runs",
            (*COMMIT, "serve", "raise_high", "begin", "promise", "promise", "establish"),
            sizes={"node": 5, "quorum": 3, "reign": 4, "txn": 1},
            world=three_to_five(0, 1, 2),
        ),
        AttackScript(
            "others-still-lead",
            (
                *(*COMMIT, "serve", "raise_high", "begin", "promise", "begin", "promise", "promise", "establish"),
                *(*ENTER * 3, "serve", "raise_low", "raise_high", "promise", "establish"),
            ),
            sizes={"node": 5, "quorum": 3, "reign": 4, "txn": 1},
            world=three_to_five(0, 1, 1),
        ),
        AttackScript(
            "acknowledges-before-it-runs",
            (
                *(*BEGIN, *ENTER, *ENTER, "serve", "raise_high", "begin", *("promise",) * 3, "establish"),
                *(*ENTER, *ENTER, "propose", *LOG, *LOG, *BEGIN),
                *("begin", "promise", "promise", "establish", *ENTER * 3, "serve", "raise_low", "raise_high"),
                *("accept", *ENTER, *LOG, "commit"),
            ),
            sizes={"node": 5, "quorum": 3, "reign": 5, "txn": 1},
            world=three_to_five(0, 1, 0, 1),
        ),
        AttackScript(
            "foreign-epoch",
            (
                *(*BEGIN, *ENTER, "propose", "synchronise", *BEGIN, *ENTER, *ENTER, "propose", *LOG, *LOG, "commit"),
                *(*BEGIN, *ENTER, *ENTER, "propose", *LOG, *LOG, "commit"),
            ),
            "total_order",
            {"node": 3, "quorum": 3, "reign": 4, "txn": 2},
        ),
    )
}
"""An attack for a mutant, by the name of the mutant."""
