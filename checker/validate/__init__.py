"""Validation of the journals of live servers against the specification: the same step functions, the same invariants.

- `codec`, `journals`: the format of a journal, and the reader of its files.
- `replay`: the replay of one server: every step, and the contents of its disk after a restart.
- `happens_before`: the messages between the servers, and an order of all steps in which every message is sent before it
  is read.
- `global_history`: the logs and the history that follow from that order, without the settled part. `server_logs` has
  the committed log and the position of each server.
- `invariants`: the invariants, evaluated on that history.
- `validate`, `report`: the complete validation in one call, and its report.
"""

from checker.validate.journals import JournalError
from checker.validate.report import Validation, lines
from checker.validate.validate import validate

__all__ = ["JournalError", "Validation", "lines", "validate"]
