"""Conversion of a scenario of an ensemble to a `Setup`: protocol, history, plan, faults, clients, channels, variants.

Servers are read by `checker.scenario.servers`. Rules of this module:

- Every value is checked where it is written, so that an error names its line. A missing value gets the default of
  `checker.scenario.schema` or `checker.models.ensemble`, and no other.
- A key that would change nothing in this run is an error, because its author expects more of the run than it checks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from checker.job import Likeness
from checker.kit.actions import UNLIMITED
from checker.models.ensemble import Budgets, Grain, Prologue, Setup
from checker.models.ensemble.actions import BUDGETS, Domain, Section
from checker.scenario.files import Files, with_needed_addresses
from checker.scenario.kind import word
from checker.scenario.plan import PlanReader, check_plan, check_server
from checker.scenario.schema import (
    ELECTION,
    PROTOCOLS,
    ZAB,
    ChannelEntry,
    FaultsEntry,
    HistoryEntry,
    Scenario,
    WorkloadEntry,
    decode,
)
from checker.scenario.servers import members_of, without_idle_defects
from checker.scenario.yaml_lines import LikeError, NoEffect, Path, VariantError, YamlDocument, position
from spec.election.channel import ChannelRules
from spec.quorum import Sid
from spec.releases import Release, defects_of
from spec.txn import LAST_COUNTER
from spec.variants import DESCRIBED, Area, Variant
from spec.zab.state import Rollover, ZabRules

SYNCHRONOUS, ASYNCHRONOUS = "sync", "async"
AT_LEADER, ANYWHERE = "leader", "anywhere"
WITHOUT_LIMIT = "unlimited"  # the number of notification timeouts
PACKETS, ONE_STEP = "packets", "one-step"
ELECTIONS = 3  # the budget of elections by the oracle, unless the scenario gives one
_OF_ZAB = ("discovery", "disk", "commits", "clients", "elections", "zxids", "rollover")
"""The keys, with `workload`, that concern only leading and following."""

OF_THE_DISK = frozenset(
    {
        Variant.EPOCH_BEFORE_LOG,
        Variant.NEWLEADER_ACK_BEFORE_SYNC,
        Variant.QUEUE_SURVIVES_SHUTDOWN,
        Variant.ACK_BEFORE_LOG,
        Variant.TORN_RECORD,
    }
)
"""Variants that differ from the protocol only while a requested disk operation is not complete."""


NO_DEFECT = NoEffect("it has no known defect that is a variant", "leave it out")
_ELSEWHERE = {
    Area.SERVICE: "add it to a scenario with the key service",
    Area.RECIPES: "add it to a scenario with the key recipe",
}


def setup_of(scenario: Scenario, document: YamlDocument, files: Files, variants: frozenset[Variant]) -> Setup:
    """The setup that a scenario describes. Raises ScenarioError, and ConfigError for a file."""
    word(document, scenario.protocol, PROTOCOLS, ("protocol",))
    grain = Grain(word(document, scenario.grain, [value.value for value in Grain], ("grain",)))
    members = tuple(members_of(scenario, document, files))
    sids = tuple(member.sid for member in members)
    if scenario.rounds < 1:
        raise document.error(("rounds",), f"{scenario.rounds} rounds are too few", "write 1 or more")
    setup = with_needed_addresses(
        Setup(
            members,
            grain,
            tuple(_history(scenario, document, sids)),
            tuple(PlanReader(document, files, members).read(scenario.plan)),
            budgets_of(scenario, document, grain),
            scenario.rounds,
            _channels(scenario, document),
            variants,
            zab_of(scenario, document, variants),
            scenario.clients == ANYWHERE,
            scenario.discovery == ONE_STEP,
        )
    )
    check_plan(setup, document)
    check_that_all_matters(scenario, setup, document)
    return without_idle_defects(setup, why_no_effect)


def _history(scenario: Scenario, document: YamlDocument, sids: tuple[Sid, ...]) -> Iterable[Prologue]:
    started: set[Sid] = set()
    for number, value in enumerate(scenario.history):
        path: Path = ("history", position(number))
        entry = decode(HistoryEntry, document, value, path)
        for place, sid in enumerate(entry.start):
            place_of_start = (*path, "start", position(place))
            check_server(document, sid, sids, place_of_start)
            if sid in started:
                raise document.error(place_of_start, f"server {sid} runs already", "start each server once")
            started.add(sid)
        yield Prologue(tuple(entry.start))


def _channels(scenario: Scenario, document: YamlDocument) -> ChannelRules:
    value = {} if scenario.channel is msgspec.UNSET else scenario.channel
    entry = decode(ChannelEntry, document, value, ("channel",))
    if entry.capacity < 1:
        raise document.error(("channel", "capacity"), "nothing could ever be sent", "write 1 or more")
    return ChannelRules(entry.capacity, entry.resend, entry.merge_repeats)


def zab_of(scenario: Scenario, document: YamlDocument, variants: frozenset[Variant]) -> ZabRules | None:
    """The rules of leading and following; None with the election alone."""
    takes_time = [SYNCHRONOUS, ASYNCHRONOUS]
    disk = word(document, scenario.disk or ASYNCHRONOUS, takes_time, ("disk",))
    commits = word(document, scenario.commits or SYNCHRONOUS, takes_time, ("commits",))
    word(document, scenario.clients or AT_LEADER, [AT_LEADER, ANYWHERE], ("clients",))
    word(document, scenario.discovery or PACKETS, [PACKETS, ONE_STEP], ("discovery",))
    if scenario.protocol == ELECTION:
        return None
    if scenario.zxids is not None and not 0 < scenario.zxids < LAST_COUNTER:
        problem = f"{scenario.zxids} transactions in an epoch"
        raise document.error(("zxids",), problem, f"write a number from 1 to {LAST_COUNTER - 1}")
    words = [way.value for way in Rollover]
    rollover = Rollover(word(document, scenario.rollover or Rollover.ELECTION.value, words, ("rollover",)))
    return ZabRules(disk == ASYNCHRONOUS, commits == ASYNCHRONOUS, variants, zxids=scenario.zxids, rollover=rollover)


def budgets_of(scenario: Scenario, document: YamlDocument, grain: Grain) -> Budgets:
    """The budgets of faults, of client requests, and of elections by the oracle."""
    budgets: dict[str, int] = {}
    for key, kind, value in (
        (Section.FAULTS.value, FaultsEntry, scenario.faults),
        (Section.WORKLOAD.value, WorkloadEntry, scenario.workload),
    ):
        entry = decode(kind, document, {} if value is msgspec.UNSET else value, (key,))
        for name, count in msgspec.structs.asdict(entry).items():
            if isinstance(count, str):
                word(document, count, (WITHOUT_LIMIT,), (key, name))
                budgets[name] = UNLIMITED
                continue
            if count < 0:
                raise document.error((key, name), "a budget below zero", "write 0 or more")
            budgets[name] = count
    if scenario.elections is not None and scenario.elections < 0:
        raise document.error(("elections",), "a budget below zero", "write 0 or more")
    if scenario.protocol == ZAB and grain is Grain.ORACLE:
        budgets["elections"] = ELECTIONS if scenario.elections is None else scenario.elections
    return Budgets(**budgets)


def check_that_all_matters(scenario: Scenario, setup: Setup, document: YamlDocument) -> None:
    """Raise ScenarioError for a key that would change nothing."""
    for path, problem, right in _without_effect(scenario, setup):
        raise document.error(path, problem, right)


def _without_effect(scenario: Scenario, setup: Setup) -> Iterator[tuple[Path, str, str]]:
    """The place of each key that changes nothing, the reason, and the correction."""
    budgets = setup.budgets.by_name
    for name in budgets:
        section, domain = BUDGETS[name].section, BUDGETS[name].domain
        domain = Domain.ZAB if setup.zab is None and domain.is_of_zab else domain
        if section is not None and domain not in setup.domains:
            yield (section.value, name), f"it changes nothing where {domain.otherwise}", f"write {domain.setting}"
    if setup.zab is None:
        keys: list[Path] = [(key,) for key in _OF_ZAB if getattr(scenario, key) is not None]
        keys += [("workload",)] if scenario.workload is not msgspec.UNSET else []
        for path in keys:
            yield path, f"it changes nothing where {Domain.ZAB.otherwise}", f"write {Domain.ZAB.setting}"
    elif setup.grain is Grain.FINE:
        problem = "it changes nothing where elections are explored message by message"
        if scenario.elections is not None:
            yield ("elections",), problem, "write grain: oracle, or leave it out: `rounds` bounds the elections"
        if scenario.discovery == ONE_STEP:
            yield ("discovery",), problem, "write grain: oracle, or leave it out"
    if scenario.clients is not None and "writes" not in budgets:
        yield ("clients",), "it changes nothing where no client writes", "write workload: {writes: 1}"
    if scenario.zxids is not None and not 0 < scenario.zxids < budgets.get("writes", 0):
        problem = f"it changes nothing with {budgets.get('writes', 0)} writes: no epoch is used up"
        yield ("zxids",), problem, f"write workload: {{writes: {scenario.zxids + 1}}}, or more"
    if scenario.rollover is not None and scenario.zxids is None:
        yield ("rollover",), "it changes nothing where no counter ends", "write zxids: 1"
    for number, name in enumerate(scenario.variants):
        reason = why_no_effect(Variant(name), setup)
        if reason is not None:
            yield ("variants", position(number)), reason.what, reason.right
    for path, names in _variants_of_servers(scenario):
        for number, name in enumerate(names):
            reason = why_no_effect(Variant(name), setup)
            if reason is not None:
                yield (*path, "variants", position(number)), reason.what, reason.right


def _variants_of_servers(scenario: Scenario) -> Iterator[tuple[Path, list[str]]]:
    """The variants that single servers have, each list with the place of its entry."""
    if isinstance(scenario.servers, dict):
        for sid, entry in scenario.servers.items():
            yield ("servers", sid), (entry or {}).get("variants", [])
    for number, entry in enumerate(scenario.plan):
        yield ("plan", position(number)), entry.get("variants", [])


def why_no_effect(variant: Variant, setup: Setup) -> NoEffect | None:
    """The reason why a variant changes nothing in a setup; None if it may change something."""
    area = DESCRIBED[variant].area
    if area in (Area.SERVICE, Area.RECIPES):
        return NoEffect(f"it is of {area.value}, and here are servers alone", _ELSEWHERE[area])
    if area is Area.ELECTION:
        if setup.grain is Grain.ORACLE:
            return NoEffect("it changes nothing where an election is one step", "write grain: fine")
        return None
    if area is Area.RECONFIGURATION and not setup.reconfigs:
        return NoEffect("it changes nothing where nothing is reconfigured", "add a reconfig to the plan")
    if setup.zab is None:
        return NoEffect("it changes nothing where the election is all there is", "write protocol: zab")
    if variant in OF_THE_DISK and not setup.zab.asynchronous_disk:
        return NoEffect("it changes nothing where the disk is never late", "write disk: async")
    if variant is Variant.SYNC_FROM_APPLIED and not setup.zab.asynchronous_commits:
        return NoEffect("it changes nothing where commits are applied immediately", "write commits: async")
    if variant is Variant.TREE_AHEAD_OF_LOG and Variant.SYNC_FROM_APPLIED not in setup.all_variants:
        reason = "it changes nothing where no committed transaction follows a TRUNC"
        return NoEffect(reason, f"add the variant {Variant.SYNC_FROM_APPLIED.value}")
    if variant is Variant.PROMISES_OF_OBSERVERS and _all_vote(setup):
        return NoEffect("it changes nothing where each server votes by every file", "add an observer")
    if variant is Variant.DISK_ERROR_KEEPS_TREE and not setup.budgets.full_disks:
        return NoEffect("it changes nothing where no disk fails", "write faults: {full_disks: 1}")
    if variant is Variant.RESTORE_UNDONE and not setup.budgets.restores:
        return NoEffect("it changes nothing where no snapshot is restored", "write workload: {restores: 1}")
    return None


def _all_vote(setup: Setup) -> bool:
    """Whether each server is a voter by every file."""
    sids = {member.sid for member in setup.members}
    files = (file for member in setup.members for file in (member.file, *member.other_files))
    return all(sids <= file.view.voters for file in files)


def with_variants(setup: Setup, added: Iterable[Variant]) -> Setup:
    """The setup with these variants added. Raises VariantError for a variant that changes nothing there."""
    with_all = _with_all(setup, added)
    for variant in sorted(with_all.variants, key=lambda each: each.value):
        reason = why_no_effect(variant, with_all)
        if reason is not None:
            raise VariantError(variant.value, reason)
    return with_all


def _with_all(setup: Setup, added: Iterable[Variant]) -> Setup:
    variants = setup.variants | frozenset(added)
    zab = None if setup.zab is None else msgspec.structs.replace(setup.zab, variants=variants)
    return replace(setup, variants=variants, zab=zab)


def with_release(setup: Setup, release: Release) -> tuple[Setup, Likeness]:
    """The setup with the known defects of a release that may change something there, and what was added.

    Raises LikeError if none of them may.
    """
    defects, idle = list(defects_of(release)), dict[Variant, NoEffect]()
    while reasons := {
        defect: reason for defect in defects if (reason := why_no_effect(defect, _with_all(setup, defects))) is not None
    }:  # a defect may need another one
        idle |= reasons
        defects = [defect for defect in defects if defect not in idle]
    if not defects:
        raise LikeError(str(release), next(iter(idle.values()), NO_DEFECT))
    names = tuple(defect.value for defect in defects)
    left_out = {variant.value: reason.what for variant, reason in idle.items()}
    return _with_all(setup, defects), Likeness(str(release), names, left_out)
