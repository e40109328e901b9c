"""The verdict on a change by `reconfig`, for each route, and the comparison with the roll-out by restarts.

A change by `reconfig` is the commands of one route, in their order. Three budgets of faults are asked about: none; the
faults of the request; and a lost connection with one more fault, a partition or a crash for good, since the worst
defect of 3.9.5 needs these two.

Rules of this module:

- A verdict is derived from runs alone: UNSAFE if a run has a violation, SAFE if every run was explored to the end.
- A search about two faults that was not finished is shown, and does not count, unless the request has two faults. A
  violation in it counts.
- Of two ways the one with the better verdict is safer, then the one with the better verdict without faults. Where both
  are equal, `reconfig` is, if configurations have versions: restarts do not bring the change about then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from checker.rollout.claims import Claim, evidence_of, verdict_of
from checker.rollout.reconfig.commands import MembershipCommand, Refusal, RouteKind
from checker.rollout.reconfig.questions import FaultBudget
from checker.rollout.runs import RunResult, SafetyVerdict, worst_result
from checker.rollout.scenarios import Question
from checker.symbolic.disjoint import DisjointQuorums


@dataclass(frozen=True)
class CommandAnswer:
    """A command with its runs, by their budgets of faults.

    `disjoint` are quorums before and after it that do not meet; None if z3 has proved that all of them meet.
    """

    command: MembershipCommand
    disjoint: DisjointQuorums | None
    runs: Mapping[FaultBudget, tuple[RunResult, ...]]


@dataclass(frozen=True)
class RouteAnswer:
    """A route with the answer for each of its commands. `faults` are those of the request.

    `left_out` are the budgets with runs that were not made, since a violation had ended the search.
    """

    kind: RouteKind
    commands: tuple[CommandAnswer, ...]
    faults: int
    left_out: frozenset[FaultBudget] = frozenset()

    @property
    def name(self) -> str:
        """The name of the route in the table of claims."""
        return f"reconfig/{self.kind.value}"

    def claim(self, budget: FaultBudget) -> Claim:
        """The claim about a budget, by the runs of all commands.

        A search about two faults that was not finished does not count.
        """
        evidence = evidence_of(self.results(budget), whole=budget not in self.left_out)
        is_asked = budget is FaultBudget.NONE or (budget is FaultBudget.ASKED and self.faults > 0)
        faults = {FaultBudget.NONE: 0, FaultBudget.ASKED: self.faults, FaultBudget.PAIR: 2}[budget]
        return Claim(Question.COMMITS, faults, evidence, is_asked or evidence.outcome is SafetyVerdict.UNSAFE)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims about the route."""
        budgets = (budget for budget in FaultBudget if self.faults or budget is not FaultBudget.ASKED)
        return tuple(self.claim(budget) for budget in budgets)

    def verdict(self, budget: FaultBudget) -> SafetyVerdict:
        """The verdict of a budget: that of its worst command."""
        return self.claim(budget).evidence.outcome

    def results(self, budget: FaultBudget) -> list[RunResult]:
        """The runs of a budget, of all commands."""
        return [result for answer in self.commands for result in answer.runs[budget]]

    @property
    def outcome(self) -> SafetyVerdict:
        """The verdict on the route."""
        return verdict_of(self.claims)

    @property
    def quorums_meet(self) -> bool:
        """Whether z3 has proved for each command that every quorum before it meets every quorum after it."""
        return all(command.disjoint is None for command in self.commands)

    @property
    def finding(self) -> RunResult | None:
        """The violation with the fewest faults."""
        results = (result for budget in FaultBudget for result in self.results(budget))
        return worst_result(result for result in results if result.found is not None)


class Preference(Enum):
    """The safer way for a change."""

    RECONFIG = "reconfig"
    RESTARTS = "restarts"
    NEITHER = "neither"


class Ground(Enum):
    """The reason for a preference."""

    REFUSED = "refused"  # ZooKeeper refuses the commands, or they are not judged
    BETTER_VERDICT = "better verdict"
    BETTER_WITHOUT_FAULTS = "better without faults"
    BRINGS_IT_ABOUT = "brings it about"  # both have the same verdict, and restarts do not bring the change about
    BOTH_UNSAFE = "both unsafe"


@dataclass(frozen=True)
class WayVerdicts:
    """The verdict on a way, and the one without faults."""

    outcome: SafetyVerdict
    without_faults: SafetyVerdict

    @property
    def rank(self) -> tuple[int, int]:
        """A key that is greater for the safer way."""
        order = list(SafetyVerdict)
        return order.index(self.outcome), order.index(self.without_faults)


@dataclass(frozen=True)
class ReconfigAnswer:
    """The change by `reconfig`: its refusals, or else its routes, the one that is advised first.

    `restarts` are the verdicts on the roll-out by restarts.
    """

    refusals: tuple[Refusal, ...]
    routes: tuple[RouteAnswer, ...]
    restarts: WayVerdicts

    @property
    def advised(self) -> RouteAnswer | None:
        """The route to follow; None if `reconfig` is refused."""
        return self.routes[0] if self.routes else None

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """All runs."""
        return tuple(result for route in self.routes for budget in FaultBudget for result in route.results(budget))

    @property
    def comparison(self) -> tuple[Preference, Ground]:
        """The safer way, and the reason."""
        if self.advised is None:
            return Preference.RESTARTS, Ground.REFUSED
        mine = WayVerdicts(self.advised.outcome, self.advised.verdict(FaultBudget.NONE))
        if mine.outcome is self.restarts.outcome is SafetyVerdict.UNSAFE:
            return Preference.NEITHER, Ground.BOTH_UNSAFE
        if mine.rank == self.restarts.rank:
            return Preference.RECONFIG, Ground.BRINGS_IT_ABOUT
        better = Preference.RECONFIG if mine.rank > self.restarts.rank else Preference.RESTARTS
        same = mine.outcome is self.restarts.outcome
        return better, Ground.BETTER_WITHOUT_FAULTS if same else Ground.BETTER_VERDICT

    @property
    def is_preferred(self) -> bool:
        """Whether `reconfig` is the safer way."""
        return self.comparison[0] is Preference.RECONFIG


def in_order(routes: Iterable[RouteAnswer]) -> tuple[RouteAnswer, ...]:
    """The routes, the safest first: by the verdict, then without faults, then under two faults, then by their quorums.

    Of equal routes the first one stays first.
    """
    return tuple(sorted(routes, key=_rank, reverse=True))


def _rank(route: RouteAnswer) -> tuple[int, ...]:
    order = list(SafetyVerdict)
    verdicts = (route.outcome, route.verdict(FaultBudget.NONE), route.verdict(FaultBudget.PAIR))
    return (*map(order.index, verdicts), int(route.quorums_meet))
