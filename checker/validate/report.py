"""`python -m checker validate FILE...`: the report as text or JSON on standard output, progress on standard error.

Rules this module keeps:

- The files are the journals of nodes, or one recording of real servers (`checker.validate.recording`).
- The report opens with the verdict. Facts that were taken as given or tolerated are always reported, whatever the
  verdict is.
- Exit codes: 0 if everything fits, 12 if something does not, 21 if every evaluation of an invariant was trivial, 150
  for a file that cannot be read, 20 for an interrupt.
- On a terminal, progress is one line that is redrawn; elsewhere it is a plain line every few seconds.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checker.command import say, unread_output_discarded
from checker.engine.values import show
from checker.job import Verdict
from checker.report import Progress
from checker.validate import Validation, validate
from checker.validate.journals import JournalError
from checker.validate.recording import moment_of, recording_data, recording_lines, validate_recording
from checker.validate.recording.reader import is_recording
from checker.validate.replay import Mismatch
from spec.text import on_a_line


def validate_command(paths: Sequence[Path], *, as_json: bool = False, refines: bool = False) -> int:
    """Validate journals and print the report; return the exit code. `refines` is that of `validate`."""
    began = time.monotonic()

    def progress(what: str, count: int, total: int) -> None:
        part = f" of {total:,}" if total else ""
        bar.update(lambda: on_a_line(f"{what}: {count:,} records{part}, {time.monotonic() - began:.0f} s"))

    with Progress() as bar:
        if any(map(is_recording, paths)):
            recorded = validate_recording(_one_recording(paths, refines=refines), progress)
            report, code = (recording_data if as_json else recording_lines)(recorded), recorded.exit_code
        else:
            validation = validate(paths, progress, refines=refines)
            report, code = (data if as_json else lines)(validation), validation.exit_code
    with unread_output_discarded():
        say("\n".join(report) if isinstance(report, list) else json.dumps(report))
    return int(code)


def _one_recording(paths: Sequence[Path], *, refines: bool) -> Path:
    """The only file, since a recording is about a whole ensemble. Raises JournalError for more, or with `refines`."""
    if refines:
        raise JournalError(paths[0], 0, "it is a recording, and --refinement is for journals; leave the option out")
    if len(paths) > 1:
        first = next(path for path in paths if is_recording(path))
        raise JournalError(first, 0, f"it is a recording, and {len(paths)} files were named; validate it alone")
    return paths[0]


def _sentence(found: Validation) -> str:
    if found.mismatches:
        return f"{found.verdict.value}: {_headline(found.mismatches[0])}"
    if found.verdict is Verdict.VACUOUS:
        return f"{found.verdict.value}: no invariant had anything to say of {found.steps:,} records"
    return f"{found.verdict.value}: {found.steps:,} records fit the specification, and every invariant holds"


def _headline(mismatch: Mismatch) -> str:
    name = f"{mismatch.invariant}: " if mismatch.invariant else ""
    return f"{mismatch.path}:{mismatch.line}: server {mismatch.sid}: {name}{mismatch.clause}"


def lines(found: Validation) -> list[str]:
    """The report as lines of text."""
    report = [_sentence(found)]
    for mismatch in found.mismatches:
        if mismatch is not found.mismatches[0]:
            report.append(f"also: {_headline(mismatch)}")
        report += [f"  at     {moment_of(mismatch.time)}", f"  event  {mismatch.event or 'none'}"]
        report += [f"  {name}: {show(value)}" for name, value in mismatch.values]
    report += ["", *(f"  {name:<18} {value}" for name, value in _figures(found))]
    if found.counts:
        width = max(len(name) for name in found.counts)
        report += ["", "invariants: evaluated, and put to the test"]
        for name, count in found.counts.items():
            report.append(f"  {name:<{width}}  {count.evaluated:>12,}  {count.premise:>12,}")
    if found.notes or found.without_journal:
        report += ["", "taken as given, or tolerated"]
        report += [f"  server {sid} has no journal: what it sent is taken as given" for sid in found.without_journal]
        report += [f"  {note}" for note in found.notes]
    return report


def _figures(found: Validation) -> list[tuple[str, str]]:
    rate = f", {found.steps / found.seconds:,.0f} records/s" if found.seconds > 0 else ""
    return [
        ("journals", f"{len(found.paths)} (servers {', '.join(map(str, found.sids))}; {found.lives} lives)"),
        ("records", f"{found.steps:,}, each replayed by itself"),
        ("in one order", f"{found.merged:,} of them"),
        ("facts", f"{found.facts:,}"),
        ("committed", f"{found.transactions:,} transactions"),
        ("time", f"{found.seconds:.1f} s{rate}"),
    ]


def data(found: Validation) -> dict[str, Any]:
    """The report as data for a program."""
    return {
        "schema": "quorate-validation/1",
        "verdict": found.verdict.value,
        "exit_code": int(found.exit_code),
        "sentence": _sentence(found),
        "misfits": [
            {
                "file": str(mismatch.path),
                "line": mismatch.line,
                "time": mismatch.time,
                "server": mismatch.sid,
                "event": mismatch.event,
                "invariant": mismatch.invariant or None,
                "clause": mismatch.clause,
                "values": {name: show(value) for name, value in mismatch.values},
            }
            for mismatch in found.mismatches
        ],
        "files": [str(path) for path in found.paths],
        "servers": list(found.sids),
        "without_journal": list(found.without_journal),
        "lives": found.lives,
        "records": found.steps,
        "merged": found.merged,
        "facts": found.facts,
        "transactions": found.transactions,
        "invariants": {
            name: {"evaluated": count.evaluated, "premise": count.premise} for name, count in found.counts.items()
        },
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }
