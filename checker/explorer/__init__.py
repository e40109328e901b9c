"""The explorer: a local web page that walks through the states of a job, one move at a time.

    walk       the rows along a path of ordinals, the findings at its end, and searches ahead of it; the requests
    views      a walk as JSON: its picture, its last state, the possible next moves
    stories    guided stories: stops on one walk, with a text in two languages
    export     the page with whole spaces as one file, without a server
    server     answers each request of the page, over HTTP on the loopback interface only (`checker.local_page`)

Rules of this package:

- A walk is its job and the ordinals of its moves, which every request carries. State that is kept between requests is a
  cache: reloading, several tabs and links work, and a restart loses only time.
- The page shows a run as a `checker.traces.Trace`, like a run that an exploration found; the picture is the same one.
- The states are those of `checker.engine.semantics`, which is exact; a walk needs no tables.
"""

from checker.explorer.server import Handlers, Server
from checker.local_page import BadRequestError, PortError

__all__ = ["BadRequestError", "Handlers", "PortError", "Server"]
