"""The explorer: a local page to walk through the states of a job, one move after the other.

    walk       the rows along a path of ordinals, and what a run that was walked ends in
    views      a walk as JSON: its picture, its last state, what may happen next
    find       looks ahead: from a state by plain steps, or through the whole space by tables
    desk       answers each request of the page; holds the jobs that it may ask for
    requests   what a request may be
    server     HTTP on the loopback interface, and nothing else

Rules of this package:

- A walk is its job and the ordinals of its moves, which every request carries. What is kept between requests is a
  cache: reloading, several tabs and links work, and a restart loses nothing but time.
- What the page shows of a run is a `checker.traces.Trace`, as of a run that was found; the picture is the same one.
- The states are those of `checker.engine.semantics`, which is exact; no tables are needed to walk.
"""

from checker.explorer.desk import Desk
from checker.explorer.requests import AskedWrongError
from checker.explorer.server import PortError, Server

__all__ = ["AskedWrongError", "Desk", "PortError", "Server"]
