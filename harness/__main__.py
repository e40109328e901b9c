"""`python -m harness`: `fetch` downloads released servers, `releases` lists them, `reproduce` runs counterexamples,
`record` records an ensemble, `follow` follows the plan for a roll-out, `conform` compares a server with the
specification, `kazoo` runs the test-suite of kazoo."""

import argparse
import importlib
import sys

from checker.command import open_closed_streams, refused
from harness import real, releases
from harness.processes import ServerError

COMMANDS = {
    "reproduce": ("harness.reproduce", "execute a counterexample of the checker on real servers"),
    "record": ("harness.record", "record the packets and the disks of real servers under load, for checker validate"),
    "follow": ("harness.follow", "follow the plan for a roll-out on real servers, under writes and kills"),
    "conform": ("harness.conform", "compare a server of ZooKeeper's client protocol with the specification"),
    "kazoo": (
        "harness.kazoo_suite",
        "run kazoo's test-suite against real servers and against our nodes, and compare the outcomes",
    ),
}
"""The package of each command, with its module `command`, and its description."""


def main(arguments: list[str] | None = None) -> int:
    """Carry out one command. Returns 0, or 1 after an error, which is one line on standard error."""
    open_closed_streams()
    parser = argparse.ArgumentParser(prog="python -m harness", description="Released ZooKeeper servers to test with.")
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="download the jars of releases from Maven Central, by mvn")
    fetch.add_argument("release", nargs="+", help=f"one of {', '.join(releases.OLDER + releases.MAVEN)}")
    commands.add_parser("releases", help="list the known releases, and whether each can be started here")
    parsers = {
        name: commands.add_parser(name, help=description, description=description)
        for name, (_, description) in COMMANDS.items()
    }
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] and words[0] in COMMANDS:
        # Imported here: it needs the dependencies of the project, and the gate fetches before they are installed.
        command = importlib.import_module(f"{COMMANDS[words[0]][0]}.command")
        command.add_options(parsers[words[0]])
        return int(command.run(parser.parse_args(words)))
    chosen = parser.parse_args(words)
    if chosen.command == "releases":
        for release in releases.OLDER + releases.RELEASES:
            print(f"{release}  {real.available(release) or 'can be started'}")
        return 0
    try:
        for release in chosen.release:
            print(releases.fetch(release))
    except ServerError as error:
        return refused(str(error), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
