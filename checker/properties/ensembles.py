"""The registry of the properties of ensembles, the setups that they apply to, and what several of them read.

Rules of this module: a default is data, not code at the place that asks for it; a server that is not running is a
word, never None.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Never

from checker.engine import Kind, Read
from checker.models.ensemble.names import LINKS, Link, server_name
from checker.models.ensemble.setup import Grain, Setup
from checker.models.ensemble.status import LEADING, ElectionStatus, election_status, is_established
from checker.properties.registry import Parameter, ParameterError, Registry, Scope
from spec.quorum import Sid

ENSEMBLE_PROPERTIES: Registry[Setup, Never] = Registry("ensembles")
"""All properties of ensembles, by name."""

EVERYWHERE: Scope[Setup] = Scope(lambda _: True, "yes")
ELECTION: Scope[Setup] = Scope(
    lambda setup: setup.zab is None,
    "yes, but not with `protocol: zab`: two servers may then LEAD for a moment and do no harm, and "
    "[Leadership](reference-zab-invariants.md#leadership) is the default instead",
)
FINE: Scope[Setup] = Scope(
    lambda setup: setup.grain is not Grain.ORACLE, "yes, at the fine grain; with the oracle no server counts votes"
)
ZAB: Scope[Setup] = Scope(
    lambda setup: setup.zab is not None,
    "with `protocol: zab`",
    "speaks of servers that lead and follow",
    "write protocol: zab",
)
ZAB_EQUAL_QUORUMS: Scope[Setup] = Scope(
    lambda setup: setup.zab is not None and len({view.quorums for view in setup.reachable_views}) <= 1,
    "with `protocol: zab`, if all views have the same quorums",
)

zab_invariant = partial(ENSEMBLE_PROPERTIES.declare, kind=Kind.ALWAYS, default=ZAB, needs=ZAB)
"""Declares an invariant of servers that lead and follow, which such ensembles have by default."""

Statuses = Mapping[Sid, ElectionStatus | str]


def statuses_of(setup: Setup) -> tuple[Read, ...]:
    """Reads of the summary of every server."""
    return tuple(Read(server_name(sid), election_status) for sid in setup.sids)


def statuses_and_links_of(setup: Setup) -> tuple[Read, ...]:
    """Reads of the cut links, and of the summary of every server."""
    return (Read(LINKS), *statuses_of(setup))


def serving(statuses: Statuses, cut: frozenset[Link]) -> list[Sid]:
    """The servers that lead while a quorum of their view follows them, counting only followers within reach."""
    found = []
    for sid, each in statuses.items():
        if isinstance(each, ElectionStatus) and each.state is LEADING:
            within = {o: e for o, e in statuses.items() if (min(o, sid), max(o, sid)) not in cut}
            if is_established(within, sid):
                found.append(sid)
    return found


def server_of(setup: Setup, value: Any, inside: tuple[str | int, ...] = ()) -> Sid:
    """The id of a server of the scenario. Raises ParameterError."""
    if isinstance(value, bool) or value not in setup.sids:
        listed = ", ".join(map(str, setup.sids))
        raise ParameterError(f"{quoted(value)} is no server here", f"write one of {listed}", inside)
    return int(value)


def _read_server(setup: Setup, value: object) -> tuple[Sid, str]:
    sid = server_of(setup, value)
    return sid, str(sid)


SERVER: Parameter[Setup] = Parameter("the id of a server", "3", _read_server)


def quoted(value: object) -> str:
    """The text of a wrong value, in a length fit for an error."""
    return repr(value)[:60]
