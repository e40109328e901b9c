"""Carries out the steps of a diagnosis on real servers, and servers with the files and disks of a captured incident.

Rules of this module:

- A step is done as an operator does it: an erased disk is moved away, and after a start the operator waits for a while.
- The files of a captured incident are used as they are; only the path of a server's home differs.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.processes import LOOPBACK, ServerError, wait_until
from harness.servers import CREATE, SKIP_ACL, WORLD, Servers
from spec.quorum import Sid
from spec.text import required_integer
from tests.reality.incidents.capture import HOME
from tests.reality.incidents.scene import written_at
from tests.reality.incidents.servers import VERSION, StandingServers
from tests.reality.servers import key_of

SERVE_SECONDS = 20.0
END_SECONDS = 30.0
RECOVER_SECONDS = 60.0
NAMES = re.compile(r"^server\.\d+=(zk[0-9a-z.]+):", re.MULTILINE)
CLIENT_OF_LINE = re.compile(r"^server\.(\d+)=[^;\n]*;(?:(?P<host>[0-9.]+):)?(?P<port>\d+)$", re.MULTILINE)
HOSTS = "-Djdk.net.hosts.file={home}/hosts"


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
    """Carries out steps on servers; `names` are the steps so far.

    `truth` has the files as an operator would correct them; `folder` has the copies that a printed command names, and
    `note` receives the bound that a recovery prints.
    """

    def __init__(
        self,
        servers: Servers,
        truth: Mapping[str, Any],
        folder: Path,
        note: Callable[[int | None], None] = lambda _: None,
    ) -> None:
        self._servers, self._folder, self._note = servers, folder, note
        self._paused = set(truth.get("paused", ()))
        self._repairs = {required_integer(sid): files for sid, files in truth["repairs"].items()}
        self._machines = truth["machines"]
        self.names: list[str] = []
        self._away = 0

    def do(self, step: Mapping[str, Any]) -> None:
        """Carry out one step, at one server after the other. Raises AdviceError if it is not one, and ServerError."""
        action, sids = step["action"], [machine for sid in step["servers"] for machine in self._homes(sid)]
        if action == "edit" and step.get("edits"):
            self.names.append(f"edit {', '.join(map(str, sids))}")
            for edit in step["edits"]:
                self._apply(edit)
        elif action == "look" or not sids:
            self.names.append(str(action))
        elif action == "recover":
            self._recover(sids, step)
        else:
            for sid in sids:
                self._do(sid, action, step)

    def _homes(self, sid: Any) -> list[Sid]:
        """The machines with this id, before anything was corrected."""
        homes: list[Sid] = self._machines.get(str(sid), [])
        if not homes:
            raise AdviceError(f"a step names server {sid!r}, which does not exist")
        return homes

    def _do(self, sid: Sid, action: Any, step: Mapping[str, Any]) -> None:
        self.names.append(f"{action} {sid}")
        if sid in self._paused and self._servers.alive(sid):
            self._paused.remove(sid)
            self._servers.resume(sid)
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
            case "edit":  # it is left to the operator
                self._repair(sid)
            case _:
                raise AdviceError(f"no step has the action {action!r}: {step}")

    def _recover(self, sids: list[Sid], step: Mapping[str, Any]) -> None:
        """Stop all, make new disks by the printed command, and start all with corrected files.

        The command reads the disks of these servers in place of their copies. Of several sides it keeps the last.
        """
        self.names.append(f"recover {', '.join(map(str, sids))}")
        servers = self._servers
        for sid in servers.sids:
            servers.stop(sid)
        folder = servers.directory / f"recovered-{len(self.names)}"
        command = [*self.here(step.get("command") or ()), "--to", str(folder), "--write", "--json"]
        answer = _json_of(command)
        if answer.get("needs_choice"):
            answer = _json_of([*command, "--keep", answer["choices"][-1]])
        if not answer.get("written"):
            raise AdviceError(f"recover writes nothing: {answer.get('headline') or answer}")
        self._note(answer["may_be_lost"]["most"])
        for sid in self._repairs:
            self._repair(sid)
        for sid in servers.sids:
            new = folder / f"server-{sid}" / VERSION
            if new.exists():
                self.erase(sid)
                shutil.copytree(new, self._disks(sid)[0])
        for sid in servers.sids:
            servers.start(sid)
        for sid in servers.sids:
            self._wait(sid)

    def here(self, words: Sequence[str]) -> list[str]:
        """A printed command with the folders of the servers for their copies. Raises AdviceError without one."""
        if tuple(words[:3]) != ("python", "-m", "checker"):
            raise AdviceError(f"a step that makes new disks has no command: {' '.join(words) or 'none'}")
        return [sys.executable, *(self._place(word)[0] for word in words[1:])]

    def _place(self, word: str) -> tuple[str, Sid | None]:
        """A path in a copy as that of its server, with the server; another word as it is."""
        for sid in self._servers.sids:
            copy = str(self._folder / str(sid))
            if f"{word}/".startswith(f"{copy}/"):
                return f"{self._servers.home(sid)}{word.removeprefix(copy)}", sid
        return word, None

    def _apply(self, edit: Mapping[str, Any]) -> None:
        """Write a file as an edit says. Raises AdviceError for one that has another text than the edit expects."""
        place, sid = self._place(edit["file"])
        if sid is None:
            raise AdviceError(f"an edit is of {place}, which is no file of a server")
        before, after = (edit[name].replace(HOME, str(self._servers.home(sid))) for name in ("before", "after"))
        if Path(place).read_text(encoding="utf-8") != before:
            raise AdviceError(f"an edit expects another text of {place}")
        Path(place).write_text(after, encoding="utf-8")

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
        if not self._servers.alive(sid):
            self._servers.start(sid)
        self._wait(sid)

    def _wait(self, sid: Sid) -> None:
        with contextlib.suppress(ServerError):
            self._servers.wait_serving((sid,), SERVE_SECONDS)

    def _repair(self, sid: Sid) -> None:
        for name, text in self._repairs.get(sid, {}).items():
            self._file(sid, name).write_text(text.replace(HOME, str(self._servers.home(sid))), encoding="utf-8")

    def _file(self, sid: Sid, name: str) -> Path:
        return (self._servers.data(sid) if name == "myid" else self._servers.home(sid)) / name


def _json_of(command: list[str]) -> dict[str, Any]:
    """The output of a command. Raises AdviceError if it is no JSON."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=RECOVER_SECONDS, check=False)
    try:
        answer: dict[str, Any] = json.loads(ended.stdout)
    except ValueError:
        raise AdviceError(
            f"{' '.join(command[2:4])} ends with {ended.returncode}: {ended.stderr.strip()[-300:]}"
        ) from None
    return answer


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
