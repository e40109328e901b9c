"""`python -m tests.reality`: changes from one seed, each planned and carried out on real servers, and a table.

Exit codes: 0 no disagreement, 1 a disagreement, 2 a wrong command line or a program that is missing, 3 the harness
failed in a change.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from harness import real
from harness.releases import MAVEN
from spec.text import between
from tests.reality.changes import change_of
from tests.reality.driver import Driver, Outcome
from tests.reality.table import summary

MEMORY = Path("/dev/shm")


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reality", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=between(0), default=1, metavar="S", help="of the changes (default: 1)")
    parser.add_argument("--changes", type=between(1), default=150, metavar="N", help="the number of the last (150)")
    parser.add_argument("--first", type=between(1), default=1, metavar="N", help="the number of the first (1)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="a line of JSON for each change is added to it")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="files and logs of each disagreement go there")
    parser.add_argument("--summary", action="store_true", help="only sum up the lines of --output")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    if options.first > options.changes:
        return _refused(f"--first {options.first}: the last change is {options.changes} (--changes)")
    if options.summary and (options.output is None or not options.output.exists()):
        return _refused("--summary: name the lines of a run with --output FILE")
    if options.output is not None and not options.output.parent.is_dir():
        return _refused(f"--output {options.output}: there is no folder {options.output.parent}")
    if reason := real.available(MAVEN[-1]):
        return _refused(reason)
    lines = [] if options.summary else _run(options)
    if options.output is not None:
        lines = [json.loads(line) for line in options.output.read_text(encoding="utf-8").splitlines()]
        lines = [line for line in lines if line["seed"] == options.seed]
    print(f"\n{summary(lines)}")
    outcomes = {line["outcome"] for line in lines}
    return 1 if Outcome.DISAGREES.value in outcomes else 3 if Outcome.FAILED.value in outcomes else 0


def _refused(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


def _run(options: argparse.Namespace) -> list[dict[str, object]]:
    """Carry out the changes; print a line for each, and write it."""
    lines = []
    for number in range(options.first, options.changes + 1):
        line = _carry_out(options, number)
        lines.append(line)
        if options.output is not None:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        print(
            f"{number} of {options.changes}: {line['kind']} ({line['route']}): {line['title']}: {line['verdict']}: "
            f"{line['outcome']}: {line['reason']} ({line['seconds']} s)",
            flush=True,
        )
    return lines


def _carry_out(options: argparse.Namespace, number: int) -> dict[str, object]:
    """Carry out one change in a folder in memory; return what happened."""
    change = change_of(options.seed, number)
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="quorate-reality-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        result = Driver(change, home, MAVEN[-1]).compare()
        if options.keep is not None and result.outcome in (Outcome.DISAGREES, Outcome.FAILED):
            shutil.copytree(home, options.keep / f"{options.seed}-{number}", dirs_exist_ok=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    head = {"seed": options.seed, "number": number, "kind": change.kind, "title": change.title}
    fields = asdict(result) | {"outcome": result.outcome.value, "planner_seconds": round(result.planner_seconds, 1)}
    return head | {"route": change.route.value, **fields, "seconds": round(time.monotonic() - began, 1)}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers end with the command
    sys.exit(main(sys.argv[1:]))
