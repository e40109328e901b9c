"""The base of the local pages: HTTP on the loopback interface only, for one page and its files.

The explorer and the page of the planner are built on the server, the handler of one request with all rules of security,
and slots for work. `assets` has the files of every page: colours, elements, the reader of an answer in lines.

Rules of this module:

- Only a browser on this machine, on this very page, is served. The name in Host is a loopback name with this port, so
  that no foreign name can resolve to this server. A request from another page names that page in Origin or
  Sec-Fetch-Site. A request for work is JSON, which no page may send across origins without permission.
- The page loads nothing from elsewhere, and runs no script that is not a file of its package.
- Sizes are bounded. An error ends as JSON with a message, and the part of the page that it is about:
  `{"error": "...", "field": ""}`. A reader who disconnects ends the request, and its work.
- Work is answered with lines of JSON: `{"progress": ...}`, and finally `{"done": ...}` or `{"error": "..."}`.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from checker.command import CommandError, ExitCode
from checker.job import Json
from checker.traces.svg.picture import STYLE
from spec.foreign_pages import refused_page
from spec.text import excerpt, integer

T = TypeVar("T")


class BadRequestError(CommandError):
    """A request that cannot be answered; the message gives the reason and the correction.

    `field` is the part of the page that it is about; empty if it is about none.
    """

    exit_code = ExitCode.SCENARIO

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, field: str = "") -> None:
        super().__init__(message)
        self.status, self.field = status, field


@contextmanager
def slot(slots: threading.Semaphore, busy: str) -> Iterator[None]:
    """One of the slots for concurrent work. Raises BadRequestError with that message if all are taken."""
    if not slots.acquire(blocking=False):
        raise BadRequestError(busy, HTTPStatus.TOO_MANY_REQUESTS)
    try:
        yield
    finally:
        slots.release()


def read_request(body: bytes, kind: type[T]) -> T:
    """Decode the body of a request. Raises BadRequestError."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequestError(f"the request is not as it should be: {error}") from None


HOST = "127.0.0.1"
NAMES = (HOST, "localhost")  # host names of this server
PATIENCE = 30.0  # seconds until a request must have arrived
LARGEST = 1 << 16  # bytes of a request
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
OWN = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


ProgressSender = Callable[[Json], bool]
"""Sends progress to the page; False as soon as the page has gone, or the server stops."""


class PortError(CommandError):
    """The requested port is not available; the message gives the reason."""


class PageServer(ThreadingHTTPServer):
    """The HTTP server of one page. `address` is the URL of the page, `name` its name in messages. Raises PortError.

    `assets` are the files of the page by their paths, with their types.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, handler: type[PageHandler], assets: Mapping[str, tuple[str, bytes]], name: str, port: int = 0
    ) -> None:
        self.assets, self.name, self.closing = assets, name, threading.Event()
        try:
            super().__init__((HOST, port), handler)
        except OSError as error:
            right = "name another, or none: then a free one is taken"
            raise PortError(f"--port {port}: it cannot be had ({error.strerror}); {right}") from None

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/"

    def server_bind(self) -> None:
        """Bind without asking a name server for the name of this machine."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def server_close(self) -> None:
        """Stop, and end every running search."""
        self.closing.set()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 (as the base class has it)
        """Ignore a disconnect; report anything else in one line, since an error that gets here is a defect."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"error: a request ended in {type(error).__name__}: {excerpt(str(error))}", file=sys.stderr)


def assets_of(package: str) -> dict[str, tuple[str, bytes]]:
    """The files of a page by their paths, with their types: those in `assets` of its package, and those of every page.

    The style of pictures is that of traces.
    """
    folders = (files(file).joinpath("assets") for file in (__package__, package))
    assets = {f"/{file.name}": file.read_bytes() for folder in folders for file in folder.iterdir()}
    assets |= {"/": assets.pop("/index.html"), "/picture.css": STYLE.encode()}
    suffixes = {path: path.rpartition(".")[2] if path != "/" else "html" for path in assets}
    return {path: (f"{TYPES[suffixes[path]]}; charset=utf-8", assets[path]) for path in assets}


class PageHandler(BaseHTTPRequestHandler):
    """One request. A page overrides `_get_other` and `_post`; `refusals` are errors of what its user gave it."""

    server: PageServer
    refusals: tuple[type[Exception], ...] = (BadRequestError,)
    server_version, sys_version = "quorate", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Answer with the page or a file of it, or as the page defines."""
        self._answered(self._get)

    def do_POST(self) -> None:
        """Answer a request of the page for work."""
        self._answered(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal is the user's."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer a request that the base class refuses before it is dispatched."""
        self._error(message or HTTPStatus(code).phrase, HTTPStatus(code))

    def _answered(self, answer: Callable[[], None]) -> None:
        try:
            self._check_sender()
            answer()
        except BadRequestError as error:
            self._error(str(error), error.status, error.field)
        except self.refusals as error:
            self._error(str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # the page always gets an answer
            self._error(self._defect(error), HTTPStatus.INTERNAL_SERVER_ERROR)
            raise

    def _check_sender(self) -> None:
        hosts = [f"{name}:{self.server.server_port}" for name in NAMES]
        headers = {name.lower(): value for name, value in self.headers.items()}
        status = refused_page(headers, hosts, is_front=self.path == "/")
        if status is HTTPStatus.MISDIRECTED_REQUEST:
            raise BadRequestError(f"this page is at {self.server.address}", status)
        if status is not None:
            raise BadRequestError("another page may not ask this one", status)

    # -- requests --------------------------------------------------------------------------------------------

    def _get(self) -> None:
        try:
            address = urlsplit(self.path)
        except ValueError:
            raise BadRequestError("the target is not a valid address", HTTPStatus.NOT_FOUND) from None
        if address.path in self.server.assets:
            kind, content = self.server.assets[address.path]
            self._send(content, kind)
        else:
            self._get_other(address)

    def _get_other(self, address: SplitResult) -> None:
        """Answer a GET for anything but the files of the page. Raises BadRequestError."""
        raise BadRequestError(f"there is nothing at {address.path[:80]}", HTTPStatus.NOT_FOUND)

    def _post(self) -> None:
        """Answer a POST. Raises BadRequestError."""
        raise BadRequestError(f"nothing is asked for at {self.path[:80]}", HTTPStatus.NOT_FOUND)

    def _body(self, largest: int = LARGEST) -> bytes:
        if self.headers.get_content_type() != "application/json":
            raise BadRequestError("a request is JSON", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = integer(self.headers.get("Content-Length", ""), 0, 10**12)
        if length is None:
            raise BadRequestError("a request says how long it is", HTTPStatus.LENGTH_REQUIRED)
        if length > largest:
            problem = f"the request has {length:,} bytes, and {largest:,} are the most; give fewer or smaller files"
            raise BadRequestError(problem, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return self.rfile.read(length)

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

    def _error(self, message: str, status: HTTPStatus, field: str = "") -> None:
        self._json({"error": message, "field": field}, status)

    def _lines(self, work: Callable[[ProgressSender], Json]) -> None:
        """Send lines of JSON during work; a closed connection cancels it."""
        disconnected = threading.Event()
        self._head("application/x-ndjson", HTTPStatus.OK, {})

        def write(value: Json) -> None:
            try:
                self.wfile.write(json.dumps(value).encode() + b"\n")
                self.wfile.flush()
            except OSError:
                disconnected.set()

        def progress(value: Json) -> bool:
            write({"progress": value})
            return not disconnected.is_set() and not self.server.closing.is_set()

        try:
            write({"done": work(progress)})
        except self.refusals as error:
            write({"error": str(error), "field": getattr(error, "field", "")})
        except Exception as error:
            write({"error": self._defect(error), "field": ""})
            raise

    def _defect(self, error: Exception) -> str:
        return f"this is a defect of the {self.server.name}: {type(error).__name__}: {error}"
