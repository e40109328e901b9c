"""One run of kazoo's test-suite against servers of one kind, and the outcome of each test.

Rules of this module:

- A run has its own block of free ports, so that several runs may be in progress.
- Nothing of kazoo's source is part of the project: a Python that can run its tests is made from PyPI, in the user's
  cache. The versions of everything are pinned here, so that two runs execute the same tests. A folder is complete if it
  has a file `complete`, which is made at the end; any other one is made anew.
- The outcomes come from pytest's XML report. A test that pytest did not report has no outcome.

Source: kazoo 2.11.0, `kazoo.testing.harness.get_global_cluster` (the environment variables), `setup.cfg` (the extras
`test` and `sasl`); pytest's `--junitxml`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from harness import node, real
from harness.kazoo_suite.cluster import CONFIG, PROPERTIES, SERVER
from harness.processes import PORTS, ServerError, is_free
from harness.releases import cache_folder
from refimpl.clients.four_letter_words import COMPATIBLE

KAZOO = "2.11.0"
"""The version of the test-suite."""
REQUIREMENTS = (
    f"kazoo=={KAZOO}",
    "pytest==9.1.1",
    "pytest-timeout==2.4.0",
    "objgraph==3.7.0",
    "gevent==26.9.0",
    "eventlet==0.41.3",
    "pyjks==20.0.0",
    "pyopenssl==26.4.0",
    "pure-sasl==0.6.2",
)
SECONDS = 600.0
"""The bound of a download."""


def suite_python() -> Path:
    """The Python that has kazoo with its tests and all they import; it is made at the first call.

    Raises ServerError if the packages cannot be downloaded or installed.
    """
    folder = cache_folder() / f"kazoo-{KAZOO}-python{sys.version_info[0]}.{sys.version_info[1]}"
    python = folder / "bin" / "python"
    if (folder / "complete").is_file():
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    _carried_out([sys.executable, "-m", "venv", "--clear", str(folder)], "a virtual environment was not made")
    with tempfile.TemporaryDirectory() as wheels:
        # The source archive, because the tests are part of it by kazoo's own promise.
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--cache-dir", wheels]
        _carried_out([*pip, "--no-binary", "kazoo", *REQUIREMENTS], "kazoo's test-suite was not installed")
    (folder / "complete").touch()
    return python


def tests_folder(python: Path) -> Path:
    """The folder `kazoo/tests` of that Python. Raises ServerError if the package has none."""
    folder = next(python.parent.parent.glob("lib/python*/site-packages/kazoo/tests"), None)
    if folder is None:
        raise ServerError(f"kazoo {KAZOO} in {python.parent.parent} has no tests; remove that folder, and try again")
    return folder


def _carried_out(command: list[str], failure: str) -> None:
    """Run a command. Raises ServerError with the end of its output if it fails."""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ServerError(f"{failure} within {SECONDS:g} s") from None
    if ended.returncode:
        lines = (ended.stdout + ended.stderr).strip().splitlines()
        raise ServerError(f"{failure}: {lines[-1] if lines else f'{command[0]} ended with {ended.returncode}'}")


PORTS_OF_A_SERVER = 10
"""kazoo gives each server ten ports in a row, and uses five."""
SECONDS_OF_A_TEST = 180
SECONDS_OF_A_RUN = 3600.0


class SuiteOutcome(StrEnum):
    """What pytest says about one test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class ServerCommand(msgspec.Struct, frozen=True):
    """The servers of a run: `kind` is `real` or `node`, and `version` is what `srvr` says, as kazoo reads it.

    `command` is the command line of one server, with `@config` in the place of its file, and `@properties` in that of
    the properties of Java if the server has any; `environment` are further environment variables.
    """

    kind: str
    version: str
    command: list[str]
    environment: dict[str, str]


def node_servers() -> ServerCommand:
    """Our nodes. Raises ServerError if they cannot be started here."""
    return ServerCommand("node", COMPATIBLE, node.command(Path(CONFIG)), node.environment())


def real_servers(release: str) -> ServerCommand:
    """Real servers of a release. Raises ServerError if they cannot be started here."""
    options = ("-Xmx128m", "-Dfile.encoding=UTF-8", PROPERTIES)
    return ServerCommand("real", release, real.command(Path(CONFIG), options, release), {})


class SuiteRun(msgspec.Struct, frozen=True):
    """One run of the suite: `size` servers of one kind, the tests that pytest's `-k` selects, and the folder for files.

    `ended` is called with the line of each test that has ended.
    """

    servers: ServerCommand
    size: int
    folder: Path
    selection: str = ""

    def outcomes(self, python: Path, ended: Callable[[str], None] = lambda _line: None) -> dict[str, SuiteOutcome]:
        """Run the tests with this Python; return the outcome of each test by `module::class::name`.

        Raises ServerError if pytest wrote no report. The bound of a run is that of each test.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        report = self.folder / "report.xml"
        command = [str(python), "-m", "pytest", "-v", "--tb=short", "-p", "harness.kazoo_suite.cluster"]
        command += ["-p", "no:cacheprovider", f"--junitxml={report}", f"--timeout={SECONDS_OF_A_TEST}"]
        command += ["-k", self.selection] if self.selection else []
        log = self.folder / "pytest.txt"
        self._execute([*command, str(tests_folder(python))], log, ended)
        if not report.is_file():
            raise ServerError(f"pytest wrote no report; see {log}")
        return read_report(report)

    def _execute(self, command: list[str], log: Path, ended: Callable[[str], None]) -> None:
        temporary = self.folder / "servers"
        temporary.mkdir(exist_ok=True)
        environment = os.environ | {
            "PYTHONPATH": str(node.ROOT),
            "TMPDIR": str(temporary),
            # `test_build` compares the version with that of the server only where CI is set.
            "CI": "true",
            "ZOOKEEPER_VERSION": self.servers.version,
            "ZOOKEEPER_CLUSTER_SIZE": str(self.size),
            "ZOOKEEPER_PORT_OFFSET": str(free_block(self.size * PORTS_OF_A_SERVER)),
            SERVER: json.dumps({"command": self.servers.command, "environment": self.servers.environment}),
        }
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    output.write(line)
                    if "::" in line and any(word in line for word in (" PASSED", " FAILED", " SKIPPED", " ERROR")):
                        ended(line)
                process.wait(SECONDS_OF_A_RUN)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()


def read_report(report: Path) -> dict[str, SuiteOutcome]:
    """The outcome of each test in a report of pytest; an error before or after a test is a failure of it."""
    outcomes: dict[str, SuiteOutcome] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('kazoo.tests.').replace('.', '::')}::{case.get('name', '')}"
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            outcomes[name] = SuiteOutcome.FAILED
        elif "skipped" in kinds:
            outcomes.setdefault(name, SuiteOutcome.SKIPPED)
        else:
            outcomes.setdefault(name, SuiteOutcome.PASSED)
    return outcomes


def free_block(count: int) -> int:
    """The first of `count` free ports in a row, at a random place. Raises ServerError if all blocks are in use."""
    firsts = range(PORTS.start, PORTS.stop - count, count)
    for first in random.SystemRandom().sample(firsts, len(firsts)):
        if all(is_free(port) for port in range(first, first + count)):
            return first
    raise ServerError(f"no {count} free ports in a row in {PORTS}")
