"""One server's copy of the replicated state, and on a leader the outstanding proposals.

Rules this module keeps:

- Transactions are applied once each, in the order of their zxids; `zxid` is the zxid of the last one.
- With digests, the digest of the tree follows each transaction. That in a transaction is compared with it: a difference
  is logged and counted, and has no other effect. A tree from a fuzzy snapshot may differ until the log has passed its
  end, so differences are reported once a digest has agreed.
- A leader prepares a request against the state after all of its proposals. The outcome of a proposal is computed once,
  when it is prepared, and reused when it is committed. So nothing can fail between a proposal and its commit.

Source: `ZKDatabase`, `PrepRequestProcessor` (outstandingChanges, setTxnDigest), `FinalRequestProcessor`;
`DataTree.compareDigest`, `reportDigestMismatch`.
"""

import logging
from collections import deque

from msgspec.structs import replace as with_fields

from refimpl.log_lines import RateLimit
from refimpl.membership import Membership
from refimpl.system import system
from refimpl.tree import Tree
from spec.tree.accounting import VERSION, changed, tree_digest
from spec.tree.apply import TxnResult, apply
from spec.tree.options import Options
from spec.tree.overlay import Overlay
from spec.tree.prepare import prepare
from spec.tree.replies import Code
from spec.tree.requests import Request
from spec.tree.store import configured
from spec.tree.txns import Change, ErrorTxn, TxnDigest

logger = logging.getLogger("quorate.replica")
logger.addFilter(RateLimit())

_LOGGED_EVERY, _LOGGED_AT_MOST = 128, 1024
"""The zxids whose digests are remembered, for the word `hash` (`DataTree.logZxidDigest`)."""
_FUZZY_AT_MOST = 100_000
"""Transactions after which a replaced tree must agree, even if it never has."""


class Replica:
    """A tree, the zxid of the last transaction in it, and the outstanding proposals of a leader.

    `membership` has this server's view of the ensemble, which each server writes into its tree without a transaction.
    With `digests`, digests are written and compared; `digest_mismatches` counts the transactions that differed, and
    `digest_log` has zxids with the digests of the tree after them.
    """

    def __init__(
        self, tree: Tree, zxid: int, options: Options, membership: Membership | None, *, digests: bool = False
    ) -> None:
        self.options, self._membership, self._digests = options, membership, digests
        self.digest_mismatches = 0
        self.digest_log: deque[tuple[int, int]] = deque(maxlen=_LOGGED_AT_MOST)
        self.replace(tree, zxid)

    def replace(self, tree: Tree, zxid: int) -> None:
        """Replace the tree with one from the disk or from a leader's snapshot."""
        self.tree, self.zxid = tree, zxid
        self._digest: int = tree_digest(tree.znodes()) if self._digests else 0
        self._digest_ahead: int = self._digest
        self._fuzzy = _FUZZY_AT_MOST
        self.write_configuration()
        self.forget_proposals()

    def write_configuration(self) -> None:
        """Write the active configuration into `/zookeeper/config`."""
        if self._membership is not None:
            text, version = self._membership.text.encode(), self._membership.version
            self.tree.carry_out((configured(self.tree, text, version, system().wall_ms()),))

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

    def foreseen(self, zxid: int, change: Change) -> Change:
        """A prepared transaction, with the digest of the tree after it; its outcome is kept for `proposed`.

        The error of a refused request has no digest, as in ZooKeeper.
        """
        outcome, digest = apply(self._overlay, zxid, change), self._digest_ahead
        if self._digests and type(change.record) is not ErrorTxn:
            digest = changed(digest, self._overlay, outcome.operations)
            change = with_fields(change, digest=TxnDigest(VERSION, digest))
        self._next = zxid, outcome, digest
        return change

    def proposed(self, zxid: int) -> None:
        """The transaction whose outcome was foreseen last is proposed, with the zxid that was expected."""
        expected, outcome, self._digest_ahead = self._next
        assert expected == zxid
        self._overlay.carry_out(zxid, outcome.operations)
        self._ahead[zxid] = outcome, self._digest_ahead

    def apply(self, zxid: int, change: Change) -> TxnResult:
        """Commit a transaction to the tree and return its outcome."""
        ahead = self._ahead.pop(zxid, None)
        if ahead is None:
            outcome = apply(self.tree, zxid, change)
            if self._digests:
                self._digest = self._digest_ahead = changed(self._digest, self.tree, outcome.operations)
                self._compare(zxid, change.digest)
        else:
            outcome, self._digest = ahead
            self._overlay.settled(zxid)
        self.tree.carry_out(outcome.operations)
        self.zxid = zxid
        if self._digests and not zxid % _LOGGED_EVERY:
            self.digest_log.append((zxid, self._digest))
        return outcome

    def _compare(self, zxid: int, digest: TxnDigest | None) -> None:
        """Compare the digest of the tree after a transaction with that of its leader, if there is one."""
        self._fuzzy -= self._fuzzy > 0
        if digest is None or digest.version != VERSION:
            return
        if digest.tree == self._digest:
            self._fuzzy = 0
        elif not self._fuzzy:
            self.digest_mismatches += 1
            logger.error("transaction 0x%x: the digest of this tree is not that of its leader", zxid)

    def forget_proposals(self) -> None:
        """Drop the outstanding proposals, because the server has stopped leading."""
        self._ahead: dict[int, tuple[TxnResult, int]] = {}
        self._overlay = Overlay(self.tree)
        self._digest_ahead = self._digest
        self._next = 0, TxnResult(), self._digest
