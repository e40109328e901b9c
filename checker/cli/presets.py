"""The runs of `--nodes N`, as descriptions: a named set that checks an ensemble in several situations.

    cold start           an election with all its messages, and the first steps of its leader
    established          a leader that serves: writes, a crash, a return, re-election, synchronisation
    crash, observer, another view
                         the same with an observer, one server whose file does not name it, and a dropped connection
    a broken link        an election with all its messages after a link was cut; only the election
    faults of every kind the oracle's elections under every fault; only the election

Rules: each run checks every invariant of its protocol. An invariant whose premise never holds makes the run vacuous,
except where the bounds of the run exclude the premise: these are listed in `silent`, and reported as allowed. A run
that takes long has a depth limit, which `--depth` replaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

RunDescription = dict[str, Any]
FINE_UP_TO = 4  # the greatest number of servers whose election can be explored with all its messages

RUN: RunDescription = {
    "name": "as described", "nodes": 3, "observers": 0, "grain": "fine", "established": False, "other_views": {},
    "rounds": 2, "capacity": 2, "late": 0, "faults": {}, "silent": [], "variants": [], "protocol": "election",
    "discovery": "packets", "given": 0, "properties": [], "depth": None,
}  # fmt: skip
"""The defaults of every run.

`silent` names actions that need not fire and invariants whose premise need not hold. `given` is the number of
transactions on every disk at the start. `properties` names the invariants; an empty list means the usual ones.
"""
BEGINNING = ("LeaderIsAVoter", "OnlyVotersCounted", "Leadership", "OnlyVotersAck", "NoBadState")
DEPTHS = {4: 30, 5: 22, 6: 17, 7: 13}
"""The depth limits of the long runs of the whole server, by the number of servers."""


def preset_runs(nodes: int) -> Iterator[RunDescription]:
    """The set for this number of servers."""
    fine, depth = nodes <= FINE_UP_TO, DEPTHS.get(nodes)
    run = {**RUN, "nodes": nodes, "depth": depth}
    if fine:
        # In one round only one leader is established: a second one would be the violation.
        yield {
            **run, "name": "cold start", "protocol": "zab", "rounds": 1, "properties": _beginning(nodes),
            "silent": ["Leadership"],
        }  # fmt: skip
    else:
        yield {**RUN, "nodes": nodes, "name": "cold start", "grain": "oracle", "late": nodes}
    if nodes > 1:
        yield _whole(run, "established")
    if nodes > 2:
        other = {str(nodes - 1): list(range(1, nodes))}
        yield _whole(run, "crash, observer, another view", observers=1, other_views=other, disconnects=1)
    if nodes > 1 and fine:
        # A server that was cut off hears from the decided servers, and joins them without a `decide` step.
        links = {"cuts": 1, "heals": 1, "notification_timeouts": 1}
        yield {
            **RUN, "nodes": nodes, "name": "a broken link", "established": True, "faults": links, "silent": ["decide"],
        }  # fmt: skip
    if nodes > 1:
        less = {"crashes": 1, "restarts": 1, "partitions": 1, "heals": 1}
        every = {"crashes": 2, "restarts": 2, "cuts": 1, "partitions": 1, "heals": 1}
        yield {
            **RUN, "nodes": nodes, "name": "faults of every kind", "grain": "oracle", "late": nodes,
            "faults": every if fine else less,
        }  # fmt: skip


def _beginning(nodes: int) -> list[str]:
    """The invariants of an ensemble before its first commit; a single server waits for no ACK."""
    return [name for name in BEGINNING if nodes > 1 or name != "OnlyVotersAck"]


def _whole(
    run: RunDescription, name: str, observers: int = 0, other_views: Any = None, disconnects: int = 0
) -> RunDescription:
    """The whole server, from a leader that serves: two writes, a crash and a return, one more election."""
    faults = {"elections": 1, "writes": 2, "crashes": 1, "restarts": 1, "disconnects": disconnects}
    # Neither of two voters leads without the other, so the one with more transactions leads, and none is truncated.
    silent = ["CommittedLogDurability"] if run["nodes"] - observers == 2 else []
    return {
        **run, "name": name, "protocol": "zab", "grain": "oracle", "discovery": "one-step", "established": True,
        "given": 1, "silent": silent,
        "observers": observers, "other_views": other_views or {}, "faults": {k: v for k, v in faults.items() if v},
    }  # fmt: skip
