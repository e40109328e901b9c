"""The source of kazoo's test-suite and a Python that can run it, downloaded from PyPI into the user's cache.

Rules of this module:

- Nothing of kazoo's source is part of the project. The versions of everything are pinned here, so that two runs execute
  the same tests.
- A folder is complete if it has a file `complete`, which is made at the end; any other one is made anew.

Source: kazoo 2.11.0, `setup.cfg` (the extras `test` and `sasl`).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness.processes import ServerError
from harness.releases import cache_folder

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


def suite_folder() -> Path:
    """The folder of the Python with kazoo's test-suite, whether it exists or not."""
    return cache_folder() / f"kazoo-{KAZOO}-python{sys.version_info[0]}.{sys.version_info[1]}"


def suite_python() -> Path:
    """The Python that has kazoo with its tests and all they import; it is made at the first call.

    Raises ServerError if the packages cannot be downloaded or installed.
    """
    folder = suite_folder()
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
