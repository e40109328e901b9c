"""The refinement of abstract Zab on journals: each step of a live server is a step of abstract Zab, or changes nothing.

`checker.refinement` maps a step to abstract actions, and judges their conditions. Rules this module keeps:

- Transactions up to a floor are removed from logs and histories alike. They are settled, or a node has forgotten them.
  So the floor only rises.
- A life may be cut short between a record and its effects. A reign that no learner has heard of ends with its server,
  and may begin once more. If a learner has heard of it, its epoch must have been on the disk of its server: then the
  reign stays, and to begin it once more breaks a condition.
- The end of a process leaves the disk as it is and sends nothing. It is no abstract action, so it breaks no condition.
- An acknowledgement counts only if the journal of its server has it. So all voters need journals.
"""

from __future__ import annotations

from msgspec.structs import replace

from checker.refinement.abstract_steps import AbstractAction, AbstractSteps, Broken, Disk, Name
from checker.refinement.mapping import abstract_steps
from checker.refinement.reigns import Reign, ReignHistory
from checker.validate.invariants import Count
from checker.validate.replay import known_from
from spec.effects import Effects
from spec.server import Event, Server
from spec.txn import Txn

OF_A_TRANSACTION = (Name.ACK, Name.COMMIT, Name.PROPOSE)


class JournalRefinement:
    """The history variables of the refinement, along the common order of all records."""

    def __init__(self) -> None:
        self.count = Count()
        self._reigns = ReignHistory()
        self._floor = 0

    def stepped(
        self, before: Server, event: Event | None, after: Server, effects: Effects, settled: int
    ) -> tuple[Broken, ...]:
        """Take a step; the event is None for the end of a process. Returns the conditions that it breaks."""
        self.count.evaluated += 1
        steps = abstract_steps(before, event, after, effects)
        if steps is None:
            return ()
        from checker.refinement.judgement import judged_step  # noqa: PLC0415 (it loads z3)

        self.count.premise += 1
        self._raise_floor(max(settled, known_from(before.durable) - 1, known_from(after.durable) - 1))
        result = judged_step(self._reigns, self._above(steps))
        self._reigns = result.reigns
        return result.broken

    def ended(self, running: Server, stopped: Server, settled: int) -> None:
        """A process ends: its server leads or follows no longer."""
        broken = self.stepped(running, None, stopped, (), settled)
        assert not broken, "the disk stays, and nothing is sent"

    def _raise_floor(self, floor: int) -> None:
        if floor > self._floor:
            self._floor = floor
            self._reigns = replace(self._reigns, known=tuple(map(self._reign_above, self._reigns.known)))

    def _reign_above(self, reign: Reign) -> Reign:
        return replace(
            reign,
            initial=self._txns(reign.initial),
            history=self._txns(reign.history),
            acked=frozenset((sid, txn) for sid, txn in reign.acked if txn.zxid > self._floor),
            committed=frozenset((txn, quorum) for txn, quorum in reign.committed if txn.zxid > self._floor),
        )

    def _above(self, steps: AbstractSteps) -> AbstractSteps:
        """The step without the transactions up to the floor."""
        calls = tuple(self._call(call) for call in steps.calls if not self._is_below(call))
        return replace(steps, before=self._disk(steps.before), calls=calls, after=self._disk(steps.after))

    def _call(self, call: AbstractAction) -> AbstractAction:
        return replace(call, txns=self._txns(call.txns)) if call.txns else call

    def _is_below(self, call: AbstractAction) -> bool:
        return call.name in OF_A_TRANSACTION and call.zxid <= self._floor

    def _disk(self, disk: Disk) -> Disk:
        return replace(disk, txns=self._txns(disk.txns))

    def _txns(self, txns: tuple[Txn, ...]) -> tuple[Txn, ...]:
        return tuple(txn for txn in txns if txn.zxid > self._floor)
