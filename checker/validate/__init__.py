"""Journals of live servers, held to the specification: the same step functions, the same invariants.

- `words`, `journals`: what a journal says, and how its files are read.
- `replay`: one server by itself: every step again, and what its disk held after a restart.
- `order`: all servers: who heard what of whom, and an order of all steps in which nothing is heard before it is sent.
- `past`: the logs and the history that follow from that order, kept short, with the `committed` log and where each
  server is `standing`; `held`: the invariants, evaluated on them.
- `validate`, `report`: all of it in one call, and what is told of it.
"""

from checker.validate.journals import JournalError
from checker.validate.report import Validation, lines
from checker.validate.validate import validate

__all__ = ["JournalError", "Validation", "lines", "validate"]
