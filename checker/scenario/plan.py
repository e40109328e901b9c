"""The plan of a scenario: the actions of an operator, in their order.

Rules of this module:

- A plan that would block for ever, whatever the servers do, is an error: a stopped server is stopped, a running one is
  started, or no leader could accept a reconfiguration.
- A key that changes nothing at its action is an error.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from checker.models.ensemble import File, Grain, Member, PlannedAction, PlannedReconfig, Setup
from checker.scenario.files import Files
from checker.scenario.kind import word
from checker.scenario.schema import PlanEntry, ReconfigEntry, decode
from checker.scenario.servers import software_of
from checker.scenario.yaml_lines import Path, YamlDocument, one_of, position
from spec.durable import Durable
from spec.quorum import MembershipChange, Sid

KEPT, EMPTY, EARLIER = "kept", "empty", "earlier"  # the disk of a server that starts


def check_server(document: YamlDocument, sid: Sid, sids: Iterable[Sid], path: Path) -> None:
    """Raise ScenarioError unless the scenario has that server."""
    if sid not in sids:
        raise document.error(path, f"unknown server {sid}", one_of(map(str, sids)))


def check_plan(setup: Setup, document: YamlDocument) -> None:
    """Raise ScenarioError for a plan that would block for ever."""
    _check_running(setup, document)
    _check_reconfigs(setup, document)


class PlanReader:
    """Read the plan; `after` are the servers that must have rejoined before the next action."""

    def __init__(self, document: YamlDocument, files: Files, members: Iterable[Member]) -> None:
        self._document, self._files = document, files
        self._boots_with: dict[Sid, File] = {}
        self._disks: dict[tuple[Sid, str], Durable | None] = {}
        for member in members:
            self._boots_with[member.sid] = member.file
            self._disks[member.sid, EMPTY] = Durable()
            self._disks[member.sid, EARLIER] = member.durable
        self._after: tuple[Sid, ...] = ()
        self._has_reconfigs = False

    def read(self, plan: list[Any]) -> Iterable[PlannedAction | PlannedReconfig]:
        """The actions of a plan. Raises ScenarioError, and ConfigError for a file."""
        self._has_reconfigs = any(isinstance(value, dict) and "reconfig" in value for value in plan)
        for number, value in enumerate(plan):
            path: Path = ("plan", position(number))
            yield from self._actions(decode(PlanEntry, self._document, value, path), path)

    def _actions(self, entry: PlanEntry, path: Path) -> Iterable[PlannedAction | PlannedReconfig]:
        change = None if entry.reconfig is msgspec.UNSET else self._change(entry, path)
        names = [name for name in ("restart", "stop", "start") if getattr(entry, name) is not None]
        names += ["reconfig"] if change is not None else []
        if len(names) != 1:
            right = "write one of restart, stop and start, with the id of a server, or reconfig"
            raise self._document.error(path, f"{len(names)} actions in one entry", right)
        (name,) = names
        if change is not None:
            after, self._after = self._after, ()
            yield PlannedReconfig(change, after)
            return
        sid: Sid = getattr(entry, name)
        check_server(self._document, sid, self._boots_with, (*path, name))
        wait = word(self._document, entry.wait or "none", ["rejoined", "none"], (*path, "wait"))
        disk = word(self._document, entry.disk or KEPT, [KEPT, EMPTY, EARLIER], (*path, "disk"))
        software = software_of(entry, self._document, path)
        if name == "stop" and (entry.file or wait == "rejoined" or disk != KEPT or software is not None):
            raise self._document.error(path, "a server that is stopped loads no file", "write restart or start")
        after, self._after = self._after, (sid,) if wait == "rejoined" else ()
        if name in ("restart", "stop"):
            yield PlannedAction("stop", sid, after=after)
            after = ()
        if name in ("restart", "start"):
            if entry.file:
                self._boots_with[sid] = self._files.file(entry.file, sid, (*path, "file"))
            # A server that a reconfiguration may have changed keeps its file itself.
            file = None if self._has_reconfigs and not entry.file else self._boots_with[sid]
            yield PlannedAction("start", sid, file, after, self._disks.get((sid, disk)), software)

    def _change(self, entry: PlanEntry, path: Path) -> MembershipChange:
        """The change of a `reconfig` command. Raises ScenarioError, also for a key that changes nothing there."""
        place_of_change = (*path, "reconfig")
        change = decode(ReconfigEntry, self._document, entry.reconfig, place_of_change)
        members: list[Sid] = []
        for key, sids in msgspec.structs.asdict(change).items():
            for place, sid in enumerate(sids):
                place_of_sid = (*place_of_change, key, position(place))
                check_server(self._document, sid, self._boots_with, place_of_sid)
                if sid in members:
                    raise self._document.error(place_of_sid, f"server {sid} is named twice", "name each server once")
                members.append(sid)
        if not members:
            raise self._document.error(
                place_of_change, "it names no server", "write {add: [4]}, {observers: [4]} or {remove: [3]}"
            )
        for key in ("file", "disk", "wait", "like", "variants"):
            if getattr(entry, key):
                problem = "it changes nothing at a reconfig, which starts no server"
                raise self._document.error((*path, key), problem, "leave it out")
        return MembershipChange(frozenset(change.add), frozenset(change.observers), frozenset(change.remove))


def _check_reconfigs(setup: Setup, document: YamlDocument) -> None:
    """Reject a reconfiguration that no leader could ever accept, since the plan would block there forever."""
    if not setup.reconfigs:
        return
    path: Path = ("plan",)
    if setup.zab is None:
        raise document.error(
            path, "a reconfig is a write, and here the election is all there is", "write protocol: zab"
        )
    if setup.grain is Grain.FINE:
        raise document.error(path, "a reconfig cannot be explored message by message yet", "write grain: oracle")
    if not setup.gossip:
        problem = "no file has a version, so no leader accepts a reconfig"
        right = "write reconfigEnabled=true, and dynamicConfigFile=zoo.cfg.dynamic.100000000 in a file"
        raise document.error(path, problem, right)


def _check_running(setup: Setup, document: YamlDocument) -> None:
    """Reject a plan that stops a stopped server or starts a running one, since it would block forever."""
    running = {sid for prologue in setup.prologue for sid in prologue.start}
    for member in setup.members:
        first = next((p.action for p in setup.process_actions if p.sid == member.sid), None)
        if member.sid in running and first == "start":
            raise document.error(("plan",), f"server {member.sid} runs already", "stop it first, or restart it")
        if member.sid in running and member.late:
            right = "leave out `late`, or start it nowhere"
            raise document.error(("servers", member.sid, "late"), f"the history starts server {member.sid}", right)
        actions = [p.action for p in setup.process_actions if p.sid == member.sid]
        if any(before == second for before, second in pairwise(actions)):
            problem = f"server {member.sid} is stopped or started twice in a row"
            raise document.error(("plan",), problem, "stop and start it in turn")
