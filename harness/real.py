"""How to start the real server: Debian's package of Apache ZooKeeper, without its service scripts.

Rules: nothing is installed, and the error for a missing part names the command that installs it.

Source: Debian's packages zookeeper and libzookeeper-java; `QuorumPeerMain`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.processes import ServerError

JARS = Path("/usr/share/java")
CLASS_PATH = (JARS / "zookeeper.jar", JARS / "slf4j-simple.jar")
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
INSTALL = "apt-get install -y --no-install-recommends zookeeper libzookeeper-java"


def available() -> str | None:
    """None if the real server can be started here, else the reason and the remedy in one line."""
    if shutil.which("java") is None:
        return f"no java on the PATH; {INSTALL}"
    for jar in CLASS_PATH:
        if not jar.exists():
            return f"{jar} is missing; {INSTALL}"
    return None


def command(zoo_cfg: Path, java_options: Sequence[str] = ("-Xmx128m",)) -> list[str]:
    """The command line of a server with this file; `java_options` come after the options that are always set."""
    if reason := available():
        raise ServerError(f"the real ZooKeeper is not available: {reason}")
    return [
        shutil.which("java") or "java",
        "-XX:+UseSerialGC",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        *java_options,
        "-cp",
        ":".join(map(str, CLASS_PATH)),
        MAIN,
        str(zoo_cfg),
    ]
