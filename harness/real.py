"""How to start the real server: a release of Apache ZooKeeper, without its service scripts.

Rules: nothing is installed and nothing is downloaded; the error for a missing part names the command that brings it.

Source: Debian's packages zookeeper and libzookeeper-java; the jars that `harness/releases.py` downloads;
`QuorumPeerMain`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from harness import releases
from harness.processes import ServerError
from harness.releases import DEBIAN

JARS = Path("/usr/share/java")
CLASS_PATH = (JARS / "zookeeper.jar", JARS / "slf4j-simple.jar")
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
INSTALL = "apt-get install -y --no-install-recommends zookeeper libzookeeper-java"
LOGBACK = Path(__file__).parent / "logback.xml"


def available(release: str = DEBIAN) -> str | None:
    """None if this release of the real server can be started here, else the reason and the remedy in one line."""
    if reason := releases.unknown(release):
        return reason
    if shutil.which("java") is None:
        return f"no java on the PATH; {INSTALL}"
    if release != DEBIAN:
        return releases.missing(release)
    for jar in CLASS_PATH:
        if not jar.exists():
            return f"{jar} is missing; {INSTALL}"
    return None


def java() -> str:
    """The program java."""
    return shutil.which("java") or "java"


def class_path(release: str = DEBIAN) -> str:
    """The class path of a server of a release."""
    return ":".join(map(str, CLASS_PATH)) if release == DEBIAN else str(releases.folder_of(release) / "*")


def command(zoo_cfg: Path, java_options: Sequence[str] = ("-Xmx128m",), release: str = DEBIAN) -> list[str]:
    """The command line of a server with this file; `java_options` come after the options that are always set.

    Raises ServerError if the release cannot be started here.
    """
    if reason := available(release):
        raise ServerError(f"the real ZooKeeper is not available: {reason}")
    if release == DEBIAN:
        logging = ["-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
    else:
        logging = ["-Dzookeeper.jmx.log4j.disable=true", f"-Dlogback.configurationFile={LOGBACK}"]
    return [java(), "-XX:+UseSerialGC", *logging, *java_options, "-cp", class_path(release), MAIN, str(zoo_cfg)]
