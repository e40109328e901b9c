"""The measurements of the command, in the order of their execution.

Rules: a measurement is a function from a number of servers to rows; it raises `NotMeasured` with the reason when it has
no figure; it ends before the next one begins. SPIN is first, since the ratios of all others refer to it.
"""

from collections.abc import Callable

from benchmarks import engine, spin
from benchmarks.outcome import Row

Measurement = Callable[[int], list[Row]]

MEASUREMENTS: tuple[tuple[str, Measurement], ...] = (
    ("spin", spin.measure),
    ("engine", engine.measure),
    ("liveness", engine.measure_liveness),
    ("election", engine.measure_election),
    ("zab", engine.measure_zab),
)
