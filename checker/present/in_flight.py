"""Messages in flight: the ones that a step delivered, lost and sent, from the content of a channel before and after it.

Rules of this module:

- A presenter says which message arrived, from the operation of the step; the rest follows from the two contents.
- A message that is there only before the step is lost, and one that is there only after it was sent. Equal messages are
  interchangeable, so they are counted.
- All messages of a channel that was replaced are lost, even if the new channel has equal ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from checker.engine import Move

M = TypeVar("M", bound=Hashable)


class Changes(NamedTuple, Generic[M]):
    """The messages that arrived, were lost, and were sent in a step, each group with the oldest first."""

    arrived: tuple[M, ...]
    lost: tuple[M, ...]
    sent: tuple[M, ...]


def changes(
    before: Sequence[M], after: Sequence[M], arrived: int | None = None, *, replaced: bool = False
) -> Changes[M]:
    """The changes of a channel; `arrived` is the place of the message that the step delivered, if any."""
    waiting = list(before)
    here = () if arrived is None else (waiting.pop(arrived),)
    if replaced:
        return Changes(here, tuple(waiting), tuple(after))
    return Changes(here, without(waiting, after), without(after, waiting))


def without(messages: Sequence[M], others: Sequence[M]) -> tuple[M, ...]:
    """The messages that remain when each of the others takes an equal one away, the oldest first."""
    away = Counter(others)
    left = []
    for message in messages:
        if away[message]:
            away[message] -= 1
        else:
            left.append(message)
    return tuple(left)


def operation_on(actor: str, move: Move) -> Any:
    """The first operation that a move sends to an actor, or None."""
    return next((send.operation for send in move.sends if send.actor == actor), None)
