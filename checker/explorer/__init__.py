"""The explorer: a local web page that walks through the states of a job, one move at a time.

    walk       the rows along a path of ordinals, the findings at its end, and searches ahead of it
    views      a walk as JSON: its picture, its last state, the possible next moves
    handlers   answers each request of the page; holds the jobs that a request may name
    requests   the types of valid requests
    server     HTTP on the loopback interface only, by `checker.local_page`

Rules of this package:

- A walk is its job and the ordinals of its moves, which every request carries. State that is kept between requests is a
  cache: reloading, several tabs and links work, and a restart loses only time.
- The page shows a run as a `checker.traces.Trace`, like a run that an exploration found; the picture is the same one.
- The states are those of `checker.engine.semantics`, which is exact; a walk needs no tables.
"""

from checker.explorer.handlers import Handlers
from checker.explorer.server import Server
from checker.local_page import BadRequestError, PortError

__all__ = ["BadRequestError", "Handlers", "PortError", "Server"]
