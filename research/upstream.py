"""`python -m research.upstream`: ZooKeeper's own tests, without the corrections and with all of them together.

The tests are those of the release's `zookeeper-RELEASE-tests.jar`, run by JUnit's console, one process for each class.
A correction is at fault if a test fails with the corrections and not without them.

Rules of this module:

- Each class has its bound in seconds; a process beyond it is killed, and the class counts as unfinished.
- Each run of a class is a line of the file of results, and an interrupted command goes on from there. No class begins
  after `--minutes`. A line is of no use if one of the corrections is another one now.

Exit codes: 0 no test fails with the corrections alone; 1 one does; 2 a wrong command line; 3 the tests cannot be run.

Source: `pom.xml` of ZooKeeper 3.9.5 (surefire: `build.test.dir`).
"""

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from checker.command import refused
from harness import real, releases
from harness.corrections.agent import FOLDER, java_options
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.releases import MAVEN
from research.corrections import DEFECTS
from research.reconfig.facts import FactTable, written
from spec.text import between

POM = Path(__file__).with_name("upstream.pom.xml")
WHAT = "ZooKeeper's tests"
PACKAGE = "org.apache.zookeeper"
CONSOLE = "org.junit.platform.console.ConsoleLauncher"
CLASSES = (
    "server.quorum.Zab1_0Test",
    "server.quorum.LearnerHandlerTest",
    "server.quorum.LearnerTest",
    "server.quorum.DIFFSyncConsistencyTest",
    "server.quorum.DIFFSyncTest",
    "server.quorum.QuorumSyncTest",
    "server.quorum.RaceConditionTest",
    "server.quorum.CurrentEpochWriteFailureTest",
    "server.quorum.EpochWriteFailureTest",
    "server.quorum.LeaderWithObserverTest",
    "server.quorum.ReconfigRecoveryTest",
    "server.quorum.ReconfigFailureCasesTest",
    "server.quorum.ReconfigDuringLeaderSyncTest",
    "server.quorum.ReconfigBackupTest",
    "server.quorum.ReconfigLegacyTest",
    "server.quorum.ReconfigRollingRestartCompatibilityTest",
    "server.quorum.StandaloneDisabledTest",
    "server.quorum.FuzzySnapshotRelatedTest",
    "server.quorum.QuorumPeerTest",
    "server.quorum.SessionUpgradeQuorumTest",
    "server.quorum.CloseSessionTxnTest",
    "server.quorum.EphemeralNodeDeletionTest",
    "server.quorum.EagerACLFilterTest",
    "server.quorum.FLELostMessageTest",
    "server.quorum.FLEOutOfElectionTest",
    "server.quorum.FLEBackwardElectionRoundTest",
    "server.quorum.CommitProcessorTest",
    "server.quorum.LearnerSyncThrottlerTest",
    "server.quorum.QuorumRequestPipelineTest",
    "server.quorum.QuorumDigestTest",
    "server.quorum.WatchLeakTest",
    "server.quorum.LeaderMetricsTest",
    "server.quorum.LearnerHandlerMetricsTest",
    "server.quorum.LearnerMetricsTest",
    "server.quorum.CnxManagerTest",
    "server.persistence.FileTxnLogTest",
    "test.TruncateTest",
    "server.admin.RestoreQuorumTest",
    "test.ObserverTest",
    "test.ReconfigTest",
    "server.quorum.QuorumPeerMainTest",
)
"""The classes without those of encryption, authentication, JMX and configuration files; the closest come first."""


class Line(msgspec.Struct, frozen=True):
    """A line of the file of results: one class, without the corrections or with them."""

    name: str
    corrected: bool
    source: str
    release: str
    tests: int
    failed: tuple[str, ...]
    finished: bool
    seconds: float


def source_of_corrections() -> str:
    """All Java sources of the corrections, as the beginning of their SHA-256."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(FOLDER.glob("*.java")))).hexdigest()[:16]


def lines_of(file: Path, release: str) -> list[Line]:
    """The lines of a release for the present corrections. Raises ServerError for another file."""
    if not file.exists():
        return []
    try:
        lines = [msgspec.json.decode(text, type=Line) for text in file.read_bytes().splitlines()]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServerError(f"{file}: it is no file of results ({error}); name a new one") from None
    return [line for line in lines if line.release == release and line.source == source_of_corrections()]


class Suite:
    """The tests of a release, and the agent that corrects it, in a folder."""

    def __init__(self, folder: Path, release: str) -> None:
        self._folder, self._release = folder, release
        values = f"-Drelease={release}"
        jar = f"zookeeper-{release}-tests.jar"
        self._jars = releases.copy_jars(releases.maven_for(WHAT), WHAT, POM, folder, jar, values)
        self._agent = java_options([defect.name for defect in DEFECTS], release, folder / "agent")

    def run(self, name: str, seconds: float, *, corrected: bool) -> Line:
        """Run one class."""
        folder = self._folder / f"{name}-{'with' if corrected else 'without'}"
        folder.mkdir()
        places = [f"-D{key}={folder}" for key in ("build.test.dir", "build.data.dir", "test.data.dir")]
        command = [
            real.java(),
            *(self._agent if corrected else ()),
            *places,
            f"-Dlogback.configurationFile={real.LOGBACK}",
            "-cp",
            f"{self._jars}/*:{real.class_path(self._release)}",
            CONSOLE,
            f"--reports-dir={folder / 'reports'}",
            "--include-classname=.*",
            f"--select-class={PACKAGE}.{name}",
        ]
        began = time.monotonic()
        with (folder / "log.txt").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        tests, failed = _reported(folder / "reports")
        finished = tests > 0 and process.returncode in (0, 1)
        source, taken = source_of_corrections(), round(time.monotonic() - began, 1)
        return Line(name, corrected, source, self._release, tests, failed, finished, taken)


def _reported(folder: Path) -> tuple[int, tuple[str, ...]]:
    """The number of tests in JUnit's reports, and the names of those that failed; none if it wrote no report."""
    tests, failed = 0, []
    for file in folder.glob("*.xml"):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            tests += case.find("skipped") is None
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(str(case.get("name")))
    return tests, tuple(sorted(failed))


def table_of(lines: Iterable[Line]) -> FactTable:
    """The table: each class that was run in both ways, its tests, and the tests that failed."""
    by_key = {(line.name, line.corrected): line for line in lines}
    rows = []
    for name in CLASSES:
        bare, corrected = by_key.get((name, False)), by_key.get((name, True))
        if bare is not None and corrected is not None:
            rows.append((f"`{name}`", str(bare.tests), _cell(bare), _cell(corrected)))
    return FactTable("upstream", ("class", "tests", "failed without", "failed with all corrections"), tuple(rows))


def _cell(line: Line) -> str:
    if not line.finished:
        return f"not finished in {line.seconds:g} s"
    return ", ".join(f"`{name}`" for name in line.failed) or "0"


def faults(lines: Iterable[Line]) -> tuple[str, ...]:
    """The classes that are worse with the corrections: a test fails there alone, or the class does not finish."""
    by_key = {(line.name, line.corrected): line for line in lines}
    return tuple(
        name
        for name in CLASSES
        if (bare := by_key.get((name, False))) is not None
        and (corrected := by_key.get((name, True))) is not None
        and bare.finished
        and (not corrected.finished or set(corrected.failed) - set(bare.failed))
    )


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m research.upstream", description="Run ZooKeeper's own tests without and with the corrections."
    )
    newest = MAVEN[-1]
    parser.add_argument("name", nargs="*", help="the classes (default: all), such as server.quorum.LearnerTest")
    parser.add_argument("--release", default=newest, help=f"the release (default: {newest})")
    parser.add_argument("--seconds", type=between(1), default=300, help="the bound of a class (default: 300)")
    parser.add_argument("--minutes", type=between(1), default=120, help="no class begins later (default: 120)")
    parser.add_argument("--results", type=Path, default=Path("upstream.jsonl"), help="the file of results, which grows")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into a page")
    add_keep(parser)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.name if name not in CLASSES]:
        return refused(f"no class of the program is called {unknown[0]!r}; write one such as {CLASSES[0]}", 2)
    if options.write is not None and not options.write.is_file():
        return refused(f"{options.write}: no such page; name one with a place for the table", 2)
    if reason := keep_mistake(options.keep) or real.available(options.release):
        return refused(reason, 2)
    try:
        with directories(options.keep) as folder:
            _run_all(options, folder)
        lines = lines_of(options.results, options.release)
    except (ServerError, OSError) as error:
        return refused(str(error), 3)
    table = table_of(lines)
    print(f"\n{table.markdown()}")
    if options.write is not None:
        options.write.write_text(written(options.write.read_text(encoding="utf-8"), [table]), encoding="utf-8")
    worse = faults(lines)
    print(f"worse with the corrections: {', '.join(worse) or 'no class'}")
    return int(bool(worse))


def _run_all(options: argparse.Namespace, folder: Path) -> None:
    deadline = time.monotonic() + 60 * options.minutes
    made = {(line.name, line.corrected) for line in lines_of(options.results, options.release)}
    missing = [key for key in product(options.name or CLASSES, (False, True)) if key not in made]
    if not missing:
        return
    suite = Suite(folder, options.release)
    for number, (name, corrected) in enumerate(missing, 1):
        if time.monotonic() > deadline:
            return
        line = suite.run(name, options.seconds, corrected=corrected)
        with options.results.open("ab") as output:
            output.write(msgspec.json.encode(line) + b"\n")
        how = "with all corrections" if corrected else "without"
        cell = f"{line.tests} tests, failed: {_cell(line)}"
        print(f"{number} of {len(missing)}: {name}, {how}: {cell} ({line.seconds:g} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
