"""Several events of a serving server as one step: the same state and effects as `spec.server.step` for each in turn.

A node that is busy has many writes, acknowledgements and completed disk operations at a time. A state is a value, so a
step for each of them copies its queues every time. Here they are copied once for all events.

Rules of this package:

- `step_all` handles the usual events of a healthy server: writes, proposals, acknowledgements, commits, completed disk
  operations, and the proposals and commits of a synchronisation. Otherwise it returns None and nothing has happened:
  the caller takes single steps.
- Its decisions are those of single steps. `tests/properties/test_batch_laws.py` compares both on
  random runs of whole ensembles. A journal of a node has single steps, which `checker validate` replays.

Source: `spec.zab.leader_broadcast`, `spec.zab.learner_broadcast`.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from spec.batch.following import Following
from spec.batch.leading import Leading
from spec.batch.synchronising import Synchronising
from spec.effects import Effects
from spec.server import Event, Server
from spec.zab.state import Leader, StaleMemory, ZabRules

__all__ = ["BatchStep", "step_all"]

_NOTHING_STALE = StaleMemory()


class BatchStep(msgspec.Struct, frozen=True):
    """The outcome of several events: the state after all of them, and the effects of each one, in order."""

    state: Server
    effects: tuple[Effects, ...]


def step_all(server: Server, events: Sequence[Event], zab: ZabRules) -> BatchStep | None:
    """Handle several events of one server, in order; None if that is not possible here, and single steps are needed."""
    part = server.zab
    if part is None or zab.variants or zab.asynchronous_commits or not zab.asynchronous_disk or server.disk_full:
        return None
    if server.last_seen is not None or server.remains != _NOTHING_STALE:
        return None
    work: Leading | Following | Synchronising | None
    if isinstance(part, Leader):
        work = Leading.of(server, part, zab)
    else:
        work = Following.of(server, part) or Synchronising.of(part)
    if work is None:
        return None
    effects: list[Effects] = []
    for event in events:
        done = work.handle(event)
        if done is None:
            return None
        effects.append(done)
    durable = server.durable
    if work.written:
        durable = replace(durable, log=durable.log + tuple(work.written))
    return BatchStep(replace(server, durable=durable, zab=work.part()), tuple(effects))
