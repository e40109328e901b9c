"""The page of the planner over HTTP, on the loopback interface only, by the rules of `checker.local_page`."""

from __future__ import annotations

from urllib.parse import SplitResult

from checker.local_page import PageHandler, PageServer, read_request
from checker.local_page.server import assets_of
from checker.planner_page.handlers import PlannerHandlers
from checker.planner_page.uploads import PlanFilesRequest, fields

LARGEST_SETS = 1 << 22  # bytes of a request with two sets of files


class PlannerServer(PageServer):
    """The HTTP server of the planner's page. Raises PortError."""

    def __init__(self, handlers: PlannerHandlers, port: int = 0) -> None:
        self.handlers = handlers
        super().__init__(_PlannerRequests, assets_of(__package__), "planner", port)


class _PlannerRequests(PageHandler):
    server: PlannerServer

    def _get_other(self, address: SplitResult) -> None:
        if address.path != "/api/fields":
            super()._get_other(address)
        self._json(fields())

    def _post(self) -> None:
        if self.path != "/api/plan":
            super()._post()
        request = read_request(self._body(LARGEST_SETS), PlanFilesRequest)
        self._lines(lambda progress: self.server.handlers.plan(request, progress))
