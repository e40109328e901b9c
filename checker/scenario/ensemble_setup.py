"""Conversion of a scenario to a `Setup`: history, plan, channels, limits, and the parts that other modules read.

Servers are read by `checker.scenario.servers`; protocol, faults and clients by `checker.scenario.protocol`.

Rules of this module: every value is checked where it is written, so that an error names its line; a missing value gets
the default of `checker.scenario.schema` or `checker.models.ensemble`, and no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from checker.engine import Limits
from checker.models.ensemble import File, Grain, PlannedAction, Prologue, Setup
from checker.scenario.errors import one_of
from checker.scenario.files import Files, with_needed_addresses
from checker.scenario.protocol import (
    ANYWHERE,
    ONE_STEP,
    PROTOCOLS,
    budgets_of,
    check_that_all_matters,
    variants_of,
    word,
    zab_of,
)
from checker.scenario.schema import ChannelEntry, Common, HistoryEntry, LimitsEntry, PlanEntry, Scenario, decode
from checker.scenario.servers import members_of
from checker.scenario.yaml_lines import Path, YamlDocument, position
from spec.election.channel import ChannelRules
from spec.quorum import Sid

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}  # as on the command line and in reports

KEPT, EMPTY = "kept", "empty"


def setup_of(scenario: Scenario, located: YamlDocument, files: Files) -> Setup:
    """The setup that a scenario describes. Raises ScenarioError, and ConfigError for a file."""
    word(located, scenario.protocol, PROTOCOLS, ("protocol",))
    grain = Grain(word(located, scenario.grain, [each.value for each in Grain], ("grain",)))
    members = tuple(members_of(scenario, located, files))
    sids = tuple(member.sid for member in members)
    if scenario.rounds < 1:
        raise located.error(("rounds",), f"{scenario.rounds} rounds are too few", "write 1 or more")
    variants = variants_of(scenario, located)
    setup = with_needed_addresses(
        Setup(
            members,
            grain,
            tuple(_history(scenario, located, sids)),
            tuple(_Plan(located, files, {member.sid: member.file for member in members}).read(scenario.plan)),
            budgets_of(scenario, located, grain),
            scenario.rounds,
            _channels(scenario, located),
            variants,
            zab_of(scenario, located, variants),
            scenario.clients == ANYWHERE,
            scenario.discovery == ONE_STEP,
        )
    )
    _check_running(setup, located)
    check_that_all_matters(scenario, setup, located)
    return setup


def limits_of(scenario: Common, located: YamlDocument) -> Limits:
    """The limits of the run."""
    if scenario.limits is msgspec.UNSET:
        return Limits()
    entry = decode(LimitsEntry, located, scenario.limits, ("limits",))
    for name in ("depth", "states", "seconds"):
        if (getattr(entry, name) or 0) < 0:
            raise located.error(("limits", name), "a limit below zero", "write a number above 0")
    return Limits(entry.depth, entry.states, _bytes(located, entry.memory), entry.seconds)


def _bytes(located: YamlDocument, memory: int | str | None) -> int | None:
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([KMGT]?B)?", str(memory), re.IGNORECASE)
    if memory is None or found is None or not float(found[1]):
        if memory is None:
            return None
        raise located.error(("limits", "memory"), f"{str(memory)[:40]!r} is no size", "write it like 500MB or 2GB")
    return int(float(found[1]) * _UNITS[(found[2] or "B").upper()])


# History, plan, faults.


def _history(scenario: Scenario, located: YamlDocument, sids: tuple[Sid, ...]) -> Iterable[Prologue]:
    started: set[Sid] = set()
    for number, value in enumerate(scenario.history):
        path: Path = ("history", position(number))
        entry = decode(HistoryEntry, located, value, path)
        for place, sid in enumerate(entry.start):
            here = (*path, "start", position(place))
            check_server(located, sid, sids, here)
            if sid in started:
                raise located.error(here, f"server {sid} runs already", "start each server once")
            started.add(sid)
        yield Prologue(tuple(entry.start))


def check_server(located: YamlDocument, sid: Sid, sids: Iterable[Sid], path: Path) -> None:
    """Raise ScenarioError unless the scenario has that server."""
    if sid not in sids:
        raise located.error(path, f"there is no server {sid} here", one_of(map(str, sids)))


class _Plan:
    """Read the plan; `after` are the servers that must have rejoined before the next action."""

    def __init__(self, located: YamlDocument, files: Files, boots_with: dict[Sid, File]) -> None:
        self._located, self._files, self._boots_with = located, files, boots_with
        self._after: tuple[Sid, ...] = ()

    def read(self, plan: list[Any]) -> Iterable[PlannedAction]:
        for number, value in enumerate(plan):
            path: Path = ("plan", position(number))
            yield from self._actions(decode(PlanEntry, self._located, value, path), path)

    def _actions(self, entry: PlanEntry, path: Path) -> Iterable[PlannedAction]:
        given = [name for name in ("restart", "stop", "start") if getattr(entry, name) is not None]
        if len(given) != 1:
            right = "write one of restart, stop and start, with the id of a server"
            raise self._located.error(path, f"{len(given)} actions in one entry", right)
        (name,) = given
        sid: Sid = getattr(entry, name)
        check_server(self._located, sid, self._boots_with, (*path, name))
        wait = word(self._located, entry.wait or "none", ["rejoined", "none"], (*path, "wait"))
        disk = word(self._located, entry.disk or KEPT, [KEPT, EMPTY], (*path, "disk"))
        if name == "stop" and (entry.file or wait == "rejoined" or disk == EMPTY):
            raise self._located.error(path, "a server that is stopped loads no file", "write restart or start")
        after, self._after = self._after, (sid,) if wait == "rejoined" else ()
        if name in ("restart", "stop"):
            yield PlannedAction("stop", sid, after=after)
            after = ()
        if name in ("restart", "start"):
            if entry.file:
                self._boots_with[sid] = self._files.file(entry.file, sid, (*path, "file"))
            yield PlannedAction("start", sid, self._boots_with[sid], after, empty=disk == EMPTY)


def _check_running(setup: Setup, located: YamlDocument) -> None:
    """Reject a plan that stops a stopped server or starts a running one, since it would block forever."""
    begun = {sid for prologue in setup.prologue for sid in prologue.start}
    for member in setup.members:
        first = next((p.action for p in setup.plan if p.sid == member.sid), None)
        if member.sid in begun and first == "start":
            raise located.error(("plan",), f"server {member.sid} runs already", "stop it first, or restart it")
        if member.sid in begun and member.late:
            right = "leave out `late`, or start it nowhere"
            raise located.error(("servers", member.sid, "late"), f"the history starts server {member.sid}", right)
        actions = [p.action for p in setup.plan if p.sid == member.sid]
        if any(one == other for one, other in pairwise(actions)):
            what = f"server {member.sid} is stopped or started twice in a row"
            raise located.error(("plan",), what, "stop and start it in turn")


def _channels(scenario: Scenario, located: YamlDocument) -> ChannelRules:
    value = {} if scenario.channel is msgspec.UNSET else scenario.channel
    entry = decode(ChannelEntry, located, value, ("channel",))
    if entry.capacity < 1:
        raise located.error(("channel", "capacity"), "nothing could ever be sent", "write 1 or more")
    return ChannelRules(entry.capacity, entry.resend, entry.merge_repeats)
