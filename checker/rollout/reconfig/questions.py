"""The questions about a `reconfig` command, as scenarios: its defects, its joiners, and a healthy ensemble before it.

Rules of this module:

- The members begin with one versioned configuration, as servers write it after their first election. A joiner has its
  own dynamic file, and has followed the leader before the command.
- The client asks at any time, and does not wait for the commit: the end of the command is explored with everything that
  may come between. A server that leaves goes on to run; its stop would be one more crash.
- Whether all servers settle is not asked: a removed server that is still running looks for a leader here, and really
  tries its designated leader again.
- Small runs come first. A run without a write is a part of the run with one: it finds a violation sooner, and settles
  nothing else. There are as many elections as faults, and one without a fault.
- The first leader is the voter with the highest id that stays a voter. A command that takes the vote of some voter is
  also explored with such a voter as the leader, since the leadership is handed over then. Other leaders differ from
  these by their ids alone.
- Of two faults, a crash is for good: the server does not return. With its return the space is several times as large.
- The route in one command is searched for a violation under two faults first, as that is the danger of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from checker.rollout.assessor import splits
from checker.rollout.config_state import ConfigState
from checker.rollout.inputs.folders import ServerText
from checker.rollout.reconfig.commands import MembershipCommand, RouteKind, with_role
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, SAFE_DATA, Question, RunSpec
from checker.rollout.stages import Stage
from spec.quorum import Sid, View
from spec.releases import RELEASES, defects_of
from spec.variants import Area, of_area

DEFECTS = tuple(each for each in defects_of(RELEASES[-1]) if each in of_area(Area.RECONFIGURATION))
"""The defects of reconfiguration of the newest release. No release has fixed one of them."""
SETTINGS = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nreconfigEnabled=true\nstandaloneEnabled=false\n"
FIRST_VERSION = 1 << 32
"""The version that the leader of the first epoch gives to the configuration of the files."""


FAULT_KINDS = (DISCONNECTS, PARTITIONS, CRASHES)
PAIRS: tuple[dict[str, int], ...] = ({DISCONNECTS: 1, PARTITIONS: 1}, {DISCONNECTS: 1, CRASHES: 1})


class FaultBudget(Enum):
    """The faults of a run, by kind of question."""

    NONE = "without a fault"
    ASKED = "with the faults of the request"
    PAIR = "with a lost connection and one more fault"


@dataclass(frozen=True)
class ReconfigSpec(RunSpec):
    """A question about a command: `stage` has the members before and after it, with files that are written here."""

    command: MembershipCommand | None = None
    budget: FaultBudget = FaultBudget.NONE

    @property
    def name(self) -> str:
        """The name of the run and of its files."""
        words = f"reconfig from {_ids(self._command.before)} to {_ids(self._command.after)}"
        first = f"{self.leader} leads first"
        return ", ".join((words, f"{self.writes} write{'s' * (self.writes != 1)}", first, self.under or "no fault"))

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The files of the scenario by their names."""
        joiners = (_joiner(self._command, sid) for sid in self._command.joiners)
        return {**self.stage.old.texts, **{name: text for joiner in joiners for name, text in joiner.items()}}

    @property
    def _command(self) -> MembershipCommand:
        assert self.command is not None
        return self.command

    def _scenario(self) -> dict[str, object]:
        command, change, files = self._command, self._command.change, self.stage.old.files
        keys = {"add": change.voters, "observers": change.observers, "remove": change.leaving}
        servers = {
            sid: {"file": files.get(sid, f"joiner-{sid}.cfg"), **({"epoch": 1} if sid == self.leader else {})}
            for sid in sorted((*command.before.members, *command.joiners))
        }
        return {
            "name": self.name,
            "servers": servers,
            "history": [{"start": sorted(sids)} for sids in (command.before.members, command.joiners) if sids],
            "plan": [{"reconfig": {key: sorted(sids) for key, sids in keys.items() if sids}}],
            **self._model(by_messages=False, late=False),
        }


def stage_of(command: MembershipCommand) -> Stage:
    """The members before and after a command, with the files that the servers write themselves."""
    before = _state(_label(command.before), command, command.before, FIRST_VERSION)
    after = _state(_label(command.after), command, command.after, FIRST_VERSION + 1)
    return Stage(before, after, f"reconfig: {_ids(command.before)} to {_ids(command.after)}")


def _state(label: str, command: MembershipCommand, view: View, version: int) -> ConfigState:
    name = f"{label}.cfg.dynamic.{version:x}"
    text, read = f"{SETTINGS}dynamicConfigFile={name}\n", {name: _members(command, view)}.get
    members = sorted(view.members)
    return ConfigState(
        label, {sid: ServerText(sid, f"{label}.cfg", text, read).parsed() for sid in members}, given=False
    )


def _members(command: MembershipCommand, view: View) -> str:
    """The lines of a dynamic file, each server with its role in the view."""
    lines = {sid: with_role(command.lines[sid], sid in view.observers) for sid in sorted(view.members)}
    return "".join(f"server.{sid}={line}\n" for sid, line in lines.items())


def _joiner(command: MembershipCommand, sid: Sid) -> dict[str, str]:
    """The two files of a joiner, by their names."""
    dynamic = _members(command, command.before) + f"server.{sid}={command.lines[sid]}\n"
    return {
        f"joiner-{sid}.cfg": f"{SETTINGS}dynamicConfigFile=joiner-{sid}.cfg.dynamic\n",
        f"joiner-{sid}.cfg.dynamic": dynamic,
    }


def _label(view: View) -> str:
    """A name of the state and its files, such as `members-1-2-3` or `members-1-2-3-observers-4`."""
    observers = ("observers", *sorted(view.observers)) if view.observers else ()
    return "-".join(map(str, ("members", *sorted(view.voters), *observers)))


def _ids(view: View) -> str:
    """`1, 2, 3` or `1, 2, 3 + observer 4`, in braces."""
    voters, observers = (", ".join(map(str, sorted(each))) for each in (view.voters, view.observers))
    return f"{{{voters}{f' + observer {observers}' if observers else ''}}}"


def specs_of(kind: RouteKind, commands: tuple[MembershipCommand, ...], faults: int) -> list[ReconfigSpec]:
    """The questions in the order of the search: for each size one for each command and each kind of first leader."""
    return sorted(_specs(kind, commands, faults), key=lambda spec: _turn(kind, spec))


def _specs(kind: RouteKind, commands: tuple[MembershipCommand, ...], faults: int) -> Iterator[ReconfigSpec]:
    together = kind is RouteKind.AT_ONCE
    plain = [(FaultBudget.NONE, dict[str, int](), 1)]
    asked = [(FaultBudget.ASKED, split, 1) for split in splits(faults, FAULT_KINDS)]
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
