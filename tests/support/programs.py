"""The programs, jars and npm packages that tests need and a machine may lack: one table, and one decision.

A test whose program is missing is skipped, with the reason; where CI is true it fails instead. No test can start a real
server, a compiler or a browser without this decision: the harness and the benchmarks find programs by `shutil.which`
and releases by `real.available`, and `install` replaces both for all tests. What a test hides itself, by a PATH of its
own, is no program that the machine lacks.
"""

import os
import shutil
from pathlib import Path

import pytest

from harness import ensemble, real, releases
from harness.releases import DEBIAN

PACKAGES = {
    "chromium": "chromium",
    "curl": "curl",
    "gcc": "gcc libc6-dev",
    "java": "default-jdk-headless",
    "javac": "default-jdk-headless",
    "openssl": "openssl",
    "spin": "spin",
    "systemd-analyze": "systemd",
}
"""Debian's packages of each program. `.ci/bare` hides these programs."""
PATH = os.environ.get("PATH", "")

_which, _available = shutil.which, real.available


def need(reason: str | None) -> None:
    """Skip the test for the reason why it cannot run on this machine, if there is one. If CI is true, fail it."""
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    if reason:
        pytest.skip(reason)


def need_files(*paths: Path, remedy: str) -> None:
    """Need files that a package brings. The remedy is the command that installs them."""
    missing = [str(path) for path in paths if not path.exists()]
    need(f"{', '.join(missing)} missing; {remedy}" if missing else None)


def npm_file(name: str) -> Path:
    """Need a file of a package that `npm ci` in tests/browser installs. Returns its path."""
    path = Path(__file__).parents[1] / "browser" / "node_modules" / name
    need_files(path, remedy="npm ci --prefix tests/browser")
    return path


def which(program: str, mode: int = os.F_OK | os.X_OK, path: str | None = None) -> str | None:
    """`shutil.which`, which needs the programs of `PACKAGES` unless the test chose another PATH."""
    if program in PACKAGES and _which(program, path=PATH) is None:
        need(f"no {program} on the PATH; apt-get install {PACKAGES[program]}")
    return _which(program, mode, path)


def available(release: str = DEBIAN) -> str | None:
    """`real.available`, which needs every known release, unless the test chose another folder of releases."""
    reason = _available(release)
    if not releases.unknown(release) and (release == DEBIAN or releases.folder_of(release).parent == RELEASES):
        need(reason and f"ZooKeeper {release}: {reason}")
    return reason


def need_kind(kind: str, release: str = DEBIAN) -> None:
    """Need what starts this kind of server: `node`, or `real` of a release."""
    need(real.available(release) if kind == "real" else ensemble.KINDS[kind]())


def install() -> None:
    """Replace the two functions by which the harness and the benchmarks find their programs."""
    shutil.which, real.available = which, available  # type: ignore[assignment]
    ensemble.KINDS["real"] = available


RELEASES = releases.folder_of("3.9.5").parent
"""The folder of the releases before a test names its own."""
