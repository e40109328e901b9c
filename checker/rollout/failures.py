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
from checker.rollout.claims import Evidence, Reason
from checker.rollout.order_proof import OrderProof
from checker.rollout.route import Order, PlanRoute
from checker.rollout.runs import SafetyVerdict
from checker.rollout.scenarios import CRASHES, Question
from checker.rollout.stages import Stage, reverse
from checker.rollout.steps import RESTART, START, STOP, ServerStep, Steps, has_quorum
from spec.quorum import Sid

SAFETY = (Question.ELECTION, Question.COMMITS)
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
    stage, found = route.stage, []
    for number, step in enumerate(order.steps):
        done = order.steps[:number]
        new = (stage.renewed | {each.sid for each in done if each.action != STOP}) - {step.sid} - down
        old = stage.running - stage.renewed - {each.sid for each in done} - {step.sid} - down
        serves = has_quorum(stage, new | old, new)
        going_on = _on_with_defects(_going_on(route, order, number + 1), releases)
        changed = frozenset(each.sid for each in (*done, step))
        stop = _stop_on_the_way_back(route, order.leader, changed)
        going_back = stop or _back_with_defects(_going_back(route, order, number + 1), releases)
        undo = _undone(stage, order.leader, (*done, step))
        found.append(
            Failure(number + 1, step, tuple(sorted(new)), tuple(sorted(old)), serves, going_on, going_back, undo)
        )
    return tuple(found)


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


def _proved(route: PlanRoute) -> bool:
    """Whether the proof answers the safety questions for every mixture of files, and for the given disks."""
    stage = route.stage
    reasons = {answer.reason for question, _, answer in route.answers if question in WITH_DISKS}
    return route.proved and reasons == {Reason.PROVED} and not stage.gossips and not stage.readdressed


def _proof(route: PlanRoute, order: Order) -> OrderProof | None:
    """The proof of an order, where proofs answer both safety questions, and no disk is given."""
    answers = {answer.reason for question, _, answer in route.answers if question in SAFETY}
    if answers != {Reason.PROVED_IN_ORDER} or route.stage.readdressed or route.disks:
        return None
    return route.order_proof(order)


def _not_safe(route: PlanRoute) -> Evidence | None:
    """The answer where the plan itself is unsafe, or has no verdict on a safety question."""
    asked = [(q, answer) for q, faulty, answer in route.answers if route.faults or not faulty]
    answers = [answer for question, answer in asked if question in WITH_DISKS]
    for outcome in (SafetyVerdict.UNSAFE, SafetyVerdict.OPEN):
        for answer in answers:
            if answer.outcome is outcome:
                return answer
    return None


def _going_on(route: PlanRoute, order: Order, number: int) -> Evidence:
    """The way on after a step, by its number."""
    if _proved(route):
        return Evidence(SafetyVerdict.SAFE, Reason.PROVED)
    if (proof := _proof(route, order)) is not None:
        later = tuple(each for each in proof.conditions if each.step > number)
        return Evidence(SafetyVerdict.SAFE, Reason.PROVED_IN_ORDER, conditions=later)
    if (direction := _not_safe(route)) is not None:
        return direction
    if route.stage.readdressed:
        return Evidence(SafetyVerdict.OPEN, Reason.TWO_DISKS)
    crashed = {
        result.spec.question
        for result in route.runs
        if (result.spec.leader, result.spec.steps) == (order.leader, order.steps)
        and result.spec.faults.get(CRASHES)
        and result.outcome is SafetyVerdict.SAFE
    }
    if crashed.issuperset(question for question in WITH_DISKS if question in route.questions):
        return Evidence(SafetyVerdict.SAFE, Reason.CRASH_EXPLORED)
    return Evidence(SafetyVerdict.OPEN, Reason.NO_CRASH_EXPLORED)


def _going_back(route: PlanRoute, order: Order, number: int) -> Evidence:
    """The way back after a step, by its number."""
    if _proved(route):
        return Evidence(SafetyVerdict.SAFE, Reason.PROVED)
    proof = _proof(route, order)
    if proof is not None and not any(1 < condition.step <= number for condition in proof.conditions):
        return Evidence(SafetyVerdict.SAFE, Reason.PROVED_IN_ORDER)
    basis = Reason.TWO_DISKS if route.stage.readdressed else Reason.BACK_NOT_EXPLORED
    return Evidence(SafetyVerdict.OPEN, basis)


def _stop_on_the_way_back(route: PlanRoute, leader: Sid, changed: frozenset[Sid]) -> Evidence | None:
    """The fact by which the way back comes to a stop once these servers have their new files.

    A server without `reconfigEnabled` follows the first leader, which has its old file: seen on 3.9.5.
    """
    begun = replace(route.stage, applied=route.stage.applied | changed)
    back = replace(route.blank, stage=reverse(begun), disks={})
    stops = (fact for _, fact in back.facts() if fact.outcome is SafetyVerdict.STALLS)
    return next((fact for fact in stops if fact.reason is not Reason.RECONFIG_OFF or leader in changed), None)


def _on_with_defects(protocol: Evidence, releases: ReleaseAnswer | None) -> Evidence:
    """The way on with the defects of the releases; a server that fails is a crash in the runs about them."""
    if releases is None or not releases.change.defects or protocol.outcome is not SafetyVerdict.SAFE:
        return protocol
    outcome, runs = releases.verdict(), releases.runs_about(Question.DEFECTS)
    if outcome is SafetyVerdict.UNSAFE:
        return Evidence(SafetyVerdict.UNSAFE, Reason.DEFECTS)
    if outcome is SafetyVerdict.SAFE and any(result.spec.faults.get(CRASHES) for result in runs):
        return protocol
    return Evidence(SafetyVerdict.OPEN, Reason.DEFECTS_NOT_EXPLORED)


def _back_with_defects(protocol: Evidence, releases: ReleaseAnswer | None) -> Evidence:
    """The way back with the defects of the releases, which no run covers."""
    if releases is None or not releases.change.defects or protocol.outcome is not SafetyVerdict.SAFE:
        return protocol
    return Evidence(SafetyVerdict.OPEN, Reason.DEFECTS_NOT_EXPLORED)
