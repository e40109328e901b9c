"""The measurements the command makes, in the order it makes them.

Rules: a measurement is a function from a number of servers to rows; it raises `NotMeasured` when it has no
figure, naming what is missing; it runs to its end before the next one begins. SPIN stands first, since the
ratios of all others refer to it.
"""

from collections.abc import Callable

from benchmarks import engine, liveness, spin
from benchmarks.outcome import Row

Measurement = Callable[[int], list[Row]]

MEASUREMENTS: tuple[tuple[str, Measurement], ...] = (
    ("spin", spin.measure),
    ("engine", engine.measure),
    ("liveness", liveness.measure),
    ("election", engine.measure_election),
    ("zab", engine.measure_zab),
)
