"""The state of the ensemble after a step that fails, with the verdicts on both directions: on and back.

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

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from checker.rollout.answer import ReleaseAnswer
from checker.rollout.claims import Evidence, Reason, worst_of
from checker.rollout.route import SAFETY, Order, PlanRoute
from checker.rollout.runs import SafetyVerdict
from checker.rollout.scenarios import CRASHES, Question
from checker.rollout.stages import Stage, reverse
from checker.rollout.steps import RESTART, START, STOP, ServerStep, Steps, has_quorum
from spec.quorum import Sid

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
        done = order.steps[: number - 1]
        new = (stage.renewed | {other.sid for other in done if other.action != STOP}) - {step.sid} - down
        old = stage.running - stage.renewed - {other.sid for other in done} - {step.sid} - down
        serves = has_quorum(stage, new | old, new)
        on = _going_on(route, order, number, releases, proof)
        back = _going_back(route, order, number, releases, proof)
        undo = _undone(stage, order.leader, (*done, step))
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
        left = stage.renewed | {other.sid for other in steps[:place] if other.action != STOP}
        foreign = bool(gained & left) and stage.new.view.contains_quorum(left)
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
    begun = replace(route.stage, applied=route.stage.applied | changed)
    for _, fact in replace(route.blank, stage=reverse(begun), disks={}).facts():
        # A server without `reconfigEnabled` follows the first leader, which has its old file: seen on 3.9.5.
        if fact.outcome is SafetyVerdict.STALLS and (fact.reason is not Reason.RECONFIG_OFF or order.leader in changed):
            return fact
    in_order = route.order_proof(order) if proof is Reason.PROVED_IN_ORDER else None
    if proof is not Reason.PROVED and (in_order is None or not in_order.covers_way_back(route.stage.old.view, number)):
        return Evidence(SafetyVerdict.OPEN, Reason.TWO_DISKS if route.stage.readdressed else Reason.BACK_NOT_EXPLORED)
    if releases is not None and releases.change.defects:
        return Evidence(SafetyVerdict.OPEN, Reason.DEFECTS_NOT_EXPLORED)
    return Evidence(SafetyVerdict.SAFE, Reason.PROVED if in_order is None else Reason.PROVED_IN_ORDER)
