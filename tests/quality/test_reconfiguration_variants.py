"""Every variant of reconfiguration breaks an invariant, and every invariant of reconfiguration is broken by a variant.

Each variant has a scene: an ensemble, a plan and faults, small enough to be searched to its first violation, in which
the specification without the variant breaks nothing.
"""

from dataclasses import replace
from functools import cache

import pytest
from msgspec.structs import replace as with_fields

from checker.engine import Exploration, Kind, Limits, Stop
from checker.engine.search import explore
from checker.models.ensemble import Budgets, File, Grain, Member, PlannedReconfig, Prologue, Setup, ensemble
from checker.properties import ENSEMBLE_PROPERTIES
from spec.quorum import MembershipChange, majority_view
from spec.txn import make_zxid
from spec.variants import Area, Variant, of_area
from spec.zab.state import ZabRules

INVARIANTS = ("OneViewPerVersion", "ActiveViewCommitted", "CommittedViewInForce", "DesignatedLeaderComplete",
              "ActiveViewNeverReturns")  # fmt: skip
HARM = ("Leadership", "LeaderLogCompleteness", "NoBadProposal")


def change(*add: int, observers: tuple[int, ...] = (), remove: tuple[int, ...] = ()) -> MembershipChange:
    return MembershipChange(frozenset(add), frozenset(observers), frozenset(remove))


def scene(
    voters: int,
    changes: tuple[MembershipChange, ...],
    joiners: int = 0,
    observers: tuple[int, ...] = (),
    **budgets: int,
) -> Setup:
    """An ensemble whose leader serves, with joiners that follow it, and the reconfigurations that clients ask for."""
    old = tuple(range(1, voters + 1))
    new = tuple(range(voters + 1, voters + joiners + 1))
    view = majority_view(old, observers, version=make_zxid(1))
    members = [Member(sid, File("old", view)) for sid in (*old, *observers)]
    members += [Member(sid, File(f"joiner {sid}", majority_view((*old, sid)))) for sid in new]
    history = (Prologue(old), *(Prologue(later) for later in (observers, new) if later))
    return Setup(
        tuple(members),
        Grain.ORACLE,
        history,
        tuple(map(PlannedReconfig, changes)),
        Budgets(**budgets),
        zab=ZabRules(asynchronous_disk=False),
        discovery_in_one_step=True,
    )


REPLACE_ONE, REPLACE_TWO = (change(4, remove=(1,)),), (change(4, 5, remove=(1, 2)),)
SCENES = {
    Variant.PENDING_VIEW_ACTIVATED: scene(3, (change(4),), 1, disconnects=1),
    Variant.EPOCH_OF_ACTIVE_VIEW: scene(3, REPLACE_ONE, 1, disconnects=2, partitions=1, elections=2),
    Variant.LAST_SEEN_FORGOTTEN: scene(3, REPLACE_ONE, 1, crashes=2, restarts=2, partitions=1, elections=1),
    Variant.ACTIVATION_NOT_COUNTED: scene(
        3, (change(remove=(1,)),), observers=(4,), disconnects=1, elections=1, writes=2
    ),
    Variant.LAST_SEEN_IGNORED: scene(3, (change(4),), 1, crashes=1, elections=1),
    Variant.COMMIT_BY_OLD_QUORUM: scene(3, REPLACE_TWO, 2, crashes=1, elections=1),
    Variant.ANY_SUCCESSOR: scene(4, (change(remove=(4,)),)),
    Variant.STALE_VIEW_ACTIVATED: scene(3, (change(4),), 1, disconnects=1),
    Variant.VERSION_IS_A_COUNT: scene(3, (change(4), change(5)), 2, crashes=1, elections=1),
}


DEPTH = 14  # of a search, unless the next line has another
DEPTHS = {Variant.EPOCH_OF_ACTIVE_VIEW: 9, Variant.LAST_SEEN_FORGOTTEN: 12, Variant.ACTIVATION_NOT_COUNTED: 16}


def run(setup: Setup, depth: int, *variants: Variant) -> Exploration:
    """A search for each invariant that fails, with its least depth: witnesses do not end it."""
    assert setup.zab is not None
    chosen = replace(setup, variants=frozenset(variants), zab=with_fields(setup.zab, variants=frozenset(variants)))
    hoped_for = [replace(ENSEMBLE_PROPERTIES.build(chosen, name), kind=Kind.SOMETIMES) for name in (*INVARIANTS, *HARM)]
    return explore(ensemble("mutation", chosen, hoped_for), Limits(depth=depth), until_witnessed=False)


@cache
def broken_by(variant: Variant) -> frozenset[str]:
    return frozenset(run(SCENES[variant], DEPTHS.get(variant, DEPTH), variant).found)


OF_RECONFIGURATION = tuple(variant for variant in Variant if variant in of_area(Area.RECONFIGURATION))


def test_every_variant_has_a_scene():
    assert set(SCENES) == set(OF_RECONFIGURATION)


@pytest.mark.parametrize("variant", OF_RECONFIGURATION, ids=lambda variant: str(variant.value))
def test_every_variant_breaks_an_invariant(variant: Variant):
    assert broken_by(variant)


@pytest.mark.parametrize("name", INVARIANTS)
def test_every_invariant_is_broken_by_a_variant(name: str):
    assert [variant.value for variant in OF_RECONFIGURATION if name in broken_by(variant)]


@pytest.mark.parametrize("variant", OF_RECONFIGURATION, ids=lambda variant: str(variant.value))
def test_without_the_variant_nothing_is_broken_there(variant: Variant):
    searched = run(SCENES[variant], DEPTHS.get(variant, DEPTH))
    assert searched.found == {}
    assert searched.stop in (Stop.DEPTH, Stop.EXHAUSTED)
