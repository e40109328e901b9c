"""`python -m refimpl demo`: a local ensemble on free ports that runs until it is interrupted.

Rules this module keeps:

- Each server is a separate process with separate files, as in production; all listen on loopback only.
- Standard output has the connection string first, then the roles. On Ctrl-C every server is stopped, and a temporary
  directory is removed.
"""

import argparse
import contextlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from spec.text import between

LOOPBACK = "127.0.0.1"
MOST_SERVERS = 9
PORTS = range(15_000, 32_000)
"""Ports below those that Linux assigns to outgoing connections (32768 and above). A port that is free now is then still
free when a server opens it; a quorum port is opened only when its server leads."""
PATIENCE = 30.0
"""Seconds until every server of the ensemble must serve."""


def arguments(argv: Sequence[str], program: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog=program, description="Start a local ensemble on free ports; Ctrl-C stops it.")
    parser.add_argument("--servers", type=between(1, MOST_SERVERS), default=3, metavar="N", help="how many (default 3)")
    parser.add_argument(
        "--tick", type=between(1), default=1000, metavar="MS", help="tickTime in milliseconds (default 1000)"
    )
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="where files go; default: a temporary one, removed at the end"
    )
    parser.add_argument("--journal", action="store_true", help="each server writes an event log, journal.jsonl")
    return parser.parse_args(argv)


def main(argv: Sequence[str], program: str = "python -m refimpl demo") -> int:
    """Run the command and return its exit code."""
    options = arguments(argv, program)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _directory(options.directory) as directory:
            return _run(directory, options)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


@contextlib.contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    path = Path(tempfile.mkdtemp(prefix="quorate-demo-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _run(directory: Path, options: argparse.Namespace) -> int:
    ports = free_ports(3 * options.servers)  # all kinds in one call, so that none is found twice
    clients = ports[: options.servers]
    configs = write_configs(directory, clients, ports[options.servers :], options.tick)
    servers: list[subprocess.Popen[bytes]] = []
    try:
        for config in configs:  # one at a time: if Ctrl-C comes between two, the started ones are known and stopped
            servers.append(_start(config, options.journal))
        _say(f"connect to {','.join(f'{LOOPBACK}:{port}' for port in clients)}")
        if not _wait_until_all_serve(clients, servers):
            sys.stderr.write(f"error: no service after {PATIENCE:.0f} s; see {directory}/*/server.log\n")
            return 1
        modes = _tell_roles(clients)
        _say("Ctrl-C stops it")
        _watch(clients, servers, directory, modes)
    except KeyboardInterrupt:
        _say("stopping")
        return 0
    finally:
        _stop(servers)
    return 1


def free_ports(count: int) -> list[int]:
    """Return free ports, all different. Raises OSError if there are too few."""
    ports: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(ports) == count:
            return ports
        with contextlib.suppress(OSError), socket.create_server((LOOPBACK, port)):
            ports.append(port)
    raise OSError(f"{count} free ports are needed, and {LOOPBACK} has only {len(ports)} from {PORTS[0]} to {PORTS[-1]}")


def write_configs(directory: Path, clients: Sequence[int], peers: Sequence[int], tick: int) -> list[Path]:
    """Write a zoo.cfg and a myid for each server, in separate folders; each server gets two ports of `peers`."""
    count = len(clients)
    lines = [f"server.{n + 1}={LOOPBACK}:{peers[2 * n]}:{peers[2 * n + 1]}" for n in range(count)] if count > 1 else []
    files = []
    for number, client in enumerate(clients, 1):
        home = directory / f"server-{number}"
        (home / "data").mkdir(parents=True, exist_ok=True)
        (home / "data" / "myid").write_text(f"{number}\n")
        keys = [
            f"tickTime={tick}",
            "initLimit=10",
            "syncLimit=5",
            f"dataDir={home / 'data'}",
            f"clientPort={client}",
            f"clientPortAddress={LOOPBACK}",
            "4lw.commands.whitelist=*",
            "admin.enableServer=false",
        ]
        config = home / "zoo.cfg"
        config.write_text("\n".join((*keys, *lines)) + "\n")
        files.append(config)
    return files


def _start(config: Path, journal: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "refimpl", str(config)]
    if journal:
        command += ["--journal", str(config.parent / "journal.jsonl")]
    with (config.parent / "server.log").open("ab") as log:
        # A separate session: Ctrl-C reaches only this process, which then stops the servers in order.
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def mode_of(port: int) -> str | None:
    """Return a server's mode from `srvr`: leader, follower, observer, standalone; None if it does not serve."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=2) as asking:
            asking.sendall(b"srvr")
            answer = b""
            while piece := asking.recv(4096):
                answer += piece
    except OSError:
        return None
    for line in answer.decode("utf-8", "replace").splitlines():
        if line.startswith("Mode: "):
            return line.removeprefix("Mode: ")
    return None


def _wait_until_all_serve(clients: Sequence[int], servers: Sequence[subprocess.Popen[bytes]]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and all(server.poll() is None for server in servers):
        if all(mode_of(port) for port in clients):
            return True
        time.sleep(0.1)
    return False


def _tell_roles(clients: Sequence[int]) -> list[str | None]:
    roles = [mode_of(port) for port in clients]
    for number, (port, role) in enumerate(zip(clients, roles, strict=True), 1):
        _say(f"server {number} at {LOOPBACK}:{port}: {role or 'does not serve'}")
    return roles


def _watch(
    clients: Sequence[int], servers: Sequence[subprocess.Popen[bytes]], directory: Path, modes: list[str | None]
) -> None:
    """Print changes of roles and ends of servers, until it is interrupted or all servers have ended."""
    ended: set[int] = set()
    while len(ended) < len(servers):
        time.sleep(1)
        if [mode_of(port) for port in clients] != modes:
            modes = _tell_roles(clients)
        for number, server in enumerate(servers, 1):
            if server.poll() is not None and number not in ended:
                ended.add(number)
                sys.stderr.write(f"server {number} has ended; see {directory}/server-{number}/server.log\n")


def _stop(servers: Sequence[subprocess.Popen[bytes]]) -> None:
    for server in servers:
        if server.poll() is None:
            server.terminate()
    for server in servers:
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
