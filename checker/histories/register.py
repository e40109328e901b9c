"""One znode as a register with versions: what each operation needs to find, and what it leaves.

Rules this module keeps:

- The state is a value with its version, or no znode. A create begins at version 0, a set adds one, a delete ends it.
- An answered operation fits a state only if the answer is the one that ZooKeeper gives in that state, version
  included. One without an answer fits wherever it would have had an effect; where it would have had none, it is as if
  it had never arrived.
- An error that says nothing of the znode (a lost session, a refused authentication) is no observation: it fits
  everywhere and changes nothing.

Source: `PrepRequestProcessor.pRequest2Txn` (create, setData, deleteNode); `FinalRequestProcessor` (getData).
"""

from __future__ import annotations

from typing import TypeAlias

from checker.histories.record import ANY_VERSION, Operation

State: TypeAlias = tuple[str, int] | None
"""The value and the version of the znode; None if there is none."""

TELLING = ("NoNode", "NodeExists", "BadVersion")
"""The refusals that tell something of the znode."""


def observes(operation: Operation) -> bool:
    """Whether an operation, as it was answered, changes nothing: a read or a refusal."""
    return operation.outcome == "failed" or not operation.is_write


def agrees(operation: Operation, state: State) -> bool:
    """Whether what a read or a refusal told is so in this state."""
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
    """The state that a write leaves, in a tuple; None if it cannot have had an effect (or not that answer) here."""
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
    """A state in words."""
    return "no znode" if state is None else f"{state[0]!r} at version {state[1]}"
