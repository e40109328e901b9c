"""One znode as a register with versions: the state that each operation requires, and the state after it.

Rules of this module:

- The state is a value with its version, or no znode. A create begins at version 0, a set adds one, a delete removes it.
- An answered operation fits a state only if ZooKeeper gives that reply in that state, version included. An operation
  without a reply fits any state in which it would have an effect. Where it would have none, it is treated as never
  carried out.
- An error that is unrelated to the znode (a lost session, a refused authentication) is not an observation: it fits any
  state and changes nothing.

Source: `PrepRequestProcessor.pRequest2Txn` (create, setData, deleteNode); `FinalRequestProcessor` (getData).
"""

from __future__ import annotations

from typing import TypeAlias

from checker.histories.record import ANY_VERSION, Operation

State: TypeAlias = tuple[str, int] | None
"""The value and the version of the znode; None if it does not exist."""

TELLING = ("NoNode", "NodeExists", "BadVersion")
"""The errors that depend on the state of the znode."""


def observes(operation: Operation) -> bool:
    """Whether an operation, with the reply that it got, changes nothing: a read or a refusal."""
    return operation.outcome == "failed" or not operation.is_write


def agrees(operation: Operation, state: State) -> bool:
    """Whether the reply to a read or the refusal fits this state."""
    if operation.outcome == "failed":
        return _refused_so(operation, state)
    return state == (operation.value, operation.version)


def _refused_so(operation: Operation, state: State) -> bool:
    if operation.error not in TELLING:
        return True
    if operation.error == "NoNode":
        return state is None
    if operation.error == "NodeExists":
        return state is not None
    return state is not None and state[1] != operation.condition


def written(operation: Operation, state: State) -> tuple[State] | None:
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


def _answered_so(operation: Operation, left: tuple[str, int]) -> tuple[State] | None:
    return (left,) if operation.outcome == "unknown" or operation.version == left[1] else None


def shown(state: State) -> str:
    """A state as text."""
    return "no znode" if state is None else f"{state[0]!r} at version {state[1]}"
