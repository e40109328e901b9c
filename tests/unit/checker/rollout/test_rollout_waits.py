"""The command that waits for a server: it asks what the server answers, and runs as it is printed.

The answers are those of 3.9.5, tried with servers that have a secure client port only. `srvr` by TLS is answered as
at a client port, and the AdminServer of a server without a quorum names no state.
"""

import http.server
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checker.rollout.config_state import side_of
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.shell_commands import Wait, wait_of

SECURE = "secureClientPort=2281\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
FOLLOWER = '{\n  "server_stats" : {\n    "server_state" : "follower",\n    "uptime" : 3876\n  },\n  "error" : null\n}\n'
NOBODY = '{\n  "command" : "srvr",\n  "error" : "This ZooKeeper instance is not currently serving requests"\n}\n'


def wait(tmp_path: Path, keys: str, role: str = "", sid: int = 2) -> Wait:
    """The wait for a server of three, whose files have these keys."""
    lines = "".join(f"server.{each}=zk{each}:2888:3888{role if each == 2 else ''}\n" for each in (1, 2, 3))
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "zoo.cfg").write_text(f"tickTime=2000\ndataDir=/data\n{keys}{lines}", encoding="utf-8")
    return wait_of(side_of(read_input(str(folder)), "new"), sid)


def ran(made: Wait, port: int, seconds: float = 20) -> None:
    """Run the function and its call, to a server on this machine. Raises TimeoutExpired if it still waits."""
    name, _, _, *role = made.call.split()
    script = f"{made.question.function}\n{' '.join((name, '127.0.0.1', str(port), *role))}"
    subprocess.run(["timeout", str(seconds), "bash", "-c", script], check=True, timeout=seconds + 5)


@pytest.fixture
def admin() -> Iterator[tuple[int, list[str]]]:
    """An AdminServer that gives these answers one after the other, the last one again and again."""
    answers: list[str] = []

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(200 if self.path == "/commands/srvr" else 404)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1], answers
        server.shutdown()
        thread.join()


def test_the_wait_ends_when_the_admin_server_names_a_role(tmp_path: Path, admin: tuple[int, list[str]]) -> None:
    assert shutil.which("curl")
    port, answers = admin
    answers += [NOBODY, FOLLOWER]
    ran(wait(tmp_path, SECURE), port)
    assert answers == [FOLLOWER], "the first answer did not end it"


def test_the_wait_goes_on_while_no_role_is_named(tmp_path: Path, admin: tuple[int, list[str]]) -> None:
    assert shutil.which("curl")
    port, answers = admin
    answers += [NOBODY]
    with pytest.raises(subprocess.CalledProcessError):
        ran(wait(tmp_path, SECURE), port, seconds=2)


def test_the_wait_by_tls_is_answered(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    assert openssl is not None
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    subprocess.run([openssl, *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_answer, args=(context, listening.accept))
        thread.start()
        made = wait(tmp_path, f"{SECURE}admin.enableServer=false\nssl.clientAuth=none\n")
        ran(made, listening.getsockname()[1])
        thread.join()


def _answer(context: ssl.SSLContext, accept: Callable[[], tuple[socket.socket, object]]) -> None:
    connection, _ = accept()
    with context.wrap_socket(connection, server_side=True) as secure:
        assert secure.recv(5) == b"srvr\n"
        secure.sendall(b"Zookeeper version: 3.9.5\nMode: leader\n")
