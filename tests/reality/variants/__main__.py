"""`python -m tests.reality.variants --runs 3`: runs of each variant on its releases, and a table.

For each known defect and each release that has it and can be started here, runs are chosen from the seed (`choice`) and
executed by the driver of `quorate reproduce`. A run that is in the file of lines is not executed again. `--page` makes
docs/reference-variants-on-releases.md of the file. Exit codes: 0 servers and model agree in every run, 1 they part in a
run, 2 a wrong command line, 3 the harness failed.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import real
from harness.reproduce.driver import reproduce
from harness.reproduce.ends import Outcome, StepReport
from harness.reproduce.gates import compile_shim
from spec.releases import HISTORIES, RELEASES, Release, defects_of
from spec.text import between
from spec.variants import Variant
from tests.reality.variants.choice import FIRST, ChosenRun, NoRunError, choose
from tests.reality.variants.table import PAGE, SEEN, page, summary

MEMORY = Path("/dev/shm")


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reality.variants", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=between(1), default=3, metavar="N", help="of each variant on each release (3)")
    parser.add_argument("--seed", type=between(0), default=1, metavar="S", help="of the choice of runs (default: 1)")
    parser.add_argument("--variant", action="append", metavar="V", help="only this one, and others with this option")
    parser.add_argument("--release", action="append", metavar="R", help="only this one, and others with this option")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", default=SEEN, help=f"lines of JSON, one for each run ({SEEN.name})"
    )
    parser.add_argument("--again", action="store_true", help="execute what is in the file too")
    parser.add_argument("--page", action="store_true", help=f"only write {PAGE.name} from the file")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="data and logs of each run that does not agree")
    parser.add_argument("--steps", action="store_true", help="print the steps of each run")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    if not options.output.parent.is_dir():
        return _refused(f"--output {options.output}: there is no folder {options.output.parent}")
    if options.page:
        PAGE.write_text(page(_lines(options)), encoding="utf-8")
        return 0
    releases = [release for release in (*FIRST, *RELEASES) if not real.available(str(release))]
    if unknown := {*(options.release or ())} - {*map(str, releases)}:
        return _refused(f"--release {min(unknown)}: {real.available(min(unknown))}")
    if unknown := {*(options.variant or ())} - {
        variant.value for release in RELEASES for variant in defects_of(release)
    }:
        return _refused(f"--variant {min(unknown)}: no release of the table has it; see docs/reference-variants.md")
    lines = _lines(options)
    done = set() if options.again else {_key(line) for line in lines}
    home = Path(tempfile.mkdtemp(prefix="quorate-variants-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        shim = compile_shim(home)
        for variant, release in _pairs(options, releases):
            for line in _compared(variant, release, options, shim, done):
                lines.append(line)
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(_text(line), flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"\n{summary(lines)}")
    outcomes = {line["outcome"] for line in lines}
    return 1 if Outcome.NOT_CONFIRMED.value in outcomes else 3 if Outcome.HARNESS_FAILED.value in outcomes else 0


def _refused(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


def _lines(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The lines of earlier runs with this seed."""
    if not options.output.exists():
        return []
    lines = [json.loads(line) for line in options.output.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["seed"] == options.seed]


def _key(line: dict[str, Any]) -> tuple[str, str, int]:
    return line["variant"], line["release"], line["run"]


def _pairs(options: argparse.Namespace, releases: list[Release]) -> Iterator[tuple[Variant, Release]]:
    """The variants and their releases that were asked for."""
    for variant in HISTORIES:
        for release in dict.fromkeys(releases):
            if (
                variant in defects_of(release)
                and str(release) in (options.release or [str(release)])
                and (variant.value in (options.variant or [variant.value]))
            ):
                yield variant, release


def _compared(
    variant: Variant, release: Release, options: argparse.Namespace, shim: Path, done: set[tuple[str, str, int]]
) -> Iterator[dict[str, Any]]:
    """Execute the runs of a variant on a release that are not done; a line for each, or one with a reason."""
    head = {"seed": options.seed, "variant": variant.value, "release": str(release)}
    if (variant.value, str(release), 0) in done:
        return
    if all((variant.value, str(release), number) in done for number in range(1, options.runs + 1)):
        return
    began = time.monotonic()
    try:
        runs = choose(variant, release, options.runs, options.seed)
    except NoRunError as reason:
        seconds = round(time.monotonic() - began, 1)
        yield head | {"run": 0, "outcome": "not executed", "reason": str(reason), "seconds": seconds}
        return
    for number, run in enumerate(runs, start=1):
        if (variant.value, str(release), number) not in done:
            yield head | {"run": number} | _executed(run, release, options, shim, f"{variant.value}-{release}-{number}")


def _executed(run: ChosenRun, release: Release, options: argparse.Namespace, shim: Path, name: str) -> dict[str, Any]:
    """Execute a run; a second time if it does not agree, since a busy machine may be too late for a step."""
    began = time.monotonic()
    for attempt in (1, 2):
        outcome, reason = _once(run, release, options, shim, f"{name}-{attempt}")
        if outcome is Outcome.CONFIRMED:
            break
    return {
        "outcome": outcome.value,
        "reason": reason,
        "attempts": attempt,
        "steps": len(run.captions),
        "uses": run.uses,
        "shows": run.shows,
        "sight": run.sight,
        "seconds": round(time.monotonic() - began, 1),
    }


def _once(run: ChosenRun, release: Release, options: argparse.Namespace, shim: Path, name: str) -> tuple[Outcome, str]:
    def report(step: StepReport) -> None:
        if options.steps:
            print(f"  {step.number:2}  {step.caption}", *(f"      {line}" for line in step.seen), sep="\n", flush=True)

    home = Path(tempfile.mkdtemp(prefix="run-", dir=shim.parent))
    try:
        result = reproduce(run.schedule, home, str(release), shim, report, quick=True)
        if options.keep is not None and result.outcome is not Outcome.CONFIRMED:
            shutil.copytree(home, options.keep / name, dirs_exist_ok=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return result.outcome, result.reason


def _text(line: dict[str, Any]) -> str:
    where = f"{line['variant']} on {line['release']}"
    if not line["run"]:
        return f"{where}: {line['outcome']}: {line['reason']}"
    shown = f"shown in step {line['shows']} by {line['sight']}" if line["shows"] else f"used in step {line['uses']}"
    outcome = f"{line['outcome']}: {line['reason']}" if line["reason"] else line["outcome"]
    return f"{where}, run {line['run']}: {line['steps']} steps, {shown}: {outcome} ({line['seconds']} s)"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers end with the command
    sys.exit(main(sys.argv[1:]))
