"""Sequential specifications: what an operation does to an object, and the replies that it may give there.

A history is linearizable with respect to a sequential specification. `Znode` is that of one znode of ZooKeeper: a value
with its version, or no znode. A create begins at version 0, a set adds one, a delete removes it. `PlainRegister` and
`CasRegister` have a value and no version.

Source: `PrepRequestProcessor.pRequest2Txn` (create, setData, deleteNode); `FinalRequestProcessor` (getData).
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from checker.histories.record import ANY_VERSION, Operation, RegisterOperation

Register: TypeAlias = tuple[str, int] | None
"""The value and the version of the znode; None if it does not exist."""


class SequentialSpecification(Protocol):
    """An object without concurrency. Its states are hashable."""

    @property
    def initial(self) -> Any:
        """The state before the first operation."""

    def agrees(self, operation: Operation, state: Any) -> bool:
        """Whether the reply to a read, or a refusal, fits this state."""

    def written(self, operation: Operation, state: Any) -> tuple[Any] | None:
        """The state after a write, in a tuple; None if the write has no effect, or another reply, in this state."""


class Znode:
    """The specification of one znode. An answer with a Stat fits only if its version is right, too."""

    initial: Register = None

    def agrees(self, operation: Operation, state: Register) -> bool:
        """Whether the reply to a read, or a refusal, fits this state."""
        if operation.outcome == "failed":
            return _refused_so(operation, state)
        return state is not None and state[0] == operation.value and _fits(operation, state[1])

    def written(self, operation: Operation, state: Register) -> tuple[Register] | None:
        """The state after a write, in a tuple; None if the write has no effect, or another reply, in this state."""
        if operation.kind == "create":
            if state is not None or operation.value is None:
                return None
            return _answered_so(operation, (operation.value, 0))
        if state is None or operation.condition not in {ANY_VERSION, state[1]}:
            return None
        if operation.kind == "delete":
            return (None,)
        return None if operation.value is None else _answered_so(operation, (operation.value, state[1] + 1))


class PlainRegister:
    """The specification of a register that always exists: a read returns the value of the last write."""

    def __init__(self, initial: str) -> None:
        self.initial = initial

    def agrees(self, operation: Operation, state: str) -> bool:
        """Whether a read may return its value in this state."""
        return operation.value == state

    def written(self, operation: Operation, state: str) -> tuple[str] | None:  # noqa: ARG002 (a write fits any state)
        """The state after a write, in a tuple."""
        return None if operation.value is None else (operation.value,)


class CasRegister(PlainRegister):
    """A register with compare-and-set, which has an effect only if the value is the expected one."""

    def written(self, operation: Operation, state: str) -> tuple[str] | None:
        """The state after a write, in a tuple; None if the value is not the expected one."""
        expected = operation.expected if isinstance(operation, RegisterOperation) else None
        return super().written(operation, state) if expected in {None, state} else None


def _refused_so(operation: Operation, state: Register) -> bool:
    if not operation.refused:
        return True
    if operation.error == "NoNode":
        return state is None
    if operation.error == "NodeExists":
        return state is not None and operation.kind == "create"
    return state is not None and operation.condition not in {ANY_VERSION, state[1]}


def _answered_so(operation: Operation, left: tuple[str, int]) -> tuple[Register] | None:
    return (left,) if operation.outcome == "unknown" or _fits(operation, left[1]) else None


def _fits(operation: Operation, version: int) -> bool:
    return not operation.has_stat or operation.version == version
