"""The findings of a search on a cluster: which state has the first finding of each property, and its path.

Rules:

- The first finding of a property is the one with the least number in the order of the whole search (`pieces`), so that
  it does not depend on the number of parts.
- A path is rebuilt here by the plain engine, and its last row must be the one that the part reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from checker.cluster.part.messages import PartReport
from checker.cluster.part.pieces import Pieces
from checker.cluster.part.tables import row_digest
from checker.cluster.transport import Transport
from checker.engine.model import Finding, ModelError
from checker.engine.result import Discovery, Exploration
from checker.engine.semantics import answer, rebuild


class Divided(NamedTuple):
    """An expanded level: its pieces, those of the next level, and the number of its first state in each part."""

    pieces: Pieces
    following: Pieces
    firsts: Sequence[int]

    def place(self, part: int, state: int) -> tuple[bool, int]:
        """The place of a state of a part in the order: whether it is in the next level, and the place there."""
        own, row = int(self.pieces.of(part).sum()), state - self.firsts[part]
        return (True, self.following.place(part, row - own)) if row >= own else (False, self.pieces.place(part, row))


class SearchFindings:
    """The findings in a result; `ordinals` has the path of each, by the name of its property."""

    def __init__(self, result: Exploration, transport: Transport) -> None:
        self._result, self._transport = result, transport
        self.ordinals: dict[str, list[int]] = {}

    def go_back(self, found: Mapping[str, Discovery], ordinals: Mapping[str, list[int]]) -> None:
        """Replace the findings by earlier ones."""
        self._result.found, self.ordinals = dict(found), dict(ordinals)

    def note(self, reports: Sequence[PartReport], level: Divided | None = None) -> None:
        """Record the first finding of each property in an expanded level. Raises ModelError.

        Without a `level`, the search is not divided, and the numbers of a part are those of the search.
        """
        first: dict[int, tuple[tuple[bool, int], int, int]] = {}
        for part, report in enumerate(reports):
            for position, state in report.hits:
                if self._result.model.properties[position].name not in self._result.found:
                    place = (False, state) if level is None else level.place(part, state)
                    first[position] = min(first.get(position, (place, part, state)), (place, part, state))
        for position, (_, part, state) in sorted(first.items()):
            self._record(position, part, state)

    def _record(self, position: int, part: int, state: int) -> None:
        model = self._result.model
        (route,) = self._transport.get(self._transport.call(part, "route", state))
        path, prop = rebuild(model, route.ordinals), model.properties[position]
        if row_digest(path[-1].row) != route.digest:
            raise ModelError("the plain engine reaches another state than the tables; a step is not a function")
        finding = answer(model, prop, path[-1].row)
        if not isinstance(finding, Finding):
            raise ModelError(f"the property {prop.name!r} finds nothing where it found something before")
        self.ordinals[prop.name] = route.ordinals
        self._result.found[prop.name] = Discovery(prop, finding, len(path) - 1, path)
