"""`explore`: a local page to walk through the states of a scenario."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from checker.cli.commands.command import Command, refused
from checker.cli.options import between, variant
from checker.report.verdict import ExitCode

if TYPE_CHECKING:
    from checker.explorer import Handlers


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="SCENARIO", help="scenario files (YAML)")
    parser.add_argument(
        "--variant", type=variant, action="append", default=[], metavar="NAME", dest="variants",
        help="reproduce a known defect or a mutant; may be repeated",
    )  # fmt: skip
    parser.add_argument("--trace", type=Path, metavar="FILE", help="begin with a saved trace (ITF)")
    parser.add_argument("--port", type=between(0, 65535), default=0, metavar="N", help="the port (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")


def _run(options: argparse.Namespace) -> int:
    from checker.explorer import BadRequestError, Handlers, PortError, Server  # noqa: PLC0415
    from checker.scenario import ScenarioError, VariantError, load  # noqa: PLC0415

    if not options.files and options.trace is None:
        right = "name a scenario (python -m checker list), or a trace: --trace FILE"
        return refused(f"there is nothing to explore; {right}", ExitCode.COMMAND_LINE)
    try:
        handlers = Handlers((load(path, options.variants), _folder_of(path)) for path in options.files)
        _begin(handlers, options.trace)
        server = Server(handlers, options.port)
    except (ScenarioError, BadRequestError) as error:
        return refused(str(error), ExitCode.SCENARIO)
    except (VariantError, PortError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)
    with server:
        print(f"explorer: {server.address} (Ctrl-C ends it)", flush=True)
        if not options.no_browser and _has_screen():
            import webbrowser  # noqa: PLC0415 (slow to import)

            webbrowser.open(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return int(ExitCode.PASSED)


def _begin(handlers: Handlers, trace: Path | None) -> None:
    """Load the saved trace for the first view, if the options name one. Raises BadRequestError."""
    from checker.explorer import BadRequestError  # noqa: PLC0415
    from checker.explorer.requests import LoadRequest  # noqa: PLC0415

    if trace is None:
        return
    try:
        text = trace.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadRequestError(f"{trace}: it cannot be read ({error}); name a saved trace") from None
    print(f"{trace}: {handlers.begin_with(LoadRequest(str(trace), text))}")


def _folder_of(path: Path) -> str:
    """Return the name of the folder that contains a file. `Path.resolve` raises for a symlink loop."""
    return Path(os.path.realpath(path)).parent.name


def _has_screen() -> bool:
    """Return whether a browser opens in a window; a text browser would occupy this terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


COMMAND = Command("explore", "Serves a local page to walk through the states of a scenario.", _options, _run)
