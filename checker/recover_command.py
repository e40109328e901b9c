"""The command `recover`: its options, and the order of its work. The analysis is imported late."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from checker.command import Command, ExitCode, refused, say
from checker.rollout_command import sids
from spec.text import on_a_line


def _recover_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "exit codes: 0 no acknowledged write is lost, 12 some may be lost, 20 the voters are unknown, or --write waits "
        "for --keep, 151 bad configuration file, 152 too little memory, 2 bad command line or directory."
    )
    parser.add_argument(
        "directories",
        nargs="+",
        metavar="DIR",
        help="a dataDir that is left, a folder of several, or SID=DIR where myid is lost; read, never changed",
    )
    parser.add_argument(
        "--log-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="the dataLogDir of each DIR, in their order, if it is another folder",
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--voters", type=sids, default=(), metavar="1,2,3", help="the servers that vote")
    who.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="a zoo.cfg or dynamic file with the servers (default: as the directories say)",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="keep the history of this one where histories part (default: Zab's rule)",
    )
    parser.add_argument("--to", type=Path, metavar="DIR", help="a new folder for the new data directories")
    parser.add_argument("--write", action="store_true", help="write them (default: a dry run that only answers)")
    parser.add_argument("--json", action="store_true", help="the answer for machines, on standard output")


def _recover(options: argparse.Namespace) -> int:
    from checker.recover.electorate import electorate_of  # noqa: PLC0415
    from checker.recover.evidence import RecoverError, directories_in, disks_in  # noqa: PLC0415
    from checker.recover.rebuild import check_target, written  # noqa: PLC0415
    from checker.recover.recovery import recovery_of  # noqa: PLC0415
    from checker.recover.report import data_of, exit_code, markdown  # noqa: PLC0415
    from checker.user_files import OutputError  # noqa: PLC0415

    if options.write and options.to is None:
        return refused("--write needs --to DIR, a new folder for the new data directories", ExitCode.COMMAND_LINE)
    try:
        disks = disks_in(directories_in(options.directories, options.log_dir))
        if options.to is not None:
            check_target(options.to, tuple(disks))
        recovery = recovery_of(disks, electorate_of(disks, options.voters, options.config), options.keep)
        may_write = options.write and not recovery.needs_choice
        paths = written(recovery, options.to) if may_write else []
    except (RecoverError, OutputError) as error:
        return refused(on_a_line(str(error)), ExitCode.COMMAND_LINE)
    if options.json:
        say(json.dumps(data_of(recovery, paths)))
    else:
        say(markdown(recovery, options.to, paths))
    return int(exit_code(recovery, is_written=bool(paths) if options.write else None))


RECOVER = Command(_recover_options, _recover)
