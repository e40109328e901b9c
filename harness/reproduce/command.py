"""`python -m harness reproduce FILE`: executes a counterexample on real servers and reports each step.

Exit codes: 0 confirmed in every run (with --without: nothing lost in any run; with --with-correction: both), 1 not so,
2 a wrong command line or file, 3 a run in which the harness failed.
"""

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from checker.command import Command, refused
from checker.scenario import shipped
from harness import real, releases
from harness.corrections.agent import java_options
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.releases import DEBIAN
from harness.reproduce.by_hand.catalogue import hand_made_of
from harness.reproduce.by_hand.hand_made import HandMade
from harness.reproduce.driver import reproduce
from harness.reproduce.ends import Effect, Outcome, Reproduction, StepReport
from harness.reproduce.gates import compile_shim
from harness.reproduce.recorder import Recorder
from harness.reproduce.schedule import (
    FIRST_WITH_RECONFIG,
    Schedule,
    ScheduleError,
    check_release,
    load_schedule,
    with_corrections,
    with_losses,
    without,
)
from spec.quorum import Sid
from spec.text import between

WIDTH = 110
Execution = Callable[[Path, Recorder | None], Reproduction]
"""One run below an empty directory."""
OF_WRITES = frozenset({Effect.LOST, Effect.REVERSED, Effect.DIFFERENT})
DESCRIPTION = "Executes a counterexample of the checker on real servers."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    file = "a saved trace, a scenario that is violated, or the name of a shipped one"
    parser.add_argument("file", type=Path, metavar="FILE", help=file)
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
        schedule = _schedule(options)
        if reason := real.available(options.release):
            return refused(reason, 2)
        with directories(options.keep) as folder:
            return _carry_out(schedule, options, folder)
    except (ScheduleError, ServerError, OSError) as error:
        return refused(str(error), 2)


def _schedule(options: argparse.Namespace) -> Schedule | HandMade:
    """The schedule of a file, or of a name, with the changes of the options. Raises ScheduleError.

    A name means the schedule made by hand, if there is one. A file means the run of the model, if it can be executed.
    """
    file = shipped(options.file)
    by_hand = hand_made_of(file, named=file != options.file)
    if by_hand is not None:
        by_hand.check(options.release)
        if options.record is not None:
            raise ScheduleError(f"--record: {by_hand.name} has a schedule made by hand, of which there is no recording")
        by_hand = by_hand if options.without is None else by_hand.without(options.without)
        return by_hand.with_corrections() if options.with_correction else by_hand
    schedule = load_schedule(file)
    if schedule.setup.gossip:
        check_release(schedule.name, options.release, FIRST_WITH_RECONFIG, "has no reconfigurations")
        if options.record is not None:
            raise ScheduleError(f"--record: {schedule.name} has reconfigurations, which a recording does not have")
    if options.without is not None:
        schedule = without(schedule, options.without)
    return with_losses(with_corrections(schedule) if options.with_correction else schedule)


def _carry_out(schedule: Schedule | HandMade, options: argparse.Namespace, folder: Path) -> int:
    execute = _execution(schedule, options.release, folder)
    by_hand, names = isinstance(schedule, HandMade), schedule.corrections
    print(f"{schedule.name}, on {len(schedule.setup.sids)} servers of ZooKeeper {options.release}")
    if by_hand:
        print("the schedule is made by hand, and no step is compared with the model")
    if names:
        places = "in the servers" if by_hand else "in the servers and in the model"
        print(f"with the correction{'s' if len(names) > 1 else ''} {' and '.join(names)}, {places}")
    if schedule.claim:
        print(_wrapped(f"the model{' without it' if names else ''}: {schedule.claim}", ""))
    for number, caption in schedule.omitted:
        print(_wrapped(f"{'left out' if by_hand or not names else 'impossible with it'}: step {number}, {caption}", ""))
    results = []
    for number in range(1, options.runs + 1):
        if options.runs > 1:
            print(f"\nrun {number} of {options.runs}")
        directory = folder / f"run-{number}"
        directory.mkdir(parents=True)
        recorder = None if options.record is None else Recorder(options.release, schedule.name)
        try:
            results.append(execute(directory, recorder))
        finally:
            if recorder is not None:
                recorder.save(_recording(options, number))
        print("\n".join(_summary(results[-1])), flush=True)
        if names:
            print(_correctness(results[-1], by_hand=by_hand))
    if options.runs > 1:
        print("\n" + _total(results, OF_WRITES | schedule.run.effects if isinstance(schedule, HandMade) else OF_WRITES))
    return _exit_code(results, control=options.without is not None, corrected=options.with_correction)


def _execution(schedule: Schedule | HandMade, release: str, folder: Path) -> Execution:
    names = schedule.corrections
    agent = java_options(names, release, folder) if names else ()
    if isinstance(schedule, HandMade):
        return lambda directory, _: schedule.reproduce(directory, release, _print_step, agent)
    shim = compile_shim(folder)
    return lambda directory, recorder: reproduce(schedule, directory, release, shim, _print_step, recorder, agent)


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
    for path in result.unanswered:
        yield f"  {path} had no answer"
    if result.leaders:
        yield "  " + ", ".join(f"server {sid} led in epoch {epoch}" for sid, epoch in result.leaders.items())
    if result.absent:
        yield f"  after all servers have recovered, {_servers(result.absent)} did not serve"
    for path, sids in result.present.items():
        where = result.fate(path).value.format(_servers(sids))
        yield f"  {path} after all servers have recovered: {where}"


def _servers(sids: Iterable[Sid]) -> str:
    return ", ".join(f"server {sid}" for sid in sids)


def _correctness(result: Reproduction, *, by_hand: bool = False) -> str:
    if by_hand and result.outcome is not Outcome.HARNESS_FAILED:
        return "NOT corrected: the harm is seen" if result.effects else "corrected: no harm is seen"
    if result.outcome is not Outcome.CONFIRMED:
        return "open: the servers and the corrected model part, or the harness failed"
    if not result.effects:
        return "corrected: the servers agreed with the corrected model after every step, and nothing is lost"
    return "NOT corrected: the servers agreed with the corrected model, and a write is lost, or servers differ"


def _total(results: list[Reproduction], counted: frozenset[Effect] = OF_WRITES) -> str:
    count = len(results)
    confirmed = sum(result.outcome is Outcome.CONFIRMED for result in results)
    failed = sum(result.outcome is Outcome.HARNESS_FAILED for result in results)
    shown = {effect: sum(effect in result.effects for result in results) for effect in Effect}
    effects = [f"{effect.value} {shown[effect]} of {count}" for effect in Effect if effect in counted]
    return f"confirmed {confirmed} of {count}, {', '.join(effects)}, harness failed {failed} of {count}"


def _exit_code(results: list[Reproduction], *, control: bool = False, corrected: bool = False) -> int:
    if any(result.outcome is Outcome.HARNESS_FAILED for result in results):
        return 3
    confirmed = control or all(result.outcome is Outcome.CONFIRMED for result in results)
    kept_all = not (control or corrected) or all(not result.effects for result in results)
    return int(not (confirmed and kept_all))


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, drop_whitespace=True)


REPRODUCE = Command(add_options, run)
