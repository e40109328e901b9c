"""Definitions shared by the measurements: the heap of a real server, the progress callback, a timing."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

HEAP = "1g"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Timing:
    """The time of one kind in seconds, one figure for each round; `memory` in bytes, 0 if it was not measured."""

    what: str
    kind: str
    seconds: list[float]
    memory: int = 0

    def __str__(self) -> str:
        seconds = f"{median(self.seconds):.2f} s (at most {max(self.seconds):.2f}, {len(self.seconds)} times)"
        return f"{self.what}, {self.kind}: {seconds}" + (f", {self.memory / (1 << 20):,.0f} MiB" if self.memory else "")
