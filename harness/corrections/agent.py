"""The agent that corrects a released server when it starts, compiled from the Java sources of this folder.

Rules of this module:

- Nothing of ZooKeeper is in the sources. `Corrections.java` lists each correction, with the calls that it changes and
  the SHA-256 of every class that it was tried with. One class for each correction has the new decision.
- A correction is made, or the server does not start: the agent refuses any other class. `java_options` lets it correct
  the classes once without a server, so a refusal is an error before the first run.
- The agent is compiled with javac at its first use, against the jars of the release, and contains ASM.

Source: `java.lang.instrument`; ASM 9.7.1.
"""

import shutil
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

from harness import real, releases
from harness.processes import ServerError

FOLDER = Path(__file__).parent
AGENT = tuple(FOLDER / f"{name}.java" for name in ("Agent", "Change", "Corrections", "Refusal", "Rewriter"))
MAIN = "quorate.Agent"
MANIFEST = f"Manifest-Version: 1.0\nPremain-Class: {MAIN}\n"
REFUSAL = "quorate: not corrected: "
"""The beginning of the line with the reason of the agent."""
SECONDS = 120.0
INSTALL = "apt-get install -y --no-install-recommends default-jdk-headless"


def java_options(corrections: Iterable[str], release: str, directory: Path) -> tuple[str, ...]:
    """The options of Java for a server of a release with these corrections; the agent is compiled into a directory.

    Raises ServerError if it cannot be compiled, or if one of the corrections cannot be made in this release.
    """
    if reason := real.available(release) or releases.ASM.missing():
        raise ServerError(reason)
    names = tuple(corrections)
    library, jar = releases.ASM.folder / releases.ASM.jar, directory / "agent.jar"
    classes = _compile(AGENT, str(library), directory / "agent")
    with zipfile.ZipFile(jar, "w") as archive, zipfile.ZipFile(library) as asm:
        archive.writestr("META-INF/MANIFEST.MF", MANIFEST)
        for name in asm.namelist():
            if name.startswith("org/") and name.endswith(".class"):
                archive.writestr(name, asm.read(name))
        _add(archive, classes)
    option = f"-javaagent:{jar}={','.join(names)}"
    trial = _run([real.java(), option, "-cp", real.class_path(release), MAIN])
    if trial.returncode:
        lines = [line for line in trial.stderr.splitlines() if line.startswith(REFUSAL)] or [
            trial.stderr.strip()[-300:]
        ]
        raise ServerError(f"ZooKeeper {release} cannot be corrected: {lines[0].removeprefix(REFUSAL)}")
    classes = _compile([FOLDER / f"{class_of(name)}.java" for name in names], real.class_path(release), directory)
    with zipfile.ZipFile(jar, "a") as archive:
        _add(archive, classes)
    return (option,)


def class_of(correction: str) -> str:
    """The class of a correction: AcksSurviveTruncation for acks-survive-truncation."""
    return "".join(word.capitalize() for word in correction.split("-"))


def _compile(sources: Iterable[Path], class_path: str, directory: Path) -> Path:
    """Compile some sources; return the folder of the classes."""
    javac = shutil.which("javac")
    if javac is None:
        raise ServerError(f"no javac on the PATH; {INSTALL}")
    classes = directory / "classes"
    quick = "-J-XX:TieredStopAtLevel=1"
    compilation = _run(
        [javac, quick, "-nowarn", "-proc:none", "-d", str(classes), "-cp", class_path, *map(str, sources)]
    )
    if compilation.returncode:
        raise ServerError(f"javac cannot compile the corrections: {compilation.stderr.strip()[-1000:]}")
    return classes


def _add(archive: zipfile.ZipFile, classes: Path) -> None:
    for file in sorted(classes.rglob("*.class")):
        archive.write(file, file.relative_to(classes))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise ServerError(f"{Path(command[0]).name} did not end within {SECONDS:g} s") from None
