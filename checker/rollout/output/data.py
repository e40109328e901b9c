"""The plan as data, for `--json`, and the files that a plan comes with: scenarios, traces, configuration files.

`docs/reference-report.md` describes every field of schema 1. `FORMS` has the fields of a record by its type.

Functions that write files raise `checker.user_files.OutputError` with the path of one that cannot be written.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

from checker.rollout.answer import Failure, Plan, ReleaseAnswer, failures
from checker.rollout.claims import Claim, Evidence
from checker.rollout.disks import DiskRemedy
from checker.rollout.files.differences import Difference, Interruption, masked
from checker.rollout.inputs.folders import Folder
from checker.rollout.inputs.platform import WayOfWorking
from checker.rollout.order_proof import OrderProof, StageCondition
from checker.rollout.orders import WAY_WORDS, ServerStep, unwaited
from checker.rollout.output.by_reconfig import obstacle, safer
from checker.rollout.output.recommendation import headline, recommendation
from checker.rollout.output.sentences import answer_sentence, direction_sentence, run_sentence
from checker.rollout.reconfig.answers import CommandAnswer, FaultBudget, ReconfigAnswer, RouteAnswer
from checker.rollout.reconfig.commands import Refusal
from checker.rollout.route_verdict import Order, PlanRoute, ViewPair
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.scenarios import Question
from checker.symbolic.disjoint import DisjointQuorums, RunningView
from checker.symbolic.premise import Premise
from checker.traces.formats import FORMATS
from checker.user_files import make_folder, slug, write
from spec.quorum import View
from spec.releases import Release

SCHEMA = 1

FORMS: Mapping[type, str] = {
    Claim: "question faults verdict=evidence.outcome evidence=evidence.kind reason=evidence.reason counts",
    CommandAnswer: "zkcli=command.zkcli kazoo=command.kazoo stop=command.leaving needed=command.needed "
    "before=command.before after=command.after disjoint",
    Difference: "server=sid key before=old after=new effect",
    DiskRemedy: "kind servers=sids proved",
    DisjointQuorums: "a b",
    Evidence: "verdict=outcome",
    Failure: "step=number server=step.sid new old service=serves",
    Folder: "folder=path voters=view.voters observers=view.observers taken warnings working leader",
    Interruption: "folder=path applied taken unseen looking unstated",
    OrderProof: "stages conditions",
    Plan: "verdict verdict_with_disks=outcome_with_disks exit_code seconds before=request.old after=request.new "
    "now=request.now differences=direct.stage.differences notes left_out orders_tried=tried how=request.way remedies "
    "releases reconfig=by_reconfig",
    PlanRoute: "title=stage.title verdict=outcome verdict_with_disks=outcome_with_disks proved pairs runs",
    ReconfigAnswer: "refusals routes",
    Refusal: "obstacle servers=sids",
    ReleaseAnswer: "before=change.old after=change.new while_staying=staying.outcome defects=culprits runs",
    RouteAnswer: "kind verdict=outcome quorums_meet commands",
    RunResult: "scenario=spec.name question=spec.question faults=spec.faults leader=spec.leader outcome end states "
    "depth seconds bounds",
    RunningView: "voters=view.voters running",
    ServerStep: "action server=sid wait",
    StageCondition: "step running renewed stopped",
    View: "voters observers",
    ViewPair: "a=old b=new disjoint",
    WayOfWorking: "podManagementPolicy=pods updateStrategy=updates partition operator assumed readiness restarted "
    "by_hand",
}
"""The fields of each type of record: their names, and the attributes where these have other names."""


def plain(value: Any) -> Any:
    """A value for `json.dumps`: a record by its form, a set ascending, an enum by its value."""
    if (form := FORMS.get(type(value))) is not None:
        pairs = (field.partition("=") for field in form.split())
        fields = {name: plain(_attribute(value, path or name)) for name, _, path in pairs}
        more = MORE.get(type(value))
        return {**fields, **(plain(more(value)) if more is not None else {})}
    match value:
        case Question() | FaultBudget() | Premise():
            return value.name.lower()
        case Enum():
            return value.value
        case Release():
            return str(value)
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case frozenset():
            return sorted(value)
        case list() | tuple():
            return [plain(item) for item in value]
    return value


def _attribute(value: Any, path: str) -> Any:
    """The attribute of an attribute; None behind None."""
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


MORE: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    CommandAnswer: lambda answer: {
        "start": [
            {
                "server": sid,
                "members": [f"server.{member}={line}" for member, line in answer.command.file_of(sid).items()],
            }
            for sid in answer.command.joiners
        ],
        "joining": answer.command.joining_text or None,
        "leaving": answer.command.leaving_text or None,
        "runs": [{"budget": budget, **plain(result)} for budget, results in answer.runs.items() for result in results],
    },
    Evidence: lambda answer: {"reason": answer.reason, "because": answer_sentence(answer)},
    Failure: lambda failure: {
        "going_on": _direction(failure.going_on),
        "going_back": {**_direction(failure.going_back), "steps": failure.undo},
    },
    OrderProof: lambda _: {"premise": Premise.ONE_GO},
    ReconfigAnswer: lambda answer: {
        "safer": answer.comparison[0],
        "ground": answer.comparison[1],
        "because": safer(answer),
    },
    Refusal: lambda refusal: {"because": obstacle(refusal)},
    ReleaseAnswer: lambda answer: {
        "while_clients_write": answer.verdict(),
        "while_nothing_is_written": answer.verdict(Question.QUIET_DEFECTS),
    },
    RouteAnswer: lambda route: {
        "without_faults": route.verdict(FaultBudget.NONE),
        "under_faults": route.verdict(FaultBudget.ASKED) if route.faults else None,
        "under_two_faults": route.verdict(FaultBudget.PAIR),
    },
    RunResult: lambda result: {"property": result.prop or None, "sentence": run_sentence(result)},
    WayOfWorking: lambda working: {
        "statefulSet": working.stateful_set or None,
        "namespace": working.namespace or None,
        "pods": {str(sid): f"{working.stateful_set}-{ordinal}" for sid, ordinal in sorted(working.ordinals.items())},
    },
}
"""The fields of a record that are computed."""


def data(plan: Plan) -> dict[str, Any]:
    """The plan as plain data for `json.dumps`."""
    stages, checks = plan.stages, plan.checks_between
    parts = [_stage(plan, part, check) for part, check in zip(plan.advised, checks, strict=True)]
    fields = {
        "schema": SCHEMA,
        "recommendation": recommendation(plan),
        "headline": headline(plan),
        "claims": [{"route": route, **plain(claim)} for route, claims in plan.table.items() for claim in claims],
        "direct": _stage(plan, plan.direct) if stages else parts[0],
        "stages": parts if stages else [],
        "back": plan.back and _stage(plan, plan.back),
        "ways": [_way(way) for way in plan.ways],
        "disks": [{"server": sid, "disk": hazard} for sid, hazard in sorted(plan.request.disks.items())],
    }
    return {**plain(plan), **plain(fields)}


def _way(way: PlanRoute) -> dict[str, Any]:
    order = next(iter(way.orders), None)
    worst = [way.worst(faulty=faulty) for faulty in ((False, True) if way.faults else (False,))]
    cells = [{**plain(answer), "scenario": _attribute(answer, "finding.spec.name")} for answer in worst]
    return {
        "way": way.way,
        "about": WAY_WORDS[way.way],
        "verdict": way.outcome,
        "without_faults": cells[0],
        "under_faults": cells[1] if way.faults else None,
        "leader": order and order.leader,
        "steps": order.steps if order else (),
    }


def _stage(plan: Plan, route: PlanRoute, check: StageCondition | None = None) -> dict[str, Any]:
    def of_order(order: Order) -> dict[str, Any]:
        proof = route.order_proof(order) if route.order_proofs else None  # if the verdict rests on it
        after = failures(route, order, plan.request.down, plan.releases)
        return {"leader": order.leader, "steps": order.steps, "proof": proof, "failures": after}

    claims = [{"question": claim.question, "faults": claim.faults, **plain(claim.evidence)} for claim in route.claims]
    return {
        **plain(route),
        "condition": check,
        "answers": claims,
        "orders": [of_order(order) for order in route.orders],
        "files": {name: masked(text) for name, text in route.stage.new.texts.items()},
    }


def _direction(direction: Evidence) -> dict[str, Any]:
    return {
        "verdict": direction.outcome,
        "basis": direction.reason,
        "because": direction_sentence(direction),
        "conditions": direction.conditions,
    }


NOT_FORMATS = frozenset({"pytest"})  # a test that repeats a run belongs to a project, not to a change request


def write_scenarios(plan: Plan, folder: Path) -> None:
    """Write every run as a scenario with its files, a folder for each stage."""
    names = set()
    for result in plan.runs:
        stage = result.spec.stage
        if (stage.title, result.text) in names:  # one run may answer two questions
            continue
        names.add((stage.title, result.text))
        place = folder / slug(f"{stage.old.label} to {stage.new.label}")
        make_folder(place)
        for name, text in result.spec.files.items():
            write(place / name, text)
        expected = "passed" if result.outcome is SafetyVerdict.SAFE else "violated"
        expect = "" if result.outcome is SafetyVerdict.OPEN else f"expect: {expected}\n"
        write(place / f"{_stem_of(result)}.yaml", result.text + expect)


def write_traces(plan: Plan, folder: Path) -> None:
    """Write the trace of every finding in every format."""
    for result in plan.runs:
        if result.trace is not None:
            name = slug(f"{result.spec.stage.new.label} {_stem_of(result)}")
            for form in FORMATS.values():
                if form.name not in NOT_FORMATS:
                    write(folder / form.file_name(name), form.view(result.trace))


def write_stages(plan: Plan, folder: Path) -> None:
    """Write the zoo.cfg of every server for every stage, with its dynamic file; the values of passwords are in it."""
    for number, route in enumerate(plan.advised, start=1):
        for sid, files in route.stage.new.servers.items():
            place = folder / f"stage-{number}" / str(sid)
            make_folder(place)
            if files.dynamic is not None:
                write(place / PurePosixPath(files.config.dynamic_config_file or "").name, files.dynamic)
            write(place / "zoo.cfg", files.text)


def _stem_of(result: RunResult) -> str:
    vain = f" without waiting for {waited}" if (waited := unwaited(result.spec.steps)) else ""
    return slug(f"{result.spec.name}{vain} {result.prop}")
