"""`python -m harness record FILE`: records an ensemble of real servers under load, kills and restarts.

Exit codes: 0 recorded, 1 an error of the servers, 2 a wrong command line.
"""

import argparse
from pathlib import Path

from checker.command import Command, refused
from harness import real
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.record.ensemble import Plan, record
from harness.releases import DEBIAN
from harness.reproduce.recorder import Recorder
from spec.text import between, decimals_between

MOST_SERVERS = 9
MOST_CLIENTS = 50


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording, a new file")
    parser.add_argument("--release", default=DEBIAN, help=f"the release of the servers (default: {DEBIAN})")
    parser.add_argument("--servers", type=between(1), default=3, metavar="N", help="voters (default: 3)")
    parser.add_argument("--observers", type=between(0), default=0, metavar="N", help="observers (default: 0)")
    parser.add_argument("--kills", type=between(0), default=3, metavar="N", help="SIGKILLs, at random (default: 3)")
    parser.add_argument(
        "--seconds",
        type=decimals_between(0, 3600),
        default=10.0,
        metavar="S",
        help="duration of the load (default: 10)",
    )
    parser.add_argument("--clients", type=between(1), default=3, metavar="N", help="concurrent writers (default: 3)")
    parser.add_argument(
        "--pause", type=decimals_between(0, 3600), default=0.01, metavar="S", help="after each write (default: 0.01)"
    )
    parser.add_argument("--seed", type=between(0), default=1, metavar="K", help="of the kills and the clients")
    add_keep(parser)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; return its exit code."""
    if reason := _mistake(options) or real.available(options.release):
        return refused(reason, 2)
    plan = Plan(
        servers=options.servers,
        observers=options.observers,
        kills=options.kills,
        seconds=options.seconds,
        seed=options.seed,
        clients=options.clients,
        pause=options.pause,
    )
    recorder = Recorder(options.release, f"{options.kills} kills in {options.seconds:g} s, seed {options.seed}")
    try:
        with directories(options.keep) as folder:
            try:
                writes = record(plan, folder, options.release, recorder, lambda text: print(text, flush=True))
            finally:
                recorder.save(options.file)
    except (ServerError, OSError) as error:
        return refused(str(error), 1)
    print(f"{options.file}: {recorder.packets} packets, {writes} acknowledged writes")
    return 0


def _mistake(options: argparse.Namespace) -> str | None:
    if options.file.exists():
        return f"{options.file}: the file exists; name a new one"
    if not options.file.parent.is_dir():
        return f"{options.file}: its folder does not exist; name one that exists"
    if mistake := keep_mistake(options.keep):
        return mistake
    if options.servers + options.observers > MOST_SERVERS:
        return f"{options.servers + options.observers} servers were asked for; {MOST_SERVERS} are the most"
    if options.clients > MOST_CLIENTS:
        return f"--clients {options.clients}: {MOST_CLIENTS} are the most"
    return None


RECORD = Command(add_options, run)
