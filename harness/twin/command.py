"""`python -m harness twin`: one real server among peers that are the specification.

Exit codes: 0 everything was explained, by the specification or by known defects of the release; 1 something was not;
2 a wrong command line or file; 3 the server or the harness failed.
"""

import argparse
import random
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from checker.command import Command, refused
from harness import node, real, releases
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.releases import DEBIAN
from harness.reproduce.gates import compile_shim
from harness.twin.campaign import Cast, Episode, Misfit, build, casts, event_text, explained_by
from harness.twin.candidates import in_words
from harness.twin.coverage import Coverage
from harness.twin.subject import NODE, RealServer, Subject
from spec.releases import ReleaseError, defects_of, release_named
from spec.text import between
from spec.variants import Variant

WIDTH = 110
EPISODE = 400
"""The events of one episode."""
PROGRESS_SECONDS = 30.0
SHOWN_OUTLOOKS = 4
HEADER, ASSUMED = "quorate twin 1", "assumed: "


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--release", default=DEBIAN, help=f"the release of the server, or {NODE} for our own (default: {DEBIAN})"
    )
    parser.add_argument("--servers", type=between(3, 5), default=3, metavar="N", help="the servers (default: 3)")
    parser.add_argument("--server", type=between(1, 5), default=2, metavar="ID", help="the one under test (default: 2)")
    parser.add_argument("--steps", type=between(1), default=1000, metavar="N", help="how many events (default: 1000)")
    parser.add_argument("--minutes", type=between(1), metavar="N", help="no event after so many minutes")
    parser.add_argument("--seed", type=between(0), default=1, metavar="N", help="the seed of all choices (default: 1)")
    parser.add_argument(
        "--assume", action="store_true", help="assume each known defect from its first misfit on, to find the next one"
    )
    parser.add_argument("--save", type=Path, metavar="DIR", help="write the run before each misfit into this folder")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="cause the events of a saved run")
    add_keep(parser)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; return its exit code."""
    if mistake := _mistake(options):
        return refused(mistake, 2)
    try:
        saved = None if options.replay is None else _read(options)
        with directories(options.keep) as folder:
            sids = range(1, options.servers + 2)  # one more may observe
            shim = compile_shim(folder)
            subject = RealServer(options.release, tuple(sids), options.server, folder, shim, patient=saved is not None)
            try:
                return Campaign(options, subject).run(saved)
            finally:
                subject.shut_down()
    except (OSError, ValueError) as error:
        return refused(str(error), 2)
    except ServerError as error:
        return refused(str(error), 3)


def _mistake(options: argparse.Namespace) -> str | None:
    if options.release == NODE:
        reason = node.available()
    else:
        reason = releases.unknown(options.release) or real.available(options.release)
    if reason or (reason := keep_mistake(options.keep)):
        return reason
    if options.server > options.servers:
        return f"--server {options.server}: there are {options.servers} servers; name one of 1 to {options.servers}"
    if options.save is not None and not options.save.is_dir():
        return f"--save {options.save}: the folder does not exist; name one that exists"
    return None


@dataclass(frozen=True)
class SavedRun:
    """The events before a misfit, the servers, and the defects that were assumed."""

    cast: Cast
    assumed: frozenset[Variant]
    events: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content of the file."""
        return "\n".join((HEADER, _servers(self.cast), _assumptions(self.assumed), *self.events)) + "\n"


def _servers(cast: Cast) -> str:
    """The servers of a cast, in one line of a saved run."""
    voters, observers = (" ".join(map(str, sorted(sids))) for sids in (cast.view.voters, cast.view.observers))
    disk = "empty" if cast.is_new else "with a transaction"
    changing = "" if cast.changing is None else f", reconfig changes {cast.changing}"
    return f"voters {voters}, observers {observers or 'none'}, disk {disk}{changing}"


def _assumptions(defects: Iterable[Variant]) -> str:
    """Assumed defects, in one line of a saved run."""
    return f"{ASSUMED}{', '.join(sorted(defect.value for defect in defects))}"


def _read(options: argparse.Namespace) -> SavedRun:
    """The run of the option `replay`. Raises OSError and ValueError."""
    file = options.replay
    first, *lines = file.read_text(encoding="utf-8").splitlines()
    if first != HEADER:
        raise ValueError(f"{file}: it is no saved run of this command; its first line must be {HEADER!r}")
    known = {_servers(cast): cast for cast in casts(options.server, options.servers)}
    if not lines or lines[0] not in known:
        raise ValueError(f"{file}: its second line must name the servers as these options have them: "
                         f"{' or '.join(map(repr, known))}")  # fmt: skip
    variants = {variant.value: variant for variant in Variant}
    names = lines[1].removeprefix(ASSUMED) if len(lines) > 1 else ""
    assumed = frozenset(variants[name] for name in names.split(", ") if name in variants)
    if lines[1:2] != [_assumptions(assumed)]:
        raise ValueError(f"{file}: its third line must be {ASSUMED!r} and names of defects")
    return SavedRun(known[lines[0]], assumed.intersection(_defects(options.release)), tuple(lines[2:]))


class Campaign:
    """The episodes of one call, and their report."""

    def __init__(self, options: argparse.Namespace, subject: Subject) -> None:
        self._options, self._subject = options, subject
        self._coverage = Coverage()
        self._known: Counter[tuple[Variant, ...]] = Counter()
        self._began = self._told = time.monotonic()
        self._steps = self._episodes = self._misfits = self._unexplained = self._failures = 0
        self._defects = _defects(options.release)
        self._assumed: frozenset[Variant] = frozenset()

    def run(self, saved: SavedRun | None) -> int:
        """Run episodes up to the limits, or the saved run; return the exit code."""
        choice = random.Random(self._options.seed)
        with suppress(KeyboardInterrupt):
            self._run_episodes(saved, choice)
        print("\n".join(self._summary()), flush=True)
        return 1 if self._unexplained else 3 if self._failures else 0

    def _run_episodes(self, saved: SavedRun | None, choice: random.Random) -> None:
        while self._steps < self._options.steps and not self._is_late():
            self._episodes += 1
            if saved is None:
                cast = choice.choice(casts(self._options.server, self._options.servers))
            else:
                cast, self._assumed = saved.cast, saved.assumed
            ensemble = build(self._options.server, cast, self._assumed, is_node=self._options.release == NODE)
            episode = Episode(ensemble, self._subject, self._coverage, choice)
            try:
                misfit = self._go_on(episode) if saved is None else self._repeat(episode, saved.events)
            except (ServerError, OSError) as error:
                self._failures += 1
                print(f"event {len(episode.moves)}: {event_text(episode.moves[-1])}\n  not done: {error}", flush=True)
                self._save(episode, cast, "failure", self._failures)
            else:
                if misfit is not None:
                    self._report(episode, cast, misfit)
            if saved is not None:
                break

    def _is_late(self) -> bool:
        minutes = self._options.minutes
        return minutes is not None and time.monotonic() - self._began > 60 * minutes

    def _go_on(self, episode: Episode) -> Misfit | None:
        for _ in range(min(EPISODE, self._options.steps - self._steps)):
            self._steps += 1
            misfit = episode.take()
            if misfit is not None or episode.is_over or self._is_late():
                return misfit
            self._tell()
        return None

    def _repeat(self, episode: Episode, events: Sequence[str]) -> Misfit | None:
        for text in events:
            self._steps += 1
            misfit = episode.repeat(text)
            if misfit is not None:
                return misfit
        return None

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._told > PROGRESS_SECONDS:
            self._told = now
            rate = self._steps / (now - self._began)
            print(f"{self._steps:,} events, {rate:.0f} a second, {self._misfits} misfits", file=sys.stderr, flush=True)

    def _report(self, episode: Episode, cast: Cast, misfit: Misfit) -> None:
        self._misfits += 1
        rest = [defect for defect in self._defects if defect not in self._assumed]
        known = explained_by(self._options.server, cast, episode.steps, rest, self._assumed)
        if known is None:
            self._unexplained += 1
        else:
            self._known[known] += 1
        if known is None or self._known[known] == 1:
            print("\n".join(_lines(episode, misfit, known, self._steps)), flush=True)
            self._save(episode, cast, "misfit", self._misfits)
        if known is not None and self._options.assume:
            self._assumed = self._assumed.union(known)

    def _save(self, episode: Episode, cast: Cast, kind: str, number: int) -> None:
        if self._options.save is not None:
            file = self._options.save / f"twin-{self._options.seed}-{kind}-{number}.txt"
            events = tuple(event_text(move) for move in episode.moves)
            file.write_text(SavedRun(cast, self._assumed, events).text, encoding="utf-8")
            print(f"  saved: {file}", flush=True)

    def _summary(self) -> list[str]:
        seconds = time.monotonic() - self._began
        (reached, total), missing = self._coverage.counts(), self._coverage.missing()
        lines = [
            f"{self._steps:,} events in {self._episodes} episodes and {seconds:.0f} s, "
            f"{self._steps / max(seconds, 0.001):.0f} a second",
            f"{reached} of {total} peer-visible actions ({100 * reached // total} %)",
        ]
        if missing:
            lines.append(textwrap.fill(f"not reached: {', '.join(missing)}", WIDTH, subsequent_indent="  "))
        lines += [f"{count} times explained by {_names(known)}" for known, count in self._known.most_common()]
        if self._failures:
            lines.append(f"{self._failures} times the server or the harness failed")
        lines.append(f"{self._unexplained} times not explained" if self._unexplained else "everything is explained")
        return lines


def _defects(release: str) -> tuple[Variant, ...]:
    """The known defects of a release; none of our node, or of a release that is not in the table."""
    try:
        return defects_of(release_named(release))
    except ReleaseError:
        return ()


def _names(known: tuple[Variant, ...]) -> str:
    return " with ".join(variant.value for variant in known)


def _lines(episode: Episode, misfit: Misfit, known: tuple[Variant, ...] | None, steps: int) -> list[str]:
    """The report of a misfit: the event, the sight, the observations that each candidate allows, and the defects.

    `steps` counts the events of all episodes.
    """
    sight, sid = misfit.step.sight, episode.ensemble.sid
    assert sight is not None  # an event that does not concern the server has no misfit
    lines = [
        f"event {steps:,}, which is {len(episode.steps)} of its episode: {event_text(misfit.step.move)}",
        f"  server {sid}, {episode.phase}, shows: {in_words(sight)}",
        *(f"  allowed: {in_words(outlook)}" for outlook in misfit.outlooks[:SHOWN_OUTLOOKS]),
        f"  explained by: {_names(known)}" if known else "  no known defect explains it",
    ]
    return [textwrap.fill(line, WIDTH, subsequent_indent="    ") for line in lines]


TWIN = Command(add_options, run)
