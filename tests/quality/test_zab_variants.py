"""Mutation: the invariants that each variant of Zab breaks, as a table that is generated here, part of the manual.

Every default invariant of Zab must be broken by some variant, every variant must break some invariant, and without a
variant the same ensembles break none. Mutants of effects break the other invariants (`test_mutation_scenarios`).
REWRITE_GOLDEN=1 rewrites docs/reference-variants.md. Read the diff before you commit it: each entry says that an
invariant fails, and at which least depth.
"""

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from checker.engine import Kind, Limits, Stop
from checker.engine.search import explore
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.properties import ENSEMBLE_PROPERTIES, ZAB
from checker.properties.projections import ZAB_STANDALONE
from spec.durable import Durable
from spec.quorum import majority_view
from spec.releases import fixed_text, is_defect
from spec.txn import Txn, make_zxid
from spec.variants import DESCRIBED, Area, Variant, of_area
from spec.zab.state import ZabRules

PAGE = Path(__file__).parents[2] / "docs" / "reference-variants.md"
INVARIANTS = tuple(
    name
    for name, each in ENSEMBLE_PROPERTIES.items()
    if each.needs is ZAB and each.default not in (None, ZAB_STANDALONE)  # roll-outs break that of a standalone server
)
ZAB_VARIANTS = tuple(variant for variant in Variant if variant in of_area(Area.ZAB))
ELSEWHERE = {
    Area.ELECTION: "Breaks the election: see `tests/quality/test_variants.py` and the scenario of that name.",
    Area.RECONFIGURATION: (
        "Breaks an invariant with a `reconfig`: see `tests/quality/test_reconfiguration_variants.py`."
    ),
}
"""The areas whose variants are tested elsewhere, and the line about that on the page."""
ON_THE_PAGE = of_area(Area.ZAB, *ELSEWHERE)
STATES = 400_000  # a search finishes its level before this limit ends it


def scene(
    voters: int = 3, observers: int = 0, *, established: bool = True, packets: bool = False, late_commits: bool = False,
    disks: dict[int, Durable] | None = None, **budgets: int,
) -> Setup:  # fmt: skip
    """Return an ensemble with these budgets; each server that is not in `disks` has one transaction of epoch 1."""
    sids = range(1, voters + observers + 1)
    file = File("zoo.cfg", majority_view(sids[:voters], sids[voters:]))
    disk, others = Durable(1, 1, log=(GIVEN,)), disks or {}
    return Setup(
        members=tuple(Member(sid, file, others.get(sid, disk)) for sid in sids),
        grain=Grain.ORACLE,
        prologue=(Prologue(tuple(sids)),) if established else (),
        budgets=Budgets(**budgets),
        zab=ZabRules(asynchronous_commits=late_commits),
        discovery_in_one_step=not packets,
    )


GIVEN, LATER, LAST = (Txn(make_zxid(1, counter), counter) for counter in (1, 2, 3))
BY_SNAP = Durable(1, 1, snapshot=LATER.zxid)
USUAL = scene(elections=2, writes=2, crashes=2, restarts=2)
SCENES = {
    Variant.COMMITS_AFTER_UPTODATE: scene(elections=2, writes=1, crashes=2, restarts=2, late_commits=True),
    Variant.SYNC_FROM_APPLIED: scene(elections=2, writes=1, crashes=2, restarts=2, late_commits=True),
    Variant.EPOCH_BEFORE_LOG: scene(elections=2, writes=1, crashes=3, restarts=2),
    Variant.PROMISES_OF_OBSERVERS: scene(3, 1, established=False, packets=True, elections=2, disconnects=1),
    Variant.PARTIAL_SNAPSHOT_KEPT: scene(
        established=False, disks={1: Durable(1, 1), 3: Durable(1, 1)}, elections=3, crashes=2, restarts=2
    ),
    Variant.QUEUE_SURVIVES_SHUTDOWN: scene(established=False, elections=2, writes=3, disconnects=1),
    Variant.TRUNC_AFTER_SNAP: scene(
        disks=dict.fromkeys((1, 2, 3), BY_SNAP), elections=2, writes=2, crashes=2, restarts=2
    ),
    Variant.SNAPSHOT_OF_UNCOMMITTED: scene(elections=3, writes=1, crashes=2, restarts=2),
    Variant.SNAPSHOT_SURVIVES_TRUNC: scene(
        3,
        1,
        established=False,
        elections=2,
        crashes=1,
        disks={1: BY_SNAP, 2: BY_SNAP, 3: Durable(1, 1, LATER.zxid, (LAST,))},
    ),
    Variant.DISK_ERROR_KEEPS_TREE: scene(elections=2, writes=1, crashes=2, restarts=1, full_disks=1),
    Variant.COMMITTED_LOG_WITH_GAP: scene(
        established=False, disks={2: Durable(1, 1, log=(GIVEN, LATER))}, elections=2, writes=1, crashes=1
    ),
    Variant.TREE_AHEAD_OF_LOG: scene(elections=1, writes=2, disconnects=2, late_commits=True),
    Variant.RESTORE_UNDONE: scene(
        disks=dict.fromkeys((1, 2, 3), Durable(1, 1, log=(GIVEN, LATER))), elections=1, writes=1, crashes=1, restores=1
    ),
    Variant.HALF_IS_A_QUORUM: scene(
        4, established=False, packets=True, elections=2, crashes=1, restarts=1, disconnects=1
    ),
    Variant.OBSERVER_COUNTED: scene(5, 1, established=False, elections=1, writes=1, crashes=1),
}
"""The scenes for variants that need one; the others show in the usual scene."""
TOGETHER = {Variant.TREE_AHEAD_OF_LOG: Variant.SYNC_FROM_APPLIED}
"""The variants that have no effect without a companion."""


def with_variant(setup: Setup, variant: Variant) -> Setup:
    assert setup.zab is not None
    chosen = frozenset({variant, TOGETHER.get(variant, variant)})
    return replace(setup, variants=chosen, zab=ZabRules(True, setup.zab.asynchronous_commits, chosen))


def findings(setup: Setup) -> tuple[Stop, dict[str, int]]:
    """Return each invariant that fails, with its least depth. One search finds all, because witnesses do not end it."""
    hoped_for = [replace(ENSEMBLE_PROPERTIES.build(setup, name), kind=Kind.SOMETIMES) for name in INVARIANTS]
    exploration = explore(ensemble("mutation", setup, hoped_for), Limits(states=STATES))
    return exploration.stop, {name: exploration.found[name].depth for name in INVARIANTS if name in exploration.found}


@cache
def broken_by(variant: Variant) -> dict[str, int]:
    """Return the invariants that a variant breaks, without those that its companion breaks alone."""
    found = findings(with_variant(SCENES.get(variant, USUAL), variant))[1]
    if variant not in TOGETHER:
        return found
    stop, alone = findings(with_variant(SCENES[variant], TOGETHER[variant]))
    assert stop is Stop.EXHAUSTED
    return {name: depth for name, depth in found.items() if name not in alone}


@pytest.mark.parametrize("variant", ZAB_VARIANTS, ids=lambda variant: str(variant.value))
def test_every_variant_breaks_an_invariant(variant: Variant) -> None:
    assert broken_by(variant)


@pytest.mark.parametrize("name", INVARIANTS)
def test_every_invariant_is_broken_by_a_variant(name: str) -> None:
    assert [variant.value for variant in ZAB_VARIANTS if name in broken_by(variant)]


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(USUAL, id="usual"),
        *(pytest.param(SCENES[each], id=each.value, marks=pytest.mark.slow) for each in SCENES),
    ],
)
def test_without_a_variant_nothing_is_broken_there(setup: Setup) -> None:
    assert findings(setup)[1] == {}


LOGGED_TOO_LATE = {
    Variant.LOGGED_AFTER_UPTODATE: 10,
    Variant.EPOCH_BEFORE_LOG: 10,
    Variant.NEWLEADER_ACK_BEFORE_SYNC: 10,
    Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK: 11,
}
"""The known defects that write currentEpoch before the log, each with the depth of its shortest run."""


def depth_of_lost_initial_history(setup: Setup) -> int | None:
    prop = ENSEMBLE_PROPERTIES.build(setup, "InitialHistoryDurability")
    found = explore(ensemble("initial history", setup, [prop]), Limits(states=STATES)).found
    return found[prop.name].depth if found else None


@pytest.mark.parametrize("variant", LOGGED_TOO_LATE, ids=lambda variant: str(variant.value))
def test_an_epoch_that_is_written_before_the_log_loses_the_initial_history(variant: Variant) -> None:
    setup = with_variant(SCENES.get(variant, USUAL), variant)
    assert (
        depth_of_lost_initial_history(setup) == LOGGED_TOO_LATE[variant] < broken_by(variant)["LeaderLogCompleteness"]
    )


def test_without_a_variant_the_initial_history_is_durable() -> None:
    assert depth_of_lost_initial_history(USUAL) is None


def test_the_table_in_the_manual_is_what_the_checker_finds() -> None:
    page = "\n".join(_page()) + "\n"
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def _page() -> list[str]:
    lines = [*_HEAD, ""]
    for title, kind in (("Known defects", True), ("Mutants", False)):
        lines += [f"## {title}", ""]
        for variant in Variant:
            if variant in ON_THE_PAGE and is_defect(variant) is kind:
                lines += [f"### {variant.value}", "", f"{_sentence(DESCRIBED[variant].wrong)}", ""]
                lines += [f"Fixed: {fixed_text(variant)}.", ""] if kind else []
                lines += [_TOGETHER.format(TOGETHER[variant].value), ""] if variant in TOGETHER else []
                elsewhere = ELSEWHERE.get(DESCRIBED[variant].area)
                lines += [elsewhere or f"Breaks {_listed(broken_by(variant))}.", ""]
    lines += ["## Invariant against variant", "", "| invariant | broken by |", "| --- | --- |"]
    for name in INVARIANTS:
        by = {str(v.value): broken_by(v)[name] for v in ZAB_VARIANTS if name in broken_by(v)}
        lines.append(f"| {name} | {_listed(by)} |")
    return lines


_HEAD = """\
# Variants: wrong on purpose

A variant is the specification with one deliberate error in one place. It is a known defect of ZooKeeper, named after
the issue that reported it, or a mutant that we added. Variants show that the invariants can fail.
`quorate nodes --list-variants` lists them, `--variant NAME` runs one. The test `tests/quality/test_zab_variants.py`
writes this page, and fails if the page differs from the results of the checker. The number behind an invariant is the
least number of steps to its failure, in the small ensemble of that test. The scenarios in
`spec/scenarios/known-defects` are tuned to show one invariant each. [Other runs](reference-variants-on-releases.md) of
each known defect were executed on its releases.
""".splitlines()
_TOGETHER = "It has an effect only together with {0}. The invariants that {0} breaks alone are not listed."


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _listed(depths: dict[str, int]) -> str:
    return ", ".join(f"{name} ({depth})" for name, depth in sorted(depths.items(), key=lambda pair: (pair[1], pair[0])))
