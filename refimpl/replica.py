"""One server's copy of the replicated state, and on a leader what is ahead of it.

Rules this module keeps:

- Transactions are applied in the order of their zxids, each once; `zxid` is that of the last one.
- A leader prepares a request against the state after everything it has proposed. What a proposal will come to is
  worked out then, once, and taken from there when it is committed.

Source: `ZKDatabase`, `PrepRequestProcessor` (outstandingChanges), `FinalRequestProcessor`.
"""

from refimpl.clock import wall_ms
from refimpl.store import Tree
from spec.tree.apply import Applied, apply
from spec.tree.options import Options
from spec.tree.overlay import Overlay
from spec.tree.prepare import prepare
from spec.tree.replies import Code
from spec.tree.requests import Request
from spec.tree.store import configured
from spec.tree.txns import Change


class Replica:
    """A tree, the zxid of the last transaction in it, and the outstanding proposals of a leader.

    `config` is this server's own view of the ensemble, which every server writes into its tree by itself.
    """

    def __init__(self, tree: Tree, zxid: int, options: Options, config: str | None) -> None:
        self._options, self._config = options, config
        self.replace(tree, zxid)

    def replace(self, tree: Tree, zxid: int) -> None:
        """This tree from now on: what the disk says, or a leader's snapshot."""
        self.tree, self.zxid = tree, zxid
        if self._config is not None:
            tree.carry_out((configured(tree, self._config.encode(), 0, wall_ms()),))
        self.forget_proposals()

    def prepare(self, request: Request, now: int, checked: Code) -> Change:
        """The transaction that a request of a client comes to, behind everything proposed; `now` in milliseconds."""
        return prepare(self._overlay, request, now, checked, self._options)

    def proposed(self, zxid: int, change: Change) -> None:
        """A transaction that was prepared has got its zxid."""
        outcome = apply(self._overlay, zxid, change)
        self._overlay.carry_out(zxid, outcome.operations)
        self._ahead[zxid] = outcome

    def apply(self, zxid: int, change: Change) -> Applied:
        """Commits a transaction to the tree, and tells what it came to."""
        outcome = self._ahead.pop(zxid, None)
        if outcome is None:
            outcome = apply(self.tree, zxid, change)
        else:
            self._overlay.settled(zxid)
        self.tree.carry_out(outcome.operations)
        self.zxid = zxid
        return outcome

    def forget_proposals(self) -> None:
        """The server leads no more: what it proposed and did not commit is not its own any longer."""
        self._ahead: dict[int, Applied] = {}
        self._overlay = Overlay(self.tree)
