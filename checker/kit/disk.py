"""A late disk: a write of a machine becomes durable after its step, with the action `sync`.

A protocol that answers before its write is durable forgets its answer in a crash. Rules of this module:

- Writes complete in the order of their requests. A crash loses an incomplete write, and all writes after it.
- A message that waits for the disk leaves when the last write requested before it completes, and is lost with that
  write. It leaves in its step if no write is incomplete.
- At most `most` writes of a machine are unfinished; a step that would request another one is impossible until then.

The disk of a server in an ensemble keeps the first rule too (`spec.zab.disk`).
"""

from typing import Any

import msgspec

from checker.engine import Actor, Column, ModelError, Move, Outcome, Read, Rule, Send
from checker.kit.actions import FaultAction, fair_among
from checker.kit.environment import ModelFragment
from checker.kit.networks import Insert, name_of

DISK = "disk of "  # the beginning of the name of a disk, before the name of its machine


def disk_name(machine: str) -> str:
    """The name of the disk of a machine."""
    return f"{DISK}{machine}"


class Restored(msgspec.Struct, frozen=True):
    """The operation that a machine loses its memory in a crash, and has this state from its disk."""

    state: Any


class UnfinishedWrite(msgspec.Struct, frozen=True):
    """A requested write, by the state that is durable after it; and batches of messages, by receiver, that wait."""

    durable: Any
    messages: tuple[tuple[str, tuple[Any, ...]], ...] = ()


class LateDisk(msgspec.Struct, frozen=True):
    """The state from which a machine starts after a crash, and its unfinished writes, the oldest first."""

    durable: Any
    queue: tuple[UnfinishedWrite, ...] = ()

    def lane_fields(self) -> dict[str, Any]:
        """The number of unfinished writes, and of messages that wait for them."""
        waiting = sum(len(batch) for write in self.queue for _, batch in write.messages)
        return {"unfinished": len(self.queue), "messages": waiting}


def late_disk(machine: str, durable: Any, most: int) -> ModelFragment:
    """The disk of a machine, with its content at first: its column, its actor, and the rule of its writes."""
    name, action = disk_name(machine), FaultAction.SYNC

    def leave(write: UnfinishedWrite) -> tuple[Send, ...]:
        return tuple(Send(name_of(machine, receiver), Insert(batch)) for receiver, batch in write.messages)

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        disk: LateDisk = values[0]
        if isinstance(operation, UnfinishedWrite):
            last = disk.queue[-1] if disk.queue else UnfinishedWrite(disk.durable)
            if operation.durable != last.durable:
                full = len(disk.queue) >= most
                return None if full else Outcome((LateDisk(disk.durable, (*disk.queue, operation)),))
            if not disk.queue:
                return Outcome((disk,), leave(operation))
            # The step changed nothing on disk, but its answer may show an unfinished write.
            joined = UnfinishedWrite(last.durable, (*last.messages, *operation.messages))
            return Outcome((LateDisk(disk.durable, (*disk.queue[:-1], joined)),))
        if operation is action:
            ended, *later = disk.queue
            return Outcome((LateDisk(ended.durable, tuple(later)),), leave(ended))
        if operation is FaultAction.CRASH:
            return Outcome((LateDisk(disk.durable),), (Send(machine, Restored(disk.durable)),))
        raise ModelError(f"the disk {name!r} cannot carry out {operation!r}; send it UnfinishedWrite")

    def moves(disk: LateDisk) -> list[Move]:
        return [Move(action, (machine,), (Send(name, action),))] if disk.queue else []

    rule = Rule(f"{action} {machine}", (Read(name),), moves, (action,), fair_among((action,)))
    return ModelFragment((Column(name, LateDisk(durable)),), (Actor(name, (name,), step),), (rule,))
