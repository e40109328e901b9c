"""The report of a swarm of runs, as text and as plain data.

Rules of this module:

- A run with a failure is always in the report, and its verdict is then `failed`.
- The ratio is simulated time by processor time, with the checks of the runs. It depends on the work of the clients, so
  the report also has the number of operations in a simulated second.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from checker.command import ExitCode
from checker.command_table import called
from spec.text import required_integer


class RunSummary(msgspec.Struct, frozen=True):
    """The result of one run; `simulated` and `real` (processor time, with the checks) are in seconds."""

    seed: str
    failures: tuple[str, ...]
    simulated: float
    real: float
    faults: dict[str, int]
    operations: dict[str, int]
    roles: dict[str, int]
    events: int
    starts: int
    digest: str


class FailedRun(msgspec.Struct, frozen=True):
    """A failing run: its seed, its failures, and the file that replays it, empty if it is not written."""

    seed: str
    failures: tuple[str, ...]
    replay: str


class SwarmReport(msgspec.Struct, frozen=True):
    """The report of `simulate`.

    `verdict` is `passed`, `failed`, `interrupted`, or `nothing was checked`. Times are in seconds: `simulated` of all
    runs, `processor` time, and `elapsed` time. `ratio` is simulated by processor time, `density` operations in a
    simulated second.
    `faults`, `operations` and `roles` are counts by kind, by outcome, and by role at each half tick.
    """

    verdict: str
    servers: int
    observers: int
    first_seed: int
    seeds: int
    simulated: float
    processor: float
    elapsed: float
    ratio: float
    density: float
    starts: int
    watch_events: int
    faults: dict[str, int]
    operations: dict[str, int]
    roles: dict[str, int]
    failed: tuple[FailedRun, ...]

    @property
    def exit_code(self) -> ExitCode:
        """12 for a failure, 20 after an interrupt, 21 if nothing was checked, 0 otherwise."""
        codes = {"failed": ExitCode.SAFETY, "passed": ExitCode.PASSED, "interrupted": ExitCode.INCOMPLETE}
        return codes.get(self.verdict, ExitCode.VACUOUS)

    def __str__(self) -> str:
        runs = f"{self.seeds} {'seed' if self.seeds == 1 else 'seeds'} from {self.first_seed} on"
        members = f"{self.servers} servers" + (f" and {self.observers} observers" if self.observers else "")
        lines = [
            f"{self.verdict}: {runs}, {members}",
            f"simulated {self.simulated:.0f} s in {self.processor:.1f} s of processor time: {self.ratio:.0f} times"
            f" faster than real time, at {self.density:.1f} operations a second; elapsed {self.elapsed:.1f} s",
            f"faults: {_counts(self.faults)}",
            f"operations: {_counts(self.operations)}; {self.watch_events} watch events",
            f"servers started {self.starts} times; roles at each half tick: {_counts(self.roles)}",
        ]
        for run in self.failed:
            where = f"; replay it with: {called('simulate')} --replay {run.replay}" if run.replay else ""
            lines.append(f"seed {run.seed} failed{where}")
            lines += [f"  {shortened(failure)}" for failure in run.failures]
        return "\n".join(lines)


def shortened(failure: str, most: int = 600) -> str:
    """A failure without the end of a long one."""
    return failure if len(failure) <= most else f"{failure[:most]}..."


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def swarm_report(
    runs: Iterable[RunSummary],
    servers: int,
    observers: int,
    first_seed: int,
    elapsed: float,
    replays: dict[str, str],
    *,
    interrupted: bool = False,
) -> SwarmReport:
    """The report on these runs; `replays` are files by seed."""
    summaries = sorted(runs, key=lambda run: required_integer(run.seed))
    sums: dict[str, Counter[str]] = {"faults": Counter(), "operations": Counter(), "roles": Counter()}
    for run in summaries:
        for name, counter in sums.items():
            counter.update(getattr(run, name))
    simulated, processor = sum(run.simulated for run in summaries), sum(run.real for run in summaries)
    failed = tuple(FailedRun(run.seed, run.failures, replays.get(run.seed, "")) for run in summaries if run.failures)
    operations = sum(sums["operations"].values())
    verdict = (
        "failed" if failed else "interrupted" if interrupted else "passed" if operations else "nothing was checked"
    )
    return SwarmReport(
        verdict=verdict,
        servers=servers,
        observers=observers,
        first_seed=first_seed,
        seeds=len(summaries),
        simulated=round(simulated, 3),
        processor=round(processor, 3),
        elapsed=round(elapsed, 3),
        ratio=round(simulated / processor, 1) if processor else 0.0,
        density=round(operations / simulated, 2) if simulated else 0.0,
        starts=sum(run.starts for run in summaries),
        watch_events=sum(run.events for run in summaries),
        failed=failed,
        **{name: dict(sorted(counter.items())) for name, counter in sums.items()},
    )
