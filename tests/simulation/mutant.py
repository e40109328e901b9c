"""A change of one expression of `refimpl`, and the search of the simulation for it.

A mutant is imported in a separate process, in place of its module; the files are not touched. The process has imported
the checker and the specification before it is forked, and nothing of `refimpl`.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent.parent
LENGTH = 40.0
"""Simulated seconds with faults in each run."""
FIRST_SEED = 1


class Mutant(NamedTuple):
    """A defect in words, and the lines of a file that make it; the lines `before` occur once in the file.

    `nothing`: the proof that it changes nothing in an ensemble of this program; empty for a defect that does.
    """

    about: str
    path: str
    before: str
    after: str
    nothing: str = ""

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".")

    @property
    def text(self) -> str:
        return (REPOSITORY / self.path).read_text("utf-8").replace(self.before, self.after)

    @property
    def places(self) -> int:
        return (REPOSITORY / self.path).read_text("utf-8").count(self.before)


def read_mutants(file: Path) -> Iterator[Mutant]:
    """Yield the mutants of a file: `# defect`, `@ path`, then lines that stay, go (-) and come (+).

    A line `= proof` behind the path is the reason why it changes nothing.
    """
    for block in file.read_text("utf-8").split("\n\n# "):
        about, path, *lines = block.removeprefix("# ").rstrip("\n").split("\n")
        before, after = (
            "".join(f"\n{line[1:]}" for line in lines if line[0] in kinds) + "\n" for kinds in (" -", " +")
        )
        nothing = " ".join(line.removeprefix("= ") for line in lines if line[:1] == "=")
        yield Mutant(about, path.removeprefix("@ "), before, after, nothing)


class Hunt(NamedTuple):
    """The result of a search: the failure, empty if the mutant is not found, and the processor time in seconds."""

    about: str
    failure: str
    seeds: int
    seconds: float


class _MutatedLoader(importlib.machinery.SourceFileLoader):
    """A loader that compiles another source."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(REPOSITORY / mutant.path))
        self._text = mutant.text

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        """Compile the source with the defect."""
        return compile(self._text, self.path, "exec")


class _MutatedFinder(importlib.abc.MetaPathFinder):
    """A finder of one module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module with the defect."""
        if fullname != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(fullname, loader=_MutatedLoader(self._mutant))


def hunted(mutant: Mutant, seconds: float) -> Hunt:
    """Search for a mutant in another process, for some seconds of processor time."""
    for name in ("checker.histories", "checker.validate", "spec.server"):  # before the fork, once
        importlib.import_module(name)
    assert "refimpl" not in sys.modules, "start the search before anything of refimpl is imported"
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        code = 1
        try:
            found = _search(mutant, seconds)
            os.write(write, json.dumps(found).encode()[:60_000])
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return Hunt(*json.loads(answer)) if answer else Hunt(mutant.about, "the process ended", 0, 0.0)


def _search(mutant: Mutant, seconds: float) -> Hunt:
    sys.meta_path.insert(0, _MutatedFinder(mutant))
    began = time.process_time()
    run = importlib.import_module("simulation.run")
    swarm = importlib.import_module("simulation.swarm")
    swarm.LONGEST = seconds
    seed = FIRST_SEED
    while time.process_time() - began < seconds:
        summary = swarm.run_plan(run.plan_of(seed, 3, seed % 2, LENGTH))
        if summary.failures:
            return Hunt(mutant.about, summary.failures[0][:300], seed, time.process_time() - began)
        seed += 1
    return Hunt(mutant.about, "", seed, time.process_time() - began)
