"""The request to the planner, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import factorial

from checker.command import ExitCode
from checker.rollout.claims import Claim, verdict_of
from checker.rollout.disks import DiskRemedy, Disks, with_lost_volumes
from checker.rollout.files.differences import Interruption, same_files
from checker.rollout.inputs.folders import Folder
from checker.rollout.order_proof import StageCondition, condition_between
from checker.rollout.reconfig.answers import ReconfigAnswer, RouteAnswer
from checker.rollout.route import PlanRoute
from checker.rollout.runs import RunResult, SafetyVerdict, worst_verdict
from checker.rollout.scenarios import Question, ReleaseChange
from checker.rollout.steps import Way, left_out, steps_of, way_of
from spec.quorum import Sid
from spec.variants import Variant

DIRECT = "direct"


@dataclass(frozen=True)
class PlanRequest:
    """The request: two folders, and optionally an order, a leader, faults, a budget in seconds, stopped servers.

    With `in_one_go` no stages are planned, so the verdict is the verdict on the direct change. With `explored` a change
    is explored even if nothing that is modelled changes. `now` is the state of an interrupted roll-out. With
    `leads_now` the leader is the one that a live ensemble has, and not one that the user asks about. `how` is the way
    of working that is judged. Without it the way of the platform is judged, if an input states it, and every way is
    compared, unless the roll-out was interrupted. `disks` are the first disks of some servers, where these are
    not their own; servers whose volumes are lost at a restart are added to them. `releases` are the releases that the
    servers run. With `at_step` a new file is copied to its server at its step; else it may lie ready before.
    """

    old: Folder
    new: Folder
    order: tuple[Sid, ...] | None = None
    leader: Sid | None = None
    faults: int = 1
    seconds: float = 60.0
    down: frozenset[Sid] = frozenset()
    in_one_go: bool = False
    explored: bool = False
    now: Interruption | None = None
    leads_now: bool = False
    how: Way | None = None
    disks: Disks = field(default_factory=dict)
    releases: ReleaseChange | None = None
    at_step: bool = False

    def __post_init__(self) -> None:
        """Add the servers that restart with an empty disk, since their volumes are lost with their pods."""
        old, new = self.old, self.new
        applied = frozenset() if self.now is None else self.now.applied
        # Where the two files of a server are equal, its file does not say whether it was restarted.
        spared = {*self.down, *(sid for sid in applied if not same_files(old.servers.get(sid), new.servers.get(sid)))}
        if self.order is not None:
            spared |= new.servers.keys() - set(self.order)
        object.__setattr__(self, "disks", with_lost_volumes(old, new, self.disks, spared))

    @property
    def way(self) -> Way:
        """The way of working that the plan follows. A given order is followed by a person, unless `how` says else."""
        if self.how is None and self.order is None:
            return self.platform or Way.ONE_BY_ONE
        return self.how or Way.ONE_BY_ONE

    @property
    def platform(self) -> Way | None:
        """The way of the platform, if an input states it."""
        return way_of(self.new.working) or way_of(self.old.working)

    @property
    def answers_for_every_way(self) -> bool:
        """Whether the verdict is one on every way of working: nothing says how the change in one go is applied."""
        return self.in_one_go and self.how is None and self.platform is None

    @property
    def is_plain(self) -> bool:
        """Whether the user names neither an order nor a leader, nor stopped servers, and demands no run.

        An upgrade restarts every server, so it is not plain.
        """
        no_leader = self.leader is None or self.leads_now
        upgrade = self.releases is not None and self.releases.is_upgrade
        return self.order is None and no_leader and not self.down and not self.explored and not upgrade


@dataclass(frozen=True)
class ReleaseAnswer:
    """Whether the steps of a plan lose an acknowledged write by a known defect of their releases.

    The other answers of a plan are about the protocol as it is specified. The routes are those of the plan, asked about
    clients that write during the steps (DEFECTS), and about clients that are quiet (QUIET_DEFECTS). `culprits` are the
    defects that lose a write in the run of `finding` if every server has that defect and no other. `staying` is the run
    of `finding` where the old release stays.
    """

    change: ReleaseChange
    routes: tuple[PlanRoute, ...]
    culprits: tuple[Variant, ...] = ()
    staying: RunResult | None = None

    def runs_about(self, question: Question) -> tuple[RunResult, ...]:
        """The runs about a question, of all routes."""
        return tuple(result for route in self.routes for result in route.runs if result.spec.question is question)

    def claims(self, question: Question, *, faulty: bool = True) -> tuple[Claim, ...]:
        """The claims about a question that runs speak of: without faults, and under them if `faulty`."""
        runs = self.runs_about(question)
        asked = {bool(result.spec.faults) for result in runs} & {False, faulty}
        return tuple(
            claim
            for route in self.routes
            for claim in route.claims
            if claim.question is question and bool(claim.faults) in asked
        )

    def verdict(self, question: Question = Question.DEFECTS, *, faulty: bool = True) -> SafetyVerdict:
        """The verdict on a question."""
        return verdict_of(self.claims(question, faulty=faulty))

    @property
    def is_safe_if_quiet(self) -> bool:
        """Whether no defect loses a write without a fault while nothing is written."""
        return self.verdict(Question.QUIET_DEFECTS, faulty=False) is SafetyVerdict.SAFE

    @property
    def finding(self) -> RunResult | None:
        """The run that loses a write while a client writes."""
        runs = self.runs_about(Question.DEFECTS)
        return next((result for result in runs if result.outcome is SafetyVerdict.UNSAFE), None)

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """All runs."""
        asked = (*self.runs_about(Question.DEFECTS), *self.runs_about(Question.QUIET_DEFECTS))
        return (*asked, *([self.staying] if self.staying else []))


@dataclass
class Plan:
    """The result. `direct` is the change in one go; `stages` exist if it is not safe and the request has no order.

    After an interruption `direct` is the rest of the change, and `back` the way back to the old files.
    `tried` is the number of orders of the whole change that were run, `unsafe` how many of these are unsafe, and
    `orders` the number of all orders. `ways` has the verdict on the change in one go for each way of working, unless
    the request names one, and `remedies` the safe ways instead of a start with a given disk. `releases` is the answer
    about the releases of the request, `by_reconfig` the change by `reconfig` beside the restarts.
    `depends_on_memory`: the free memory of the machine has ended a run, which may be one that the plan does not show.
    """

    request: PlanRequest
    direct: PlanRoute
    stages: list[PlanRoute] = field(default_factory=list)
    back: PlanRoute | None = None
    tried: int = 0
    unsafe: int = 0
    notes: list[str] = field(default_factory=list)
    ways: tuple[PlanRoute, ...] = ()
    remedies: tuple[DiskRemedy, ...] = ()
    releases: ReleaseAnswer | None = None
    by_reconfig: ReconfigAnswer | None = None
    seconds: float = 0.0
    depends_on_memory: bool = False

    @property
    def orders(self) -> int:
        """The number of orders of the change in one go."""
        if self.request.way.has_one_order:
            return 1
        return factorial(len(self.direct.stage.remaining))

    @property
    def left_out(self) -> tuple[Sid, ...]:
        """The servers that should change but are missing from the given order."""
        if self.request.order is None:
            return ()
        out = left_out(self.direct.stage, steps_of(self.direct.stage, self.request.order))
        return tuple(sid for sid in out if sid not in self.request.down)

    @property
    def advised(self) -> list[PlanRoute]:
        """The stages that the plan recommends."""
        return self.stages or [self.direct]

    @property
    def checks_between(self) -> tuple[StageCondition | None, ...]:
        """The check of the operator before each recommended stage; None for the first one of a whole change.

        The verdict on a stage assumes that the ensemble is healthy when it begins, in every way of working.
        """
        (first, *stages), down = [part.stage for part in self.advised], self.request.down
        running = tuple(sorted(first.running - down))
        interrupted = self.request.now is not None and bool(first.remaining)
        check = StageCondition(1, running, renewed=False) if interrupted else None
        later = ((number, stage) for number, stage in enumerate(stages, start=1))
        return (check, *(condition_between([first, *stages][:number], stage, down) for number, stage in later))

    @property
    def outcome(self) -> SafetyVerdict:
        """The worst verdict of the recommended stages, by the protocol."""
        return worst_verdict(each.outcome for each in self.advised)

    @property
    def outcome_with_disks(self) -> SafetyVerdict:
        """The same if the disk of each server is moved to its new host."""
        return worst_verdict(each.outcome_with_disks for each in self.advised)

    @property
    def reconfig_route(self) -> RouteAnswer | None:
        """The route that the plan recommends; None if it recommends restarts."""
        return self.by_reconfig.advised if self.by_reconfig is not None and self.by_reconfig.is_preferred else None

    @property
    def verdict(self) -> SafetyVerdict:
        """The verdict on the recommended routes."""
        return worst_verdict(map(verdict_of, self.recommended.values()))

    @property
    def recommended(self) -> dict[str, tuple[Claim, ...]]:
        """The claims about the recommended routes: the one by `reconfig`, or else the restarts."""
        if self.reconfig_route is not None:
            return {self.reconfig_route.name: self.reconfig_route.claims}
        routes = {f"stage-{number}": part.claims for number, part in enumerate(self.stages, start=1)}
        routes = routes or {DIRECT: self.direct.claims}
        if self.releases is not None:
            routes["defects"] = self.releases.claims(Question.DEFECTS)
        return routes

    @property
    def table(self) -> dict[str, tuple[Claim, ...]]:
        """Every claim of the plan, by route; the recommended routes come first."""
        routes = {**self.recommended, DIRECT: self.direct.claims}
        routes |= {} if self.back is None else {"back": self.back.claims}
        routes |= {f"{DIRECT}/{part.way.value}": part.claims for part in self.ways}
        routes |= {route.name: route.claims for route in (self.by_reconfig.routes if self.by_reconfig else ())}
        if self.releases is not None:
            routes["quiet-defects"] = self.releases.claims(Question.QUIET_DEFECTS)
        return routes

    @property
    def depends_on_the_way(self) -> bool:
        """Whether nothing says how the change in one go is applied, and not every way is known to be safe."""
        if not self.request.answers_for_every_way or not self.direct.stage.remaining:
            return False
        return not self.ways or any(way.outcome is not SafetyVerdict.SAFE for way in self.ways)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command; 0 only if the whole change is safe without stages.

        A CI job applies the change that it was given. Safe stages, and commands, say nothing about that change, so they
        have another code. With `in_one_go` the change must be safe in every way of working, unless one is named. An
        incomplete order counts as undecided. The defects of the releases count, if the request names releases.
        """
        outcome = self.verdict
        if outcome is SafetyVerdict.UNSAFE:
            return ExitCode.SAFETY
        if outcome is SafetyVerdict.STALLS and not self.left_out:
            return ExitCode.LIVENESS
        if outcome is not SafetyVerdict.SAFE or self.left_out:
            return ExitCode.INCOMPLETE
        conditional = self.stages or self.reconfig_route is not None or self.depends_on_the_way
        return ExitCode.ONLY_IN_STAGES if conditional else ExitCode.PASSED

    @property
    def is_settled(self) -> bool:
        """Whether more work would not change the exit code, nor the verdict on the way back."""
        verdicts = [self.verdict, *([] if self.back is None else [self.back.outcome])]
        if self.ways and self.request.answers_for_every_way and self.verdict is SafetyVerdict.SAFE:
            verdicts.append(worst_verdict(way.outcome for way in self.ways))
        return SafetyVerdict.OPEN not in verdicts

    @property
    def judged(self) -> list[PlanRoute]:
        """Everything that was judged: the change in one go, its stages, and the way back."""
        return [self.direct, *self.stages, *([self.back] if self.back else [])]

    @property
    def runs(self) -> list[RunResult]:
        """All runs; the runs of the change in one go come first, those of reconfig and releases last."""
        of_stages = [result for stage in self.judged for result in stage.runs]
        of_releases = () if self.releases is None else self.releases.runs
        return [*of_stages, *(() if self.by_reconfig is None else self.by_reconfig.runs), *of_releases]
