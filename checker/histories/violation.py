"""A violation of a guarantee of clients: the clause, and the operations that witness it.

Rules of this module: a violation is a value, never a boolean. Its witnesses show, without the rest of the history, that
the clause is broken. As text they are in the order of invocation.
"""

from __future__ import annotations

import msgspec

from checker.histories.record import Operation


class Violation(msgspec.Struct, frozen=True):
    """A broken guarantee (`clause`), a description of the run (`detail`), and the operations that show it."""

    clause: str
    detail: str
    witnesses: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        shown = sorted(self.witnesses, key=lambda operation: operation.invoked)
        return "\n".join([f"{self.clause}: {self.detail}", *(f"    {operation}" for operation in shown)])
