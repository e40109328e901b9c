"""The corrections that belong to a run: those of the defects that its model has, and the same model with them.

The name of a correction is that of the variant. Two defects have no variant, but a rule. Observers of ZooKeeper
acknowledge NEWLEADER before the log (`ZabRules.observers_log_first`), which shows where a file makes one a voter. A
`reconfig` that does the same can stop the service (`ElectionRules.hears_observers`).
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from checker.models.ensemble import Setup
from spec.releases import HISTORIES
from spec.zab.state import ZabRules

OBSERVER_BECOMES_VOTER = "observer-becomes-voter"
PROMOTION_STOPS_SERVICE = "promotion-stops-service"
CORRECTED = tuple(variant for variant, history in HISTORIES.items() if history.corrected)
"""The variants with a correction."""
CORRECTIONS = (*(variant.value for variant in CORRECTED), OBSERVER_BECOMES_VOTER, PROMOTION_STOPS_SERVICE)
"""The names of all corrections."""


def corrections_of(setup: Setup) -> tuple[str, ...]:
    """The names of the corrections of the defects that a setup has."""
    names = [variant.value for variant in CORRECTED if variant in setup.variants]
    if setup.zab is not None:
        names += _of_promotions(setup, setup.zab)
    return tuple(names)


def corrected(setup: Setup) -> Setup:
    """The setup with these corrections."""
    variants = setup.variants - frozenset(CORRECTED)
    zab = setup.zab
    if zab is not None:
        zab = msgspec.structs.replace(zab, variants=zab.variants & variants, observers_log_first=True)
    hears_observers = PROMOTION_STOPS_SERVICE in corrections_of(setup)
    return replace(setup, variants=variants, zab=zab, hears_observers=hears_observers)


def _of_promotions(setup: Setup, rules: ZabRules) -> Iterator[str]:
    """The corrections for observers that become voters, by a file and by a reconfiguration."""
    views = {sid: setup.views_of(sid) for sid in setup.sids}
    observers = {sid for sid in setup.sids if any(sid in view.observers for view in views[sid])}
    if not rules.observers_log_first and any(sid in view.voters for sid in observers for view in views[sid]):
        yield OBSERVER_BECOMES_VOTER
    if any(observers & change.voters for change in setup.reconfigs):
        yield PROMOTION_STOPS_SERVICE
