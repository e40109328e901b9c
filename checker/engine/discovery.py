"""The finding of a property in a run, and the run that leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from checker.engine.model import Finding, Move, Property, Row


class Step(NamedTuple):
    """A move and the resulting row; the first step of a path has no move."""

    move: Move | None
    row: Row


@dataclass(frozen=True)
class Discovery:
    """The first finding of a property: its depth is least, and `path` leads there from the initial row.

    `path[0]` has no move and the initial row; each later step has a move and the row after it.

    A finding of liveness is a run that never reaches the goal. With a `loop`, the last row of the path equals that of
    step `loop`, and the steps between repeat forever (without such steps, the run may stay there). After step `since`
    the goal is unreachable (RECOVERABLE), or step `since` demands it (EVENTUALLY). The depth is `since` for
    RECOVERABLE, and the beginning of the loop for EVENTUALLY.
    """

    prop: Property
    finding: Finding
    depth: int
    path: tuple[Step, ...]
    loop: int | None = None
    since: int | None = None
