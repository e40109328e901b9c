"""`rollout`: judges a change of zoo.cfg files, and plans a safe order or safe stages."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from checker.cli.commands.command import Command, refused
from checker.cli.options import between, seconds
from checker.cli.output import unread_output_discarded
from checker.report.verdict import ExitCode
from spec.quorum import Sid


def _options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "exit codes: 0 safe, 12 unsafe, 20 undecided within the budget, 22 safe only in stages, 151 bad configuration "
        "file, 2 bad command line."
    )
    parser.add_argument("--from", type=Path, required=True, metavar="DIR", dest="old", help="the present zoo.cfg files")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", dest="new", help="the new zoo.cfg files")
    parser.add_argument(
        "--now", type=Path, metavar="DIR", help="the files that the servers have now, if the roll-out was interrupted"
    )
    parser.add_argument(
        "--order", type=sids, metavar="4,5,1,3,2", help="check this order (default: search for a safe one)"
    )
    parser.add_argument(
        "--in-one-go", action="store_true", help="judge only the direct change, and plan no stages: for CI gates"
    )
    parser.add_argument(
        "--faults",
        type=between(0, 3),
        metavar="K",
        help="crashes, partitions and lost connections in all (1)",
    )
    parser.add_argument(
        "--leader", type=_sid, metavar="SID", help="the server that leads at first (default: each that may)"
    )
    parser.add_argument("--down", type=sids, default=(), metavar="4,5", help="servers that do not run, now or later")
    parser.add_argument(
        "--budget",
        type=seconds,
        default=60.0,
        metavar="T",
        help="work for all runs, in seconds of a usual processor, such as 60s or 5m (60s)",
    )
    parser.add_argument("--json", action="store_true", help="the answer for machines, on standard output")
    parser.add_argument(
        "--output", type=Path, metavar="FILE.md", help="write the answer to a file, with the whole traces folded away"
    )
    parser.add_argument("--traces", type=Path, metavar="DIR", help="write every counterexample, in every format")
    parser.add_argument("--scenarios", type=Path, metavar="DIR", help="write every run as a scenario")
    parser.add_argument("--stages", type=Path, metavar="DIR", help="write the zoo.cfg of every server for every stage")


def sids(text: str) -> tuple[Sid, ...]:
    """Parse comma-separated server ids."""
    if not re.fullmatch(r"[0-9]{1,18}(?:\s*,\s*[0-9]{1,18})*", text.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of server ids; write 4,5,1,3,2")
    return tuple(int(sid) for sid in text.split(","))


def _sid(text: str) -> Sid:
    found = sids(text)
    if len(found) > 1:
        raise argparse.ArgumentTypeError(f"{text!r} are several servers; name the one that leads")
    return found[0]


def _run(options: argparse.Namespace) -> int:
    from checker.output_files import OutputError, make_folder, write  # noqa: PLC0415
    from checker.rollout import Engine, OrderError, PlanRequest, plan, read_folder  # noqa: PLC0415
    from checker.rollout.artifacts import write_scenarios, write_stages, write_traces  # noqa: PLC0415
    from checker.rollout.data import data  # noqa: PLC0415
    from checker.rollout.interrupted import read_now  # noqa: PLC0415
    from checker.rollout.markdown import markdown  # noqa: PLC0415
    from checker.symbolic.disjoint import UndecidedError  # noqa: PLC0415

    old, new = read_folder(options.old), read_folder(options.new)
    request = PlanRequest(
        old,
        new,
        options.order,
        options.leader,
        1 if options.faults is None else options.faults,
        options.budget,
        frozenset(options.down),
        in_one_go=options.in_one_go,
        explored=options.faults is not None,
        now=None if options.now is None else read_now(options.now, old, new),
    )
    try:
        # The folders are created first: a bad path must fail before the runs, not after them.
        for folder in (options.traces, options.scenarios, options.stages):
            if folder is not None:
                make_folder(folder)
        made = plan(request, Engine().run)
        answer = data(made)
        for folder, write_all in (
            (options.traces, write_traces),
            (options.scenarios, write_scenarios),
            (options.stages, write_stages),
        ):
            if folder is not None:
                write_all(made, folder)
        if options.output is not None:
            write(options.output, markdown(made))
    except (OrderError, OutputError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)
    except UndecidedError as error:
        return refused(str(error), ExitCode.INCOMPLETE)
    with unread_output_discarded():
        if options.json:
            print(json.dumps(answer))
        else:
            print(markdown(made, traces=not sys.stdout.isatty()), end="")
    return int(made.exit_code)


COMMAND = Command("rollout", "Says whether a roll-out of zoo.cfg files is safe, and plans one that is.", _options, _run)
