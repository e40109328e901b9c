"""The faults of a run, as a list of values that follows from the seed, or that a file of a replay has.

Rules of this module:

- Each fault is complete in itself: its time, its victims, its length. Any subset of a list is a list, so that a failing
  run can be made smaller.
- A victim of 0 is the server that leads at that time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import msgspec

KINDS: Mapping[str, int] = {
    "kill": 6,
    "power": 6,
    "kill at a write": 6,
    "power at a write": 8,
    "power in a sync": 6,
    "kill all": 1,
    "power all": 2,
    "fail sync": 3,
    "stall": 3,
    "full": 2,
    "pause": 4,
    "cut": 5,
    "isolate": 4,
    "strand": 6,
    "partition": 3,
    "slow": 3,
    "reset": 4,
    "interrupt": 8,
    "clock": 2,
    "reconfigure": 4,
}
"""The kinds of faults, with their relative frequency."""
NUMBERS: Mapping[str, Sequence[int]] = {
    "kill at a write": (1, 2, 3, 5, 8, 13, 21, 34),
    "power at a write": (1, 2, 3, 5, 8, 13, 21, 34),
    "power in a sync": (1, 2, 2, 3, 5),
    "fail sync": (1, 1, 2, 3, 5),
    "stall": (30, 300, 3000),
    "slow": (10, 100, 500),
    "interrupt": range(3),
    "clock": (-3_600_000, -5000, -50, 50, 5000, 3_600_000),
    "reconfigure": range(3),
}
"""The numbers that a fault of a kind may have; those of a partition depend on the servers."""

REJOIN = 1.5
"""Seconds in which a stranded leader follows the new one, before that fails."""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault at a time in seconds, for some seconds. `number` has a meaning for each kind.

    - `kill`, `power`: the process ends, or the machine loses its power. `at a write`: at the disk's operation `number`
      from then on. `all`: every server.
    - `power in a sync`: the disk is slow, and the power fails during its sync `number` from then on.
    - `fail sync`: the sync `number` from then on fails, and the process hangs for some seconds meanwhile. `stall`: the
      disk is `number` times slower. `full`: no space.
    - `pause`: the process does not run. `clock`: the wall clock jumps by `number` milliseconds.
    - `cut`: packets from the victim to `other` are lost. `isolate`: all from and to it. `partition`: those between
      servers whose bit is set in `number` and the others. `slow`: to and from the victim, `number` times. `reset`: of
      all connections with `other`.
    - `interrupt`: when the next learner has received its tree from the leader, its connection is reset; with a `number`
      the leader ends: 1, at once; 2, after some seconds.
    - `strand`: the leader is isolated, and one client writes there while the others are quiet. What the leader logs
      alone is truncated later.
    - `reconfigure`: the victim leaves the ensemble or joins it, or changes its role, as `number` says.
    """

    at: float
    kind: str
    victim: int = 0
    other: int = 0
    seconds: float = 0.0
    number: int = 0

    @property
    def on_leader(self) -> Fault:
        """The same fault, of the leader."""
        return msgspec.structs.replace(self, victim=0)

    def __str__(self) -> str:
        victim = "leader" if not self.victim else f"server {self.victim}"
        peer = f" and server {self.other}" if self.other else ""
        number = f", {self.number}" if self.number else ""
        return f"{self.at:.3f} s: {self.kind} {victim}{peer} for {self.seconds:.2f} s{number}"


def faults_of(
    seed: str, servers: int, begin: float, end: float, tick: float, *, reconfigurable: bool
) -> tuple[Fault, ...]:
    """The faults of a run between two times; `tick` in seconds."""
    chance = random.Random(f"{seed}/faults")
    kinds = {kind: weight for kind, weight in KINDS.items() if kind != "reconfigure" or reconfigurable}
    # Each run has some kinds only, so that a frequent one does not hide the others (swarm testing).
    chosen = {kind: weight for kind, weight in kinds.items() if chance.random() < 0.6} or dict(kinds)
    pace = chance.choice((1.0, 2.0, 4.0))
    moment = begin
    faults: list[Fault] = []
    while True:
        moment += tick * (0.3 + pace * 2 * chance.random())
        if moment >= end:
            return tuple(faults)
        kind = chance.choices(list(chosen), list(chosen.values()))[0]
        fault = _drawn(chance, round(moment, 6), kind, servers, tick)
        faults.append(fault)
        after = round(moment + fault.seconds + REJOIN + 2 * tick * chance.random(), 6)
        if kind == "strand" and after < end and chance.random() < 0.6:  # the leader that was stranded may lead again
            faults.append(_drawn(chance, after, "isolate", servers, tick).on_leader)
            moment = after + 5 * tick


def _drawn(chance: random.Random, at: float, kind: str, servers: int, tick: float) -> Fault:
    victim = 0 if chance.random() < 0.4 else chance.randrange(1, servers + 1)
    peer = chance.randrange(1, servers + 1)
    seconds = round(tick * chance.choice((0.3, 1.0, 3.0, 8.0, 20.0)) * (0.5 + chance.random()), 6)
    numbers = range(1, (1 << servers) - 1) if kind == "partition" else NUMBERS.get(kind)
    number = chance.choice(numbers) if numbers else 0
    if kind == "fail sync":
        seconds = chance.choice((0.0, 0.5))
    elif kind == "interrupt":
        seconds = round(tick * (0.2 + chance.random()), 6)
    elif kind == "strand":
        victim, seconds = 0, round(tick * (8 + 12 * chance.random()), 6)
    return Fault(at, kind, victim, peer, seconds, number)
