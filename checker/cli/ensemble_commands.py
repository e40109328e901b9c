"""The commands on real ensembles: on quorums of their files, their journals, and the histories of their clients.

The command `plan` is here, with what all commands share that serve a page on loopback.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from checker.command import Command, ExitCode, refused, say, unread_output_discarded
from checker.source import STARTED
from spec.text import between

if TYPE_CHECKING:
    from checker.local_page import PageServer


def _quorums_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="ZOO_CFG", help="one file or more")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def _quorums(options: argparse.Namespace) -> int:
    from checker.symbolic.report import quorums_command  # noqa: PLC0415

    answer = quorums_command(options.files)
    if answer.exit_code in (ExitCode.CONFIGURATION, ExitCode.COMMAND_LINE) and not options.json:
        return refused(answer.text, answer.exit_code)
    with unread_output_discarded():
        say(json.dumps(answer.data) if options.json else answer.text)
    return answer.exit_code


QUORUMS = Command(_quorums_options, _quorums)


def _validate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE",
        help="the journal of a server, one for each, or a recording; with --model the log of any system",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument(
        "--refinement", action="store_true", help="journals: each step must also be a step of abstract Zab"
    )
    parser.add_argument(
        "--model", type=Path, metavar="FILE.py:NAME", help="a log of JSON lines: the model of it, whose code is run"
    )
    parser.add_argument(
        "--events", metavar="NAME", help="the meaning of a line: an Events, or a function, in the file of the model"
    )
    parser.add_argument(
        "--states", type=between(1, 1 << 40), metavar="N", help="the search for a run visits N states (500,000)"
    )


def _validate(options: argparse.Namespace) -> int:
    if options.model is not None:
        from checker.validate.log.report import log_command  # noqa: PLC0415

        if options.refinement:
            return refused("--refinement is for journals, and --model for a log; leave one out", ExitCode.COMMAND_LINE)
        return log_command(options.files, options.model, options.events, options.states, as_json=options.json)
    if options.events is not None or options.states is not None:
        return refused("--events and --states are for a log; name its model with --model", ExitCode.COMMAND_LINE)
    from checker.validate.report import validate_command  # noqa: PLC0415

    return validate_command(options.files, as_json=options.json, refines=options.refinement)


VALIDATE = Command(_validate_options, _validate)


def _history_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a recorded history, or its parts")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def _history(options: argparse.Namespace) -> int:
    from checker.histories import report_of  # noqa: PLC0415

    report = report_of(options.files)
    with unread_output_discarded():
        say(json.dumps(report.data) if options.json else report.text)
    return int(report.exit_code)


HISTORY = Command(_history_options, _history)


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options of a page: its port, and whether a browser opens."""
    parser.add_argument("--port", type=between(0, 65535), default=0, metavar="N", help="the port (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")


def serve_page(server: PageServer, *, browser: bool = True) -> int:
    """Print the address, and serve the page until an interrupt; returns the exit code."""
    with server:
        say(f"{server.name}: {server.address} (Ctrl-C ends it)")
        if browser and _has_screen():
            import webbrowser  # noqa: PLC0415 (slow to import)

            webbrowser.open(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return int(ExitCode.PASSED)


def _has_screen() -> bool:
    """Return whether a browser opens in a window; a text browser would occupy this terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _plan(options: argparse.Namespace) -> int:
    from checker.planner_page import PlannerHandlers, PlannerServer  # noqa: PLC0415
    from checker.rollout.output.cache import AnswerCache  # noqa: PLC0415

    server = PlannerServer(PlannerHandlers(AnswerCache.of_user(STARTED)), options.port)
    return serve_page(server, browser=not options.no_browser)


PLAN = Command(add_page, _plan)
