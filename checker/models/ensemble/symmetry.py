"""The symmetry of an ensemble: servers with the same file may change places once no election can follow.

The ids of servers matter in elections alone: among equal votes the greatest id wins. When the budget of elections is
spent, a state and the same state with other ids are alike. Rules of this module:

- Only elections of one step have a budget. A plan of an operator names servers, and a cut names links, so models with
  one of these have no symmetry here.
- A renaming leaves every view as it is, and changes servers only with those of the same file and software.
- The fields that hold ids are those whose annotation names `Sid`. Ids that are sorted in a value are sorted again.

Source: ZooKeeper, `FastLeaderElection.totalOrderPredicate`, where ids are compared.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import permutations
from typing import Any

import msgspec

from checker.engine import Renaming, Symmetry
from checker.models.ensemble.actions import FAULTS
from checker.models.ensemble.history import EstablishedEpoch, ProposedTxn
from checker.models.ensemble.setup import VOTES, Grain, Member, Setup, connection_name, server_name
from spec.quorum import Sid, View
from spec.zab.state import Handler

MOST_RENAMINGS = 120
"""The size of a group beyond which there is no symmetry: each state has so many fingerprints to compute."""

Ids = Mapping[Sid, Sid]
_HINTS: dict[Any, dict[str, Any]] = {}


_ORDER: dict[type, Callable[[Any], Any]] = {
    Handler: lambda each: each.sid,
    ProposedTxn: lambda each: (each.epoch, each.leader, each.txn.zxid),
    EstablishedEpoch: lambda each: (each.epoch, each.leader),
}
"""The keys by which tuples of these values are sorted."""


def symmetry_of(setup: Setup, columns: Collection[str]) -> Symmetry | None:
    """The symmetry of a model of this setup with these columns; None if it has none."""
    if setup.grain is not Grain.ORACLE or setup.zab is None or setup.plan or not setup.is_static:
        return None
    if setup.gossip or setup.addressed or setup.budgets.cuts or setup.budgets.partitions or VOTES in columns:
        return None
    groups: dict[tuple[Any, ...], list[Sid]] = {}
    for member in setup.members:
        groups.setdefault(_kind(member), []).append(member.sid)
    views = setup.reachable_views
    renamings = [ids for ids in _all(list(groups.values())) if ids and all(_renamed_view(view, ids) for view in views)]
    if not 1 <= len(renamings) < MOST_RENAMINGS:
        return None
    names = tuple(columns)
    return Symmetry(tuple(_renaming(ids, names) for ids in renamings), FAULTS, _no_election_left)


def _kind(member: Member) -> tuple[Any, ...]:
    return member.file, member.other_files, member.software


def _no_election_left(faults: Any) -> bool:
    return bool(faults.left.elections == 0)


def _all(groups: list[list[Sid]]) -> Iterator[dict[Sid, Sid]]:
    """The permutations of the ids that stay within these groups, as the ids that they change."""
    if not groups:
        yield {}
        return
    first, *rest = groups
    for others in _all(rest):
        for order in permutations(first):
            yield {**others, **{one: other for one, other in zip(first, order, strict=True) if one != other}}


def _renamed_view(view: View, ids: Ids) -> bool:
    """Whether a view stays as it is when its ids change."""
    return bool(renamed(view, ids) == view)


def _renaming(ids: Ids, columns: tuple[str, ...]) -> Renaming:
    of_servers = {server_name(sid): server_name(to) for sid, to in ids.items()}
    sids = sorted({int(name.removeprefix("server.")) for name in columns if name.startswith("server.")})
    of_connections = {
        connection_name(one, other): connection_name(ids.get(one, one), ids.get(other, other))
        for one in sids
        for other in sids
        if one < other and connection_name(one, other) in columns
    }
    return Renaming({**of_servers, **of_connections}, lambda value: renamed(value, ids))


def renamed(value: Any, ids: Ids) -> Any:
    """A value with other ids of servers in it."""
    return _as(Any, value, ids)


def _as(hint: Any, value: Any, ids: Ids) -> Any:
    """A value of a type, as its annotation has it, with other ids."""
    if hint == Sid or (isinstance(value, int) and any(each == Sid for each in typing.get_args(hint))):
        return ids.get(value, value)
    if isinstance(value, frozenset):
        return frozenset(_as(_part(hint, frozenset, 0), each, ids) for each in value)
    if isinstance(value, tuple):
        return _tuple(hint, value, ids)
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **_fields(value, ids))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **_fields(value, ids))
    return value


def _tuple(hint: Any, value: tuple[Any, ...], ids: Ids) -> tuple[Any, ...]:
    parts = [_as(_part(hint, tuple, place), each, ids) for place, each in enumerate(value)]
    if parts and (key := _ORDER.get(type(parts[0]))) is not None:
        parts.sort(key=key)
    elif _part(hint, tuple, 0) == Sid == _part(hint, tuple, len(parts)):
        parts.sort()
    return tuple(parts)


def _part(hint: Any, kind: type, place: int) -> Any:
    """The annotation of a part of a tuple or set, by that of the whole; Any if it does not say."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next((each for each in typing.get_args(hint) if typing.get_origin(each) is kind), Any)
    parts = typing.get_args(hint) if typing.get_origin(hint) is kind else ()
    if not parts:
        return Any
    if parts[-1] is Ellipsis or kind is frozenset:
        return parts[0]
    return parts[place] if place < len(parts) else Any


def _fields(value: Any, ids: Ids) -> dict[str, Any]:
    """The fields of a structure with other ids, those alone that may hold one."""
    return {name: _as(hint, getattr(value, name), ids) for name, hint in _hints(type(value)).items()}


def _hints(kind: Any) -> dict[str, Any]:
    """The annotations of the fields of a structure that are neither plain numbers nor texts."""
    if (known := _HINTS.get(kind)) is not None:
        return known
    given = typing.get_type_hints(kind, include_extras=True)
    of_struct = getattr(kind, "__struct_fields__", None)
    names = [field.name for field in dataclasses.fields(kind)] if of_struct is None else of_struct
    hints = {name: given.get(name, Any) for name in names}
    return _HINTS.setdefault(kind, {name: hint for name, hint in hints.items() if hint not in (int, str, bool, bytes)})
