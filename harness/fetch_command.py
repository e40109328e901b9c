"""The commands `fetch` and `releases`: the released servers that the harness can start.

They need nothing that is to be installed: the gate fetches releases before it installs the project.
"""

import argparse

from checker.command import Command, refused
from harness import real, releases
from harness.processes import ServerError


def _fetch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", nargs="+", help=f"one of {', '.join(releases.OLDER + releases.MAVEN)}")


def _fetch(options: argparse.Namespace) -> int:
    try:
        for release in options.release:
            print(releases.fetch(release))
        for library in releases.LIBRARIES:
            library.fetch()
    except ServerError as error:
        return refused(str(error), 1)
    return 0


FETCH = Command(_fetch_options, _fetch)


def _releases(_: argparse.Namespace) -> int:
    for release in releases.OLDER + releases.RELEASES:
        print(f"{release}  {real.available(release) or 'can be started'}")
    return 0


RELEASES = Command(lambda _: None, _releases)
