"""The herd on servers that run: every way and every size, one after the other, on an ensemble of three.

Rules: nothing else runs meanwhile; a kind that cannot be started, or a case that fails, is named in `missed` and the
rest goes on; a figure is the median over the deaths of one crowd. Where a server stops answering, which 3.8.0 does now
and then, the crowd begins anew, a few times at most, and how often is told beside the figures.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.herd import model
from benchmarks.herd.crowd import Crowd, Death, StalledError
from benchmarks.herd.ways import WAYS, Way
from benchmarks.node.moment import HEAP, Say
from benchmarks.outcome import Missed
from harness import KINDS, Ensemble, ServerError

SERVERS = 3
TICK = 2000
ALL = tuple(WAYS)
ATTEMPTS = 4
WARM_UP = (10, 30)
"""Clients and deaths of the crowd that is not measured: a JVM compiles what it runs often."""


@dataclass(frozen=True)
class Row:
    """One way at one size: what the model counts, and every death that was measured, by kind of server."""

    way: Way
    clients: int
    counted: model.Count
    deaths: dict[str, list[Death]]

    def notifications(self, kind: str) -> float:
        """Notifications of a death, the median."""
        return median(death.notifications for death in self.deaths[kind])

    def requests(self, kind: str) -> float:
        """Requests after a death, the median."""
        return median(death.requests for death in self.deaths[kind])

    def seconds(self, kind: str) -> float:
        """Until a new leader knew, the median."""
        return median(death.seconds for death in self.deaths[kind])

    def agrees(self, kind: str) -> bool:
        """Whether every death has cost what the model counts, at the clients and by the servers' own counters."""
        counted = (self.counted.notifications, self.counted.requests)
        return all(
            counted == (death.notifications, death.requests) == (death.server_notifications, death.server_requests)
            for death in self.deaths[kind]
        )


@dataclass(frozen=True)
class Report:
    """All rows, and what could not be measured."""

    rows: list[Row]
    kinds: tuple[str, ...]
    deaths: int
    missed: list[Missed]
    begun_anew: dict[str, int] = field(default_factory=dict)
    """How often a crowd had to begin anew, by kind."""


def measure(
    sizes: Sequence[int], kinds: Sequence[str], deaths: int, directory: Path, say: Say, ways: Sequence[str] = ALL
) -> Report:
    """Count and measure every way with every number of clients."""
    chosen = [WAYS[name] for name in ways]
    rows = [Row(way, clients, model.count(way, clients), {}) for way in chosen for clients in sizes]
    missed: list[Missed] = []
    begun_anew: dict[str, int] = {}
    for kind in kinds:
        if reason := KINDS[kind]():
            missed.append(Missed(kind, reason))
            continue
        with _missing(kind, missed), _ensemble(kind, directory) as ensemble:
            ensemble.start_all()
            crowds = _Crowds(ensemble)
            for way in chosen:
                crowds.deaths(way, *WARM_UP)
            for row in rows:
                say(f"{kind}: {row.way.name}, {row.clients} clients")
                with _missing(f"{kind}: {row.way.name}, {row.clients} clients", missed):
                    row.deaths[kind] = crowds.deaths(row.way, row.clients, deaths)
            begun_anew[kind] = crowds.begun_anew
    return Report(rows, tuple(kinds), deaths, missed, begun_anew)


class _Crowds:
    """Crowds of one ensemble, each with a root of its own."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.begun_anew = 0
        self._ensemble = ensemble
        self._numbers = count(1)

    def deaths(self, way: Way, clients: int, deaths: int) -> list[Death]:
        """So many deaths of one crowd. Raises ServerError."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._deaths(way, clients, deaths)
            except StalledError:
                self.begun_anew += 1
        return self._deaths(way, clients, deaths)

    def _deaths(self, way: Way, clients: int, deaths: int) -> list[Death]:
        with Crowd(self._ensemble, way, clients, f"/crowd-{next(self._numbers)}") as crowd:
            return [crowd.death() for _ in range(deaths)]


@contextmanager
def _ensemble(kind: str, directory: Path) -> Iterator[Ensemble]:
    home = directory / f"herd-{kind}"
    home.mkdir()
    with Ensemble([kind] * SERVERS, home, tick_time=TICK, heap=HEAP) as ensemble:
        yield ensemble


@contextmanager
def _missing(name: str, missed: list[Missed]) -> Iterator[None]:
    try:
        yield
    except (ServerError, OSError) as reason:
        missed.append(Missed(name, str(reason)))
