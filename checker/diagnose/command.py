"""The command `diagnose`: its options, and its output as text or JSON."""

from __future__ import annotations

import argparse
import json

from checker.command import Command, say


def _options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "exit codes: 0 a quorum and each asked server serve, no cause was found, 1 a cause is named, 20 the evidence"
        " does not say, 151 an input cannot be used, 2 bad command line."
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT",
        help="HOST:PORT,... of servers, live or not, or http://HOST:PORT of an AdminServer; a folder of a server, or of"
        " folders of servers, with zoo.cfg, data directory and log; a zoo.cfg; a server's log. Nothing is changed",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the answer for machines")


def _run(options: argparse.Namespace) -> int:
    from checker.diagnose.report import data, diagnose, servers_read, text_lines  # noqa: PLC0415

    diagnosis = diagnose(options.inputs)
    if options.json:
        say(json.dumps(data(diagnosis)))
    else:
        say("\n".join(text_lines(diagnosis)))
        say("\nRead: " + "\n      ".join(servers_read(diagnosis.situation.servers)))
    return int(diagnosis.exit_code)


DIAGNOSE = Command(_options, _run)
"""The command."""
