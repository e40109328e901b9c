"""The explorer's server: on the loopback interface, only for its own page, with a message for every error."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checker.cli.main import main
from checker.explorer import Handlers, PortError, Server
from checker.local_page import LARGEST
from checker.scenario import bundled, load
from checker.traces.formats import FORMATS

ENOUGH = 120.0  # timeout in seconds; the first search compiles kernels


def scenario(name: str) -> Path:
    (path,) = (path for path in bundled() if path.stem == name)
    return path


class Answer(NamedTuple):
    """A reply of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        return str(json.loads(self.body)["error"])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Handlers((load(scenario(name)), "") for name in ("r10-wrong-order", "r18-lock"))) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def ask(server: Server, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """Send one request like those of the page, except for the given headers; an empty header is omitted."""
    sent = {"Host": f"127.0.0.1:{server.server_port}", "Content-Type": "application/json"}
    sent |= {"Sec-Fetch-Site": "same-origin"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=ENOUGH)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    if content is not None and "Content-Length" not in sent:
        sent["Content-Length"] = str(len(content))
    for name, value in sent.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders(content)
    got = connection.getresponse()
    answer = Answer(got.status, dict(got.getheaders()), got.read())
    connection.close()
    return answer


def key(server: Server, place: int = 0) -> str:
    return str(json.loads(ask(server, "GET", "/api/jobs").body)["jobs"][place]["key"])


def ahead(server: Server, prop: str, place: int = 0) -> dict[str, Any]:
    """Return a search from the first state of a job for a state with a finding of a property."""
    return {"job": key(server, place), "path": [], "goal": {"type": "property", "name": prop}}


def test_it_listens_on_the_loopback_interface_alone(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


def test_the_page_and_all_its_files_are_there_with_their_types_and_a_policy(server: Server) -> None:
    page = ask(server, "GET", "/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}
    for path in server.assets:
        answer = ask(server, "GET", path)
        suffix = path.rpartition(".")[2] if path != "/" else "html"
        assert (answer.status, answer.headers["Content-Type"]) == (200, f"{kinds[suffix]}; charset=utf-8")
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
    text = page.body.decode()
    assert "http:" not in text and "https:" not in text and "<style" not in text and "onclick=" not in text


@pytest.mark.parametrize("host", ["quorate.example:80", "127.0.0.1", "localhost", "127.0.0.1:1", "evil.example"])
def test_a_request_by_another_name_is_refused(server: Server, host: str) -> None:
    for path in ("/", "/app.js", "/api/jobs"):
        answer = ask(server, "GET", path, Host=host)
        assert answer.status == 421 and server.address in answer.error
    assert ask(server, "GET", "/", Host="").status == 421


def test_both_names_of_this_machine_lead_to_it(server: Server) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert ask(server, "GET", "/api/jobs", Host=f"{name}:{server.server_port}").status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_another_page_may_not_ask(server: Server, origin: str) -> None:
    walk = {"job": key(server), "path": []}
    assert ask(server, "POST", "/api/walk", walk).status == 200
    assert ask(server, "POST", "/api/walk", walk, Origin=f"http://127.0.0.1:{server.server_port}").status == 200
    assert ask(server, "POST", "/api/walk", walk, Origin=origin).error == "another page may not ask this one"
    assert ask(server, "GET", "/api/jobs", Sec_Fetch_Site="cross-site").status == 403
    assert ask(server, "GET", "/", Sec_Fetch_Site="cross-site").status == 200, "a link may lead here"


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "why"),
    [
        ("/api/walk", b"{}", {"Content_Type": "text/plain"}, 415, "a request is JSON"),
        ("/api/walk", b"{}", {"Content_Type": "application/x-www-form-urlencoded"}, 415, "a request is JSON"),
        ("/api/walk", b"{}", {"Content_Length": "-5"}, 411, "how long"),
        ("/api/walk", b"{}", {"Content_Length": "9" * 30}, 411, "how long"),
        ("/api/walk", None, {"Content_Length": str(LARGEST + 1)}, 413, "65,536 are the most"),
        ("/api/walk", b"{", {}, 400, "not as it should be"),
        ("/api/walk", {"job": "x", "path": []}, {}, 404, "of another run"),
        ("/api/find", {"job": "x", "path": [], "goal": {"type": "magic"}}, {}, 400, "not as it should be"),
        ("/api/load", {"name": "x", "text": "{}"}, {}, 422, "x is not a trace"),
        ("/api/load", {"name": "x" * 255, "text": "{}"}, {}, 422, "x is not a trace"),
        ("/api/nothing", {}, {}, 404, "nothing is asked for at /api/nothing"),
        ("/", {}, {}, 404, "nothing is asked for"),
    ],
)
def test_what_is_wrong_is_answered_with_json_that_says_so(
    server: Server, path: str, body: Any, headers: dict[str, str], status: int, why: str
) -> None:
    answer = ask(server, "POST", path, body, **headers)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json")
    assert why in answer.error


def test_what_is_no_request_at_all_is_answered_with_json_too(server: Server) -> None:
    assert "BREW" in ask(server, "BREW", "/").error
    assert ask(server, "GET", "/" + "a" * 70_000).status == 414


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/%2e%2e/server.py", "/assets/app.js", "/server.py", "//etc/passwd", "/index.html", "http://["],
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    assert ask(server, "GET", path).status == 404


def test_a_path_that_is_too_long_is_refused(server: Server) -> None:
    answer = ask(server, "POST", "/api/walk", {"job": key(server), "path": [0] * 2001})
    assert answer.status == 400 and "2000" in answer.error


@pytest.mark.parametrize("form", FORMATS)
def test_a_walk_is_a_file_in_every_format_which_may_reach_nothing(server: Server, form: str) -> None:
    address = f"/api/file?job={key(server)}&path=0.0&format={form}&as="
    saved, shown = ask(server, "GET", address), ask(server, "GET", address + "&show=1")
    name = f'filename="R10-three-to-five-in-the-wrong-order-walked.{FORMATS[form].suffix}"'
    assert saved.headers["Content-Disposition"] == f"attachment; {name}"
    assert shown.headers["Content-Disposition"] == f"inline; {name}"
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    assert "default-src 'none'" in shown.headers["Content-Security-Policy"]
    assert saved.body == shown.body and saved.body


@pytest.mark.parametrize(
    "query", ["", "job=x&path=&format=text", "path=a", "format=pdf", "&".join(f"a{number}=1" for number in range(20))]
)
def test_a_file_that_cannot_be_is_refused(server: Server, query: str) -> None:
    answer = ask(server, "GET", f"/api/file?{query}")
    assert answer.status in (400, 404) and answer.error


def test_a_search_tells_how_far_it_is_and_what_it_found(server: Server) -> None:
    answer = ask(server, "POST", "/api/find", ahead(server, "OneLeader"))
    *progress, last = [json.loads(line) for line in answer.body.splitlines()]
    assert progress and all(line["progress"]["states"] >= 1 for line in progress)
    assert last["done"]["moves"] == 8
    answer = ask(server, "POST", "/api/find", ahead(server, "x"))
    assert "unknown property 'x'" in json.loads(answer.body.splitlines()[-1])["error"]


def test_who_goes_away_has_cancelled_his_search(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    """Clients that disconnect hold both slots for searches; without a cancellation the next search would find none."""
    body = json.dumps({"job": key(server, 1), "path": [], "goal": {"type": "words", "text": "nobody says this"}})
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=ENOUGH) as left:
            head = f"POST /api/find HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n"
            left.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            assert b"200" in left.recv(64)
    end = time.monotonic() + ENOUGH
    while b'"done"' not in ask(server, "POST", "/api/find", ahead(server, "Held", place=1)).body:
        assert time.monotonic() < end, "the searches of those who left go on"
        time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_a_defect_is_told_without_a_stack_trace(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def wrong(*_: object) -> None:
        raise RuntimeError("as it must not be")

    monkeypatch.setattr(server.handlers, "walk", wrong)
    answer = ask(server, "POST", "/api/walk", {"job": key(server), "path": []})
    assert (answer.status, answer.error) == (500, "this is a defect of the explorer: RuntimeError: as it must not be")
    for thread in threading.enumerate():  # the line is printed after the reply is sent
        if "process_request" in thread.name:
            thread.join(ENOUGH)
    told = capfd.readouterr().err
    assert told == "error: a request ended in RuntimeError: as it must not be\n"


def test_a_port_that_is_taken_is_refused_with_a_message(server: Server) -> None:
    with pytest.raises(PortError, match=f"--port {server.server_port}: it cannot be had .*name another, or none"):
        Server(Handlers(), server.server_port)


# -- the command ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ([], 2, "there is nothing to explore; name a scenario"),
        (["no.yaml"], 150, "no.yaml: it cannot be read"),
        (["--trace", "no.json"], 150, "no.json: it cannot be read"),
        ([str(scenario("r18-lock")), "--variant", "ZOOKEEPER-1419"], 2, "the variant ZOOKEEPER-1419"),
    ],
)
def test_the_command_refuses_what_it_cannot_show(
    words: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", *words]) == code
    assert why in capsys.readouterr().err


def test_the_command_refuses_a_symlink_loop_with_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    assert main(["explore", str(tmp_path / "loop.yaml")]) == 150
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_refuses_a_port_that_is_taken(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(scenario("r18-lock")), "--port", str(server.server_port), "--no-browser"]) == 2
    assert f"--port {server.server_port}" in capsys.readouterr().err


def test_the_command_serves_a_saved_trace_until_it_is_interrupted(server: Server, tmp_path: Path) -> None:
    """It begins with the walk of the trace, which contains its scenario."""
    saved = tmp_path / "saved.itf.json"
    saved.write_bytes(ask(server, "GET", f"/api/file?job={key(server)}&path=0.0.1&format=itf").body)
    command = [sys.executable, "-m", "checker", "explore", "--trace", str(saved), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == f"{saved}: walked: 3 moves, without a finding\n"
        address = process.stdout.readline().split()[1]
        port = int(address.removesuffix("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ENOUGH)
        connection.request("GET", "/api/jobs")
        told = json.loads(connection.getresponse().read())
        assert told["start"] == {"job": key(server), "path": [0, 0, 1]}
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(ENOUGH) == 0
        assert process.stderr.read() == ""
