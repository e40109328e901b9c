"""Writes the questions about a stage as scenarios, so that users can keep and repeat each run.

Rules of this module:

- An election is one step (`grain: oracle`), except where configurations have versions, which only messages carry.
- The first leader is the server with the higher epoch where servers lead and follow. The election alone keeps epochs
  for ever, so there it is the one that an order of starts leads to, if there is such an order.
- A server that crashes may come back with the file it last ran with, or with the new one, which may lie ready, unless
  the files are copied at their steps (`at_step`). A partition ends only where healing is asked about.
- A roll-out has one release for all servers, or the one before and the one after an upgrade.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from checker.rollout.disks import DiskHazard
from checker.rollout.orders import STOP, ServerStep, Steps, Way
from checker.rollout.stages import Stage
from checker.scenario.yaml_lines import write_yaml
from spec.quorum import Sid
from spec.releases import Release, defects_of
from spec.variants import Variant


@dataclass(frozen=True)
class ReleaseChange:
    """The release that every server runs before the roll-out, and the one that it runs after its step."""

    old: Release
    new: Release

    @property
    def is_upgrade(self) -> bool:
        """Whether the release changes, to a newer or an older one."""
        return self.old != self.new

    @property
    def defects(self) -> tuple[Variant, ...]:
        """The known defects of either release, those of the old one first."""
        return tuple(dict.fromkeys((*defects_of(self.old), *defects_of(self.new))))

    def __str__(self) -> str:
        """Return `3.8.4`, or `3.8.4 to 3.9.5`."""
        return f"{self.old} to {self.new}" if self.is_upgrade else str(self.old)


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
OF_RELEASES = (Question.DEFECTS, Question.QUIET_DEFECTS)
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
    returns: bool = True  # a server that crashes may start again

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

    @cached_property
    def text(self) -> str:
        """The scenario."""
        return write_yaml(self._scenario())

    def _scenario(self) -> dict[str, object]:
        """The keys of the scenario; None is the value of a key that is left out."""
        late = self.question in OF_RELEASES or (self.stage.changed_roles and self.question is Question.COMMITS)
        return {
            "name": self.name,
            "servers": {sid: _server(self, sid) for sid in _sids(self)},
            "history": [{"start": start} for start in _history(self)],
            "plan": (not self.done and [_action(self, step) for step in self.steps_taken]) or None,
            "opening": self.opening or None,
            **self._model(by_messages=self.stage.states_versions, late=bool(late)),
        }

    def _model(self, *, by_messages: bool, late: bool) -> dict[str, object]:
        """The keys of the model; `late`: a write is on the disk some time after the server has it."""
        faults = {kind: count for kind, count in self.faults.items() if count}
        if faults.get(CRASHES) and self.returns:
            faults["restarts"] = faults[CRASHES]
        if faults.get(PARTITIONS) and self.question is Question.HEALING:
            faults["heals"] = faults[PARTITIONS]
        zab: dict[str, object] = {
            "protocol": "zab",
            "disk": "async" if late else "sync",
            "commits": "async" if self.question in OF_RELEASES else None,
            "variants": [variant.value for variant in self.variants] or None,
            "workload": {"writes": self.writes} if self.writes else None,
        }
        if not by_messages:  # there `rounds` is the bound, and discovery is explored message by message
            zab |= {"discovery": "one-step", "elections": self.elections}
        return {
            **({"channel": {"capacity": 1}, "rounds": 2} if by_messages else {"grain": "oracle"}),
            **(zab if self.zab else {}),
            "faults": faults or None,
            "always": self.always,
            "recoverable": ["Settles"] if self.recoverable else None,
        }

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


def _sids(spec: RunSpec) -> list[Sid]:
    sids = spec.stage.new.members if spec.done else spec.stage.sids
    movers = {step.sid for step in spec.steps} | spec.stage.running
    return [sid for sid in sorted(sids) if sid not in spec.down and (spec.done or sid in movers)]


def _without_none(keys: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in keys.items() if value is not None}


def _server(spec: RunSpec, sid: Sid) -> dict[str, object]:
    stage, releases = spec.stage, spec.releases
    new = spec.done or sid not in stage.old.members or sid in stage.applied
    state = stage.new if new else stage.old
    lies_ready = (spec.way.is_of_controller or not stage.changed_roles) and not spec.at_step
    early = spec.faults.get(CRASHES) and not new and sid in stage.new.members and lies_ready
    entry = {
        "file": state.files[sid],
        "other_files": [stage.new.files[sid]] if early else None,
        **_disk(spec, sid, alone=state.view.standalone),
        "like": None if releases is None else str(releases.new if new else releases.old),
    }
    return _without_none(entry)


def _disk(spec: RunSpec, sid: Sid, *, alone: bool) -> dict[str, object]:
    """The first disk of a server; one that runs standalone (`alone`) has no epoch.

    Where disks are asked about, all have one transaction, but new servers have an empty disk or the given one. The
    transactions of a foreign disk are of a later epoch, and no server of this ensemble has proposed them.
    """
    hazard, leads = spec.disks.get(sid), sid == spec.leader
    runs = sid in spec.stage.running and not alone
    if hazard is DiskHazard.FOREIGN:
        return {"epoch": FOREIGN_EPOCH, "log": [{"zxid": f"{FOREIGN_EPOCH}:1", "value": "foreign"}]}
    if spec.disks:
        return {"epoch": 1 + leads, "zxid": "1:1"} if runs or hazard is DiskHazard.STALE else {}
    if (spec.releases is not None or spec.variants) and runs:
        # With a record in each log, a leader sends a DIFF: most defects are in what a learner does with one.
        return {"epoch": 1 + leads, "log": ["1:1"]}
    return {"epoch": 1} if leads and (spec.zab or _starts(spec) is None) and not alone else {}


def _history(spec: RunSpec) -> list[list[Sid]]:
    running = spec.stage.new.members if spec.done else spec.stage.running
    everybody = sorted(running - spec.down - {sid for sid, hazard in spec.disks.items() if hazard.is_foreign})
    return [everybody] if spec.zab else (_starts(spec) or [everybody])


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


def _action(spec: RunSpec, step: ServerStep) -> dict[str, object]:
    sid, stage, releases = step.sid, spec.stage, spec.releases
    if step.action == STOP:
        return {STOP: sid}
    again = sid in stage.old.members & stage.new.members
    disk = {DiskHazard.EMPTY: "empty", DiskHazard.STALE: "earlier"}.get(spec.disks.get(sid, DiskHazard.FOREIGN))
    entry = {
        step.action: sid,
        "file": stage.new.files[sid] if again else None,
        "like": str(releases.new) if again and releases is not None and releases.is_upgrade else None,
        # A server that starts has its own disk, or its first one, unless the operator gives it another.
        "disk": "empty"
        if spec.question is Question.EMPTY_DISK and sid in stage.moved
        else disk
        if sid in stage.running
        else None,
        "wait": "rejoined" if step.wait and spec.patient else None,
    }
    return _without_none(entry)
