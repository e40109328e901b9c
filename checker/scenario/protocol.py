"""The protocol of servers after the election, and the budgets of events: protocol, disk, clients, faults.

Rules of this module: a key that would change nothing in this run is an error, because its author expects more of the
run than it checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from checker.models.ensemble import Budgets, Grain, Setup
from checker.models.ensemble.actions import BUDGETS, UNLIMITED, Domain, Section
from checker.scenario.errors import nearest
from checker.scenario.schema import Common, FaultsEntry, Scenario, WorkloadEntry, decode
from checker.scenario.variants import why_idle
from checker.scenario.yaml_lines import Path, YamlDocument, position
from spec.variants import Variant
from spec.zab.state import ZabRules

ELECTION, ZAB = PROTOCOLS = ("election", "zab")
SYNCHRONOUS, ASYNCHRONOUS = "sync", "async"
AT_LEADER, ANYWHERE = "leader", "anywhere"
WITHOUT_LIMIT = "unlimited"  # the number of notification timeouts
PACKETS, ONE_STEP = "packets", "one-step"
ELECTIONS = 3  # the budget of elections by the oracle, unless the scenario gives one
_OF_ZAB = ("discovery", "disk", "commits", "clients", "elections")
"""The keys, with `workload`, that concern only leading and following."""


def word(located: YamlDocument, written: str, words: Iterable[str], path: Path) -> str:
    """Return a word if it is one of these. Raises ScenarioError with the nearest one."""
    valid = list(words)
    if written not in valid:
        raise located.error(path, f"{written[:60]!r} is not known here", nearest(written, valid))
    return written


def zab_of(scenario: Scenario, located: YamlDocument, variants: frozenset[Variant]) -> ZabRules | None:
    """The rules of leading and following; None with the election alone."""
    takes_time = [SYNCHRONOUS, ASYNCHRONOUS]
    disk = word(located, scenario.disk or ASYNCHRONOUS, takes_time, ("disk",))
    commits = word(located, scenario.commits or SYNCHRONOUS, takes_time, ("commits",))
    word(located, scenario.clients or AT_LEADER, [AT_LEADER, ANYWHERE], ("clients",))
    word(located, scenario.discovery or PACKETS, [PACKETS, ONE_STEP], ("discovery",))
    if scenario.protocol == ELECTION:
        return None
    return ZabRules(disk == ASYNCHRONOUS, commits == ASYNCHRONOUS, variants)


def budgets_of(scenario: Scenario, located: YamlDocument, grain: Grain) -> Budgets:
    """The budgets of faults, of client requests, and of elections by the oracle."""
    given: dict[str, int] = {}
    for key, kind, value in (
        (Section.FAULTS.value, FaultsEntry, scenario.faults),
        (Section.WORKLOAD.value, WorkloadEntry, scenario.workload),
    ):
        entry = decode(kind, located, {} if value is msgspec.UNSET else value, (key,))
        for name, count in msgspec.structs.asdict(entry).items():
            if isinstance(count, str):
                word(located, count, (WITHOUT_LIMIT,), (key, name))
                given[name] = UNLIMITED
                continue
            if count < 0:
                raise located.error((key, name), "a budget below zero", "write 0 or more")
            given[name] = count
    if scenario.elections is not None and scenario.elections < 0:
        raise located.error(("elections",), "a budget below zero", "write 0 or more")
    if scenario.protocol == ZAB and grain is Grain.ORACLE:
        given["elections"] = ELECTIONS if scenario.elections is None else scenario.elections
    return Budgets(**given)


def variants_of(scenario: Common, located: YamlDocument) -> frozenset[Variant]:
    """The known defects and mutants to reproduce."""
    valid = [each.value for each in Variant]
    return frozenset(
        Variant(word(located, name, valid, ("variants", position(number))))
        for number, name in enumerate(scenario.variants)
    )


def check_that_all_matters(scenario: Scenario, setup: Setup, located: YamlDocument) -> None:
    """Raise ScenarioError for a key that would change nothing."""
    for path, what, right in _idle(scenario, setup):
        raise located.error(path, what, right)


def _idle(scenario: Scenario, setup: Setup) -> Iterator[tuple[Path, str, str]]:
    """The place of each key that changes nothing, the reason, and the correction."""
    budgets = setup.budgets.by_name
    for name in budgets:
        domain = BUDGETS[name].domain
        if BUDGETS[name].section is Section.FAULTS and domain not in setup.domains:
            yield ("faults", name), f"it changes nothing where {domain.otherwise}", f"write {domain.setting}"
    if setup.zab is None:
        given: list[Path] = [(key,) for key in _OF_ZAB if getattr(scenario, key) is not None]
        given += [("workload",)] if scenario.workload is not msgspec.UNSET else []
        for path in given:
            yield path, f"it changes nothing where {Domain.ZAB.otherwise}", f"write {Domain.ZAB.setting}"
    elif setup.grain is Grain.FINE:
        what = "it changes nothing where elections are explored message by message"
        if scenario.elections is not None:
            yield ("elections",), what, "write grain: oracle, or leave it out: `rounds` bounds the elections"
        if scenario.discovery == ONE_STEP:
            yield ("discovery",), what, "write grain: oracle, or leave it out"
    if scenario.clients is not None and "writes" not in budgets:
        yield ("clients",), "it changes nothing where no client writes", "write workload: {writes: 1}"
    for number, name in enumerate(scenario.variants):
        idle = why_idle(Variant(name), setup)
        if idle is not None:
            yield ("variants", position(number)), idle.what, idle.right
