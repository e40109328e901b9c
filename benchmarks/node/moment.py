"""What the measurements share: the heap of a real server, how progress is said, and the figures of one moment."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

HEAP = "1g"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Moment:
    """What one kind took, in seconds, a figure for each round; `memory` in bytes, 0 where it was not looked at."""

    what: str
    kind: str
    seconds: list[float]
    memory: int = 0

    def __str__(self) -> str:
        seconds = f"{median(self.seconds):.2f} s (at most {max(self.seconds):.2f}, {len(self.seconds)} times)"
        return f"{self.what}, {self.kind}: {seconds}" + (f", {self.memory / (1 << 20):,.0f} MiB" if self.memory else "")
