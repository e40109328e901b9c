"""Real servers with the files of a change, as they are: each has its own address and its own folder."""

import contextlib
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

from harness import real
from harness.processes import Place, Process, ServerError, srvr
from harness.record.ensemble import SYNC
from harness.session import Session
from spec.quorum import Sid
from spec.text import integer

OPTIONS = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
SESSION_MILLISECONDS = 4000
CHILDREN, EXISTS, LOAD = 8, 3, "/load"
STOP_SECONDS = 30.0


def key_of(text: str, key: str) -> str | None:
    values = re.findall(rf"^{re.escape(key)}=(.*)$", text, re.MULTILINE)
    return values[-1] if values else None


def client_place(text: str) -> Place | None:
    """The plain client address in a file, if it has one."""
    port = integer(key_of(text, "clientPort") or "", 1, 65535)
    return None if port is None else (key_of(text, "clientPortAddress") or "127.0.0.1", port)


class RealServers:
    """The servers of one change below `home`; a server has the file that it was given last."""

    def __init__(self, home: Path, release: str) -> None:
        self._home, self._release = home, release
        self._processes: dict[Sid, Process] = {}
        self._texts: dict[Sid, str] = {}

    @property
    def sids(self) -> tuple[Sid, ...]:
        return tuple(sorted(self._texts.copy()))  # clients ask while a step gives a server its first file

    def text(self, sid: Sid) -> str:
        return self._texts[sid]

    def alive(self, sid: Sid) -> bool:
        return sid in self._processes and self._processes[sid].alive

    def give(self, sid: Sid, text: str) -> None:
        """Give a server its file, and the folder of its data with its id."""
        home = self._home / f"server-{sid}"
        home.mkdir(parents=True, exist_ok=True)
        for key in ("dataDir", "dataLogDir"):
            if (folder := key_of(text, key)) is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
        if (folder := key_of(text, "dataDir")) is not None:
            (Path(folder) / "myid").write_text(f"{sid}\n", encoding="ascii")
        (home / "zoo.cfg").write_text(text, encoding="utf-8")
        self._texts[sid] = text
        if sid not in self._processes:
            command = real.command(home / "zoo.cfg", OPTIONS, self._release)
            self._processes[sid] = Process(command, home, home / "log.txt")

    def start(self, sid: Sid, text: str) -> None:
        """Give a server its file, and start it."""
        self.give(sid, text)
        self._processes[sid].start()

    def stop(self, sid: Sid) -> None:
        """Send SIGTERM, and wait for the end of the process."""
        if sid in self._processes:
            self._processes[sid].stop(STOP_SECONDS)

    def erase(self) -> None:
        """Kill all servers, and delete their data."""
        self.shut_down()
        for sid in self._processes:
            shutil.rmtree(self._home / f"server-{sid}", ignore_errors=True)
        self._texts.clear()
        self._processes.clear()

    def shut_down(self) -> None:
        for process in self._processes.values():
            process.kill()

    def log(self, sid: Sid) -> str:
        """The log of a server; empty if it was never started."""
        file = self._home / f"server-{sid}" / "log.txt"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def place(self, sid: Sid) -> Place:
        """The client address in the file of a server. Raises ServerError if it has no plain one."""
        if (place := client_place(self._texts[sid])) is None:
            raise ServerError(f"server {sid} has no plain client port")
        return place

    @property
    def plain(self) -> tuple[Sid, ...]:
        """The servers with a plain client port: the load and the look at the end need one."""
        return tuple(sid for sid in self.sids if key_of(self._texts[sid], "clientPort"))

    def mode(self, sid: Sid) -> str | None:
        """The value of `Mode:` in the answer to `srvr`; None while the server does not serve."""
        if not self.alive(sid):
            return None
        with contextlib.suppress(ServerError):
            return srvr(self.place(sid)).get("Mode")
        secure = integer(key_of(self._texts[sid], "secureClientPort") or "", 1, 65535)
        return None if secure is None else self._mode_by_tls(sid, secure)

    def _mode_by_tls(self, sid: Sid, port: int) -> str | None:
        """The role by the secure client port."""
        text = self._texts[sid]
        try:
            context = ssl.create_default_context(cafile=key_of(text, "ssl.trustStore.location"))
            context.load_cert_chain(str(key_of(text, "ssl.keyStore.location")))
            host = key_of(text, f"server.{sid}").partition(":")[0]  # type: ignore[union-attr]
            with (
                socket.create_connection((host, port), timeout=5.0) as connection,
                context.wrap_socket(connection, server_hostname=host) as secured,
            ):
                secured.sendall(b"srvr")
                answer = b""
                while part := secured.recv(65536):
                    answer += part
        except OSError:
            return None
        mode = re.search(r"Mode: (\w+)", answer.decode("utf-8", errors="replace"))
        return mode and mode[1]

    def leaders(self) -> list[Sid]:
        return [sid for sid in self.sids if self.mode(sid) in {"leader", "standalone"}]

    def connect(self, sid: Sid) -> Session:
        session = Session(SESSION_MILLISECONDS, seconds=8.0)
        session.connect(self.place(sid))
        return session

    def written(self, sid: Sid) -> dict[str, int]:
        """The writes at a server after a sync with its leader: each path with the zxid that created it."""
        session = self.connect(sid)
        try:
            session.ask(SYNC, LOAD)
            answer = session.ask(CHILDREN, LOAD, False)
            if answer.err:
                return {}
            paths = [f"{LOAD}/{name}" for name in answer.values[0]]
            return {path: session.ask(EXISTS, path, False).values[0].czxid for path in sorted(paths)}
        finally:
            session.drop()


def make_certificates(folder: Path, hosts: list[str]) -> None:
    """One key and its certificate for all servers, by `openssl`: `trust.pem`, and both as `store.pem`."""
    folder.mkdir(parents=True)
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ServerError("no openssl on the PATH; apt-get install openssl")
    key, trust = folder / "key.pem", folder / "trust.pem"
    names = ",".join(f"IP:{host}" for host in hosts)
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=servers"]
    command += ["-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(trust)]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "store.pem").write_bytes(key.read_bytes() + trust.read_bytes())
