"""The explorer's page over HTTP, on the loopback interface and nothing else.

Rules of this module:

- Who is not this machine's browser on this very page is refused: the name in Host is a loopback one, with this port (so
  that no foreign name can be made to lead here), a request that another page makes names that page in Origin or
  Sec-Fetch-Site, and what asks for work is JSON, which no page may send elsewhere unasked.
- The page loads nothing from elsewhere, and runs no script that is not a file of this package. A view of a walk that is
  opened beside it (it may have styles and scripts of its own) stands alone: it has no origin and may ask for nothing.
- Sizes are bounded; what is wrong ends as JSON with a message, `{"error": "..."}`. A reader who goes away ends his own
  request, and a search with it.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from checker.explorer.desk import Desk
from checker.explorer.find import Progress
from checker.explorer.requests import Ahead, AskedWrongError, Refined, Saved, Walked, Whole, read_path, read_request
from checker.job import Json
from checker.traces.picture import STYLE

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")  # that lead here
PATIENCE = 30.0  # seconds that a request may take to arrive
LARGEST = 1 << 16  # bytes of a request
LARGEST_TRACE = 1 << 25
LONGEST_NAME = 120  # characters of a file's name before its suffix
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
OWN = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
ALONE = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PortError(Exception):
    """The port that was asked for cannot be had; the message says why."""


class Server(ThreadingHTTPServer):
    """Serves one desk. `address` is where the page is. Raises PortError."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, desk: Desk, port: int = 0) -> None:
        self.desk, self.assets, self.closing = desk, _assets(), threading.Event()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            right = "name another, or none: then a free one is taken"
            raise PortError(f"--port {port}: it cannot be had ({error.strerror}); {right}") from None

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/"

    def server_bind(self) -> None:
        """Without asking a name server what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def server_close(self) -> None:
        """Stop, and have every search that is under way end."""
        self.closing.set()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 (as the base class has it)
        """Who goes away is no error; anything else that gets here is a defect, and is told in a line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"error: a request ended in {type(error).__name__}: {error}", file=sys.stderr)


def _assets() -> dict[str, tuple[str, bytes]]:
    """The files of the page by their paths, with their types; the style of the picture is made by who draws it."""
    found = {f"/{each.name}": each.read_bytes() for each in files(__package__).joinpath("assets").iterdir()}
    found |= {"/": found.pop("/index.html"), "/picture.css": STYLE.encode()}
    suffixes = {path: path.rpartition(".")[2] if path != "/" else "html" for path in found}
    return {path: (f"{TYPES[suffixes[path]]}; charset=utf-8", found[path]) for path in found}


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "quorate", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """The page, its files, the jobs, a walk as a file."""
        self._answered(self._get)

    def do_POST(self) -> None:
        """What the page asks for."""
        self._answered(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal is the user's."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What the base class refuses before it is asked for anything."""
        self._error(message or HTTPStatus(code).phrase, HTTPStatus(code))

    def _answered(self, answer: Callable[[], None]) -> None:
        try:
            self._check_sender()
            answer()
        except AskedWrongError as error:
            self._error(str(error), error.status)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # a page must be told something
            self._error(_defect(error), HTTPStatus.INTERNAL_SERVER_ERROR)
            raise

    def _check_sender(self) -> None:
        hosts = [f"{name}:{self.server.server_port}" for name in NAMES]
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
        if self.headers.get("Host") not in hosts:
            raise AskedWrongError(f"this page is at {self.server.address}", HTTPStatus.MISDIRECTED_REQUEST)
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            raise AskedWrongError("another page may not ask this one", HTTPStatus.FORBIDDEN)
        if self.path != "/" and site not in (None, "same-origin", "none"):  # a link may lead to the page itself
            raise AskedWrongError("another page may not ask this one", HTTPStatus.FORBIDDEN)

    # -- requests --------------------------------------------------------------------------------------------

    def _get(self) -> None:
        try:
            address = urlsplit(self.path)
        except ValueError:
            raise AskedWrongError("there is nothing at what is no address", HTTPStatus.NOT_FOUND) from None
        if address.path in self.server.assets:
            kind, content = self.server.assets[address.path]
            self._send(content, kind)
        elif address.path == "/api/jobs":
            self._json(self.server.desk.jobs())
        elif address.path == "/api/file":
            self._file(address.query)
        else:
            raise AskedWrongError(f"there is nothing at {address.path[:80]}", HTTPStatus.NOT_FOUND)

    def _file(self, query: str) -> None:
        try:
            asked = parse_qs(query, keep_blank_values=True, max_num_fields=8)
        except ValueError:
            raise AskedWrongError("the address names too many things") from None
        given = {name: values[0] for name, values in asked.items()}
        desk = self.server.desk
        path, form = read_path(given.get("path", "")), given.get("format", "")
        made, trace, text = desk.file(given.get("job", ""), path, form, given.get("as"))
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", f"{trace.job} {trace.prop or 'walked'}").strip("-")[:LONGEST_NAME]
        kind = TYPES.get(made.suffix, "text/plain")
        shown = "inline" if "show" in given else "attachment"
        headers = {"Content-Disposition": f'{shown}; filename="{stem}.{made.suffix}"', "Content-Security-Policy": ALONE}
        self._send(text.encode("utf-8", "backslashreplace"), f"{kind}; charset=utf-8", headers=headers)

    def _post(self) -> None:
        desk, path = self.server.desk, self.path
        if path == "/api/walk":
            self._json(desk.walk(read_request(self._body(), Walked)))
        elif path == "/api/load":
            self._json(desk.load(read_request(self._body(LARGEST_TRACE), Saved)))
        elif path == "/api/refine":
            self._json(desk.refine(read_request(self._body(), Refined)))
        elif path == "/api/find":
            ahead = read_request(self._body(), Ahead)
            self._lines(lambda progress: desk.find(ahead, progress))
        elif path == "/api/whole":
            whole = read_request(self._body(), Whole)
            self._lines(lambda progress: desk.whole(whole, progress))
        else:
            raise AskedWrongError(f"nothing is asked for at {path[:80]}", HTTPStatus.NOT_FOUND)

    def _body(self, largest: int = LARGEST) -> bytes:
        if self.headers.get_content_type() != "application/json":
            raise AskedWrongError("a request is JSON", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,12}", length):
            raise AskedWrongError("a request says how long it is", HTTPStatus.LENGTH_REQUIRED)
        if int(length) > largest:
            what = f"the request has {int(length):,} bytes, and {largest:,} are the most"
            raise AskedWrongError(what, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return self.rfile.read(int(length))

    # -- answers ---------------------------------------------------------------------------------------------

    def _send(
        self,
        content: bytes,
        kind: str,
        status: HTTPStatus = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._head(kind, status, {"Content-Length": str(len(content)), **(headers or {})})
        self.wfile.write(content)

    def _head(self, kind: str, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Security-Policy": OWN, **ALWAYS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _json(self, value: Json, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(value).encode(), "application/json", status)

    def _error(self, message: str, status: HTTPStatus) -> None:
        self._json({"error": message}, status)

    def _lines(self, search: Callable[[Progress], Json]) -> None:
        """Lines of JSON while a search goes on; who closes the connection has cancelled it."""
        gone = threading.Event()
        self._head("application/x-ndjson", HTTPStatus.OK, {})

        def write(value: Json) -> None:
            try:
                self.wfile.write(json.dumps(value).encode() + b"\n")
                self.wfile.flush()
            except OSError:
                gone.set()

        def progress(states: int, depth: int) -> bool:
            write({"progress": {"states": states, "depth": depth}})
            return not gone.is_set() and not self.server.closing.is_set()

        try:
            write({"done": search(progress)})
        except AskedWrongError as error:
            write({"error": str(error)})
        except Exception as error:
            write({"error": _defect(error)})
            raise


def _defect(error: Exception) -> str:
    return f"this is a defect of the explorer: {type(error).__name__}: {error}"
