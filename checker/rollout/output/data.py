"""The plan as data, for `--json`, and the files that a plan comes with: scenarios, traces, configuration files.

Fields of schema 1: verdict (safe | unsafe | undecided | stalls), exit_code, recommendation, headline, seconds (of
work), before and after (folder, voters, observers, taken, warnings, working, leader), differences (server, key,
before, after, effect; null is the value of a key that is not set), notes, left_out (servers that are missing from the
given order), claims, direct, stages, how (the way of working that is judged), ways, disks, remedies, releases and
reconfig. `claims` is the table that all verdicts are made from: route, question, faults, verdict, evidence (proof |
exhausted | counterexample | measured | missing), reason, and whether the claim counts in the verdict on its route.
`working` is the way of working of a platform, as in a StatefulSet, and `leader` the server that leads a live ensemble;
each is null where the input does not state it. `verdict` is the verdict on the recommended way: the first route of
`reconfig` if that is safer, else `stages` if there are any, else `direct`. `direct.verdict` is always the verdict on
the change in one go, and exit_code is 22 where only the stages or the commands are safe. After an interruption `now`
(folder, applied, taken) has the servers that need no step, `direct` is the rest of the change, and `back` is the stage
that leads to the old files; else both are null. A stage has title, condition (what the operator checks before the
stage, in every way of working; null if no stage comes before it), verdict, proved (for every order), pairs, answers
(question, faults, verdict, reason, because), orders (leader, steps with action, server, wait; proof, failures), files
(name to text, passwords hidden) and runs (scenario, question, faults, leader, outcome, property, end, sentence,
states, depth, seconds of work, bounds). A proof has the premise of the theorem about roll-outs, its stages (voters of
the file, and the running servers) and the conditions that the operator keeps (before a step: running servers that
follow one leader; renewed, if all of them have their new files; stopped servers that stay stopped). It is null where
the verdict rests on another proof or on runs. A failure is the state if a step fails: step (its number), server, new
and old (the servers that run with such a file), service (whether they are a quorum), going_on and going_back (verdict,
basis, because, conditions to keep before later steps; steps of the way back).

`ways` has each way of working, or nothing if the request names one: way, about (in words), verdict, leader, steps,
without_faults and under_faults (verdict, reason, because, scenario: the run with the finding, or null; under_faults is
null if no faults were asked for). `disks` are the given disks of servers that start (server, disk: empty | stale |
foreign), and `remedies` the safe alternatives (kind, servers, proved). `releases` is the answer about the defects of
the releases, or null if the request names none: before and after (numbers), while_clients_write and
while_nothing_is_written (verdicts), while_staying (the verdict on the run with the finding if the old release stays, or
null), defects (one of them is enough to lose a write) and runs. `reconfig` is described by
`checker.rollout.reconfig.fields`.

Functions that write files raise `checker.user_files.OutputError` with the path of one that cannot be written.

`reason`, `end` and `basis` are codes (`Reason`, `RunEnd`, `Reason`). `because`, `sentence`, `recommendation`,
`headline` and `notes` are for people.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checker.rollout.answer import Plan
from checker.rollout.claims import Claim, Evidence
from checker.rollout.failures import Failure, failures
from checker.rollout.files.differences import Interruption, masked
from checker.rollout.inputs.folders import Folder
from checker.rollout.order_proof import StageCondition
from checker.rollout.output.recommendation import headline, recommendation
from checker.rollout.output.sentences import answer_sentence, direction_sentence, run_sentence
from checker.rollout.reconfig.fields import reconfig_data
from checker.rollout.release_answer import SoftwareAnswer
from checker.rollout.route import Order, PlanRoute
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.steps import ServerStep, unwaited
from checker.rollout.ways import WAY_WORDS
from checker.symbolic.zab.premises import Premise
from checker.traces.formats import FORMATS
from checker.user_files import make_folder, slug, write

SCHEMA = 1


def data(plan: Plan) -> dict[str, Any]:
    """The plan as plain data for `json.dumps`."""
    return {
        "schema": SCHEMA,
        "verdict": plan.verdict.value,
        "verdict_with_disks": plan.outcome_with_disks.value,
        "exit_code": int(plan.exit_code),
        "recommendation": recommendation(plan),
        "headline": headline(plan),
        "seconds": plan.seconds,
        "before": _folder(plan.request.old),
        "after": _folder(plan.request.new),
        "now": None if plan.request.now is None else _now(plan.request.now),
        "differences": [
            {"server": each.sid, "key": each.key, "before": each.old, "after": each.new, "effect": each.effect.value}
            for each in plan.direct.stage.differences
        ],
        "notes": list(plan.notes),
        "left_out": list(plan.left_out),
        "orders_tried": plan.tried,
        "claims": [_claim(route, claim) for route, claims in plan.table.items() for claim in claims],
        "direct": _stage(plan, plan.direct, None if plan.stages else plan.checks_between[0]),
        "stages": [
            _stage(plan, stage, check)
            for stage, check in zip(plan.stages, plan.checks_between if plan.stages else (), strict=True)
        ],
        "back": plan.back and _stage(plan, plan.back),
        "how": plan.request.way.value,
        "ways": [_way(answer) for answer in plan.ways],
        "disks": [{"server": sid, "disk": hazard.value} for sid, hazard in sorted(plan.request.disks.items())],
        "remedies": [
            {"kind": each.kind.value, "servers": list(each.sids), "proved": each.proved} for each in plan.remedies
        ],
        "releases": None if plan.software is None else _releases(plan.software),
        "reconfig": plan.by_reconfig and reconfig_data(plan.by_reconfig, _run),
    }


def _claim(route: str, claim: Claim) -> dict[str, Any]:
    evidence = claim.evidence
    return {
        "route": route,
        "question": claim.question.name.lower(),
        "faults": claim.faults,
        "verdict": evidence.outcome.value,
        "evidence": evidence.kind.value,
        "reason": evidence.reason.value,
        "counts": claim.counts,
    }


def _releases(software: SoftwareAnswer) -> dict[str, Any]:
    return {
        "before": str(software.releases.old),
        "after": str(software.releases.new),
        "while_clients_write": software.outcome.value,
        "while_nothing_is_written": software.quiet_outcome.value,
        "while_staying": software.staying and software.staying.outcome.value,
        "defects": [each.value for each in software.culprits],
        "runs": [_run(result) for result in software.runs],
    }


def _way(answer: PlanRoute) -> dict[str, Any]:
    first = next(iter(answer.orders), None)
    return {
        "way": answer.way.value,
        "about": WAY_WORDS[answer.way],
        "verdict": answer.outcome.value,
        "without_faults": _way_cell(answer.worst(faulty=False)),
        "under_faults": _way_cell(answer.worst(faulty=True)) if answer.faults else None,
        "leader": first and first.leader,
        "steps": [] if first is None else [_step(step) for step in first.steps],
    }


def _way_cell(answer: Evidence) -> dict[str, Any]:
    return {
        "verdict": answer.outcome.value,
        "reason": answer.reason.value,
        "because": answer_sentence(answer),
        "scenario": answer.finding and answer.finding.spec.name,
    }


def _now(now: Interruption) -> dict[str, Any]:
    return {"folder": now.path, "applied": sorted(now.applied), "taken": list(now.taken)}


def _folder(folder: Folder) -> dict[str, Any]:
    view = folder.view
    return {
        "folder": folder.path,
        "voters": sorted(view.voters),
        "observers": sorted(view.observers),
        "taken": list(folder.taken),
        "warnings": list(folder.warnings),
        "working": folder.working and folder.working.data,
        "leader": folder.leader,
    }


def _stage(plan: Plan, route: PlanRoute, check: StageCondition | None = None) -> dict[str, Any]:
    down = plan.request.down
    return {
        "title": route.stage.title,
        "condition": check and _condition(check),
        "verdict": route.outcome.value,
        "verdict_with_disks": route.outcome_with_disks.value,
        "proved": route.proved,
        "pairs": [
            {
                "a": pair.old,
                "b": pair.new,
                "disjoint": pair.disjoint and {"a": sorted(pair.disjoint.a), "b": sorted(pair.disjoint.b)},
            }
            for pair in route.pairs
        ],
        "answers": [
            {
                "question": question.name.lower(),
                "faults": route.faults if faulty else 0,
                "verdict": answer.outcome.value,
                "reason": answer.reason.value,
                "because": answer_sentence(answer),
            }
            for question, faulty, answer in route.answers
        ],
        "orders": [
            {
                "leader": order.leader,
                "steps": [_step(step) for step in order.steps],
                "proof": _proof(route, order),
                "failures": [_failure(failure) for failure in failures(route, order, down, plan.software)],
            }
            for order in route.orders
        ],
        "files": {name: masked(text) for name, text in route.stage.new.texts.items()},
        "runs": [_run(result) for result in route.runs],
    }


def _proof(route: PlanRoute, order: Order) -> dict[str, Any] | None:
    """The proof that the verdict rests on; null if it rests on another one, or on runs."""
    proof = route.order_proof(order) if route.order_proofs else None
    if proof is None:
        return None
    return {
        "premise": Premise.ONE_GO.name.lower(),
        "stages": [{"voters": sorted(each.view.voters), "running": sorted(each.running)} for each in proof.stages],
        "conditions": [_condition(each) for each in proof.conditions],
    }


def _condition(given: StageCondition) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(given).items()}


def _step(step: ServerStep) -> dict[str, Any]:
    return {"action": step.action, "server": step.sid, "wait": step.wait}


def _failure(failure: Failure) -> dict[str, Any]:
    on, back = (_direction(each) for each in (failure.going_on, failure.going_back))
    return {
        "step": failure.number,
        "server": failure.step.sid,
        "new": list(failure.new),
        "old": list(failure.old),
        "service": failure.serves,
        "going_on": on,
        "going_back": {**back, "steps": [_step(step) for step in failure.undo]},
    }


def _direction(direction: Evidence) -> dict[str, Any]:
    return {
        "verdict": direction.outcome.value,
        "basis": direction.reason.value,
        "because": direction_sentence(direction),
        "conditions": [_condition(each) for each in direction.conditions],
    }


def _run(result: RunResult) -> dict[str, Any]:
    return {
        "scenario": result.spec.name,
        "question": result.spec.question.name.lower(),
        "faults": dict(result.spec.faults),
        "leader": result.spec.leader,
        "outcome": result.outcome.value,
        "property": result.prop or None,
        "end": result.end.value,
        "sentence": run_sentence(result),
        "states": result.states,
        "depth": result.depth,
        "seconds": result.seconds,
        "bounds": list(result.bounds),
    }


NOT_FORMATS = frozenset({"pytest"})  # a test that repeats a run belongs to a project, not to a change request


def write_scenarios(plan: Plan, folder: Path) -> None:
    """Write every run as a scenario with its files, a folder for each stage."""
    seen = set()
    for result in plan.runs:
        stage = result.spec.stage
        if (stage.title, result.text) in seen:  # one run may answer two questions
            continue
        seen.add((stage.title, result.text))
        place = folder / slug(f"{stage.old.label} to {stage.new.label}")
        make_folder(place)
        for name, text in result.spec.files.items():
            write(place / name, text)
        verdict = {
            SafetyVerdict.UNSAFE: "violated",
            SafetyVerdict.SAFE: "passed",
            SafetyVerdict.STALLS: "violated",
        }.get(result.outcome)
        expect = f"expect: {verdict}\n" if verdict else ""
        write(place / f"{_stem_of(result)}.yaml", result.text + expect)


def write_traces(plan: Plan, folder: Path) -> None:
    """Write the trace of every finding in every format."""
    for result in plan.runs:
        if result.trace is not None:
            name = slug(f"{result.spec.stage.new.label} {_stem_of(result)}")
            for each in FORMATS.values():
                if each.name not in NOT_FORMATS:
                    write(folder / each.file_name(name), each.view(result.trace))


def write_stages(plan: Plan, folder: Path) -> None:
    """Write the zoo.cfg of every server for every stage, with its dynamic file; the values of passwords are in it."""
    for number, route in enumerate(plan.advised, start=1):
        side = route.stage.new
        for sid, name in side.files.items():
            place = folder / f"stage-{number}" / str(sid)
            make_folder(place)
            write(place / "zoo.cfg", side.texts[name].replace(f"{name}.dynamic", "zoo.cfg.dynamic"))
            for beside, text in side.texts.items():
                if beside.startswith(f"{name}.dynamic"):
                    write(place / f"zoo.cfg{beside.removeprefix(name)}", text)


def _stem_of(result: RunResult) -> str:
    vain = f" without waiting for {waited}" if (waited := unwaited(result.spec.steps)) else ""
    return slug(f"{result.spec.name}{vain} {result.prop}")
