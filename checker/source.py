"""The source of the program that runs, so that an answer of one version is never taken for that of another.

A process loads its modules one by one, some of them late, and the files may change meanwhile (`git pull`). So the files
are looked at when the process starts. Once they differ from that, nothing can be said of the program that runs.
"""

import hashlib
import platform
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("checker", "spec")
LIBRARIES = ("z3-solver", "cvc5", "numba", "msgspec")


class ProgramSource:
    """The source files of some folders as they are when this object is made, with the versions of Python and libraries.

    Make it before the modules of these folders are loaded.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._begun = self._state()

    def digest(self) -> str | None:
        """A digest of the source and the versions; None once a file has changed, or if one cannot be read."""
        try:
            digest = self._digest
        except OSError:
            return None
        return digest if self._begun is not None and self._begun == self._state() else None

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256(" ".join(_versions()).encode())
        for file in self._files():
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def _files(self) -> Iterator[Path]:
        for folder in self._folders:
            yield from sorted(folder.rglob("*.py"))

    def _state(self) -> tuple[tuple[str, int, int, int], ...] | None:
        """Every file with its size, its number and the time of its last change; None if one cannot be looked at."""
        try:
            stats = [(file, file.stat()) for file in self._files()]
        except OSError:
            return None
        return tuple((str(file), status.st_size, status.st_ino, status.st_mtime_ns) for file, status in stats)


def _versions() -> Iterator[str]:
    yield f"{platform.python_implementation()} {platform.python_version()}"
    for name in LIBRARIES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield name


STARTED = ProgramSource(ROOT / package for package in PACKAGES)
"""The source of this process. The command line imports this module before all others that the planner needs."""
