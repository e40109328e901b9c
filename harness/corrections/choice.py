"""The corrections that belong to a run: those of the defects that its model has, and the same model with them.

The name of a correction is that of the variant. One defect is no variant, but the rule of ZooKeeper's observers, which
log what is committed after UPTODATE (`ZabRules.observers_log_first`); it shows where an observer becomes a voter.
"""

from dataclasses import replace

import msgspec

from checker.models.ensemble import Setup
from spec.releases import HISTORIES

OBSERVER_BECOMES_VOTER = "observer-becomes-voter"
CORRECTED = tuple(variant for variant, history in HISTORIES.items() if history.corrected)
"""The variants with a correction."""
CORRECTIONS = (*(variant.value for variant in CORRECTED), OBSERVER_BECOMES_VOTER)
"""The names of all corrections."""


def corrections_of(setup: Setup) -> tuple[str, ...]:
    """The names of the corrections of the defects that a setup has."""
    names = tuple(variant.value for variant in CORRECTED if variant in setup.variants)
    return (*names, OBSERVER_BECOMES_VOTER) if _promotes_late_observer(setup) else names


def corrected(setup: Setup) -> Setup:
    """The setup with these corrections."""
    variants = setup.variants - frozenset(CORRECTED)
    zab = setup.zab
    if zab is not None:
        zab = msgspec.structs.replace(zab, variants=zab.variants & variants, observers_log_first=True)
    return replace(setup, variants=variants, zab=zab)


def _promotes_late_observer(setup: Setup) -> bool:
    """Whether an observer that logs late becomes a voter by a file."""
    if setup.zab is None or setup.zab.observers_log_first:
        return False
    views = {sid: setup.views_of(sid) for sid in setup.sids}
    return any(
        any(sid in view.observers for view in views[sid]) and any(sid in view.voters for view in views[sid])
        for sid in setup.sids
    )
