"""The questions about a `reconfig` command, as scenarios: its defects, its joiners, and a healthy ensemble before it.

Rules of this module:

- The members begin with one versioned configuration, as servers write it after their first election. A joiner has its
  own dynamic file, and has followed the leader before the command.
- The client asks at any time, and does not wait for the commit: the end of the command is explored with everything that
  may come between. A server that leaves goes on to run; its stop would be one more crash.
- Whether all servers settle is not asked: a removed server that is still running looks for a leader here, and really
  tries its designated leader again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from checker.rollout.config_state import ConfigState
from checker.rollout.inputs.folders import ServerText
from checker.rollout.reconfig.commands import MembershipCommand, with_role
from checker.rollout.scenarios import RunSpec
from checker.rollout.stages import Stage
from spec.quorum import Sid, View
from spec.releases import RELEASES, defects_of
from spec.variants import Area, of_area

DEFECTS = tuple(each for each in defects_of(RELEASES[-1]) if each in of_area(Area.RECONFIGURATION))
"""The defects of reconfiguration of the newest release. No release has fixed one of them."""
SETTINGS = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nreconfigEnabled=true\nstandaloneEnabled=false\n"
FIRST_VERSION = 1 << 32
"""The version that the leader of the first epoch gives to the configuration of the files."""


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
