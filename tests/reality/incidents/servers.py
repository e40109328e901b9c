"""Real servers as an operator has them: each with its own address, one file, one folder, and its log.

Rules of this module:

- Server N has the address NETWORK.N of the loopback network, and the ports that everybody uses.
- The folder of server N has `zoo.cfg`, `data/` and `log.txt`; with `separate` the log files are in `txlog/`.
- A server that is started reads the files as they are. Whoever changes them does it between a stop and a start.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness import real
from harness.processes import Process
from harness.servers import Servers
from harness.session import Session
from spec.quorum import Sid
from spec.text import required_integer
from tests.reality.states import CLIENT, ELECTION, QUORUM

LOGBACK = Path(__file__).with_name("logback.xml")
VERSION = "version-2"
FILES = ("-Dzookeeper.preAllocSize=16", f"-Dlogback.configurationFile={LOGBACK}")
"""The options that make the files of an incident small (in kilobytes), and its log that of a release."""
OPTIONS = ("-Xmx160m", "-XX:TieredStopAtLevel=1", "-Xshare:auto", *FILES)
BASE = {"tickTime": "200", "initLimit": "50", "syncLimit": "25"}
OURS = {"admin.enableServer": "false", "4lw.commands.whitelist": "*"}
OLD_RELEASE = "3.4."
"""The start of the releases that know neither an AdminServer nor a dynamic file."""


class StandingServers(Servers):
    """The servers of one incident below `directory`; `options` are further ones of every JVM."""

    session_milliseconds = 4000

    def __init__(self, directory: Path, release: str, network: str, options: Iterable[str] = ()) -> None:
        super().__init__((), directory)
        self.release, self.network = release, network
        self.options = tuple(options)

    def host(self, sid: Sid) -> str:
        return f"{self.network}.{sid}"

    def place(self, sid: Sid) -> str:
        """The value of the `server.N` line."""
        return f"{self.host(sid)}:{QUORUM}:{ELECTION}"

    def client_port(self, sid: Sid) -> Any:
        return (self.host(sid), CLIENT)

    def connect(self, sid: Sid) -> Session:
        session = Session(self.session_milliseconds, seconds=4.0)
        session.connect(self.client_port(sid))
        return session

    # --- files

    def text(self, sid: Sid, places: Mapping[Sid, str], **keys: str) -> str:
        """A `zoo.cfg` with these members; `keys` are further ones, or other values."""
        ours = {} if self.release.startswith(OLD_RELEASE) else OURS
        values = {
            **BASE,
            "dataDir": str(self.data(sid)),
            "clientPort": str(CLIENT),
            "clientPortAddress": self.host(sid),
            **ours,
            **keys,
            **{f"server.{member}": place for member, place in sorted(places.items())},
        }
        return "".join(f"{key}={value}\n" for key, value in values.items())

    def places(self, *sids: Sid) -> dict[Sid, str]:
        return {sid: self.place(sid) for sid in sids}

    def give(self, sid: Sid, text: str, myid: Sid | None = None) -> None:
        """Give a server its file and its id."""
        self.data(sid).mkdir(parents=True, exist_ok=True)
        (self.home(sid) / "zoo.cfg").write_text(text, encoding="utf-8")
        (self.data(sid) / "myid").write_text(f"{sid if myid is None else myid}\n", encoding="ascii")
        self.adopt(sid)

    def adopt(self, sid: Sid) -> None:
        """Make the process of a server whose files exist."""
        if sid in self._processes:
            return
        home = self.home(sid)
        options = (*OPTIONS, *(option.replace("{home}", str(home)) for option in self.options))
        self._processes[sid] = Process(real.command(home / "zoo.cfg", options, self.release), home, home / "log.txt")
        self.sids = tuple(sorted(self._processes))

    def file(self, sid: Sid) -> str:
        """The text of the `zoo.cfg` of a server."""
        return (self.home(sid) / "zoo.cfg").read_text(encoding="utf-8")

    def edit(self, sid: Sid, old: str, new: str) -> None:
        """Replace a part of the file of a server. Raises ValueError if the file lacks it."""
        text = self.file(sid)
        if old not in text:
            raise ValueError(f"the file of server {sid} lacks {old!r}")
        (self.home(sid) / "zoo.cfg").write_text(text.replace(old, new), encoding="utf-8")

    def add(self, sid: Sid, **keys: str) -> None:
        """Add keys to the file of a server."""
        with (self.home(sid) / "zoo.cfg").open("a", encoding="utf-8") as file:
            file.writelines(f"{key}={value}\n" for key, value in keys.items())

    def disk(self, sid: Sid) -> Path:
        """The folder of the snapshots, the epochs, and usually the log files."""
        return self.data(sid) / VERSION

    def logs(self, sid: Sid) -> list[Path]:
        """The log files, oldest first."""
        return by_zxid(self.disk(sid).glob("log.*"))

    def snapshots(self, sid: Sid) -> list[Path]:
        """The snapshots, oldest first."""
        return by_zxid(self.disk(sid).glob("snapshot.*"))

    def erase(self, sid: Sid) -> None:
        """Delete what a server has on its disks, but not its id."""
        for folder in (self.disk(sid), self.home(sid) / "txlog" / VERSION):
            shutil.rmtree(folder, ignore_errors=True)


def zxid_of(file: Path) -> int:
    """The zxid in the name of a log file or of a snapshot."""
    return required_integer(file.name.partition(".")[2], base=16)


def by_zxid(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=zxid_of)
