"""The next steps of a diagnosis, explored: from the disks that were given, with a crash at any moment.

Rules of this module:

- No server runs in the first state, and each has the disk that was given: its epochs, and its transactions. Successive
  transactions that the same disks have count as one, so the run is as long as the differences are many. Servers that
  serve now start first: their present state is one of those that follow.
- The steps are done in their order. Where a step says to wait, the operator waits. A server that they do not name may
  start at any moment, unless they stop it. One server may crash, at any moment, and come back or not. Two elections
  make a leader. Nothing new is written.
- Each leader must begin with every transaction that a client may have the answer of (`doubt`). If one does not, the
  steps are unsafe.
- Where something is not known, or the state has no such form, the answer is the reason, and claims nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from checker.diagnose.cause import NextStep, StepKind
from checker.diagnose.doubt import Doubts, WriteFate
from checker.diagnose.situation import Situation, listed, servers_text
from checker.scenario.servers import zoo_cfg
from checker.scenario.yaml_lines import write_yaml
from refimpl.disk.remedies import Damage
from refimpl.disk.survey import DiskSurvey
from spec.quorum import Majority, Sid, View
from spec.txn import epoch_of, format_zxid, make_zxid

MOST_STATES = 4000
"""A few seconds of work. A limit of time would give another answer on a busy machine."""
MOST_SERVERS = 5
MOST_TRANSACTIONS = 6
FILE, PROPERTY = "zoo.cfg", "AnsweredWritesSurvive"
STARTS = (StepKind.START, StepKind.WAIT, StepKind.RESTART)


@dataclass(frozen=True)
class StepsExplored:
    """The outcome: the states, whether they are all, and the servers that lead without such a transaction.

    `served`: some leader was established. `missing` is the reason where nothing was explored.
    """

    missing: str = ""
    states: int = 0
    is_whole: bool = False
    unsafe_leaders: tuple[Sid, ...] = ()
    served: bool = False

    @property
    def sentence(self) -> str:
        """The outcome for a reader."""
        if self.missing:
            return f"The steps were not explored: {self.missing}."
        end = "all of them" if self.is_whole else "not all of them"
        states = f"Explored from the start of these disks on, with a crash: {self.states:,} states, {end}."
        if self.unsafe_leaders:
            return f"{states} UNSAFE: {servers_text(self.unsafe_leaders)} can lead without such a transaction."
        return f"{states} No leader begins without a transaction that a client may have the answer of." + (
            "" if self.served or not self.is_whole else " But no leader is established in any of them."
        )


class UnknownStateError(Exception):
    """The evidence lacks a part of the first state; the message is the reason."""


def warning(outcome: StepsExplored, steps: Iterable[NextStep]) -> NextStep:
    """The step in the place of steps that are unsafe."""
    servers = listed({sid for step in steps for sid in step.servers})
    sentence = f"Leave servers {servers} as they are, and start none of them. {outcome.sentence}"
    return NextStep(StepKind.LOOK, (), sentence)


def explored(situation: Situation, doubts: Doubts, steps: Sequence[NextStep]) -> StepsExplored | None:
    """The steps that start servers, explored; None if no step starts one."""
    if not any(step.kind in (StepKind.START, StepKind.RESTART) for step in steps):
        return None
    try:
        view = _view(situation, doubts)
        text, must = _scenario(situation, view, doubts, steps)
    except UnknownStateError as error:
        return StepsExplored(str(error))
    return _explored(text, {FILE: zoo_cfg(sorted(view.members), view.observers)}, must)


def _scenario(
    situation: Situation, view: View, doubts: Doubts, steps: Sequence[NextStep]
) -> tuple[str, frozenset[int]]:
    """The scenario, and the zxids in it that each leader must have. Raises UnknownStateError."""
    logs = {sid: server.log for sid, server in situation.by_sid.items()}
    former = {sid: log.former_sid for sid, log in logs.items() if log is not None and log.former_sid is not None}
    if any(before != sid for sid, before in former.items()):
        raise UnknownStateError("the id of a disk has changed")
    serving = NextStep(StepKind.WAIT, situation.newest_first(situation.serving), "")
    plan = _plan(view, (serving, *steps))
    started = {action["start"] for action in plan if "start" in action}
    first = {action["start"]: action for action in reversed(plan) if "start" in action}
    erased = {sid for sid, action in first.items() if "disk" in action}
    stopped = {sid for step in steps if step.kind is StepKind.STOP for sid in step.servers} - started
    empty = {sid for sid in view.members if _starts_empty(situation.by_sid[sid].disk)}
    base, zxids = _zxids(doubts, (situation.by_sid[sid].disk for sid in view.members - erased - empty))
    servers: dict[Sid, dict[str, object]] = {}
    for sid in sorted(view.members - stopped):
        disk = situation.by_sid[sid].disk
        late = {} if sid in started else {"late": True}
        if sid in erased | empty:
            servers[sid] = {"file": FILE, **late}
            continue
        if disk is None or disk.is_empty or disk.current.value is None or disk.accepted.value is None:
            raise UnknownStateError(f"the epochs of server {sid} are not known")
        if disk.damage not in (None, Damage.NO_SNAPSHOT):
            raise UnknownStateError(f"the disk of server {sid} is damaged")
        held = [zxid for group, zxid in zip(doubts.groups, zxids, strict=True) if sid in group.having]
        last = max((group.last for group in doubts.groups if sid in group.having), default=0)
        if any(sid in group.lacking and last > group.last for group in doubts.groups):
            raise UnknownStateError(f"the log of server {sid} has a gap")
        servers[sid] = {
            "file": FILE,
            "epoch": disk.current.value,
            "accepted_epoch": disk.accepted.value,
            "log": [format_zxid(zxid) for zxid in (base, *held)],
            **late,
        }
    keys = {
        "name": "the next steps", "servers": servers, "plan": plan, "protocol": "zab", "grain": "oracle",
        "discovery": "one-step", "disk": "sync", "elections": 2, "faults": {"crashes": 1, "restarts": 1},
        "always": ["LeaderLogCompleteness"],
    }  # fmt: skip
    groups = zip(doubts.groups, zxids, strict=True)
    return write_yaml(keys), frozenset({base, *(zxid for group, zxid in groups if group.fate is not WriteFate.OPEN)})


def _starts_empty(disk: DiskSurvey | None) -> bool:
    """Whether a server starts as a new one: its disk has no data, and no epochs."""
    return disk is not None and disk.is_empty and disk.accepted.is_absent and disk.current.is_absent


def _view(situation: Situation, doubts: Doubts) -> View:
    """The view of all servers, each with a disk. Raises UnknownStateError."""
    view = situation.common_view
    if view is None or doubts.unanswered:
        raise UnknownStateError(doubts.unanswered or "the servers do not agree on who votes")
    if not isinstance(view.quorums, Majority) or view.standalone or len(view.members) > MOST_SERVERS:
        raise UnknownStateError(f"the ensemble has groups, weights, or more than {MOST_SERVERS} servers")
    if without := [sid for sid in view.members if sid not in situation.by_sid or situation.by_sid[sid].disk is None]:
        raise UnknownStateError(f"the disks of {servers_text(without)} were not given")
    if len(doubts.groups) > MOST_TRANSACTIONS:
        raise UnknownStateError(f"the disks differ at more than {MOST_TRANSACTIONS} places")
    return view


def _plan(view: View, steps: Iterable[NextStep]) -> list[dict[str, object]]:
    """The actions of the operator. Raises UnknownStateError."""
    plan: list[dict[str, object]] = []
    running, erased = set[Sid](), set[Sid]()
    for step in steps:
        if step.kind is StepKind.RECOVER or any(sid not in view.members for sid in step.servers):
            raise UnknownStateError("a step makes new disks, or changes an id")
        for sid in step.servers:
            if step.kind in (StepKind.STOP, StepKind.ERASE, StepKind.RESTART) and sid in running:
                plan.append({"stop": sid})
                running.remove(sid)
            if step.kind is StepKind.ERASE:
                erased.add(sid)
            if step.kind in STARTS and sid not in running:
                plan.append({"start": sid, **({"disk": "empty"} if sid in erased else {})})
                running.add(sid)
        if step.kind in STARTS and plan and "start" in plan[-1] and view.contains_quorum(running):
            plan[-1]["wait"] = "rejoined"
    return plan


def _zxids(doubts: Doubts, disks: Iterable[DiskSurvey | None]) -> tuple[int, list[int]]:
    """A zxid for all that the disks have in common, and one for each group in doubt, in their order."""
    first = min((disk.last_zxid for disk in disks if disk is not None), default=0)
    epochs = [epoch_of(group.last) for group in doubts.groups]
    base = make_zxid(min([epoch_of(first), *epochs]), 1)
    counters = Counter({epoch_of(base): 1})
    zxids = []
    for epoch in epochs:
        counters[epoch] += 1
        zxids.append(make_zxid(epoch, counters[epoch]))
    return base, zxids


def _explored(text: str, files: dict[str, str], must: frozenset[int]) -> StepsExplored:
    """Explore a scenario within the limit."""
    from checker.engine import TRIVIAL, Finding, Property, Read  # noqa: PLC0415 (the engine loads slowly)
    from checker.engine.result import Limits  # noqa: PLC0415
    from checker.execution import run_job  # noqa: PLC0415
    from checker.models.ensemble.history import EstablishedEpoch, HistoryPart, part  # noqa: PLC0415
    from checker.models.ensemble.setup import HISTORY  # noqa: PLC0415
    from checker.scenario import ScenarioError, from_text  # noqa: PLC0415

    unsafe, served = set[Sid](), set[Sid]()

    def check(established: tuple[EstablishedEpoch, ...]) -> object:
        served.update(reign.leader for reign in established)
        without = [reign.leader for reign in established if must - {txn.zxid for txn in reign.initial}]
        unsafe.update(without)
        return Finding("a leader begins without it", (("leaders", without),)) if without else TRIVIAL

    try:
        job = from_text(text, files.get)
    except ScenarioError as error:
        return StepsExplored(f"the model does not have this state: {error}")
    prop = Property(PROPERTY, (Read(HISTORY, part(HistoryPart.ESTABLISHED)),), check)  # type: ignore[arg-type]
    job = replace(job, model=replace(job.model, properties=(prop,)))
    run = run_job(job, Limits(states=MOST_STATES), engine="plain", report=lambda _: None)
    return StepsExplored("", run.states, run.exhausted, tuple(sorted(unsafe)), bool(served))
