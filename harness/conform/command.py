"""`python -m harness conform`: compares a server of ZooKeeper's client protocol with the specification.

Exit codes: 0 no difference that a release or a meant difference does not explain; 1 such a difference; 2 a wrong
command line, no connection, or a znode that could not be deleted.
"""

import argparse
import re
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from checker.command import Command, refused, show_on_terminal
from harness import real
from harness.commands import CREATE2
from harness.conform import report
from harness.conform.cases.tree_cases import waiting_cases
from harness.conform.kills.run import KillsRun, ServerControl, ShellCommands, revived
from harness.conform.known_causes import OTHER_SERVERS
from harness.conform.run import AREAS, Bench, ConformResult, measure
from harness.conform.servers import ORACLE_KEYS, TICK, Side, parse_places, release_of, start_oracle
from harness.directories import add_keep, directories, keep_mistake
from harness.ensemble import Ensemble
from harness.processes import ServerError
from spec.text import between, decimals_between

ROOT_PATH = re.compile(r"(/[\w.-]+)+")
SECONDS = 10.0
MOST_SERVERS = 7
OFTEN = "500"
"""Milliseconds between two looks for containers, at servers that the command starts."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("servers", nargs="?", metavar="HOST:PORT[,...]", help="the servers of one ensemble")
    parser.add_argument(
        "--start", metavar="R", help="start a real server of this release instead, and stop it at the end"
    )
    parser.add_argument(
        "--root", default=None, metavar="PATH", help="the znode to create, use and delete (default: a new name below /)"
    )
    parser.add_argument("--area", action="append", metavar="NAME", help=f"only this area: {'; '.join(AREAS)}")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="all areas but this one")
    parser.add_argument(
        "--random", type=between(0), default=0, metavar="N", help="random scripts in addition (default: 0)"
    )
    parser.add_argument(
        "--seed", type=between(0), default=1, metavar="S", help="the seed of the random scripts (default: 1)"
    )
    parser.add_argument("--release", metavar="R", help="the release of the servers (default: what srvr answers)")
    parser.add_argument(
        "--oracle",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of zoo.cfg for the oracle, such as extendedTypesEnabled=false",
    )
    parser.add_argument(
        "--wait",
        type=decimals_between(0),
        metavar="SECONDS",
        help="only the deletion of containers and TTL znodes by the server; SECONDS bounds each wait for one",
    )
    add_kills(parser)
    parser.add_argument(
        "--seconds", type=decimals_between(0), default=SECONDS, help="the bound of an answer (default: 10)"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report as Markdown")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the report as JUnit XML")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what the run found as a record for --table")
    parser.add_argument("--table", type=Path, metavar="PAGE", help="write the tables of --records into a page")
    parser.add_argument("--records", type=Path, nargs="+", default=[], metavar="FILE", help="records, by column")
    parser.add_argument("--check", action="store_true", help="with --table: compare the page, and change nothing")
    add_keep(parser)


def add_kills(parser: argparse.ArgumentParser) -> None:
    """Add the options of the run under kills."""
    parser.add_argument(
        "--kills",
        type=between(0),
        default=0,
        metavar="N",
        help="in addition kill servers N times under load, and judge it",
    )
    parser.add_argument(
        "--kill", metavar="COMMAND", help="kills a server; {server} is its number from 1, {host} and {port} its address"
    )
    parser.add_argument(
        "--restart", metavar="COMMAND", help="starts a server that was killed, or that a request has stopped"
    )
    parser.add_argument("--history", type=Path, metavar="FILE", help="keep the history of the run under kills")
    parser.add_argument(
        "--size", type=between(1, MOST_SERVERS), default=1, metavar="N", help="servers that --start starts (default: 1)"
    )


def kills_mistake(options: argparse.Namespace) -> str | None:
    """The mistake in the options of the run under kills; None if there is no mistake."""
    if options.start is not None and (options.kill or options.restart):
        return "--kill and --restart are for servers that run already; --start kills and starts its own"
    if options.kill and not options.restart:
        return "--kill needs --restart, the command that starts the server again"
    if options.kills and options.start is None and not options.kill:
        return "--kills needs --kill and --restart, the commands that kill and start a server"
    return None


def run(options: argparse.Namespace) -> int:
    """Carry out the command; return its exit code."""
    if options.table is not None:
        return _table(options)
    if reason := _mistake(options):
        return refused(reason, 2)
    try:
        with directories(options.keep) as folder, _servers(options, folder) as (servers, control):
            result = _measured(options, servers, control, folder)
        print(report.text(result))
        if options.markdown is not None:
            options.markdown.write_text(report.markdown(result, servers), encoding="utf-8")
        if options.junit is not None:
            options.junit.write_text(report.junit(result, servers), encoding="utf-8")
        if options.json is not None:
            report.save(report.record_of(result, options.json.stem), options.json)
    except OSError as error:
        return refused(str(error) if error.filename else f"{options.servers or options.start}: {error}", 2)
    except (ServerError, ValueError) as error:
        return refused(str(error), 2)
    except KeyboardInterrupt:
        return refused("interrupted; the root was deleted", 2)
    return 0 if result.is_equal else 1


def _table(options: argparse.Namespace) -> int:
    if not options.records or options.servers or options.start:
        return refused("--table PAGE takes --records FILE ... alone; --json writes such a file", 2)
    try:
        page = options.table.read_text(encoding="utf-8")
        right = report.with_tables(page, [report.load(file) for file in options.records])
        if options.check:
            print(
                "the tables are right" if page == right else f"{options.table}: the tables differ; run without --check"
            )
            return 0 if page == right else 1
        options.table.write_text(right, encoding="utf-8")
    except (OSError, ValueError) as error:
        return refused(str(error), 2)
    return 0


@contextmanager
def _servers(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, ServerControl | None]]:
    """The addresses of the tested servers, started here if `--start` says so, and the way to kill and start them."""
    if options.start is None:
        places = parse_places(options.servers)
        yield options.servers, ShellCommands(places, options.kill, options.restart) if options.restart else None
        return
    kinds = ["real"] * options.size
    # ZooKeeper reads the interval from a property of Java, and not from zoo.cfg.
    java = (f"-Dznode.container.checkIntervalMs={OFTEN}",) if options.wait else ()
    with Ensemble(
        kinds, folder / "tested", release=options.start, extra=ORACLE_KEYS, tick_time=TICK, java_options=java
    ) as tested:
        tested.start_all()
        yield tested.connect_string, tested


def _measured(options: argparse.Namespace, servers: str, control: ServerControl | None, folder: Path) -> ConformResult:
    places = parse_places(servers)
    root = options.root or f"/quorate-conform-{secrets.token_hex(4)}"
    tested = Side(places, root, options.seconds, partial(revived, control, places) if control else None)
    try:
        tested.create_root(parents=False)
    except (OSError, ServerError, ValueError, struct.error) as error:
        raise ServerError(f"{servers} does not serve: {error}") from error
    try:
        release = options.release or release_of(places[0])
        print(f"everything at {servers} happens below {root}, which is deleted at the end")
        print(
            f"release {release or 'not known'}; oracle: our node, which executes spec/tree and spec/service", flush=True
        )
        keys = dict(pair.split("=", 1) for pair in options.oracle)
        often = {"znode.container.checkIntervalMs": OFTEN} if options.wait else {}
        oracle = start_oracle(folder / "oracle", often | keys)
        try:
            expected = Side([oracle.client_port(1)], root, options.seconds)
            expected.create_root(parents=True)
            bench = Bench(expected, tested, release, show_on_terminal)
            areas = [area for area in options.area or AREAS if area not in options.without]
            waiting = waiting_cases(options.wait) if options.wait else ()
            result = measure(bench, [] if waiting else areas, options.random, options.seed, waiting)
            if options.kills and control is not None:
                revived(control, places)
                run = KillsRun(places, root, control, options.kills, options.seed, result.supports(CREATE2))
                result = result._replace(kills=run.run(options.history or folder / "history.jsonl", show_on_terminal))
        finally:
            oracle.shut_down()
            show_on_terminal()
    except BaseException as error:
        try:
            tested.remove()
        except (OSError, ServerError, ValueError, struct.error) as second:
            first = str(error) or "interrupted"
            raise ServerError(f"{first}; {tested.root} could not be deleted: {second}") from error
        raise
    tested.remove()
    return result


def _mistake(options: argparse.Namespace) -> str | None:
    if (options.servers is None) == (options.start is None):
        return "write the servers to test, HOST:PORT[,HOST:PORT...], or --start RELEASE"
    if options.start is not None and (reason := real.available(options.start)):
        return reason
    try:
        parse_places(options.servers or "127.0.0.1:1")
    except ValueError as error:
        return str(error)
    if options.root is not None and (not ROOT_PATH.fullmatch(options.root) or options.root.startswith("/zookeeper")):
        return f"--root {options.root}: write the path of a znode that does not exist yet, such as /conform"
    for option, names in (("--area", options.area or ()), ("--without", options.without)):
        for area in names:
            if area not in AREAS:
                return f"{option} {area}: write one of: {'; '.join(AREAS)}"
    for pair in options.oracle:
        if "=" not in pair:
            return f"--oracle {pair}: write KEY=VALUE"
    if reason := kills_mistake(options):
        return reason
    if options.wait is not None and (options.wait <= 0 or options.area or options.random):
        return "--wait takes seconds above 0, and is used without --area and --random"
    if options.seconds <= 0:
        return "--seconds takes a number above 0"
    if options.release is not None and not (
        re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}", options.release) or options.release in OTHER_SERVERS
    ):
        return f"--release {options.release}: write {' or '.join(('three numbers, such as 3.9.5', *OTHER_SERVERS))}"
    return keep_mistake(options.keep)


CONFORM = Command(add_options, run)
