"""The command `plan`, and what all commands share that serve a page on loopback."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from checker.command import Command, ExitCode, refused, say
from checker.source import STARTED
from spec.text import between

if TYPE_CHECKING:
    from checker.local_page import PageServer


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
    from checker.local_page import PortError  # noqa: PLC0415
    from checker.planner_page import PlannerHandlers, PlannerServer  # noqa: PLC0415
    from checker.rollout.output.cache import AnswerCache  # noqa: PLC0415

    try:
        server = PlannerServer(PlannerHandlers(AnswerCache.of_user(STARTED)), options.port)
    except PortError as error:
        return refused(str(error), ExitCode.COMMAND_LINE)
    return serve_page(server, browser=not options.no_browser)


PLAN = Command(
    "plan", "Serves a local page that says whether a roll-out is safe, and plans one that is.", add_page, _plan
)
