"""The refinement on journals: each recorded step is a step of abstract Zab, or changes nothing there.

The steps and the history variables are those of the models (`checker.refinement`), so that a journal is held to the
conditions that the proof of Zab uses. Rules this module keeps:

- Disks are compared above one zxid, the `floor`, which only rises. At or below it are the transactions before the logs
  of the first start records, those that a node has removed from memory, those that `GlobalHistory` has settled, and all
  but the last WINDOW transactions of a log. The floor keeps the judgement of a step short.
- The last two settled transactions stay, so that a server that removes the end of its log is still seen.
- Between two lives the disk may change within what `Replay` permits. That change is not a step, and is not judged.
"""

from __future__ import annotations

from msgspec.structs import replace

from checker.engine import Finding
from checker.properties.refinement import REFINEMENT, broken_condition
from checker.refinement.abstract_steps import AbstractAction, AbstractSteps, Disk, Name
from checker.refinement.mapping import abstract_steps
from checker.refinement.reigns import Reign, ReignHistory
from spec.durable import Durable
from spec.effects import Effects
from spec.server import Event, Server
from spec.txn import Txn

__all__ = ["REFINEMENT", "JournalRefinement"]

WINDOW = 64
"""The number of transactions of a log that are compared."""
OF_ONE_TXN = (Name.ACK, Name.COMMIT, Name.PROPOSE)


class JournalRefinement:
    """The history variables of a run, and the judgement of its steps; everything up to `floor` is taken as given."""

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.reigns = ReignHistory()

    def stepped(self, before: Server, event: Event | None, after: Server, effects: Effects) -> Finding | bool:
        """Judge a step; the event is None for a crash.

        Return the broken condition, or whether the step concerns abstract Zab.
        """
        from checker.refinement.judgement import judged_step  # noqa: PLC0415 (it loads z3)

        steps = abstract_steps(before, event, after, effects)
        if steps is None:
            return False
        if len(after.durable.txns) > WINDOW:
            self.raise_to(after.durable.txns[-WINDOW - 1].zxid)
        shown = self._above(steps)
        self.reigns, broken = judged_step(self.reigns, shown)
        return broken_condition(shown, broken) if broken else True

    def raise_to(self, floor: int) -> None:
        """Take the transactions up to this zxid as given from now on."""
        if floor > self.floor:
            self.floor = floor
            self.reigns = replace(self.reigns, known=tuple(map(self._reign, self.reigns.known)))

    def restarted(self, before: Durable, found: Durable) -> None:
        """A server has read its disk: transactions that a snapshot covers need not be in its log again."""
        absent = [txn.zxid for txn in before.txns if txn.zxid <= found.snapshot and txn not in found.txns]
        self.raise_to(max(absent, default=0))

    def shortened(self, durable: Durable) -> None:
        """A node has removed the beginning of its log from memory."""
        if durable.txns:
            self.raise_to(durable.txns[0].zxid - 1)

    def _above(self, steps: AbstractSteps) -> AbstractSteps:
        calls = (self._call(call) for call in steps.calls if call.name not in OF_ONE_TXN or call.zxid > self.floor)
        return AbstractSteps(steps.server, self._disk(steps.before), tuple(calls), self._disk(steps.after))

    def _txns(self, txns: tuple[Txn, ...]) -> tuple[Txn, ...]:
        return tuple(txn for txn in txns if txn.zxid > self.floor)

    def _disk(self, disk: Disk) -> Disk:
        return replace(disk, txns=self._txns(disk.txns))

    def _call(self, call: AbstractAction) -> AbstractAction:
        return replace(call, txns=self._txns(call.txns)) if call.txns else call

    def _reign(self, reign: Reign) -> Reign:
        return replace(
            reign,
            initial=self._txns(reign.initial),
            history=self._txns(reign.history),
            acked=frozenset(each for each in reign.acked if each[1].zxid > self.floor),
            committed=frozenset(each for each in reign.committed if each[0].zxid > self.floor),
        )
