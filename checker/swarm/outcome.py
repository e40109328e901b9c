"""The outcome of a swarm: its counts, its findings, and its coverage over time.

An outcome names actions and properties, and no number of a table, so that outcomes of several processes can be added.
The number of distinct states is an estimate: HyperLogLog with 16,384 registers, whose standard error is 0.81 %.

Source: Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation
algorithm" (2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from checker.engine.kernels.walk_kernels import REGISTER_BITS
from checker.engine.model import Kind
from checker.engine.result import Exploration, SearchCounts, Stop

Array = np.ndarray[Any, Any]

REGISTERS = 1 << REGISTER_BITS
STANDARD_ERROR = 1.04 / math.sqrt(REGISTERS)
DEFAULT_DEPTH = 1000


class Sighting(NamedTuple):
    """The place of a finding: the step and the number of its walk. The least one is reported."""

    step: int
    walk: int


class Sample(NamedTuple):
    """A point of the coverage over time: the totals after some walks."""

    seconds: float
    walks: int
    steps: int
    states: int
    local_states: int


@dataclass(kw_only=True)
class WalkCounts(SearchCounts):
    """What some walks executed; counts of different walks can be added.

    `walks` were begun, and the end of the swarm `cut` some of them. `transitions` are the executed moves, `deadlocks`
    the walks that ended in a state without a successor. `depths` is the number of walks by their number of steps.
    `coverage` and `evaluations` count visits, not distinct states; Coverage.new is 0. `local` has for each column the
    numbers (u64, ascending) of its distinct values in the visited states. `sightings` has the least one of each
    property.
    """

    walks: int = 0
    cut: int = 0
    stop: Stop = Stop.WORK
    registers: Array = field(default_factory=lambda: np.zeros(REGISTERS, np.uint8))
    depths: dict[int, int] = field(default_factory=dict)
    local: dict[str, Array] = field(default_factory=dict)
    sightings: dict[str, Sighting] = field(default_factory=dict)

    def add(self, other: SearchCounts) -> None:
        """Add the counts of other walks, which ended later."""
        assert isinstance(other, WalkCounts)
        super().add(other)
        self.walks += other.walks
        self.cut += other.cut
        self.stop = other.stop
        self.registers = np.maximum(self.registers, other.registers)
        for depth, walks in other.depths.items():
            self.depths[depth] = self.depths.get(depth, 0) + walks
        for column, numbers in other.local.items():
            self.local[column] = np.union1d(self.local[column], numbers) if column in self.local else numbers
        for name, sighting in other.sightings.items():
            self.see(name, sighting)

    def see(self, name: str, sighting: Sighting) -> None:
        """Keep the least sighting of a property."""
        self.sightings[name] = min(sighting, self.sightings.get(name, sighting))

    @property
    def states(self) -> int:
        """The estimated number of distinct states that were visited."""
        return estimate(self.registers)

    @property
    def local_states(self) -> dict[str, int]:
        """The number of distinct values of each column in the visited states."""
        return {column: len(numbers) for column, numbers in self.local.items()}

    @property
    def depth(self) -> int:
        """The number of moves of the longest walk."""
        return max(self.depths, default=0)

    @property
    def mean_depth(self) -> float:
        """The mean number of moves of a walk."""
        return self.transitions / self.walks if self.walks else 0.0


@dataclass
class SwarmOutcome(WalkCounts, Exploration):
    """A swarm as an exploration, without a claim about states that no walk visited. Its limit of work is in walks, and
    that of memory the resident size of all processes of this machine.

    `states` is an estimate, and `depth` that of the longest walk. `found` has the run to each violation and deadlock;
    those in `shortest` are shown to be shortest. The walks before a finding that ended the swarm were finished.
    """

    shortest: set[str] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)

    @property
    def violated(self) -> list[str]:
        """The properties with a violation or a deadlock, in the order of the model."""
        return [p.name for p in self.properties if p.name in self.sightings and p.kind is not Kind.SOMETIMES]

    @property
    def sampled(self) -> str:
        """The extent of the walks, which show nothing about other runs."""
        return (
            f"no violation in what was executed: {self.walks:,} walks, {self.transitions:,} steps, "
            f"about {self.states:,} distinct states, to depth {self.depth}; a swarm shows nothing about other runs"
        )

    @property
    def progress(self) -> str:
        """The progress on one line."""
        rate = f", {self.transitions / self.seconds:,.0f}/s" if self.seconds > 0 else ""
        return (
            f"{self.walks:,} walks, {self.transitions:,} steps{rate}, about {self.states:,} states, "
            f"depth {self.depth}, {self.seconds:.0f} s"
        )

    def sample(self, seconds: float) -> None:
        """Add the present counts to the coverage over time."""
        local = sum(self.local_states.values())
        self.samples.append(Sample(seconds, self.walks, self.transitions, self.states, local))


def estimate(registers: Array) -> int:
    """The number of distinct states of a sketch; registers (u8) have the longest runs of zeros plus one."""
    count = len(registers)
    empty = int((registers == 0).sum())
    raw = 0.7213 / (1 + 1.079 / count) * count * count / float(np.exp2(-registers.astype(np.float64)).sum())
    if raw <= 2.5 * count and empty:
        return round(count * math.log(count / empty))
    return round(raw)
