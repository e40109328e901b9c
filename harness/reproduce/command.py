"""`python -m harness reproduce FILE`: executes a counterexample on real servers and reports each step.

Exit codes: 0 confirmed in every run (with --without: nothing lost in any run; with --with-correction: both), 1 not so,
2 a wrong command line or file, 3 a run in which the harness failed.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from checker.command import Command, refused
from harness import real, releases
from harness.corrections.agent import java_options
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.releases import DEBIAN
from harness.reproduce.driver import reproduce
from harness.reproduce.ends import Outcome, Reproduction, StepReport, WriteFate
from harness.reproduce.gates import compile_shim
from harness.reproduce.recorder import Recorder
from harness.reproduce.schedule import Schedule, ScheduleError, load_schedule, with_corrections, with_losses, without
from spec.text import between

WIDTH = 110
DESCRIPTION = "Executes a counterexample of the checker on real servers."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a saved trace, or a scenario that is violated")
    parser.add_argument("--release", default=DEBIAN, help=f"the release of the servers (default: {DEBIAN})")
    parser.add_argument("--runs", type=between(1), default=1, metavar="N", help="how often (default: once)")
    controls = parser.add_mutually_exclusive_group()
    controls.add_argument(
        "--without",
        type=between(1),
        metavar="STEP",
        help="a control: leave out this step, and what it makes impossible",
    )
    controls.add_argument(
        "--with-correction",
        action="store_true",
        help="correct the defect of the run on all servers by a Java agent, and compare with the corrected model",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write a recording for `quorate validate` (with --runs N: FILE-1, ...)",
    )
    add_keep(parser)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; return its exit code."""
    if mistake := releases.unknown(options.release) or keep_mistake(options.keep):
        return refused(mistake, 2)
    if options.record is not None:
        if not options.record.parent.is_dir():
            return refused(f"--record {options.record}: its folder does not exist; name one that exists", 2)
        present = [file for number in range(1, options.runs + 1) if (file := _recording(options, number)).exists()]
        if present:
            return refused(f"--record: {present[0]} exists; name a new file", 2)
    try:
        schedule = load_schedule(options.file)
        if options.without is not None:
            schedule = without(schedule, options.without)
        if options.with_correction:
            schedule = with_corrections(schedule)
        schedule = with_losses(schedule)
        if reason := real.available(options.release):
            return refused(reason, 2)
        with directories(options.keep) as folder:
            return _carry_out(schedule, options, folder)
    except (ScheduleError, ServerError, OSError) as error:
        return refused(str(error), 2)


def _carry_out(schedule: Schedule, options: argparse.Namespace, folder: Path) -> int:
    shim = compile_shim(folder)
    names = schedule.corrections
    agent = java_options(names, options.release, folder) if names else ()
    print(f"{schedule.name}, on {len(schedule.setup.sids)} servers of ZooKeeper {options.release}")
    if names:
        print(
            f"with the correction{'s' if len(names) > 1 else ''} {' and '.join(names)}, in the servers and in the model"
        )
    if schedule.claim:
        print(_wrapped(f"the model{' without it' if names else ''}: {schedule.claim}", ""))
    for number, caption in schedule.omitted:
        print(_wrapped(f"{'impossible with it' if names else 'left out'}: step {number}, {caption}", ""))
    results = []
    for number in range(1, options.runs + 1):
        if options.runs > 1:
            print(f"\nrun {number} of {options.runs}")
        directory = folder / f"run-{number}"
        directory.mkdir(parents=True)
        recorder = None if options.record is None else Recorder(options.release, schedule.name)
        try:
            results.append(reproduce(schedule, directory, options.release, shim, _print_step, recorder, agent))
        finally:
            if recorder is not None:
                recorder.save(_recording(options, number))
        print("\n".join(_summary(results[-1])), flush=True)
        if names:
            print(_correctness(results[-1]))
    if options.runs > 1:
        print("\n" + _total(results))
    return _exit_code(results, control=options.without is not None, corrected=options.with_correction)


def _recording(options: argparse.Namespace, number: int) -> Path:
    file: Path = options.record
    return file if options.runs == 1 else file.with_name(f"{file.stem}-{number}{file.suffix}")


def _print_step(report: StepReport) -> None:
    print(_wrapped(f"{report.number:3}  {report.caption}", " " * 5))
    for line in report.seen:
        print(_wrapped(f"       {line}", " " * 9))
    for line in report.differences:
        print(_wrapped(f"    !! {line}", " " * 7))
    sys.stdout.flush()


def _summary(result: Reproduction) -> Iterable[str]:
    yield result.outcome.value + (f": {result.reason}" if result.reason else "")
    for path, sid in result.acknowledged.items():
        yield f"  {path} was acknowledged by server {sid}"
    for path, sids in result.present.items():
        where = result.fate(path).value.format(", ".join(f"server {sid}" for sid in sids))
        yield f"  {path} after all servers have recovered: {where}"


def _correctness(result: Reproduction) -> str:
    if result.outcome is not Outcome.CONFIRMED:
        return "open: the servers and the corrected model part, or the harness failed"
    if result.kept_all:
        return "corrected: the servers agreed with the corrected model after every step, and nothing is lost"
    return "NOT corrected: the servers agreed with the corrected model, and a write is lost, or servers differ"


def _total(results: list[Reproduction]) -> str:
    count = len(results)
    confirmed = sum(result.outcome is Outcome.CONFIRMED for result in results)
    failed = sum(result.outcome is Outcome.HARNESS_FAILED for result in results)
    fates = (WriteFate.LOST, WriteFate.REVERSED)
    lost, reversals = (sum(bool(result.having(fate)) for result in results) for fate in fates)
    split = sum(bool(result.diverged) for result in results)
    return (
        f"confirmed {confirmed} of {count}, an acknowledged write lost {lost} of {count}, "
        f"a committed write without an answer reversed {reversals} of {count}, "
        f"servers differ {split} of {count}, harness failed {failed} of {count}"
    )


def _exit_code(results: list[Reproduction], *, control: bool = False, corrected: bool = False) -> int:
    if any(result.outcome is Outcome.HARNESS_FAILED for result in results):
        return 3
    confirmed = control or all(result.outcome is Outcome.CONFIRMED for result in results)
    kept_all = not (control or corrected) or all(result.kept_all for result in results)
    return int(not (confirmed and kept_all))


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, drop_whitespace=True)


REPRODUCE = Command(add_options, run)
