"""Validation of the journals of live servers against the specification: the same step functions, the same invariants.

- `codec`, `journals`: the format of a journal, and the reader of its files.
- `replay`: the replay of one server: every step, and the contents of its disk after a restart.
- `happens_before`: the messages between the servers, and an order of all steps in which every message is sent before it
  is read.
- `global_history`: the logs and the history that follow from that order, without the settled part.
- `invariants`: the invariants, evaluated on that history.
- `validate`: the complete validation in one call, and its result. `report`: the command, and its report.
"""

from checker.validate.journals import JournalError
from checker.validate.report import lines
from checker.validate.validate import Validation, validate

__all__ = ["JournalError", "Validation", "lines", "validate"]
