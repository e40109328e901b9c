"""The table of all commands: the group, the name, the place of the code, and one line of help.

`quorate`, `python -m checker` and `python -m harness` derive from it. It imports nothing that it names: a command loads
its module when it is used, and no module of another command.

A message names a command as its reader calls it (`called`). A text that outlives the process names `quorate`: a file,
a picture, the log of a node.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A command. `target` is a `module:NAME` with a `checker.command.Command`, or a `module:function`.

    The function takes the words after the command, and the name of the program for its help; it returns the exit code.
    """

    name: str
    target: str
    line: str

    @property
    def package(self) -> str:
        """The package of the code."""
        return self.target.partition(".")[0]

    @property
    def is_function(self) -> bool:
        """Whether the target is a function, and no `Command`."""
        return self.target.rpartition(":")[2].islower()

    def load(self) -> Any:
        """Import the module, and return the target."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)


GROUPS: dict[str, tuple[Entry, ...]] = {
    "Ask about an ensemble": (
        Entry("rollout", "checker.rollout_command:ROLLOUT", "Judges a roll-out of zoo.cfg files; plans a safe one."),
        Entry("plan", "checker.cli.ensemble_commands:PLAN", "Serves a local page that judges and plans a roll-out."),
        Entry("diagnose", "checker.diagnose.command:DIAGNOSE", "Says what state servers are in, and what is safe."),
        Entry("recover", "checker.recover_command:RECOVER", "Finds what lost or damaged disks leave; writes new ones."),
        Entry("quorums", "checker.cli.ensemble_commands:QUORUMS", "Says whether quorums of files may be disjoint."),
        Entry("defects", "checker.cli.defect_command:DEFECTS", "Says what can lose data in a release, and why."),
        Entry("tables", "checker.cli.reference_commands:TABLES", "Computes which losses of servers are survived."),
    ),
    "Check a model": (
        Entry("run", "checker.cli.scenario_commands:RUN", "Runs scenarios; without files, all of the package."),
        Entry("nodes", "checker.cli.main:nodes", "Explores a small ensemble: a set of runs, or one by options."),
        Entry("explore", "checker.cli.scenario_commands:EXPLORE", "Serves a local page to walk through a scenario."),
        Entry("replay", "checker.cli.scenario_commands:REPLAY", "Executes a saved trace again."),
        Entry("swarm", "checker.cli.scenario_commands:SWARM", "Walks at random and deep through a scenario."),
        Entry(
            "proofs", "checker.cli.reference_commands:PROOFS", "Proves what holds for all ensembles, by two solvers."
        ),
        Entry("gallery", "checker.cli.reference_commands:GALLERY", "Writes a page for each scenario, with its runs."),
        Entry("list", "checker.cli.reference_commands:LISTING", "Lists the scenarios of the package, and properties."),
    ),
    "Run servers": (
        Entry("node", "refimpl.__main__:main", "Runs one server from its zoo.cfg, until it is interrupted."),
        Entry("demo", "refimpl.demo:main", "Starts a local ensemble on free ports; Ctrl-C stops it."),
        Entry("simulate", "simulation.command:main", "Runs ensembles in a simulation, under faults, and checks them."),
    ),
    "Use real servers": (
        Entry("fetch", "harness.fetch_command:FETCH", "Downloads the jars of releases from Maven Central, by mvn."),
        Entry("releases", "harness.fetch_command:RELEASES", "Lists the known releases, and which can be started here."),
        Entry("reproduce", "harness.reproduce.command:REPRODUCE", "Executes a counterexample on real servers."),
        Entry("twin", "harness.twin.command:TWIN", "Follows one real server among peers that are the specification."),
        Entry("record", "harness.record.command:RECORD", "Records packets and disks of real servers, for validate."),
        Entry("follow", "harness.follow.command:FOLLOW", "Follows the plan of a roll-out on real servers."),
        Entry("conform", "harness.conform.command:CONFORM", "Compares any server with the specification."),
        Entry("kazoo", "harness.kazoo_suite.command:SUITE", "Runs kazoo's tests against real servers and our nodes."),
        Entry("validate", "checker.cli.ensemble_commands:VALIDATE", "Compares journals or any log with a model."),
        Entry("history", "checker.cli.ensemble_commands:HISTORY", "Judges what clients saw: in order, nothing lost."),
    ),
    "Measure": (
        Entry("benchmarks", "benchmarks.__main__:main", "Measures checker and node beside SPIN, TLC and ZooKeeper."),
    ),
}
"""Every command, by its group, in the order of the help."""

ENTRIES = {entry.name: entry for entries in GROUPS.values() for entry in entries}
MODULES = {
    "nodes": "checker",
    "node": "refimpl",
    "demo": "refimpl demo",
    "simulate": "refimpl simulate",
    "benchmarks": "benchmarks",
}
"""The words after `python -m` of commands that are not called by their package and name."""
_programs: list[str] = []
"""The programs that are called, each by the one before; empty in a process that runs a package."""


def commands_of(package: str) -> dict[str, Entry]:
    """The commands of `python -m PACKAGE`."""
    return {name: entry for name, entry in ENTRIES.items() if entry.package == package and not entry.is_function}


@contextmanager
def called_as(program: str) -> Iterator[None]:
    """A context whose messages name the commands of a program, in all threads."""
    _programs.append(program)
    try:
        yield
    finally:
        _programs.pop()


def called(name: str) -> str:
    """A command as the reader of a message calls it: `quorate rollout`, or `python -m checker rollout`."""
    entry = ENTRIES[name]
    return f"{_programs[-1]} {name}" if _programs else f"python -m {MODULES.get(name, f'{entry.package} {name}')}"
