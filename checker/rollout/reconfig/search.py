"""The runs about a change by `reconfig`.

Rules of this module:

- Small runs come first. A run without a write is a part of the run with one: it finds a violation sooner, and settles
  nothing else. There are as many elections as faults, and one without a fault.
- The first leader is the voter with the highest id that stays a voter. A command that takes the vote of some voter is
  also explored with such a voter as the leader, since the leadership is handed over then. Other leaders differ from
  these by their ids alone.
- The first violation of a route ends its search: the route is unsafe.
- Of two faults, a crash is for good: the server does not return. With its return the space is several times as large.
- The route in one command is searched for a violation under two faults first, as that is the danger of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.assessor import splits
from checker.rollout.reconfig.answers import (
    CommandAnswer,
    CommandRun,
    FaultBudget,
    ReconfigAnswer,
    RouteAnswer,
    WayVerdicts,
    in_order,
)
from checker.rollout.reconfig.commands import MembershipCommand, RouteKind, at_once, one_at_a_time
from checker.rollout.reconfig.questions import DEFECTS, ReconfigSpec, stage_of
from checker.rollout.reconfig.refusals import member_lines, refusals
from checker.rollout.route import LARGEST
from checker.rollout.runs import SafetyVerdict, not_begun, worst_verdict
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, SAFE_DATA, Question
from checker.rollout.stages import Stage
from checker.rollout.work import Work
from spec.quorum import Sid

KINDS = (DISCONNECTS, PARTITIONS, CRASHES)
PAIRS: tuple[Mapping[str, int], ...] = ({DISCONNECTS: 1, PARTITIONS: 1}, {DISCONNECTS: 1, CRASHES: 1})


def is_asked(request: PlanRequest, stage: Stage) -> bool:
    """Whether a change is compared with `reconfig`: a plain change of members, with `reconfigEnabled=true` somewhere.

    Not so for a given order, way of working, interruption or disk, for one direct change, and where a platform or an
    operator changes the members by itself.
    """
    given = (request.order, request.how, request.now, request.releases)
    if any(each is not None for each in given) or request.disks or request.down or request.in_one_go:
        return False
    if any(each.working is not None for each in (request.old, request.new)):
        return False
    servers = (*request.old.servers.values(), *request.new.servers.values())
    return stage.changes_members and any(each.config.reconfig_enabled for each in servers)


def judge_reconfig(made: Plan, work: Work) -> None:
    """Judge the change by `reconfig`, and compare it with the plan. Raises checker.symbolic.disjoint.UndecidedError."""
    old, new, stage = made.request.old, made.request.new, made.direct.stage
    refused = refusals(old, new, stage)
    routes: tuple[RouteAnswer, ...] = ()
    if not refused:
        routes = _RouteSearch(stage, member_lines(old, new), made.request.faults, work).routes()
    claims = [claim for part in made.advised for claim in part.claims]
    plain = worst_verdict(claim.evidence.outcome for claim in claims if not claim.faults)
    made.by_reconfig = ReconfigAnswer(refused, routes, WayVerdicts(made.outcome, plain))


@dataclass(frozen=True)
class _RunKind:
    """The size of a run: the writes of the client, and the faults with their budget."""

    budget: FaultBudget
    faults: Mapping[str, int]
    writes: int


class _RouteSearch:
    """The runs about both routes of one change."""

    def __init__(self, stage: Stage, lines: Mapping[Sid, str], faults: int, work: Work) -> None:
        self._stage, self._lines, self._faults, self._work = stage, lines, faults, work

    def routes(self) -> tuple[RouteAnswer, ...]:
        """The routes, the safest first. There is one if the change has one command."""
        old, new = self._stage.old.view, self._stage.new.view
        single, together = one_at_a_time(old, new, self._lines), at_once(old, new, self._lines)
        if len(single) == 1:
            return (self._route(RouteKind.ONE_AT_A_TIME, single),)
        danger = self._route(RouteKind.AT_ONCE, together)
        return in_order((self._route(RouteKind.ONE_AT_A_TIME, single), danger))

    def _route(self, kind: RouteKind, commands: tuple[MembershipCommand, ...]) -> RouteAnswer:
        asked = sorted(
            ((number, spec, size) for size in self._sizes(kind) for number, spec in _specs(commands, size)),
            key=lambda each: _turn(kind, each[1], each[2]),
        )
        found: list[list[CommandRun]] = [[] for _ in commands]
        left_out: set[FaultBudget] = set()
        unsafe = False
        for number, spec, size in asked:
            if unsafe:
                left_out.add(size.budget)
                continue
            result = self._work.ask(spec) if len(spec.stage.sids) <= LARGEST else not_begun(spec)
            found[number].append(CommandRun(size.budget, result))
            unsafe = result.outcome is SafetyVerdict.UNSAFE
        answers = (
            CommandAnswer(command, command.disjoint, tuple(runs)) for command, runs in zip(commands, found, strict=True)
        )
        return RouteAnswer(kind, tuple(answers), self._faults, frozenset(left_out))

    def _sizes(self, kind: RouteKind) -> Iterator[_RunKind]:
        """What is asked about each command, in the order of the search."""
        together = kind is RouteKind.AT_ONCE
        plain = [_RunKind(FaultBudget.NONE, {}, 1)]
        asked = [_RunKind(FaultBudget.ASKED, each, 1) for each in splits(self._faults, KINDS)]
        pairs = [
            _RunKind(FaultBudget.PAIR, each, writes) for writes in ((0, 1) if together else (1,)) for each in PAIRS
        ]
        yield from (*plain, *pairs, *asked) if together else (*plain, *asked, *pairs)


def _specs(commands: tuple[MembershipCommand, ...], size: _RunKind) -> Iterator[tuple[int, ReconfigSpec]]:
    """The questions of one size: one for each command and each kind of first leader."""
    for number, command in enumerate(commands):
        question = Question.COMMITS if size.writes else Question.ELECTION
        for leader in leaders_of(command):
            yield number, ReconfigSpec(
                stage_of(command), (), leader, question, size.faults, writes=size.writes,
                elections=max(1, sum(size.faults.values())), always=SAFE_DATA, variants=DEFECTS, command=command,
                returns=size.budget is not FaultBudget.PAIR,
            )  # fmt: skip


def _turn(kind: RouteKind, spec: ReconfigSpec, size: _RunKind) -> tuple[bool, bool]:
    """A key for the order of the runs: what need not be finished comes last, and before it the hand-overs."""
    if kind is RouteKind.AT_ONCE:
        return False, _hands_over(spec)
    return size.budget is FaultBudget.PAIR, bool(spec.faults) and _hands_over(spec)


def _hands_over(spec: ReconfigSpec) -> bool:
    """Whether the first leader loses its vote. These spaces are the largest, so they come last."""
    return spec.command is not None and spec.leader not in spec.command.after.voters


def leaders_of(command: MembershipCommand) -> tuple[Sid, ...]:
    """The first leaders that are explored: a voter that stays one, and one that does not, if there are such voters."""
    before, after = command.before.voters, command.after.voters
    kinds = (before & after, before - after)
    return tuple(max(each) for each in kinds if each)
