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

from collections.abc import Iterator

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.assessor import splits
from checker.rollout.reconfig.answers import (
    CommandAnswer,
    ReconfigAnswer,
    RouteAnswer,
    WayVerdicts,
    in_order,
)
from checker.rollout.reconfig.commands import MembershipCommand, RouteKind, at_once, one_at_a_time
from checker.rollout.reconfig.questions import DEFECTS, FaultBudget, ReconfigSpec, stage_of
from checker.rollout.reconfig.refusals import member_lines, refusals
from checker.rollout.route import LARGEST
from checker.rollout.runs import RunResult, SafetyVerdict, not_begun, worst_verdict
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, SAFE_DATA, Question
from checker.rollout.stages import Stage
from checker.rollout.work import Work
from spec.quorum import Sid

KINDS = (DISCONNECTS, PARTITIONS, CRASHES)
PAIRS: tuple[dict[str, int], ...] = ({DISCONNECTS: 1, PARTITIONS: 1}, {DISCONNECTS: 1, CRASHES: 1})


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
    return stage.changes_members and any(server.config.reconfig_enabled for server in servers)


def judge_reconfig(made: Plan, work: Work) -> None:
    """Judge the change by `reconfig`, and compare it with the plan. Raises checker.symbolic.disjoint.UndecidedError."""
    old, new, faults = made.request.old, made.request.new, made.request.faults
    refused = refusals(old, new, made.direct.stage)
    routes: list[RouteAnswer] = []
    if not refused:
        lines = member_lines(old, new)
        single, together = (divide(old.view, new.view, lines) for divide in (one_at_a_time, at_once))
        if len(single) > 1:
            routes.append(_route(RouteKind.AT_ONCE, together, faults, work))
        routes.insert(0, _route(RouteKind.ONE_AT_A_TIME, single, faults, work))
    claims = [claim for part in made.advised for claim in part.claims]
    plain = worst_verdict(claim.evidence.outcome for claim in claims if not claim.faults)
    made.by_reconfig = ReconfigAnswer(refused, in_order(routes), WayVerdicts(made.outcome, plain))


def _route(kind: RouteKind, commands: tuple[MembershipCommand, ...], faults: int, work: Work) -> RouteAnswer:
    """Explore a route until a run finds a violation."""
    runs: list[tuple[ReconfigSpec, RunResult]] = []
    left_out: set[FaultBudget] = set()
    for spec in sorted(_specs(kind, commands, faults), key=lambda spec: _turn(kind, spec)):
        if runs and runs[-1][1].outcome is SafetyVerdict.UNSAFE:
            left_out.add(spec.budget)
        else:
            runs.append((spec, work.ask(spec) if len(spec.stage.sids) <= LARGEST else not_begun(spec)))
    answers = []
    for command in commands:
        by_budget = {
            budget: tuple(result for spec, result in runs if spec.command is command and spec.budget is budget)
            for budget in FaultBudget
        }
        answers.append(CommandAnswer(command, command.disjoint, by_budget))
    return RouteAnswer(kind, tuple(answers), faults, frozenset(left_out))


def _specs(kind: RouteKind, commands: tuple[MembershipCommand, ...], faults: int) -> Iterator[ReconfigSpec]:
    """The questions in the order of the search: for each size one for each command and each kind of first leader."""
    together = kind is RouteKind.AT_ONCE
    plain = [(FaultBudget.NONE, dict[str, int](), 1)]
    asked = [(FaultBudget.ASKED, split, 1) for split in splits(faults, KINDS)]
    pairs = [(FaultBudget.PAIR, pair, writes) for writes in ((0, 1) if together else (1,)) for pair in PAIRS]
    for budget, counts, writes in (*plain, *pairs, *asked) if together else (*plain, *asked, *pairs):
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
