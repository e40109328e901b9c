"""Searches with all parts in this process, some of which are lost on the way."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from checker.cluster import exchange
from checker.cluster.exchange import ClusterExchange
from checker.cluster.ray_transport import RayTransport, Ref
from checker.cluster.search_part import SearchPart
from checker.engine import Exploration, Limits, Model, search
from checker.engine.result import SEED
from checker.engine.search import PartLostError, Request, Search
from checker.engine.states import frontier, waiting

NO_LIMITS = Limits()


class _Result:
    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value, self.error = value, error


class LocalTransport(RayTransport):
    """All parts in this process; each call is carried out at once."""

    def __init__(self, make: Callable[[int], SearchPart], parts: int) -> None:
        self._make, self.parts = make, parts
        self._parts: list[SearchPart | None] = [make(number) for number in range(parts)]

    @property
    def description(self) -> str:
        """This process."""
        return "one process"

    def call(self, part: int, method: str, *arguments: Any, returns: int = 1) -> list[Ref]:
        """Carry out a method of a part."""
        error = next(
            (argument.error for argument in arguments if isinstance(argument, _Result) and argument.error), None
        )
        target = self._parts[part]
        if target is None:
            error = PartLostError(f"part {part} is gone")
        if error is None and target is not None:
            values = [argument.value if isinstance(argument, _Result) else argument for argument in arguments]
            try:
                found = getattr(target, method)(*values)
                return [_Result(found)] if returns == 1 else [_Result(each) for each in found]
            except Exception as raised:
                error = raised
        return [_Result(error=error)] * returns

    def get(self, refs: Sequence[Ref]) -> list[Any]:
        """The results of calls."""
        for ref in refs:
            if ref.error is not None:
                raise ref.error
        return [ref.value for ref in refs]

    def lose(self, part: int) -> None:
        """Lose a part with all that it has in memory."""
        lost = self._parts[part]
        if lost is not None:
            lost.close()
        self._parts[part] = None

    def replace_lost(self) -> list[int]:
        """Start each lost part anew."""
        lost = [number for number, part in enumerate(self._parts) if part is None]
        for number in lost:
            self._parts[number] = self._make(number)
        return lost

    def remove_files(self) -> None:
        """Remove the files of all parts."""
        for part in self._parts:
            if part is not None:
                part.remove()

    def machines(self) -> list[str]:
        """This machine, for each part."""
        return ["this machine"] * self.parts

    def close(self) -> None:
        """Delete the temporary files of all parts."""
        for part in self._parts:
            if part is not None:
                part.close()


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
    sizes = {"DIVIDED": divided, "DEALT": piece, "PIECE": 2 * piece, "ROUND": rows}
    quick = patch.object(os, "fsync", lambda _: None)  # these tests lose parts, not the machine
    reports = patch.object(search, "REPORT_EVERY", 0.0)
    few = patch.object(waiting, "AWAKE", 2)  # all other blocks are stored
    with quick, few, reports, patch.multiple(exchange, **sizes), patch.object(frontier, "BLOCK", block):
        yield


def search_in_parts(
    model: Model,
    limits: Limits = NO_LIMITS,
    *,
    parts: int,
    files: Path | None = None,
    losses: Mapping[int, int] | None = None,
    **options: Any,
) -> tuple[Exploration, LosingTransport]:
    """Explore a model with parts in this process. With `files`, they are saved in that folder at every level."""

    def make(number: int) -> SearchPart:
        return SearchPart(model, SEED, files, number, parts)

    transport = LosingTransport(make, parts, losses or {})
    kept = {"save_every": None if files is None else 0.0, "folder": options.pop("folder", None)}
    return Search(Request(model, limits, **options), ClusterExchange(transport), **kept).run(), transport
