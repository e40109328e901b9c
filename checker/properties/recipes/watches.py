"""The clients that events notify, and the watches that remain: the herd effect (R17), and useless watches (R16)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from checker.engine import TRIVIAL, Finding, Property, Read
from checker.models.recipes import HERD, ROOT, LargestHerd, RecipeSetup
from checker.models.service import LEADER, Leader, watches_name
from checker.properties.recipes.projections import Answer


def one_is_told(_: RecipeSetup) -> Property:
    """R16, R17: no event notifies more than one client of one server."""

    def check(told: LargestHerd) -> Answer:
        if told.clients > 1:
            return Finding("one event has notified several clients", (("path", told.path), ("clients", told.clients)))
        return None if told.clients else TRIVIAL

    return Property("OneIsTold", (Read(HERD),), check)


def no_watch_left(setup: RecipeSetup) -> Property:
    """R16: no watch of a recipe's znode remains at a path that is not in the leader's tree."""

    def paths(watches: Iterable[Any]) -> Hashable:
        return frozenset(path for _, _, path in watches if path.startswith(f"{ROOT}/"))

    def tree(leader: Leader) -> Hashable:
        return frozenset(path for path, _ in leader.store.nodes)

    def check(there: frozenset[str], *watched: frozenset[str]) -> Answer:
        left = sorted({path for paths in watched for path in paths if path not in there})
        if left:
            return Finding("a watch is left where no znode is", (("paths", tuple(left)),))
        return None if any(watched) else TRIVIAL

    reads = (Read(watches_name(server), paths) for server in setup.service.server_ids)
    return Property("NoWatchLeft", (Read(LEADER, tree), *reads), check)
