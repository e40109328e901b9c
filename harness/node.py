"""How to start our own node: `python -m refimpl ZOO_CFG [--journal FILE]`, in this Python.

Rules: the node gets the same `zoo.cfg` as a real server.
"""

import importlib.util
import sys
from pathlib import Path

import refimpl
from harness.processes import ServerError

ROOT = Path(refimpl.__file__).parent.parent


def available() -> str | None:
    """None if the node can be started here, else the reason in one line."""
    if importlib.util.find_spec("refimpl.__main__") is None:
        return "refimpl has no __main__: this version of the reference node cannot be started"
    return None


def command(zoo_cfg: Path, journal: Path | None = None) -> list[str]:
    """The command line of a node with this file; with `journal` the node writes its facts there."""
    if reason := available():
        raise ServerError(f"the reference node is not available: {reason}")
    line = [sys.executable, "-m", "refimpl", str(zoo_cfg)]
    return line if journal is None else [*line, "--journal", str(journal)]


def environment() -> dict[str, str]:
    """The environment variables of a node: they make the package importable from any directory."""
    return {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
