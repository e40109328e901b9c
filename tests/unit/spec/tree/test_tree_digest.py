"""Digests of a tree: those in the log of a real server of 3.9.5, and what a replica does with them."""

from pathlib import Path

import pytest

from refimpl.disk import snapshot
from refimpl.disk.logreader import read
from refimpl.replica import Replica
from refimpl.tree import Tree
from refimpl.wire.txn import decode_txn, encode_txn
from spec.tree.accounting import VERSION, changed, tree_digest
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.options import DEFAULTS
from spec.tree.replies import Code
from spec.tree.requests import Create, Request
from spec.tree.txns import Change, CreateTxn, TxnDigest

REAL = Path(__file__).parents[2] / "golden" / "disk" / "zookeeper-3.9.5"


def real_log() -> list[tuple[int, Change]]:
    return [decode_txn(payload) for _, payload in read(REAL, 1, notes=[])]


def test_each_digest_in_the_log_of_a_real_server_is_that_of_the_tree() -> None:
    tree = snapshot.read(REAL / "snapshot.0", 0).tree
    digest, found = tree_digest(tree.preorder()), []
    for zxid, change in real_log():
        operations = apply(tree, zxid, change).operations
        digest = changed(digest, tree, operations)
        tree.carry_out(operations)
        found.append(TxnDigest(VERSION, digest))
    assert found == [change.digest for _, change in real_log()]
    assert digest == tree_digest(tree.preorder())


def test_a_transaction_is_written_with_the_digest_that_it_came_with() -> None:
    payloads = [payload for _, payload in read(REAL, 1, notes=[])]
    assert [encode_txn(*decode_txn(payload)) for payload in payloads] == payloads


def replica() -> Replica:
    return Replica(Tree(), 0, DEFAULTS, None, digests=True)


def led(count: int) -> list[Change]:
    """Transactions as a leader prepares them, each before the ones before it are committed."""
    leader, found = replica(), []
    for zxid in range(1, count + 1):
        request = Request(1, zxid, Create(f"/{zxid}", b"x", OPEN_ACL_UNSAFE, 0))
        found.append(leader.foreseen(zxid, leader.prepare(request, 1000, Code.OK)))
        leader.proposed(zxid)
    return found


def test_a_follower_agrees_with_a_leader_that_has_outstanding_proposals() -> None:
    follower = replica()
    for zxid, change in enumerate(led(130), 1):
        follower.apply(zxid, change)
    assert follower.digest_mismatches == 0
    assert list(follower.digest_log) == [(128, led(128)[-1].digest.tree)]  # type: ignore[union-attr]


@pytest.mark.parametrize("altered", [CreateTxn("/2", b"y", OPEN_ACL_UNSAFE, False, 2)])
def test_a_transaction_that_has_another_effect_is_counted(altered: CreateTxn) -> None:
    follower, (first, second) = replica(), led(2)
    follower.apply(1, first)
    follower.apply(2, Change(second.session, second.cxid, second.time, altered, second.digest))
    assert follower.digest_mismatches == 1


def test_a_tree_from_a_fuzzy_snapshot_is_not_reported_until_it_has_agreed_once() -> None:
    follower, changes = replica(), led(3)
    ahead = Tree()
    for zxid in (1, 2):
        ahead.carry_out(apply(ahead, zxid, changes[zxid - 1]).operations)
    follower.replace(ahead, 0)  # the snapshot of zxid 0 has the effects of 1 and 2 already
    for zxid, change in enumerate(changes, 1):
        follower.apply(zxid, change)
    assert follower.digest_mismatches == 0


def test_a_new_leader_continues_from_the_tree_that_it_has_applied_as_a_follower() -> None:
    second = replica()
    for zxid, change in enumerate(led(2), 1):
        second.apply(zxid, change)
    request = Request(1, 3, Create("/3", b"x", OPEN_ACL_UNSAFE, 0))
    prepared = second.foreseen(3, second.prepare(request, 1000, Code.OK))
    assert prepared.digest == led(3)[2].digest
