"""Carries out the steps of a diagnosis on real servers, and servers with the files and disks of a captured incident.

Rules of this module:

- A step is done as an operator does it: an erased disk is moved away, and after a start the operator waits for a while.
- The files of a captured incident are used as they are; only the path of a server's home differs.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.processes import LOOPBACK, ServerError, wait_until
from harness.servers import CREATE, WORLD, Servers
from research.reconfig.servers import SKIP_ACL
from spec.quorum import Sid
from spec.text import required_integer
from tests.reality.incidents.capture import HOME
from tests.reality.incidents.scene import written_at
from tests.reality.incidents.servers import VERSION, StandingServers
from tests.reality.servers import key_of

SERVE_SECONDS = 20.0
END_SECONDS = 45.0
NAMES = re.compile(r"^server\.\d+=(zk[0-9a-z.]+):", re.MULTILINE)
CLIENT_OF_LINE = re.compile(r"^server\.(\d+)=[^;\n]*;(?:(?P<host>[0-9.]+):)?(?P<port>\d+)$", re.MULTILINE)
HOSTS = "-Djdk.net.hosts.file={home}/hosts"


NO_DEEDS = frozenset({"look", "recover"})
"""Steps that change nothing here: a program that is run beside the servers, and a look."""


class AdviceError(Exception):
    """A step that cannot be carried out as it is written."""


class RestoredServers(StandingServers):
    """The servers of a captured folder below `directory`; none runs."""

    def __init__(self, folder: Path, directory: Path, release: str) -> None:
        places = sorted((place for place in folder.iterdir() if place.name.isdigit()), key=_sid)
        files = [file for place in places for file in place.glob("zoo.cfg*")]
        names = sorted({name for file in files for name in NAMES.findall(file.read_text(encoding="utf-8"))})
        super().__init__(directory, release, "", (SKIP_ACL, *((HOSTS,) if names else ())))
        self._clients: dict[Sid, tuple[str, int]] = {}
        for place in places:
            sid = _sid(place)
            home = self.home(sid)
            shutil.copytree(place, home)
            (home / "hosts").write_text("".join(f"{LOOPBACK} {name}\n" for name in names), encoding="ascii")
            texts = []
            for file in home.glob("zoo.cfg*"):
                text = file.read_text(encoding="utf-8").replace(HOME, str(home))
                file.write_text(text, encoding="utf-8")
                texts.append(text)
            for part in ("data", "txlog"):
                if (place / part).exists():
                    (home / part).mkdir(exist_ok=True)
            self._clients[sid] = _client_place(sid, (home / "zoo.cfg").read_text(encoding="utf-8"), texts)
            self.adopt(sid)

    def client_port(self, sid: Sid) -> Any:
        return self._clients[sid]


def _sid(place: Path) -> Sid:
    return required_integer(place.name)


def _client_place(sid: Sid, text: str, texts: Iterable[str]) -> tuple[str, int]:
    """The address for clients of a server, by its file or by its own line in a dynamic file."""
    if (port := key_of(text, "clientPort")) is not None:
        return (key_of(text, "clientPortAddress") or LOOPBACK, required_integer(port))
    for file_text in texts:
        for line in CLIENT_OF_LINE.finditer(file_text):
            if required_integer(line[1]) == sid:
                return (line["host"] or LOOPBACK, required_integer(line["port"]))
    raise ServerError(f"server {sid} has no address for clients")


class Execution:
    """Carries out steps on servers; `names` are the steps so far."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.names: list[str] = []
        self._away = 0

    def do(self, step: Mapping[str, Any]) -> None:
        """Carry out one step, at one server after the other. Raises AdviceError if it is not one, and ServerError."""
        for sid in step["servers"]:
            self._do(sid, step["action"], step)

    def _do(self, sid: Any, action: Any, step: Mapping[str, Any]) -> None:
        if action in NO_DEEDS:
            self.names.append(str(action))
            return
        if sid not in self._servers.sids:
            raise AdviceError(f"a step names server {sid!r}, which does not exist: {step}")
        self.names.append(f"{action} {sid}")
        match action:
            case "start":
                self._start(sid)
            case "wait":
                self._wait(sid)
            case "stop":
                self._servers.stop(sid)
            case "restart":
                self._servers.stop(sid)
                self._start(sid)
            case "erase":
                self.erase(sid)
            case "copy":
                self._copy(sid, step.get("from"))
            case "edit":
                self._edit(sid, step)
            case _:
                raise AdviceError(f"no step has the action {action!r}: {step}")

    def erase(self, sid: Sid) -> None:
        """Stop a server, and move its disk away; its id stays."""
        self._servers.stop(sid)
        for folder in self._disks(sid):
            if folder.exists():
                self._away += 1
                folder.rename(folder.with_name(f"away-{self._away}"))

    def _disks(self, sid: Sid) -> tuple[Path, ...]:
        return (self._servers.data(sid) / VERSION, self._servers.home(sid) / "txlog" / VERSION)

    def _start(self, sid: Sid) -> None:
        if self._servers.alive(sid):
            return
        self._servers.start(sid)
        self._wait(sid)

    def _wait(self, sid: Sid) -> None:
        with contextlib.suppress(ServerError):
            self._servers.wait_serving((sid,), SERVE_SECONDS)

    def _copy(self, sid: Sid, source: Any) -> None:
        if source not in self._servers.sids:
            raise AdviceError(f"a step copies the disk of server {source!r}, which does not exist")
        if self._servers.alive(source) or self._servers.alive(sid):
            raise AdviceError(f"a step copies the disk of server {source} to {sid}, and one of them runs")
        self.erase(sid)
        for old, new in zip(self._disks(source), self._disks(sid), strict=True):
            if old.exists():
                shutil.copytree(old, new, dirs_exist_ok=True)

    def _edit(self, sid: Sid, step: Mapping[str, Any]) -> None:
        home = self._servers.home(sid)
        name = str(step.get("file", "zoo.cfg"))
        file = home / "data" / name if name in ("myid", "acceptedEpoch", "currentEpoch") else home / name
        if name in ("acceptedEpoch", "currentEpoch"):
            file = home / "data" / VERSION / name
        if file.resolve().parent not in (
            home.resolve(),
            (home / "data").resolve(),
            (home / "data" / VERSION).resolve(),
        ):
            raise AdviceError(f"a step edits {name}, which is no file of a server")
        if "text" in step:
            if step["text"] is None:
                file.unlink(missing_ok=True)
            else:
                file.write_text(str(step["text"]).replace(HOME, str(home)), encoding="utf-8")
            return
        values = step.get("set")
        if not isinstance(values, Mapping) or not values:
            self.names[-1] += f" {name} by hand"
            return
        if "" in values:
            file.write_text(f"{values['']}\n", encoding="utf-8")
            return
        text = file.read_text(encoding="utf-8")
        for key, value in values.items():
            line = re.compile(rf"^{re.escape(key)}=.*\n?", re.MULTILINE)
            text = line.sub("", text)
            if value is not None:
                text += f"{key}={value}\n".replace(HOME, str(home))
        file.write_text(text, encoding="utf-8")


def lost_writes(servers: Servers, paths: frozenset[str]) -> tuple[dict[Sid, frozenset[str]], bool]:
    """The acknowledged writes that each serving server lacks, and whether all that run serve and take a write."""
    deadline = time.monotonic() + END_SECONDS
    with contextlib.suppress(ServerError):
        wait_until(lambda: bool(servers.running) and all(map(servers.role, servers.running)), END_SECONDS, "all serve")
    serves = bool(servers.running) and all(map(servers.role, servers.running))
    takes = serves and all(_takes_a_write(servers, sid) for sid in servers.running)
    lacking: dict[Sid, frozenset[str]] = {}
    while True:
        for sid in servers.running:
            written = written_at(servers, sid, paths)
            if written is not None:
                lacking[sid] = paths - written
        if not any(lacking.values()) or time.monotonic() > deadline - END_SECONDS + 10.0:
            return lacking, takes
        time.sleep(1.0)


def _takes_a_write(servers: Servers, sid: Sid) -> bool:
    for trial in range(3):
        try:
            session = servers.connect(sid)
            try:
                if session.ask(CREATE, f"/judged-{sid}-{trial}-{time.monotonic_ns()}", b"", WORLD, 0).err == 0:
                    return True
            finally:
                session.drop()
        except (ServerError, OSError):
            time.sleep(1.0)
    return False
