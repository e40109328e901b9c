"""`python -m harness`: `fetch` downloads released servers, `releases` lists them, `reproduce` runs counterexamples,
`record` records an ensemble, `follow` follows the plan for a roll-out, `conform` compares a server with the
specification, `kazoo` runs the test-suite of kazoo."""

import argparse
import sys

from checker.cli.command import open_closed_streams, refused
from harness import real, releases
from harness.processes import ServerError

REPRODUCE = "execute a counterexample of the checker on real servers"
RECORD = "record the packets and the disks of real servers under load, for checker validate"
FOLLOW = "follow the plan for a roll-out on real servers, under writes and kills"
KAZOO = "run kazoo's test-suite against real servers and against our nodes, and compare the outcomes"
CONFORM = "compare a server of ZooKeeper's client protocol with the specification"


def main(arguments: list[str] | None = None) -> int:
    """Carry out one command. Returns 0, or 1 after an error, which is one line on standard error."""
    open_closed_streams()
    parser = argparse.ArgumentParser(prog="python -m harness", description="Released ZooKeeper servers to test with.")
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="download the jars of releases from Maven Central, by mvn")
    fetch.add_argument("release", nargs="+", help=f"one of {', '.join(releases.OLDER + releases.MAVEN)}")
    commands.add_parser("releases", help="list the known releases, and whether each can be started here")
    reproduce = commands.add_parser("reproduce", help=REPRODUCE, description=REPRODUCE)
    record = commands.add_parser("record", help=RECORD, description=RECORD)
    follow = commands.add_parser("follow", help=FOLLOW, description=FOLLOW)
    conform = commands.add_parser("conform", help=CONFORM, description=CONFORM)
    kazoo = commands.add_parser("kazoo", help=KAZOO, description=KAZOO)
    given = sys.argv[1:] if arguments is None else arguments
    # Imported here: they need the dependencies of the project, and the gate fetches before they are installed.
    if given[:1] == ["reproduce"]:
        from harness.reproduce import command  # noqa: PLC0415

        command.add_options(reproduce)
        return command.run(parser.parse_args(given))
    if given[:1] == ["record"]:
        from harness.record import command as record_command  # noqa: PLC0415

        record_command.add_options(record)
        return record_command.run(parser.parse_args(given))
    if given[:1] == ["follow"]:
        from harness.follow import command as follow_command  # noqa: PLC0415

        follow_command.add_options(follow)
        return follow_command.run(parser.parse_args(given))
    if given[:1] == ["conform"]:
        from harness.conform import command as conform_command  # noqa: PLC0415

        conform_command.add_options(conform)
        return conform_command.run(parser.parse_args(given))
    if given[:1] == ["kazoo"]:
        from harness.kazoo_suite import command as kazoo_command  # noqa: PLC0415

        kazoo_command.add_options(kazoo)
        return kazoo_command.run(parser.parse_args(given))
    chosen = parser.parse_args(given)
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
