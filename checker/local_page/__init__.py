"""The base of the local pages: HTTP on the loopback interface only, for one page and its files.

    server     the server, the handler of one request with all rules of security, and slots for work
    assets/    the files of every page: colours, elements, the reader of an answer in lines

The explorer and the page of the planner are built on it.
"""

from checker.local_page.server import (
    BadRequestError,
    PageHandler,
    PageServer,
    PortError,
    ProgressSender,
    read_request,
    slot,
)

__all__ = ["BadRequestError", "PageHandler", "PageServer", "PortError", "ProgressSender", "read_request", "slot"]
