"""A violation of what clients are promised: the clause, and the operations that witness it.

Rules this module keeps: a violation is a value, never a boolean; its witnesses are in the order in which they were
invoked, and enough of them to see that the clause is broken without the rest of the history.
"""

from __future__ import annotations

import msgspec

from checker.histories.record import Operation


class Violation(msgspec.Struct, frozen=True):
    """What was promised (`clause`), what happened instead (`detail`), and who saw it."""

    clause: str
    detail: str
    witnesses: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        shown = sorted(self.witnesses, key=lambda operation: operation.invoked)
        return "\n".join([f"{self.clause}: {self.detail}", *(f"    {operation}" for operation in shown)])
