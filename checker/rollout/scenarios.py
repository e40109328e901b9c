"""Writes the questions about a stage as scenarios, so that users can keep and repeat each run.

Seven questions are asked, each in the model that answers it soonest:

    ELECTION   can two servers lead at the same time, each with a quorum of its view
    COMMITS    can a write that was committed get lost, or one zxid be two writes
    EMPTY_DISK the same, where servers that move to another host start with empty disks
    GIVEN_DISKS the same, where servers start with the disks that the request names
    DEFECTS    the same, where servers have the known defects of their releases
    QUIET_DEFECTS the same, where nothing is written after the first step has begun
    HEALING    can all running servers follow one leader again after every run, with equal data

Rules of this module:

- An election is one step (`grain: oracle`), except where configurations have versions, which only messages carry.
- The first leader is the server with the higher epoch where servers lead and follow. The election alone keeps epochs
  for ever, so there it is the one that an order of starts leads to, if there is such an order.
- A server that crashes may come back with the file it last ran with, or with the new one, which may lie ready, unless
  the files are copied at their steps (`at_step`). A partition ends only where healing is asked about.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from checker.rollout.disks import DiskHazard
from checker.rollout.releases import ReleaseChange
from checker.rollout.stages import Stage
from checker.rollout.steps import STOP, Steps
from checker.rollout.ways import Way
from spec.quorum import Sid
from spec.variants import Variant

FOREIGN_EPOCH = 9  # beyond every epoch of a run
ELECTIONS = 4  # of a leader, where nothing is written: more than any roll-out needs that nothing disturbs
SAFE_DATA = (
    "Leadership",
    "LeaderLogCompleteness",
    "PrefixConsistency",
    "OneTxnPerZxid",
    "ReplicasAgree",
    "HistoryConsistency",
)
ALONE_COMPLETE = "StandaloneLogCompleteness"
SERVED_ALONE = "StandaloneServesAlone"
THROWN_AWAY = ("CommittedLogDurability",)
NO_LOSS = tuple(name for name in SAFE_DATA if name != "Leadership")
CRASHES, PARTITIONS, DISCONNECTS = "crashes", "partitions", "disconnects"


Opening = tuple[Mapping[str, object], ...]
"""The moves before an exploration, as a scenario lists them."""


class Question(Enum):
    """The questions, as headings of the answer."""

    ELECTION = "never two leaders at once"
    COMMITS = "no committed write is lost or doubled"
    HEALING = "in the end all follow one leader, and agree"
    EMPTY_DISK = "no committed write is lost or doubled if a new host starts with an empty disk"
    GIVEN_DISKS = "no committed write is lost or doubled if servers start with the given disks"
    DEFECTS = "no acknowledged write is lost by a known defect of the release"
    QUIET_DEFECTS = "no acknowledged write is lost by a known defect of the release while nothing is written"


QUESTION_WORDS = dict(
    zip(
        Question,
        ("leaders", "commits", "healing", "empty disks", "given disks", "defects of the release",
         "defects of the release without writes"),
        strict=True,
    )
)  # fmt: skip
OF_RELEASES = frozenset({Question.DEFECTS, Question.QUIET_DEFECTS})
"""The questions about releases."""


@dataclass(frozen=True)
class RunSpec:
    """A question about a stage: the steps, the first leader, the number of faults of each kind, and the model.

    With `releases` each server has the defects of its release, with `variants` every server has these.
    """

    stage: Stage
    steps: Steps
    leader: Sid | None
    question: Question
    faults: Mapping[str, int] = field(default_factory=dict)
    zab: bool = True
    writes: int = 0
    elections: int = ELECTIONS
    always: tuple[str, ...] = ()
    recoverable: bool = False
    patient: bool = True  # the operator waits where the steps say so
    done: bool = False  # nothing is left to do: all have their new files
    down: frozenset[Sid] = frozenset()
    opening: Opening = ()
    way: Way = Way.ONE_BY_ONE
    disks: Mapping[Sid, DiskHazard] = field(default_factory=dict)
    releases: ReleaseChange | None = None
    variants: tuple[Variant, ...] = ()  # of every server
    at_step: bool = False  # a new file is not there before its step

    @property
    def name(self) -> str:
        """The name of the run and of its files."""
        parts = [f"{self.stage.old.label} to {self.stage.new.label}", QUESTION_WORDS[self.question]]
        parts += [f"{sid} {hazard.value}" for sid, hazard in sorted(self.disks.items())]
        parts += [str(self.releases)] if self.releases else [variant.value for variant in self.variants]
        if self.way is not Way.ONE_BY_ONE and not self.done:
            parts.append(self.way.value)
        if not self.done and not self.way.has_one_order:
            parts.append("order " + ",".join(str(step.sid) for step in self.steps))
        if self.leader is not None:
            parts.append(f"{self.leader} leads first")
        return ", ".join([*parts, self.under or "no fault"])

    @property
    def text(self) -> str:
        """The scenario."""
        return scenario_of(self)

    @property
    def files(self) -> Mapping[str, str]:
        """The files of the scenario by their names, without the values of passwords."""
        return self.stage.texts

    @property
    def steps_taken(self) -> Steps:
        """The steps without those of servers that are down."""
        return tuple(step for step in self.steps if step.sid not in self.down)

    @property
    def under(self) -> str:
        """The faults in words; empty without faults."""
        words = {CRASHES: ("crash", "crashes"), PARTITIONS: ("partition", "partitions")}
        words[DISCONNECTS] = ("lost connection", "lost connections")
        return ", ".join(f"{count} {words[kind][count > 1]}" for kind, count in self.faults.items() if count)


def scenario_of(spec: RunSpec) -> str:
    """The text of the scenario; its files are those of the stage."""
    lines = [f"name: {json.dumps(spec.name)}", "servers:"]
    lines += [f"  {sid}: {{{', '.join(_server(spec, sid))}}}" for sid in _sids(spec)]
    history = list(_history(spec))
    if history:
        lines += ["history:", *(f"  - start: {json.dumps(start)}" for start in history)]
    plan = [] if spec.done else list(_plan(spec))
    if plan:
        lines += ["plan:", *(f"  - {{{entry}}}" for entry in plan)]
    if spec.opening:
        lines += ["opening:", *(f"  - {json.dumps(dict(entry))}" for entry in spec.opening)]
    return "\n".join([*lines, *_model(spec), *_properties(spec)]) + "\n"


def _sids(spec: RunSpec) -> list[Sid]:
    sids = spec.stage.new.members if spec.done else spec.stage.sids
    named = {step.sid for step in spec.steps} | spec.stage.running
    return [sid for sid in sorted(sids) if sid not in spec.down and (spec.done or sid in named)]


def _server(spec: RunSpec, sid: Sid) -> Iterable[str]:
    stage = spec.stage
    new = spec.done or sid not in stage.old.members or sid in stage.applied
    yield f"file: {(stage.new if new else stage.old).files[sid]}"
    lies_ready = spec.way.is_of_controller or not stage.changed_roles
    if spec.faults.get(CRASHES) and not new and sid in stage.new.members and lies_ready and not spec.at_step:
        yield f"other_files: [{stage.new.files[sid]}]"
    view = (stage.new if new else stage.old).view
    if spec.disks:
        yield from _disk(spec, sid, alone=view.standalone)
    elif (spec.releases is not None or spec.variants) and sid in stage.running and not view.standalone:
        # With a record in each log, a leader sends a DIFF: most defects are in what a learner does with one.
        yield f"epoch: {1 + (sid == spec.leader)}, log: ['1:1']"
    elif sid == spec.leader and (spec.zab or _starts(spec) is None) and not view.standalone:
        yield "epoch: 1"
    if spec.releases is not None:
        yield f"like: {spec.releases.new if new else spec.releases.old}"


def _disk(spec: RunSpec, sid: Sid, *, alone: bool) -> Iterable[str]:
    """The first disk of a server: all have one transaction, but new servers have an empty disk or the given one.

    The transactions of a foreign disk are of a later epoch, and no server of this ensemble has proposed them. A server
    that runs standalone has no epoch.
    """
    hazard = spec.disks.get(sid)
    if hazard is DiskHazard.FOREIGN:
        yield f"epoch: {FOREIGN_EPOCH}, log: [{{zxid: '{FOREIGN_EPOCH}:1', value: foreign}}]"
    elif (sid in spec.stage.running and not alone) or hazard is DiskHazard.STALE:
        yield f"epoch: {1 + (sid == spec.leader)}, zxid: '1:1'"


def _history(spec: RunSpec) -> Iterable[list[Sid]]:
    """Who starts when, before anything is explored."""
    running = spec.stage.new.members if spec.done else spec.stage.running
    everybody = sorted(running - spec.down - {sid for sid, hazard in spec.disks.items() if hazard.is_foreign})
    yield from [everybody] if spec.zab else (_starts(spec) or [everybody])


def _starts(spec: RunSpec) -> list[list[Sid]] | None:
    """An order of starts after which that server leads the election alone; None if its id is too low for that.

    The servers with ids up to its own start first. They elect it if each of them has it as a voter, and has a quorum
    among them.
    """
    stage = spec.stage
    up = (stage.new.members if spec.done else stage.running) - spec.down
    if spec.leader is None:
        return [sorted(up)]
    renewed = stage.new.members if spec.done else stage.renewed
    views = {sid: stage.view_of(sid, renewed) for sid in up}
    if spec.leader not in up or not views[spec.leader].is_voter(spec.leader):
        return None
    first = frozenset(sid for sid in views[spec.leader].voters & up if sid <= spec.leader)
    if not all(views[sid].is_voter(spec.leader) and views[sid].contains_quorum(first) for sid in first):
        return None
    return [sorted(first), *([sid] for sid in sorted(up - first))]


def _plan(spec: RunSpec) -> Iterable[str]:
    for step in spec.steps_taken:
        wait = ", wait: rejoined" if step.wait and spec.patient else ""
        again = step.sid in spec.stage.old.members & spec.stage.new.members
        file = f", file: {spec.stage.new.files[step.sid]}" if again else ""
        if again and spec.releases is not None and spec.releases.is_upgrade:
            file += f", like: {spec.releases.new}"
        disk = _disk_of_step(spec, step.sid)
        if step.action == STOP:
            yield f"stop: {step.sid}"
        else:
            yield f"{step.action}: {step.sid}{file}{disk}{wait}"


def _disk_of_step(spec: RunSpec, sid: Sid) -> str:
    """The disk that the operator gives to a server that starts; nothing if it is its own, or its first one."""
    if spec.question is Question.EMPTY_DISK and sid in spec.stage.moved:
        return ", disk: empty"
    hazard = spec.disks.get(sid) if sid in spec.stage.running else None
    return {DiskHazard.EMPTY: ", disk: empty", DiskHazard.STALE: ", disk: earlier"}.get(hazard, "") if hazard else ""


def _model(spec: RunSpec) -> Iterable[str]:
    if spec.stage.states_versions:
        yield from ("channel: {capacity: 1}", "rounds: 2")
    else:
        yield "grain: oracle"
    if spec.zab:
        late = spec.question in OF_RELEASES or (spec.stage.changed_roles and spec.question is Question.COMMITS)
        yield from ("protocol: zab", f"disk: {'async' if late else 'sync'}")
        if spec.question in OF_RELEASES:
            yield "commits: async"
        if spec.variants:
            yield f"variants: [{', '.join(variant.value for variant in spec.variants)}]"
        if not spec.stage.states_versions:  # there `rounds` is the bound, and discovery is explored message by message
            yield from ("discovery: one-step", f"elections: {spec.elections}")
        if spec.writes:
            yield f"workload: {{writes: {spec.writes}}}"
    given = {kind: count for kind, count in spec.faults.items() if count}
    if given.get(CRASHES):
        given["restarts"] = given[CRASHES]
    if given.get(PARTITIONS) and spec.question is Question.HEALING:
        given["heals"] = given[PARTITIONS]
    if given:
        yield "faults: {" + ", ".join(f"{kind}: {count}" for kind, count in given.items()) + "}"


def _properties(spec: RunSpec) -> Iterable[str]:
    yield f"always: [{', '.join(spec.always)}]"
    if spec.recoverable:
        yield "recoverable: [Settles]"
