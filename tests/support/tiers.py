"""The quick tier: `pytest -m quick`, at most a minute.

A file of `tests/unit` is quick if neither it nor a module of `tests` that it imports starts a process or imports the
checker, the harness or the benchmarks. So these are the tests of single steps and of the node's parts: no search, no
kernel, no server. The other files are not even imported.
"""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
IMPORT = re.compile(r"^\s*(?:from|import) ([\w.]+)(?: import ([\w, ]+))?", re.MULTILINE)
SLOW = {"checker", "harness", "benchmarks", "subprocess", "multiprocessing"}


def is_quick(path: Path) -> bool:
    """Whether the tests of this file belong to the quick tier."""
    if UNIT not in path.parents:
        return False
    waiting, seen = [path], {path}
    while waiting:
        names = _imported(waiting.pop())
        if SLOW.intersection(name.partition(".")[0] for name in names):
            return False
        files = {ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")} - seen
        waiting += (file for file in files if file.exists())
        seen |= files
    return True


@cache
def _imported(path: Path) -> frozenset[str]:
    """The modules that a file imports, and the names in them."""
    found = IMPORT.findall(path.read_text(encoding="utf-8"))
    members = {f"{module}.{name}" for module, names in found for name in names.split(", ")}
    return frozenset({module for module, _ in found} | members)
