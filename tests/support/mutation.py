"""Run the tests, or only the scenarios, on a mutant of the specification.

Each run is a process whose `spec` is a copy with the mutant, and whose `checker` and `tests` are those of the
repository. The kernels of the engine do not depend on `spec`, so a mutant compiles nothing.

A run has a limit of processor time. If the tests reach it, the mutant counts as killed, because it no longer
terminates. If the scenarios reach it, the mutant survives, because a larger space is not a verdict.
"""

import ast
import os
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.support.mutants import REPOSITORY, Mutant

TESTS = (REPOSITORY / "tests" / "unit", REPOSITORY / "tests" / "properties")
ONE_FAILURE = ("-n0", "-x", "-q", "-rfE", "--tb=no", "--assert=plain", "-p", "no:cacheprovider")
"""The name of a failed test is all that is read: an explanation, such as the difference of two pages, takes seconds."""
SECONDS_OF_TESTS = 600
SECONDS_OF_SCENARIOS = 300
OTHERS = (
    "test_benchmarks_", "test_checkpoint", "test_clients_", "test_disk_real_server", "test_docs", "test_node_",
    "test_rollout_", "test_wheel",
)  # fmt: skip
"""Tests of other packages, left out because they take minutes: live servers, subprocesses or large searches."""


def killed_by_tests(mutant: Mutant, folder: Path, seconds: int = SECONDS_OF_TESTS) -> str:
    """Return the first test that fails, or an empty text. `folder` has a copy of `spec`."""
    for files in test_files(mutant.module):
        ran = _run(mutant, folder, ["-m", "pytest", *ONE_FAILURE, *files], seconds)
        if ran.returncode not in (0, 5):
            failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            return failed[0].partition(" - ")[0] if failed else f"exit code {ran.returncode}"
    return ""


def killed_by_scenarios(
    mutant: Mutant, folder: Path, names: list[str], seconds: int = SECONDS_OF_SCENARIOS, *, sizes: bool = False
) -> str:
    """Return the first scenario whose verdict (with `sizes`, also whose size) is not the expected one, or an empty
    text.
    """
    if not names:
        return ""
    flags = ["--sizes"] if sizes else []
    ran = _run(mutant, folder, ["-m", "tests.support.scenario_verdicts", *flags, *names], seconds)
    if ran.returncode < 0:
        return ""
    lines = ran.stdout.splitlines()
    return lines[-1] if ran.returncode and lines else "" if not ran.returncode else ran.stderr.strip()[-120:]


def _run(mutant: Mutant, folder: Path, arguments: list[str], seconds: int) -> subprocess.CompletedProcess[str]:
    """Run Python with the mutant in place of its module, and restore the module."""
    file = folder / mutant.path
    file.write_text(mutant.text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{REPOSITORY}", "PYTHONDONTWRITEBYTECODE": "1"}

    command = [sys.executable, "-P", *arguments]
    try:
        with subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            # prlimit instead of `preexec_fn`, which would fork: a test process with large tables has too much memory to
            # copy.
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds + 5))
            out, err = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out, err)
    finally:
        file.write_bytes((REPOSITORY / mutant.path).read_bytes())


# The tests that concern a module.


@cache
def test_files(module: str) -> tuple[tuple[str, ...], ...]:
    """Return the test files that import a module: those with its name (the shortest first), others that name it, and
    those that import it indirectly.
    """
    words = module.split(".")[1:]
    named, near, far = [], [], []
    for folder in TESTS:
        for path in sorted(folder.rglob("test_*.py")):
            if path.name.startswith(OTHERS):
                continue
            direct = imports_of(path)
            if module in direct or any(module in imports_of(file) for file in map(_package, direct) if file):
                (named if all(word in path.name for word in words) else near).append(str(path))
            elif module in _closure(frozenset(direct)):
                far.append(str(path))
    return tuple(tuple(files) for files in (sorted(named, key=len), near, far) if files)


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return the modules of `spec` that a file imports directly."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "spec":
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] == "spec"}
    return frozenset(name for name in found if _file(name))


@cache
def _closure(modules: frozenset[str]) -> frozenset[str]:
    """Return these modules and everything that they import, directly or indirectly."""
    found, waiting = set(modules), list(modules)
    while waiting:
        file = _file(waiting.pop())
        new = imports_of(file) - found if file else frozenset()
        found |= new
        waiting += new
    return frozenset(found)


def _file(module: str) -> Path | None:
    place = REPOSITORY / module.replace(".", "/")
    file = place.with_suffix(".py")
    return file if file.is_file() else _package(module)


def _package(module: str) -> Path | None:
    """Return the `__init__.py` of a package, which re-exports the names that its modules define, or None."""
    file = REPOSITORY / module.replace(".", "/") / "__init__.py"
    return file if file.is_file() else None
