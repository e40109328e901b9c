"""The record of a schedule made by hand, and its execution on real servers, one step after the other.

Rules of this module:

- The servers serve before the first step. A step that does not happen in time ends the run as "not confirmed", as a
  difference from the model does. A failure before the first step, or after the last, is the harness's.
- A run is confirmed if it shows the effects of its defect; without the decisive step, or with a correction, if it shows
  none. Then a step may be impossible: it is named, and the run goes on. A write must have an answer, or the run says
  nothing.
- In the end everything recovers, and each write is looked up at each server that serves.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

from checker.models.ensemble import Setup
from harness.processes import ServerError
from harness.reproduce.by_hand.servers import Bench
from harness.reproduce.ends import Effect, Outcome, Reproduction, StepReport
from harness.reproduce.schedule import FIRST_WITH_RECONFIG, ScheduleError, check_release, corrections_for
from harness.servers import Servers
from spec.quorum import Sid
from spec.releases import Release


class HandStep(NamedTuple):
    """A step: what happens, and the function that causes it, waits for it, and returns what was seen besides.

    A run is not a defect without the `decisive` step, which a control leaves out.
    """

    caption: str
    act: Callable[[], Iterable[str] | None]
    decisive: bool = False


class HandMadeRun(ABC):
    """One run on real servers; a subclass has the steps for one shipped scenario, and the effects of its defect."""

    scenario: ClassVar[str]
    """The name of the scenario, as `quorate list` has it."""
    effects: ClassVar[frozenset[Effect]]
    sids: ClassVar[tuple[Sid, ...]]
    is_needed: ClassVar[bool] = True
    """Whether the driver cannot execute the scenario itself."""
    since: ClassVar[Release] = FIRST_WITH_RECONFIG
    """The first release with the requests of the steps, by default that of `reconfig`."""
    servers: Servers

    def __init__(self, bench: Bench, name: str = "servers") -> None:
        self.bench, self.name = bench, name
        self.result = Reproduction(Outcome.CONFIRMED)

    @abstractmethod
    def make(self) -> None:
        """Make `servers`; none runs yet."""

    @abstractmethod
    def begin(self) -> None:
        """Start the servers, and wait until they serve. Raises ServerError."""

    @abstractmethod
    def steps(self) -> tuple[HandStep, ...]:
        """The steps, which need no servers before they act; an act raises ServerError if it does not happen in time."""

    @abstractmethod
    def recover(self) -> None:
        """Undo every fault, let the servers recover, and note what `result` has of writes. Raises ServerError."""

    def acknowledge(self, path: str, sid: Sid) -> None:
        """Note that a client has a positive reply to its write at a server."""
        self.result.acknowledged[path] = sid

    def look_up(self, exists: Callable[[Sid, str], bool]) -> None:
        """Look up each acknowledged write at each server that serves."""
        serving = [sid for sid in self.servers.sids if self.servers.role(sid) is not None]
        self.result.servers = len(serving)
        self.result.absent = tuple(sid for sid in self.servers.sids if sid not in serving)
        for path in self.result.acknowledged:
            self.result.present[path] = tuple(sid for sid in serving if exists(sid, path))


@dataclass(frozen=True)
class HandMade:
    """The schedule of a scenario, made by hand. `omitted` has the number and the caption of a step that is left out."""

    name: str
    run: type[HandMadeRun]
    setup: Setup
    claim: str
    omitted: tuple[tuple[int, str], ...] = ()
    corrections: tuple[str, ...] = ()

    def without(self, number: int) -> "HandMade":
        """The schedule without its decisive step. Raises ScheduleError for another step."""
        steps = self.run(Bench(Path(), "")).steps()
        numbers = [place for place, step in enumerate(steps, 1) if step.decisive]
        if number not in numbers:
            right = f"write --without {numbers[0]}" if numbers else "it has no control"
            raise ScheduleError(f"{self.name}: step {number} of the schedule made by hand cannot be left out; {right}")
        return replace(self, omitted=((number, steps[number - 1].caption),))

    def check(self, release: str) -> None:
        """Raises ScheduleError for a release that does not have the requests of the steps."""
        check_release(self.name, release, self.run.since, "lacks the requests of this schedule")

    def with_corrections(self) -> "HandMade":
        """The schedule for servers whose defect is corrected. Raises ScheduleError if there is no correction."""
        return replace(self, corrections=corrections_for(self.name, self.setup))

    def reproduce(
        self, directory: Path, release: str, report: Callable[[StepReport], None], java_options: tuple[str, ...] = ()
    ) -> Reproduction:
        """Carry out one run below an empty directory; `report` receives each step as it ends."""
        run = self.run(Bench(directory, release, java_options=java_options))
        return carry_out(run, report, control=bool(self.omitted), corrected=bool(self.corrections))


def carry_out(
    run: HandMadeRun, report: Callable[[StepReport], None], *, control: bool = False, corrected: bool = False
) -> Reproduction:
    """Take all steps, let the servers recover, and judge the result; a `control` leaves out the decisive step."""
    result, harmless = run.result, control or corrected
    try:
        run.make()
        with run.servers:
            run.begin()
            for number, step in enumerate(run.steps(), 1):
                if control and step.decisive:
                    continue
                result.steps.append(_taken(number, step))
                report(result.steps[-1])
                if result.steps[-1].differences and not harmless:
                    break
            run.recover()
    except (ServerError, OSError) as error:
        result.outcome, result.reason = Outcome.HARNESS_FAILED, str(error)
    else:
        result.outcome, result.reason = _judged(result, run.effects, harmless=harmless)
    return result


def _judged(result: Reproduction, expected: frozenset[Effect], *, harmless: bool) -> tuple[Outcome, str]:
    last = result.steps[-1]
    if last.differences and not harmless:
        return Outcome.NOT_CONFIRMED, f"step {last.number} did not happen: {last.differences[0]}"
    if not result.acknowledged and not result.unanswered:
        return Outcome.HARNESS_FAILED, "no client could write, so nothing is known"
    wrong = result.effects if harmless else expected - result.effects
    if wrong:
        names = ", ".join(sorted(effect.value for effect in wrong))
        return Outcome.NOT_CONFIRMED, f"{'seen' if harmless else 'not seen'}: {names}"
    return Outcome.CONFIRMED, ""


def _taken(number: int, step: HandStep) -> StepReport:
    started = time.monotonic()
    seen: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    try:
        seen = tuple(step.act() or ())
    except ServerError as error:
        differences = (str(error).splitlines()[0],)  # without the log of a server
    return StepReport(number, step.caption, seen, time.monotonic() - started, differences)
