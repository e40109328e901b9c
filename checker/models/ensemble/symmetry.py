"""The symmetry of an ensemble: servers with the same file may change places.

The ids of servers matter in elections alone: among equal votes the greatest id wins, and the discovery that follows in
the same step hears the least id first. An over-approximation lists what an election does for every order of the ids
(`rules`). There ids mean nothing: servers that are equal in one election may be in another order in the next one. Rules
of this module:

- Only elections in one step are symmetric. A plan of an operator names servers, so a model with one has no symmetry.
- A renaming changes servers only with those of the same files and software, and of the same role in every view.
- The fields that hold ids are those whose annotation names `Sid`. Ids that are sorted in a value are sorted again.

Source: ZooKeeper, `FastLeaderElection.totalOrderPredicate`, where ids are compared.
"""

import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from itertools import chain, permutations, product
from math import factorial, prod
from typing import Any

import msgspec

from checker.engine import Renaming, Rule, Symmetry
from checker.models.ensemble.history import EstablishedEpoch, ProposedTxn, order_of_proposal, order_of_reign
from checker.models.ensemble.setup import VOTES, Grain, Link, Member, Setup, connection_name, server_name
from spec.quorum import Majority, Sid
from spec.zab.state import Handler

MOST_RENAMINGS = 120
"""The size of a group beyond which there is no symmetry: each state has as many fingerprints to compute."""

Groups = tuple[tuple[Sid, ...], ...]
Ids = Mapping[Sid, Sid]
_Rename = Callable[[Any, Ids], Any]
_PLAIN = frozenset((int, str, bool, bytes, float, type(None)))
_PLANS: dict[type[Any], tuple[tuple[str, _Rename], ...]] = {}
_ORDER: dict[type, Callable[[Any], Any]] = {
    Handler: lambda each: each.sid,
    ProposedTxn: order_of_proposal,
    EstablishedEpoch: order_of_reign,
}
"""The keys by which tuples of these values are sorted."""


def groups_of(setup: Setup, columns: Collection[str]) -> Groups:
    """The groups of servers that may change places in a model of this setup with these columns; () if none may."""
    if setup.grain is not Grain.ORACLE or setup.zab is None or setup.plan or not setup.is_static:
        return ()
    if setup.gossip or setup.addressed or VOTES in columns:
        return ()
    if not all(isinstance(view.quorums, Majority) for view in setup.reachable_views):
        return ()  # groups and weights name servers
    groups: dict[tuple[Any, ...], list[Sid]] = {}
    for member in setup.members:
        groups.setdefault(_kind(setup, member), []).append(member.sid)
    if not 1 < prod(factorial(len(group)) for group in groups.values()) <= MOST_RENAMINGS:
        return ()
    return tuple(map(tuple, groups.values()))


def symmetry_of(setup: Setup, groups: Groups, wider: tuple[Rule, ...]) -> Symmetry:
    """The symmetry of a model with these groups; `wider` are the rules that list elections for every order of ids."""
    return Symmetry(tuple(_renaming(setup, ids) for ids in orders(groups) if ids), wider)


def _kind(setup: Setup, member: Member) -> tuple[Any, ...]:
    """All that tells a server from others: files, software, whether it is late, and its role in each view."""
    roles = ((view.is_voter(member.sid), member.sid in view.observers) for view in setup.reachable_views)
    return member.file, member.other_files, member.software, member.late, *roles


def orders(groups: Iterable[Iterable[Sid]]) -> Iterator[dict[Sid, Sid]]:
    """The permutations of ids that stay within these groups, as the ids that they change; the first changes none."""
    parts = [tuple(group) for group in groups]
    for chosen in product(*map(permutations, parts)):
        pairs = chain.from_iterable(zip(part, order, strict=True) for part, order in zip(parts, chosen, strict=True))
        yield {one: other for one, other in pairs if one != other}


def _renaming(setup: Setup, ids: Ids) -> Renaming:
    pairs = {pair: (ids.get(pair[0], pair[0]), ids.get(pair[1], pair[1])) for pair in setup.quorum_pairs}
    of_servers = {server_name(sid): server_name(to) for sid, to in ids.items()}
    of_connections = {connection_name(*pair): connection_name(*to) for pair, to in pairs.items()}
    return Renaming(
        {**of_servers, **of_connections},
        lambda value: _links(value, ids) if type(value) is frozenset else renamed(value, ids),
    )


def _links(links: frozenset[Link], ids: Ids) -> frozenset[Link]:
    """The links that are cut, which are a column alone, with other ids; each has the smaller id first."""
    ends = [(ids.get(one, one), ids.get(other, other)) for one, other in links]
    return frozenset((min(pair), max(pair)) for pair in ends)


def renamed(value: Any, ids: Ids) -> Any:
    """A value with other ids of servers in it; the value itself if it has none of these ids.

    Where no annotation says what a number is, it is no id.
    """
    kind = type(value)
    if kind in _PLAIN or not ids:
        return value
    if kind is tuple:
        return _tuple(value, [renamed(part, ids) for part in value])
    if kind is frozenset:
        return frozenset(renamed(part, ids) for part in value)
    plan = _PLANS.get(kind)
    if plan is None:
        plan = _PLANS[kind] = _plan_of(kind)
    changed = {}
    for name, rename in plan:
        before = getattr(value, name)
        after = rename(before, ids)
        if after is not before:
            changed[name] = after
    if not changed:
        return value
    return msgspec.structs.replace(value, **changed) if isinstance(value, msgspec.Struct) else replace(value, **changed)


def _tuple(value: tuple[Any, ...], parts: list[Any]) -> tuple[Any, ...]:
    """A tuple with these parts instead, in their order; the tuple itself if they are its own."""
    if all(one is other for one, other in zip(value, parts, strict=True)):
        return value
    if (key := _ORDER.get(type(parts[0]))) is not None:
        parts.sort(key=key)
    return tuple(parts)


def _plan_of(kind: type[Any]) -> tuple[tuple[str, _Rename], ...]:
    """The fields of a structure that may hold an id, each with its renaming; none for another type."""
    names = tuple(getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ()))
    hints = typing.get_type_hints(kind, include_extras=True) if names else {}
    renamings = ((name, _renaming_of(hints.get(name, Any))) for name in names)
    return tuple((name, rename) for name, rename in renamings if rename is not None)


def _renaming_of(hint: Any) -> _Rename | None:
    """The renaming of values with this annotation; None if they hold no id."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint == Sid:
        return lambda value, ids: ids.get(value, value)
    if origin in (typing.Union, types.UnionType):
        return _of_union(parts)
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return _of_tuple(parts[0])
    if origin is tuple:
        return _of_fixed_tuple([_renaming_of(part) for part in parts])
    if origin is frozenset:
        rename = _renaming_of(parts[0])
        return rename and (lambda value, ids: frozenset(rename(each, ids) for each in value))
    if isinstance(hint, type) and (hint in _PLAIN or issubclass(hint, Enum)):
        return None
    return renamed


def _of_union(parts: tuple[Any, ...]) -> _Rename | None:
    """A value of a union tells by its type which of the annotations it has."""
    by_type = {int if part == Sid else typing.get_origin(part) or part: _renaming_of(part) for part in parts}
    if not any(by_type.values()):
        return None
    return lambda value, ids: (by_type.get(type(value), renamed) or _unchanged)(value, ids)


def _of_tuple(part: Any) -> _Rename | None:
    rename = _renaming_of(part)
    if rename is None:
        return None
    if part == Sid:  # a set of servers, in order
        return lambda value, ids: tuple(sorted(rename(element, ids) for element in value))
    return lambda value, ids: _tuple(value, [rename(element, ids) for element in value])


def _of_fixed_tuple(parts: list[_Rename | None]) -> _Rename | None:
    if not any(parts):
        return None
    return lambda value, ids: tuple((part or _unchanged)(item, ids) for part, item in zip(parts, value, strict=True))


def _unchanged(value: Any, _: Ids) -> Any:
    return value
