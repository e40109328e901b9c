"""The herd on running servers: every strategy and every size, one after another, on an ensemble of three.

Rules: nothing else runs meanwhile; a kind that cannot be started, or a case that fails, is listed in `missed` and the
measurement continues; a figure is the median over the deaths of one group. If a server stops answering, which 3.8.0
sometimes does (ZOOKEEPER-4537), the group is started again, a few times at most, and the number of these restarts is
reported with the figures.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.node.timing import HEAP, Say
from benchmarks.outcome import Missed
from harness.ensemble import KINDS, Ensemble
from harness.processes import ServerError
from research.herd import model
from research.herd.client_group import ClientGroup, Death, StalledError
from research.herd.model import STRATEGIES, Strategy

SERVERS = 3
TICK = 2000
ALL = tuple(STRATEGIES)
ATTEMPTS = 4
WARM_UP = (10, 30)
"""Clients and deaths of the group that is not measured: a JVM compiles the code that it runs often."""


@dataclass(frozen=True)
class Row:
    """One strategy at one size: the counts of the model, and every measured death, by kind of server."""

    strategy: Strategy
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
        expected = (self.counted.notifications, self.counted.requests)
        return all(
            expected == (death.notifications, death.requests) == (death.server_notifications, death.server_requests)
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
    """The number of groups that were started again, by kind."""


def measure(
    sizes: Sequence[int], kinds: Sequence[str], deaths: int, directory: Path, say: Say, strategies: Sequence[str] = ALL
) -> Report:
    """Count and measure every strategy with every number of clients."""
    chosen = [STRATEGIES[name] for name in strategies]
    rows = [Row(strategy, clients, model.count(strategy, clients), {}) for strategy in chosen for clients in sizes]
    missed: list[Missed] = []
    begun_anew: dict[str, int] = {}
    for kind in kinds:
        if reason := KINDS[kind]():
            missed.append(Missed(kind, reason))
            continue
        with _missing(kind, missed), _ensemble(kind, directory) as ensemble:
            ensemble.start_all()
            groups = _ClientGroups(ensemble)
            for strategy in chosen:
                groups.deaths(strategy, *WARM_UP)
            for row in rows:
                say(f"{kind}: {row.strategy.name}, {row.clients} clients")
                with _missing(f"{kind}: {row.strategy.name}, {row.clients} clients", missed):
                    row.deaths[kind] = groups.deaths(row.strategy, row.clients, deaths)
            begun_anew[kind] = groups.begun_anew
    return Report(rows, tuple(kinds), deaths, missed, begun_anew)


class _ClientGroups:
    """Groups of clients of one ensemble, each below a separate root."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.begun_anew = 0
        self._ensemble = ensemble
        self._numbers = count(1)

    def deaths(self, strategy: Strategy, clients: int, deaths: int) -> list[Death]:
        for _ in range(ATTEMPTS - 1):
            try:
                return self._deaths(strategy, clients, deaths)
            except StalledError:
                self.begun_anew += 1
        return self._deaths(strategy, clients, deaths)

    def _deaths(self, strategy: Strategy, clients: int, deaths: int) -> list[Death]:
        with ClientGroup(self._ensemble, strategy, clients, f"/crowd-{next(self._numbers)}") as group:
            return [group.death() for _ in range(deaths)]


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
