"""The command `python -m refimpl`: one server from a zoo.cfg, or a local ensemble to try things with.

Exit codes: 0 stopped as asked, 1 could not start or had to stop, 2 bad command line, 151 bad configuration file.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from refimpl import demo
from refimpl.disk.files import DataError
from refimpl.log_lines import LONGEST_LINE, log_to
from refimpl.process import FailedError, StartError, read_settings, serve
from spec.config import ConfigError
from spec.text import excerpt

logger = logging.getLogger("quorate.server")

EXIT_STOPPED, EXIT_FAILED, EXIT_COMMAND_LINE, EXIT_BAD_CONFIG = 0, 1, 2, 151


def arguments(argv: Sequence[str] | None, program: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Run one ZooKeeper-compatible server from its zoo.cfg, until it is interrupted; or, with the word "
        "demo in place of a file, a local ensemble on free ports; or, with the word simulate, simulations.",
        epilog=f"{program} demo --help tells about the local ensemble, simulate --help about the simulation",
    )
    parser.add_argument("config", metavar="ZOO_CFG", type=Path, help="the configuration file; dataDir holds myid")
    parser.add_argument("--journal", metavar="FILE", type=Path, help="write an event log for `quorate validate`")
    parser.add_argument("--verbose", action="store_true", help="say more about connections")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, program: str = "python -m refimpl") -> int:
    """Run the command and return its exit code."""
    _open_closed_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["demo"]:
        return demo.main(words[1:], f"{program} demo")
    if words[:1] == ["simulate"]:
        try:
            from simulation import command  # noqa: PLC0415 - a server needs neither it nor the checker
        except ModuleNotFoundError:
            sys.stderr.write("error: the simulation is not part of the node alone; install all of Quorate\n")
            return EXIT_COMMAND_LINE

        return command.main(words[1:], f"{program} simulate")
    options = arguments(words, program)
    log_to(sys.stderr, logging.DEBUG if options.verbose else logging.INFO)
    try:
        settings = read_settings(options.config)
        run_loop(_run(settings, options.journal))
    except ConfigError as error:
        for problem in error.problems:
            sys.stderr.write(f"error: {excerpt(str(problem), LONGEST_LINE)}\n")
        return EXIT_BAD_CONFIG
    except (StartError, FailedError, DataError, OSError) as error:
        sys.stderr.write(f"error: {excerpt(str(error), LONGEST_LINE)}\n")
        return EXIT_FAILED
    return EXIT_STOPPED


def _open_closed_streams() -> None:
    """Open the null device in the place of closed standard streams: a log or a socket would get what they say."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    null = os.fdopen(number, "w")
    sys.stdout, sys.stderr = sys.stdout or null, sys.stderr or null


async def _run(settings: Any, journal: Path | None) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        logger.info("stopping: %s", number.name)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    await serve(settings, journal, stopping)


def run_loop(main_task: Coroutine[Any, Any, None]) -> None:
    """Run the event loop: uvloop's where it is installed."""
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - it is optional

        uvloop.run(main_task)
        return
    asyncio.run(main_task)


if __name__ == "__main__":
    sys.exit(main())
