"""The releases of Apache ZooKeeper that the harness can start, and the download of their jars from Maven Central.

Rules of this module:

- 3.8.0 is Debian's package. Every other release is downloaded by `fetch` alone; nothing else here opens a connection.
- The jars of a release are in `zookeeper-RELEASE` below `cache_folder()`. They are downloaded into a temporary folder
  beside it, which is renamed at the end: a folder with that name is complete.
- Maven does the download, with the artifacts of `harness/pom.xml`, and refuses a file that differs from its published
  checksum. Every jar must then have the SHA-512 of `harness/jars.sha512`, which `sha512sum` made of the jars of all
  known releases on 2026-11-28, and reads: `sha512sum --check --ignore-missing`.

Source: the tags `release-*` of ZooKeeper, and its `pom.xml` for the optional jars that a server needs.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from checker.command_table import called
from harness.processes import ServerError
from spec.text import required_integer

DEBIAN = "3.8.0"
"""The release of Debian's package."""
MAVEN = tuple(f"3.8.{patch}" for patch in range(1, 7)) + tuple(f"3.9.{patch}" for patch in range(6))
"""The releases that `fetch` downloads, oldest first."""
RELEASES = (DEBIAN, *MAVEN)
OLDER = ("3.4.14", "3.5.10", "3.6.2", "3.6.4", "3.7.2")
"""Releases of lines that are no longer maintained: the last ones, and 3.6.2, the last with ZOOKEEPER-3642."""
FOLDER = "QUORATE_ZOOKEEPER"
"""The environment variable that names another folder for the jars."""
POM = Path(__file__).parent / "pom.xml"
SUMS = Path(__file__).parent / "jars.sha512"
"""The SHA-512 of every jar of the known releases, as `sha512sum` writes them."""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
INSTALL_MAVEN = "apt-get install -y --no-install-recommends maven"
SECONDS = 600.0
"""The bound of a download. Maven without a local repository needs about 10 s."""
UNREACHABLE = ("Could not transfer", "Cannot access", "Unknown host", "Connection refused", "timed out")
"""What Maven writes when a repository did not answer."""


def cache_folder() -> Path:
    """The folder with the jars: `QUORATE_ZOOKEEPER`, or `quorate` in the user's cache."""
    if folder := os.environ.get(FOLDER):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quorate"


def folder_of(release: str) -> Path:
    """The folder with the jars of a release, whether it exists or not."""
    return cache_folder() / f"zookeeper-{release}"


def nearest(release: str) -> str | None:
    """The known release with the nearest number; None if the text is not a version."""
    number = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?(?:[-.].*)?", release)
    if number is None:
        return None

    def place(parts: tuple[str | None, ...]) -> int:
        major, minor, patch = (required_integer(part or "0") for part in parts)
        return (major * 1000 + minor) * 1000 + patch

    target = place(number.groups())
    return min(RELEASES, key=lambda known: abs(place(tuple(known.split("."))) - target))


def unknown(release: str) -> str | None:
    """None if this is a known release, else the error, with the nearest one that is known."""
    if release in RELEASES or release in OLDER:
        return None
    near = nearest(release)
    hint = f"the nearest known one is {near}; " if near else ""
    return (
        f"no known release of ZooKeeper is called {release!r}; {hint}known are {DEBIAN} (Debian) and {', '.join(MAVEN)}"
    )


def missing(release: str) -> str | None:
    """None if the jars of this downloaded release are there, else the reason and the command that downloads them."""
    if folder_of(release).is_dir():
        return None
    return f"ZooKeeper {release} is not in {cache_folder()}; {called('fetch')} {release}"


class Library(NamedTuple):
    """Further jars that `fetch` downloads: what they are, their folder in the cache, their project, and one of them."""

    what: str
    name: str
    project: Path
    jar: str

    @property
    def folder(self) -> Path:
        """The folder with the jars, whether it exists or not."""
        return cache_folder() / self.name

    def missing(self) -> str | None:
        """None if the jars are there, else the reason and the command that downloads them."""
        if self.folder.is_dir():
            return None
        return f"{self.what} is not in {cache_folder()}; {called('fetch')} {MAVEN[-1]}"

    def fetch(self) -> Path:
        """Download the jars, unless they are there; return their folder. Raises ServerError as `fetch` does."""
        return _download(self.what, self.folder, self.project, self.jar)


_HERE = Path(__file__).parent
ASM = Library("ASM 9.7.1", "asm-9.7.1", _HERE / "corrections" / "asm.pom.xml", "asm-9.7.1.jar")
"""The library with which `harness/corrections` changes the classes of a server."""
ADMIN_SERVER = Library(
    "Jetty 9.4.58, for the AdminServer,",
    "jetty-9.4.58",
    _HERE / "reproduce" / "by_hand" / "restore.pom.xml",
    "jackson-databind-2.18.1.jar",
)
"""What an AdminServer needs; other servers of the harness run without."""
LIBRARIES = (ASM, ADMIN_SERVER)


def fetch(release: str) -> Path:
    """Download the jars of a release, unless they are there; return their folder.

    Raises ServerError if the release is unknown or Debian's, if Maven is missing, or if the download fails.
    """
    if reason := unknown(release):
        raise ServerError(reason)
    if release == DEBIAN:
        raise ServerError(f"ZooKeeper {DEBIAN} is Debian's package; apt-get install zookeeper libzookeeper-java")
    jar = f"zookeeper-{release}.jar"
    return _download(f"ZooKeeper {release}", folder_of(release), POM, jar, f"-Drelease={release}")


def _download(what: str, folder: Path, project: Path, jar: str, *values: str) -> Path:
    """Download the jars of a project file into a folder, unless it is there; the other arguments as `copy_jars`."""
    if folder.is_dir():
        return folder
    maven = maven_for(what)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
            jars = copy_jars(maven, what, project, Path(temporary), jar, *values)
            _check_sums(what, jars)
            try:
                jars.rename(folder)
            except OSError:
                # Another process may have published a copy meanwhile, which stays.
                if not folder.is_dir():
                    raise
    except OSError as error:
        raise ServerError(f"{folder} cannot be written: {error}; {FOLDER} names another folder") from error
    return folder


def maven_for(what: str) -> str:
    """The program that downloads something. Raises ServerError if it is missing."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerError(f"{what} is downloaded by Maven, and mvn is not on the PATH; {INSTALL_MAVEN}")
    return maven


def copy_jars(maven: str, what: str, project: Path, folder: Path, jar: str, *values: str) -> Path:
    """Download the jars of a project file into `jars` of a folder; return that folder.

    `jar` is one of them, and `values` are properties of the project. Raises ServerError if the download fails.
    """
    # A copy of the file: Maven looks for more projects and settings around the file that it is given.
    pom, jars = shutil.copy(project, folder), folder / "jars"
    options = [
        "--batch-mode",
        "--strict-checksums",
        "--quiet",
        "--no-transfer-progress",
        "-Dstyle.color=never",
        "--file",
        str(pom),
    ]
    try:
        ended = subprocess.run(
            [maven, *options, *values, f"-DoutputDirectory={jars}", COPY],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServerError(f"Maven did not download {what} within {SECONDS:g} s") from None
    if ended.returncode == 0 and (jars / jar).is_file():
        return jars
    output = re.sub(r"\x1b\[[0-9;]*m", "", ended.stdout + ended.stderr)
    errors = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]")]
    reason = next(iter(errors), output.strip()[-500:] or "no message")
    if any(sign in reason for sign in UNREACHABLE):
        raise ServerError(f"{what} was not downloaded, Maven Central cannot be reached from here: {reason}")
    raise ServerError(f"{what} was not downloaded, Maven ended with {ended.returncode}: {reason}")


def _check_sums(what: str, jars: Path) -> None:
    pinned = {name: digest for digest, name in map(str.split, SUMS.read_text(encoding="ascii").splitlines())}
    for jar in sorted(jars.iterdir()):
        digest = hashlib.sha512(jar.read_bytes()).hexdigest()
        if pinned.get(jar.name) != digest:
            right = f"not {pinned[jar.name][:16]}..." if jar.name in pinned else f"and is not listed in {SUMS.name}"
            raise ServerError(f"{what} was refused: the SHA-512 of {jar.name} is {digest[:16]}..., {right}")
