"""One server's copy of the replicated state, and on a leader the outstanding proposals.

Rules this module keeps:

- Transactions are applied once each, in the order of their zxids; `zxid` is the zxid of the last one.
- A leader prepares a request against the state after all of its proposals. The outcome of a proposal is computed once,
  when it is prepared, and reused when it is committed.

Source: `ZKDatabase`, `PrepRequestProcessor` (outstandingChanges), `FinalRequestProcessor`.
"""

from refimpl.clock import wall_ms
from refimpl.membership import Membership
from refimpl.tree import Tree
from spec.tree.apply import TxnResult, apply
from spec.tree.options import Options
from spec.tree.overlay import Overlay
from spec.tree.prepare import prepare
from spec.tree.replies import Code
from spec.tree.requests import Request
from spec.tree.store import configured
from spec.tree.txns import Change


class Replica:
    """A tree, the zxid of the last transaction in it, and the outstanding proposals of a leader.

    `membership` has this server's view of the ensemble, which each server writes into its tree without a transaction.
    """

    def __init__(self, tree: Tree, zxid: int, options: Options, membership: Membership | None) -> None:
        self.options, self._membership = options, membership
        self.replace(tree, zxid)

    def replace(self, tree: Tree, zxid: int) -> None:
        """Replaces the tree with one from the disk or from a leader's snapshot."""
        self.tree, self.zxid = tree, zxid
        self.write_configuration()
        self.forget_proposals()

    def write_configuration(self) -> None:
        """Writes the active configuration into `/zookeeper/config`."""
        if self._membership is not None:
            text, version = self._membership.text.encode(), self._membership.version
            self.tree.carry_out((configured(self.tree, text, version, wall_ms()),))

    @property
    def membership_text(self) -> str:
        """The active configuration with its version; empty for a standalone server."""
        return "" if self._membership is None else self._membership.text

    @property
    def overlay(self) -> Overlay:
        """The tree after all outstanding proposals of a leader."""
        return self._overlay

    def prepare(self, request: Request, now: int, checked: Code) -> Change:
        """The transaction for a client's request, prepared against all outstanding proposals; `now` in milliseconds."""
        return prepare(self._overlay, request, now, checked, self.options)

    def proposed(self, zxid: int, change: Change) -> None:
        """Records the zxid of a prepared transaction, and its outcome."""
        outcome = apply(self._overlay, zxid, change)
        self._overlay.carry_out(zxid, outcome.operations)
        self._ahead[zxid] = outcome

    def apply(self, zxid: int, change: Change) -> TxnResult:
        """Commits a transaction to the tree and returns its outcome."""
        outcome = self._ahead.pop(zxid, None)
        if outcome is None:
            outcome = apply(self.tree, zxid, change)
        else:
            self._overlay.settled(zxid)
        self.tree.carry_out(outcome.operations)
        self.zxid = zxid
        return outcome

    def forget_proposals(self) -> None:
        """Drops the outstanding proposals, because the server has stopped leading."""
        self._ahead: dict[int, TxnResult] = {}
        self._overlay = Overlay(self.tree)
