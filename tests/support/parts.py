"""Searches with all parts in this process, some of which are lost on the way."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from checker.cluster import distributed_search
from checker.cluster.distributed_search import DistributedSearch
from checker.cluster.part.search_part import SearchPart
from checker.cluster.transport import LocalTransport
from checker.engine import Exploration, Limits, Model
from checker.engine.result import SEED
from checker.engine.states import frontier, waiting

NO_LIMITS = Limits()


class LosingTransport(LocalTransport):
    """Loses a part before each of these calls: `losses` has the number of a part for the number of a call."""

    def __init__(self, make: Any, parts: int, losses: Mapping[int, int]) -> None:
        super().__init__(make, parts)
        self._losses, self._calls, self.lost = losses, 0, 0

    def call(self, part: int, method: str, *arguments: Any, returns: int = 1) -> list[Any]:
        self._calls += 1
        if self._calls in self._losses:
            self.lose(self._losses[self._calls] % self.parts)
            self.lost += 1
        return super().call(part, method, *arguments, returns=returns)


@contextmanager
def small_rounds(divided: int = 2, piece: int = 2, rows: int = 5, block: int = 7) -> Iterator[None]:
    """Divide a small level, in small pieces, rounds and blocks."""
    sizes = {"DIVIDED": divided, "DEALT": piece, "PIECE": 2 * piece, "ROUND": rows, "REPORT_EVERY": 0.0}
    quick = patch.object(os, "fsync", lambda _: None)  # these tests lose parts, not the machine
    few = patch.object(waiting, "AWAKE", 2)  # all other blocks are stored
    with quick, few, patch.multiple(distributed_search, **sizes), patch.object(frontier, "BLOCK", block):
        yield


def search_in_parts(
    model: Model,
    limits: Limits = NO_LIMITS,
    *,
    parts: int,
    folder: Path | None = None,
    losses: Mapping[int, int] | None = None,
    **options: Any,
) -> tuple[Exploration, LosingTransport]:
    """Explore a model with parts in this process. With a folder, they are saved there at every level."""

    def make(number: int) -> SearchPart:
        return SearchPart(model, number, parts, SEED, None if folder is None else folder / str(number))

    transport = LosingTransport(make, parts, losses or {})
    try:
        options = {"save_every": None if folder is None else 0.0, **options}
        return DistributedSearch(model, limits, transport, **options).run(), transport
    finally:
        transport.close()
