"""The herd on running servers: every way and every size, one after another, on an ensemble of three.

Rules: nothing else runs meanwhile; a kind that cannot be started, or a case that fails, is listed in `missed` and the
measurement continues; a figure is the median over the deaths of one crowd. If a server stops answering, which 3.8.0
sometimes does, the crowd is started again, a few times at most, and the number of these restarts is reported with the
figures.
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
"""Clients and deaths of the crowd that is not measured: a JVM compiles the code that it runs often."""


@dataclass(frozen=True)
class Row:
    """One way at one size: the counts of the model, and every measured death, by kind of server."""

    way: Way
    clients: int
    counted: model.Count
    deaths: dict[str, list[Death]]

    def notifications(self, kind: str) -> float:
        """The median number of notifications of a death."""
        return median(death.notifications for death in self.deaths[kind])

    def requests(self, kind: str) -> float:
        """The median number of requests after a death."""
        return median(death.requests for death in self.deaths[kind])

    def seconds(self, kind: str) -> float:
        """The median time until a new leader knew, in seconds."""
        return median(death.seconds for death in self.deaths[kind])

    def agrees(self, kind: str) -> bool:
        """Whether every death had the cost that the model counts, at the clients and by the servers' own counters."""
        counted = (self.counted.notifications, self.counted.requests)
        return all(
            counted == (death.notifications, death.requests) == (death.server_notifications, death.server_requests)
            for death in self.deaths[kind]
        )


@dataclass(frozen=True)
class Report:
    """All rows, and the measurements that could not be made."""

    rows: list[Row]
    kinds: tuple[str, ...]
    deaths: int
    missed: list[Missed]
    begun_anew: dict[str, int] = field(default_factory=dict)
    """The number of crowds that were started again, by kind."""


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
    """Crowds of one ensemble, each below a separate root."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.begun_anew = 0
        self._ensemble = ensemble
        self._numbers = count(1)

    def deaths(self, way: Way, clients: int, deaths: int) -> list[Death]:
        """Measure a number of deaths of one crowd. Raises ServerError."""
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
