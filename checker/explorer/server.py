"""The explorer's page over HTTP, on the loopback interface only, by the rules of `checker.local_page`.

A view of a walk that is opened in another tab may have its own styles and scripts; it is sandboxed, has no origin and
may send no requests.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qs

from checker.engine.model import ModelError
from checker.explorer.handlers import Handlers
from checker.explorer.requests import (
    ExploreRequest,
    FindRequest,
    LoadRequest,
    RefineRequest,
    WalkRequest,
    read_path,
)
from checker.explorer.walk import ProgressCallback
from checker.local_page import BadRequestError, PageHandler, PageServer, ProgressSender, read_request
from checker.local_page.server import TYPES, assets_of

LARGEST_TRACE = 1 << 25  # bytes of a request with a trace
LONGEST_NAME = 120  # characters of a file name before its suffix
ALONE = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)


class Server(PageServer):
    """The HTTP server of one set of handlers. Raises PortError."""

    def __init__(self, handlers: Handlers, port: int = 0) -> None:
        self.handlers = handlers
        super().__init__(_Handler, assets_of(__package__), "explorer", port)


class _Handler(PageHandler):
    server: Server
    refusals = (BadRequestError, ModelError)

    def _get_other(self, address: SplitResult) -> None:
        if address.path == "/api/jobs":
            self._json(self.server.handlers.jobs())
        elif address.path == "/api/file":
            self._file(address.query)
        else:
            super()._get_other(address)

    def _file(self, query: str) -> None:
        try:
            query_values = parse_qs(query, keep_blank_values=True, max_num_fields=8)
        except ValueError:
            raise BadRequestError("the address names too many things") from None
        parameters = {name: values[0] for name, values in query_values.items()}
        handlers = self.server.handlers
        path, form = read_path(parameters.get("path", "")), parameters.get("format", "")
        made, trace, text = handlers.file(parameters.get("job", ""), path, form, parameters.get("as"))
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", f"{trace.job} {trace.prop or 'walked'}").strip("-")[:LONGEST_NAME]
        kind = TYPES.get(made.suffix, "text/plain")
        shown = "inline" if "show" in parameters else "attachment"
        headers = {"Content-Disposition": f'{shown}; filename="{stem}.{made.suffix}"', "Content-Security-Policy": ALONE}
        self._send(text.encode("utf-8", "backslashreplace"), f"{kind}; charset=utf-8", headers=headers)

    def _post(self) -> None:
        handlers, path = self.server.handlers, self.path
        if path == "/api/walk":
            self._json(handlers.walk(read_request(self._body(), WalkRequest)))
        elif path == "/api/load":
            self._json(handlers.load(read_request(self._body(LARGEST_TRACE), LoadRequest)))
        elif path == "/api/refine":
            self._json(handlers.refine(read_request(self._body(), RefineRequest)))
        elif path == "/api/find":
            ahead = read_request(self._body(), FindRequest)
            self._lines(lambda send: handlers.find(ahead, _counts(send)))
        elif path == "/api/whole":
            whole = read_request(self._body(), ExploreRequest)
            self._lines(lambda send: handlers.whole(whole, _counts(send)))
        else:
            super()._post()


def _counts(send: ProgressSender) -> ProgressCallback:
    return lambda states, depth: send({"states": states, "depth": depth})
