"""What a model of an ensemble bounds, in words that stand in every report and trace.

Rules of this module: a bound is named even where it is the default, since "no violation" is said within it.
"""

from __future__ import annotations

from checker.models.ensemble import Budgets, Grain, Setup

_FAULTS = {
    "crashes": ("crash", "crashes"),
    "restarts": ("restart after a crash", "restarts after crashes"),
    "cuts": ("cut of a link", "cuts of a link"),
    "partitions": ("partition", "partitions"),
    "heals": ("healing of all links", "healings of all links"),
    "rebroadcasts": ("notification time-out", "notification time-outs"),
    "impatience": ("server that waits no longer", "servers that wait no longer"),
}


def bounds_of(setup: Setup, opening: int, *, fast: bool = False) -> tuple[str, ...]:
    """The bounds of a setup; `opening` is the number of steps whose order is given, `fast` the network."""
    said = ["epochs and zxids stay as given: only the election is explored", _faults(setup.budgets)]
    if setup.plan:
        said.append(f"the operator's {len(setup.plan)} actions in their order")
    if setup.grain is Grain.FINE:
        said += _channels(setup)
    else:
        said.append("an election is one step, which leaves a leader and a quorum of its view that follows it")
    if setup.prologue:
        said.append("one history before the first state, everything on its way arriving at once")
    if fast:
        said.append("no wait ends and no operator acts while a notification is in flight")
    if opening:
        said.append(f"the first {opening} steps in one order")
    if setup.variants:
        said.append("with " + ", ".join(sorted(variant.value for variant in setup.variants)))
    return tuple(said)


def _faults(budgets: Budgets) -> str:
    allowed = budgets.by_name
    if not allowed:
        return "no faults"
    return "at most " + ", ".join(f"{count} {_FAULTS[name][count > 1]}" for name, count in allowed.items())


def _channels(setup: Setup) -> list[str]:
    rules = setup.channels
    said = [
        f"no election beyond round {setup.round_limit}",
        f"at most {rules.capacity} in flight from one server to another, and one queued",
    ]
    if rules.merge_repeats:
        said.append("a notification equal to the newest in flight is not sent twice")
    if not rules.resend:
        said.append("the last notification is not sent again on reconnection")
    return said
