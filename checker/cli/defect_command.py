"""The command `defects`: the known defects of one release with their conditions and remedies, or one defect in full."""

import argparse
import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from checker.command import Command, ExitCode, refused, say
from checker.command_table import called
from checker.printable import capital, similar
from spec.census.defect import Basis, Effect, Evidence, KnownDefect, Presence
from spec.census.table import CENSUS, corrected_in, defects_in, newest_releases
from spec.releases import TAGGED, Release, ReleaseError, release_named
from spec.text import on_a_line

WIDTH = 110
DOUBT = "Not established for this release. It may have them: nothing here says that it is free of them."


def _options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "exit codes: 0 the answer was printed, whatever it says, 2 bad command line or unknown release."
    parser.add_argument(
        "subject", nargs="?", metavar="RELEASE|DEFECT",
        help=f"a release from {TAGGED[0]} to {TAGGED[-1]}, or the name of a defect, like ZOOKEEPER-4646"
        " (default: the names of all defects)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the answer for machines")


def _run(options: argparse.Namespace) -> int:
    subject = options.subject
    if subject is None:
        lines, data = index_lines(), {"defects": [defect_data(defect) for defect in CENSUS.values()]}
    elif (defect := _NAMED.get(subject.lower())) is not None:
        lines, data = defect_lines(defect), defect_data(defect)
    elif not subject[:1].isdigit():
        return refused(_no_defect(subject), ExitCode.COMMAND_LINE)
    else:
        try:
            release = release_named(subject, TAGGED)
        except ReleaseError as error:
            return refused(str(error), ExitCode.COMMAND_LINE)
        lines, data = release_lines(release), release_data(release)
    say(json.dumps(data) if options.json else "\n".join(lines))
    return int(ExitCode.PASSED)


DEFECTS = Command(_options, _run)
"""The command."""

_NAMED = {name.lower(): defect for name, defect in CENSUS.items()}


def _no_defect(name: str) -> str:
    near = similar(name, CENSUS)
    hint = (
        f"did you mean {near}?" if near else f"{called('defects')} lists them, and takes a release, like {TAGGED[-1]}"
    )
    return f"no known defect is called {on_a_line(name)[:60]!r}; {hint}"


def release_lines(release: Release) -> list[str]:
    """The answer for one release: its defects, most dangerous first, and those that are not established."""
    present, unknown = defects_in(release), defects_in(release, Presence.UNKNOWN)
    lines = [f"# ZooKeeper {release}: {len(present)} known defects, {len(unknown)} not established", ""]
    lines += _upgrades(release, present)
    for effect in Effect:
        rows = [defect for defect in present if defect.effect is effect]
        lines += ["", f"## {capital(effect.value)} ({len(rows)})"] if rows else []
        for defect in rows:
            lines += ["", *_row(defect, release)]
    if unknown:
        lines += ["", f"## Not established ({len(unknown)})", "", *_wrapped("", DOUBT)]
        lines += [line for defect in unknown for line in _wrapped(f"- {defect.name}: ", f"{capital(defect.wrong)}.")]
    return [*lines, "", f"{called('defects')} NAME prints the source of one defect, and the commands that show it."]


def _upgrades(release: Release, present: Sequence[KnownDefect]) -> list[str]:
    """The number of these defects that the newest releases do not have, and of others that they have."""
    lines = []
    for newest in newest_releases(release):
        corrected = [defect for defect in present if defect.presence(newest) is Presence.ABSENT]
        added = [defect for defect in defects_in(newest) if defect not in present]
        others = f", and has others: {', '.join(defect.name for defect in added)}" if added else ""
        lines += _wrapped("- ", f"{newest} corrects {len(corrected)} of these {len(present)}{others}.")
    return lines or ["It is the newest release of the table."]


def _row(defect: KnownDefect, release: Release) -> list[str]:
    """A defect of a release: what is wrong, when it hits, what to do, and what shows it."""
    fixes = ", ".join(map(str, corrected_in(defect.history, release))) if defect.history else ""
    return [
        f"{defect.name}",
        *_wrapped("  wrong:  ", f"{capital(defect.wrong)}."),
        *_wrapped("  when:   ", defect.condition),
        *_wrapped("  remedy: ", defect.remedy),
        *_wrapped("  fixed:  ", fixes or "in no release"),
        *_wrapped("  shown:  ", evidence_text(defect)),
    ]


def defect_lines(defect: KnownDefect) -> list[str]:
    """The answer for one defect."""
    lines = [f"# {defect.name}: {defect.effect.value}", ""]
    lines += _wrapped("wrong:    ", f"{capital(defect.wrong)}.")
    lines += _wrapped("source:   ", defect.cause)
    lines += _wrapped("when:     ", defect.condition)
    lines += _wrapped("remedy:   ", defect.remedy)
    lines += _wrapped("releases: ", releases_text(defect))
    lines += _wrapped("shown:    ", evidence_text(defect))
    lines += [f"          {item.command}" for item in defect.evidence if item.command]
    return lines + (_wrapped("model:    ", defect.unmodelled) if defect.unmodelled else [])


def index_lines() -> list[str]:
    """The names of all defects, by their effect."""
    width = max(map(len, CENSUS))
    lines = [f"# {len(CENSUS)} known defects of ZooKeeper {TAGGED[0]} to {TAGGED[-1]}"]
    for effect in Effect:
        rows = [defect for defect in CENSUS.values() if defect.effect is effect]
        lines += ["", f"## {capital(effect.value)} ({len(rows)})"]
        lines += [f"{defect.name:<{width}}  {releases_text(defect)}" for defect in rows]
    return lines


def evidence_text(defect: KnownDefect) -> str:
    """The kinds of evidence, with the releases whose servers have shown it."""
    return "; ".join(_evidence(item, defect) for item in defect.evidence)


def _evidence(item: Evidence, defect: KnownDefect) -> str:
    if item.basis is Basis.SEEN and defect.history is not None and defect.history.reproduced:
        return f"{item.basis.value} on {', '.join(map(str, defect.history.reproduced))}"
    return item.basis.value


def releases_text(defect: KnownDefect) -> str:
    """The releases with a defect, as ranges, and those that are not established."""
    present, unknown = (
        _ranges([release for release in TAGGED if defect.presence(release) is presence])
        for presence in (Presence.PRESENT, Presence.UNKNOWN)
    )
    return "; ".join(filter(None, (present, f"not established: {unknown}" if unknown else "")))


def _ranges(releases: Sequence[Release]) -> str:
    """The releases as ranges of `TAGGED`, such as "3.4.10 to 3.4.14, 3.5.3"."""
    places = {release: place for place, release in enumerate(TAGGED)}
    ranges: list[list[Release]] = []
    for release in releases:
        if ranges and places[release] == places[ranges[-1][-1]] + 1:
            ranges[-1].append(release)
        else:
            ranges.append([release])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in ranges)


def _wrapped(label: str, text: str) -> list[str]:
    """The text in lines behind a label, indented as it."""
    indent = " " * len(label) if not label.startswith("- ") else "  "
    return textwrap.wrap(label + text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def release_data(release: Release) -> dict[str, Any]:
    """The answer for one release as data."""
    return {
        "release": str(release),
        "defects": [_of_release(defect, release) for defect in defects_in(release)],
        "not_established": [_of_release(defect, release) for defect in defects_in(release, Presence.UNKNOWN)],
    }


def _of_release(defect: KnownDefect, release: Release) -> dict[str, Any]:
    fixes: Iterable[Release] = corrected_in(defect.history, release) if defect.history else ()
    return {**defect_data(defect), "fixed_in": [str(fix) for fix in fixes]}


def defect_data(defect: KnownDefect) -> dict[str, Any]:
    """One defect as data; `releases` has every release with yes, no or unknown."""
    return {
        "name": defect.name,
        "effect": defect.effect.name.lower(),
        "wrong": defect.wrong,
        "source": defect.cause,
        "when": defect.condition,
        "remedy": defect.remedy,
        "releases": {str(release): defect.presence(release).value for release in TAGGED},
        "evidence": [{"basis": item.basis.value, "command": item.command or None} for item in defect.evidence],
        "reproduced": [str(release) for release in defect.history.reproduced] if defect.history else [],
        "unmodelled": defect.unmodelled or None,
    }
