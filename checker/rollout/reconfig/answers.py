"""The questions about a change by `reconfig`, the verdict on each route, and the comparison with restarts.

A change by `reconfig` is the commands of one route, in their order. Three budgets of faults are asked about: none; the
faults of the request; and a lost connection with one more fault, a partition or a crash for good, since the worst
defect of 3.9.5 needs these two.

Rules of this module:

- A verdict is derived from runs alone: UNSAFE if a run has a violation, SAFE if every run was explored to the end.
- A search about two faults that was not finished is shown, and does not count, unless the request has two faults. A
  violation in it counts.
- Of two ways the one with the better verdict is safer, then the one with the better verdict without faults. Where both
  are equal, `reconfig` is, if configurations have versions: restarts do not bring the change about then.

A question about a command has its defects, its joiners, and a healthy ensemble before it:

- The members begin with one versioned configuration, as servers write it after their first election. A joiner has its
  own dynamic file, and has followed the leader before the command.
- The client asks at any time, and does not wait for the commit: the end of the command is explored with everything that
  may come between. A server that leaves goes on to run; its stop would be one more crash.
- Whether all servers settle is not asked: a removed server that is still running looks for a leader here, and really
  tries its designated leader again.
- Small runs come first. A run without a write is a part of the run with one: it finds a violation sooner, and settles
  nothing else. There are as many elections as faults, and one without a fault.
- The first leader is the voter with the highest id that stays a voter. A command that takes the vote of some voter is
  also explored with such a voter as the leader, since the leadership is handed over then. Other leaders differ from
  these by their ids alone.
- Of two faults, a crash is for good: the server does not return. With its return the space is several times as large.
- The route in one command is searched for a violation under two faults first, as that is the danger of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from checker.rollout.assessor import splits
from checker.rollout.claims import Claim, evidence_of, verdict_of
from checker.rollout.config_state import ConfigState
from checker.rollout.inputs.folders import ServerText
from checker.rollout.reconfig.commands import MembershipCommand, Refusal, RouteKind, with_role
from checker.rollout.runs import RunResult, SafetyVerdict, worst_result
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, SAFE_DATA, Question, RunSpec
from checker.rollout.stages import Stage
from checker.symbolic.disjoint import DisjointQuorums
from spec.quorum import Sid, View
from spec.releases import RELEASES, defects_of
from spec.variants import Area, of_area

DEFECTS = tuple(each for each in defects_of(RELEASES[-1]) if each in of_area(Area.RECONFIGURATION))
"""The defects of reconfiguration of the newest release. No release has fixed one of them."""
SETTINGS = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nreconfigEnabled=true\nstandaloneEnabled=false\n"
FIRST_VERSION = 1 << 32
"""The version that the leader of the first epoch gives to the configuration of the files."""


FAULT_KINDS = (DISCONNECTS, PARTITIONS, CRASHES)
PAIRS: tuple[dict[str, int], ...] = ({DISCONNECTS: 1, PARTITIONS: 1}, {DISCONNECTS: 1, CRASHES: 1})


class FaultBudget(Enum):
    """The faults of a run, by kind of question."""

    NONE = "without a fault"
    ASKED = "with the faults of the request"
    PAIR = "with a lost connection and one more fault"


@dataclass(frozen=True)
class ReconfigSpec(RunSpec):
    """A question about a command: `stage` has the members before and after it, with files that are written here."""

    command: MembershipCommand | None = None
    budget: FaultBudget = FaultBudget.NONE

    @property
    def name(self) -> str:
        """The name of the run and of its files."""
        words = f"reconfig from {_ids(self._command.before)} to {_ids(self._command.after)}"
        first = f"{self.leader} leads first"
        return ", ".join((words, f"{self.writes} write{'s' * (self.writes != 1)}", first, self.under or "no fault"))

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The files of the scenario by their names."""
        joiners = (_joiner(self._command, sid) for sid in self._command.joiners)
        return {**self.stage.old.texts, **{name: text for joiner in joiners for name, text in joiner.items()}}

    @property
    def _command(self) -> MembershipCommand:
        assert self.command is not None
        return self.command

    def _scenario(self) -> dict[str, object]:
        command, change, files = self._command, self._command.change, self.stage.old.files
        keys = {"add": change.voters, "observers": change.observers, "remove": change.leaving}
        servers = {
            sid: {"file": files.get(sid, f"joiner-{sid}.cfg"), **({"epoch": 1} if sid == self.leader else {})}
            for sid in sorted((*command.before.members, *command.joiners))
        }
        return {
            "name": self.name,
            "servers": servers,
            "history": [{"start": sorted(sids)} for sids in (command.before.members, command.joiners) if sids],
            "plan": [{"reconfig": {key: sorted(sids) for key, sids in keys.items() if sids}}],
            **self._model(by_messages=False, late=False),
        }


def stage_of(command: MembershipCommand) -> Stage:
    """The members before and after a command, with the files that the servers write themselves."""
    before = _state(_label(command.before), command, command.before, FIRST_VERSION)
    after = _state(_label(command.after), command, command.after, FIRST_VERSION + 1)
    return Stage(before, after, f"reconfig: {_ids(command.before)} to {_ids(command.after)}")


def _state(label: str, command: MembershipCommand, view: View, version: int) -> ConfigState:
    name = f"{label}.cfg.dynamic.{version:x}"
    text, reader = f"{SETTINGS}dynamicConfigFile={name}\n", {name: _members(command, view)}.get
    members = sorted(view.members)
    return ConfigState(
        label, {sid: ServerText(sid, f"{label}.cfg", text, reader).parsed() for sid in members}, given=False
    )


def _members(command: MembershipCommand, view: View) -> str:
    """The lines of a dynamic file, each server with its role in the view."""
    lines = {sid: with_role(command.lines[sid], sid in view.observers) for sid in sorted(view.members)}
    return "".join(f"server.{sid}={line}\n" for sid, line in lines.items())


def _joiner(command: MembershipCommand, sid: Sid) -> dict[str, str]:
    """The two files of a joiner, by their names."""
    dynamic = _members(command, command.before) + f"server.{sid}={command.lines[sid]}\n"
    return {
        f"joiner-{sid}.cfg": f"{SETTINGS}dynamicConfigFile=joiner-{sid}.cfg.dynamic\n",
        f"joiner-{sid}.cfg.dynamic": dynamic,
    }


def _label(view: View) -> str:
    """A name of the state and its files, such as `members-1-2-3` or `members-1-2-3-observers-4`."""
    observers = ("observers", *sorted(view.observers)) if view.observers else ()
    return "-".join(map(str, ("members", *sorted(view.voters), *observers)))


def _ids(view: View) -> str:
    """`1, 2, 3` or `1, 2, 3 + observer 4`, in braces."""
    voters, observers = (", ".join(map(str, sorted(members))) for members in (view.voters, view.observers))
    return f"{{{voters}{f' + observer {observers}' if observers else ''}}}"


def specs_of(kind: RouteKind, commands: tuple[MembershipCommand, ...], faults: int) -> list[ReconfigSpec]:
    """The questions in the order of the search: for each size one for each command and each kind of first leader."""
    return sorted(_specs(kind, commands, faults), key=lambda spec: _turn(kind, spec))


def _specs(kind: RouteKind, commands: tuple[MembershipCommand, ...], faults: int) -> Iterator[ReconfigSpec]:
    together = kind is RouteKind.AT_ONCE
    plain = [(FaultBudget.NONE, dict[str, int](), 1)]
    splits_asked = [(FaultBudget.ASKED, split, 1) for split in splits(faults, FAULT_KINDS)]
    pairs = [(FaultBudget.PAIR, pair, writes) for writes in ((0, 1) if together else (1,)) for pair in PAIRS]
    for budget, counts, writes in (*plain, *pairs, *splits_asked) if together else (*plain, *splits_asked, *pairs):
        for command in commands:
            for leader in leaders_of(command):
                yield ReconfigSpec(
                    stage_of(command), (), leader, Question.COMMITS if writes else Question.ELECTION, counts,
                    writes=writes, elections=max(1, sum(counts.values())), always=SAFE_DATA, variants=DEFECTS,
                    command=command, budget=budget, returns=budget is not FaultBudget.PAIR,
                )  # fmt: skip


def _turn(kind: RouteKind, spec: ReconfigSpec) -> tuple[bool, bool]:
    """A key for the order of the runs: what need not be finished comes last, and before it the hand-overs."""
    if kind is RouteKind.AT_ONCE:
        return False, _hands_over(spec)
    return spec.budget is FaultBudget.PAIR, bool(spec.faults) and _hands_over(spec)


def _hands_over(spec: ReconfigSpec) -> bool:
    """Whether the first leader loses its vote. These spaces are the largest, so they come last."""
    return spec.command is not None and spec.leader not in spec.command.after.voters


def leaders_of(command: MembershipCommand) -> tuple[Sid, ...]:
    """The first leaders that are explored: a voter that stays one, and one that does not, if there are such voters."""
    before, after = command.before.voters, command.after.voters
    kinds = (before & after, before - after)
    return tuple(max(sids) for sids in kinds if sids)


@dataclass(frozen=True)
class CommandAnswer:
    """A command with its runs, by their budgets of faults.

    `disjoint` are quorums before and after it that do not meet; None if all of them meet.
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
        """Whether it is proved for each command that every quorum before it meets every quorum after it."""
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


@dataclass(frozen=True, order=True)
class WayVerdicts:
    """The verdict on a way, and the one without faults; greater for the safer way."""

    outcome: SafetyVerdict
    without_faults: SafetyVerdict


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
        if mine == self.restarts:
            return Preference.RECONFIG, Ground.BRINGS_IT_ABOUT
        better = Preference.RECONFIG if mine > self.restarts else Preference.RESTARTS
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


def _rank(route: RouteAnswer) -> tuple[SafetyVerdict, SafetyVerdict, SafetyVerdict, bool]:
    return route.outcome, route.verdict(FaultBudget.NONE), route.verdict(FaultBudget.PAIR), route.quorums_meet
