"""The request to the planner, and its result; and the state after a step that fails, with both directions: on and back.

A step fails if its server does not serve afterwards. The steps before it are done, the steps after it are not. To go
on, the server starts with its new file, and the plan continues. To go back, it starts with its old file, and the steps
before are undone in reverse order.

Rules of this module: it explores nothing, and it claims nothing that was not computed.

- A proof about quorums holds for every mixture of old and new files and for any faults. So it covers both directions.
- The proof of an order covers the way on, if the operator keeps its conditions before the steps that follow. It covers
  the way back until the order begins another stage of the theorem: until then every server may have either file.
- No proof covers lost, old or foreign disks, unless they are harmless, nor of the defects of a release. Where
  the request names such disks, they are one more question. Where it names releases, the way on is SAFE only if the runs
  about their defects have a crash and lose nothing, and the way back was not run.
- Runs with a crash cover the way on: the server crashes at any time and starts again with its old or its new file. Such
  runs do not cover the way back.
- Where addresses change neither direction is SAFE: two machines may have a disk with one id.
- A fact about files may stop the way back. It is the answer then, whatever a proof says about leaders and commits.
- Both are statements about leaders and commits. No run about healing starts in such a state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import factorial

from checker.command import ExitCode
from checker.rollout.claims import Claim, Evidence, Reason, verdict_of, worst_of
from checker.rollout.disks import DiskRemedy, Disks, with_lost_volumes
from checker.rollout.files.differences import Interruption, same_files
from checker.rollout.inputs.folders import Folder
from checker.rollout.order_proof import StageCondition, condition_between
from checker.rollout.orders import (
    RESTART,
    START,
    STOP,
    ServerStep,
    Steps,
    Way,
    has_quorum,
    left_out,
    servers_after,
    steps_of,
    way_of,
)
from checker.rollout.reconfig.answers import ReconfigAnswer, RouteAnswer
from checker.rollout.route_verdict import SAFETY, Order, PlanRoute
from checker.rollout.runs import RunResult, SafetyVerdict, worst_verdict
from checker.rollout.scenarios import CRASHES, Question, ReleaseChange
from checker.rollout.stages import Stage, reverse
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
        kinds = {bool(result.spec.faults) for result in runs} & {False, faulty}
        return tuple(
            claim
            for route in self.routes
            for claim in route.claims
            if claim.question is question and bool(claim.faults) in kinds
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
        results = (*self.runs_about(Question.DEFECTS), *self.runs_about(Question.QUIET_DEFECTS))
        return (*results, *([self.staying] if self.staying else []))


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
        running = tuple(sorted(first.running - down - first.looking))
        interrupted = self.request.now is not None and bool(first.remaining)
        check = StageCondition(1, running, renewed=False) if interrupted else None
        later = ((number, stage) for number, stage in enumerate(stages, start=1))
        return (check, *(condition_between([first, *stages][:number], stage, down) for number, stage in later))

    @property
    def outcome(self) -> SafetyVerdict:
        """The worst verdict of the recommended stages, by the protocol."""
        return worst_verdict(route.outcome for route in self.advised)

    @property
    def outcome_with_disks(self) -> SafetyVerdict:
        """The same if the disk of each server is moved to its new host."""
        return worst_verdict(route.outcome_with_disks for route in self.advised)

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


WITH_DISKS = (*SAFETY, Question.GIVEN_DISKS)  # the last one is asked only if the request names disks


@dataclass(frozen=True)
class Failure:
    """The state after a failed step. The server of the step is in neither `new` nor `old`, and does not serve.

    `new` and `old` are the other running servers by their files. `serves`: whether they have a quorum without it.
    `undo` are the steps that lead back, the failed server first.
    """

    number: int
    step: ServerStep
    new: tuple[Sid, ...]
    old: tuple[Sid, ...]
    serves: bool
    going_on: Evidence
    going_back: Evidence
    undo: Steps


def failures(
    route: PlanRoute,
    order: Order,
    down: frozenset[Sid] = frozenset(),
    releases: ReleaseAnswer | None = None,
) -> tuple[Failure, ...]:
    """The state after each step of an order, if that step fails; `releases` is the answer about the releases."""
    stage, rows, proof = route.stage, [], _by_proof(route)
    for number, step in enumerate(order.steps, start=1):
        earlier = order.steps[: number - 1]
        running, started = servers_after(stage, earlier, down | {step.sid})
        new, old = running & started, running - started
        serves = has_quorum(stage, running, started)
        on = _going_on(route, order, number, releases, proof)
        back = _going_back(route, order, number, releases, proof)
        undo = _undone(stage, order.leader, (*earlier, step))
        rows.append(Failure(number, step, tuple(sorted(new)), tuple(sorted(old)), serves, on, back, undo))
    return tuple(rows)


def _undone(stage: Stage, leader: Sid, steps: Sequence[ServerStep]) -> Steps:
    """The opposite of each step, the last one first.

    A server with its old file does not follow a leader that has no vote by that file. Such a server may lead once the
    leader was restarted, as long as the servers with new files are a quorum. No wait ends for certain meanwhile.
    """
    opposite = {START: STOP, STOP: START, RESTART: RESTART}
    gained = stage.new.view.voters - stage.old.view.voters if leader in {step.sid for step in steps} else frozenset()
    undone = []
    for place, step in reversed([*enumerate(steps)]):
        renewed = stage.renewed | {earlier.sid for earlier in steps[:place] if earlier.action != STOP}
        foreign = bool(gained & renewed) and stage.new.view.contains_quorum(renewed)
        undone.append(ServerStep(opposite[step.action], step.sid, wait=not foreign))
    return tuple(undone)


def _by_proof(route: PlanRoute) -> Reason | None:
    """PROVED if a proof covers every mixture of files and the given disks, or PROVED_IN_ORDER, or None."""
    reasons = {claim.evidence.reason for claim in route.claims if claim.question in WITH_DISKS}
    if route.stage.readdressed:
        return None
    if reasons == {Reason.PROVED_IN_ORDER} and not route.disks:
        return Reason.PROVED_IN_ORDER
    covered = reasons == {Reason.PROVED} and route.proved and not route.stage.gossips
    return Reason.PROVED if covered else None


def _going_on(
    route: PlanRoute, order: Order, number: int, releases: ReleaseAnswer | None, proof: Reason | None
) -> Evidence:
    """The way on after a step, by its number. A server that fails is a crash in the runs about releases."""
    evidence = _going_on_by_protocol(route, order, number, proof)
    if releases is None or not releases.change.defects or evidence.outcome is not SafetyVerdict.SAFE:
        return evidence
    outcome, runs = releases.verdict(), releases.runs_about(Question.DEFECTS)
    if outcome is SafetyVerdict.UNSAFE:
        return Evidence(SafetyVerdict.UNSAFE, Reason.DEFECTS)
    if outcome is SafetyVerdict.SAFE and any(result.spec.faults.get(CRASHES) for result in runs):
        return evidence
    return Evidence(SafetyVerdict.OPEN, Reason.DEFECTS_NOT_EXPLORED)


def _going_on_by_protocol(route: PlanRoute, order: Order, number: int, proof: Reason | None) -> Evidence:
    if proof is Reason.PROVED:
        return Evidence(SafetyVerdict.SAFE, proof)
    if proof is Reason.PROVED_IN_ORDER and (in_order := route.order_proof(order)) is not None:
        later = tuple(condition for condition in in_order.conditions if condition.step > number)
        return Evidence(SafetyVerdict.SAFE, proof, conditions=later)
    claims = [claim for claim in route.claims if claim.question in WITH_DISKS]
    if claims and (worst := worst_of(claims)).outcome is not SafetyVerdict.SAFE:
        return worst
    if route.stage.readdressed:
        return Evidence(SafetyVerdict.OPEN, Reason.TWO_DISKS)
    crashed = {
        result.spec.question
        for result in route.runs
        if (result.spec.leader, result.spec.steps) == (order.leader, order.steps)
        and result.spec.faults.get(CRASHES)
        and result.outcome is SafetyVerdict.SAFE
    }
    if crashed.issuperset(claim.question for claim in claims):
        return Evidence(SafetyVerdict.SAFE, Reason.CRASH_EXPLORED)
    return Evidence(SafetyVerdict.OPEN, Reason.NO_CRASH_EXPLORED)


def _going_back(
    route: PlanRoute, order: Order, number: int, releases: ReleaseAnswer | None, proof: Reason | None
) -> Evidence:
    """The way back after a step, by its number. No run about a release covers it."""
    changed = frozenset(step.sid for step in order.steps[:number])
    midway = replace(route.stage, applied=route.stage.applied | changed)
    for _, fact in replace(route.blank, stage=reverse(midway), disks={}).facts():
        # A server without `reconfigEnabled` follows the first leader, which has its old file: seen on 3.9.5.
        if fact.outcome is SafetyVerdict.STALLS and (fact.reason is not Reason.RECONFIG_OFF or order.leader in changed):
            return fact
    in_order = route.order_proof(order) if proof is Reason.PROVED_IN_ORDER else None
    if proof is not Reason.PROVED and (in_order is None or not in_order.covers_way_back(route.stage.old.view, number)):
        return Evidence(SafetyVerdict.OPEN, Reason.TWO_DISKS if route.stage.readdressed else Reason.BACK_NOT_EXPLORED)
    if releases is not None and releases.change.defects:
        return Evidence(SafetyVerdict.OPEN, Reason.DEFECTS_NOT_EXPLORED)
    return Evidence(SafetyVerdict.SAFE, Reason.PROVED if in_order is None else Reason.PROVED_IN_ORDER)
