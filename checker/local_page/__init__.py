"""The base of the local pages: HTTP on the loopback interface only, for one page and its files.

    requests   a request that cannot be answered, and the decoder of valid ones, and slots for work
    server     the server, and the handler of one request, with all rules of security
    assets/    the files of every page: colours, elements, the reader of an answer in lines

The explorer and the page of the planner are built on it.
"""

from checker.local_page.requests import BadRequestError, read_request, slot
from checker.local_page.server import PageHandler, PageServer, PortError, ProgressSender

__all__ = ["BadRequestError", "PageHandler", "PageServer", "PortError", "ProgressSender", "read_request", "slot"]
