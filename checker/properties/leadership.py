"""Invariants of leaders and commits: one leader for each epoch, and no committed transaction is ever lost.

Sources: "Zab" (DSN 2011), section 4 (claims on established leaders); the TLA+ specifications of ZooKeeper (Leadership,
leader log completeness, no loss of a committed log); requirements R4, R9, R11.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from checker.engine import TRIVIAL, Finding, Property, Read
from checker.engine.model import Trivial
from checker.models.ensemble.history import EstablishedEpoch, FirstCommit, HistoryPart, part
from checker.models.ensemble.names import HISTORY, server_name
from checker.models.ensemble.setup import Setup
from checker.properties.projections import DiskContents, disk_contents, reads_of, truncates
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab.state import Leader

Answer = Finding | Trivial | None


def leadership(setup: Setup) -> Property:  # noqa: ARG001 (every property is built from a setup)
    """R11: a quorum of ACKEPOCH is complete at most once in an epoch, for one leader."""

    def check(established: tuple[EstablishedEpoch, ...], _: Any) -> Answer:
        if len(established) < 2:
            return TRIVIAL
        twice = [(a, b) for a, b in combinations(established, 2) if a.epoch == b.epoch]
        if not twice:
            return None
        one, other = twice[0]
        values = (("epoch", one.epoch), ("leaders", [one.leader, other.leader]))
        same = one.leader == other.leader
        clause = "one leader establishes one epoch twice" if same else "two leaders of one epoch are established"
        return Finding(clause, values)

    return Property("Leadership", _PAST, check, meaning="at most one leader of each epoch is ever established")


def leader_log_completeness(setup: Setup) -> Property:  # noqa: ARG001
    """R9, R11: a leader begins with all transactions committed in lower epochs, at any time.

    A commit in a lower epoch after the higher one was established must also be among the leader's initial transactions.
    """

    def check(established: tuple[EstablishedEpoch, ...], committed: tuple[FirstCommit, ...]) -> Answer:
        asked = [(reign, each) for reign in established for each in committed if each.epoch < reign.epoch]
        if not asked:
            return TRIVIAL
        for reign, each in asked:
            if each.txn not in reign.initial:
                return Finding(
                    "a leader was established without a transaction that was committed in an earlier epoch",
                    (
                        ("leader", reign.leader),
                        ("epoch", reign.epoch),
                        ("it began with", [format_zxid(txn.zxid) for txn in reign.initial]),
                        ("missing", f"{format_zxid(each.txn.zxid)}, first committed in epoch {each.epoch}"),
                    ),
                )
        return None

    meaning = "a leader begins its epoch with every transaction that is ever committed in an earlier one"
    return Property("LeaderLogCompleteness", _PAST, check, meaning=meaning)


def committed_log_durability(setup: Setup) -> Property:
    """No leader makes a server drop a transaction that was committed in an earlier epoch.

    A leader may truncate its own proposals on a follower and send them again: a follower returns in this way while
    proposals are outstanding. They may be committed in the meantime.
    """

    def check(lost: tuple[tuple[Sid, Txn], ...], committed: tuple[FirstCommit, ...], *truncating: bool) -> Answer:
        if not lost:
            return None if committed and any(truncating) else TRIVIAL
        sid, txn = lost[0]
        values = (("server", sid), ("transaction", format_zxid(txn.zxid)))
        return Finding("a server truncates a transaction that was committed in an earlier epoch", values)

    reads = reads_of(setup, truncates, HistoryPart.LOST, HistoryPart.COMMITTED)
    meaning = "no leader makes a server truncate a transaction that was committed in an earlier epoch"
    return Property("CommittedLogDurability", reads, check, meaning=meaning)


def one_txn_per_zxid(setup: Setup) -> Property:  # noqa: ARG001
    """No two committed transactions, on any server and at any time, have the same zxid."""

    def check(committed: tuple[FirstCommit, ...]) -> Answer:
        if len(committed) < 2:
            return TRIVIAL
        for one, other in combinations(committed, 2):
            if one.txn.zxid == other.txn.zxid:
                return Finding(
                    "two transactions were committed under one zxid",
                    (("zxid", format_zxid(one.txn.zxid)), ("transactions", [one.txn.value, other.txn.value])),
                )
        return None

    meaning = "no two committed transactions have the same zxid"
    return Property("OneTxnPerZxid", (Read(HISTORY, part(HistoryPart.COMMITTED)),), check, meaning=meaning)


def durability(setup: Setup) -> Property:
    """R9: a transaction acknowledged by a majority, or to a client, is on disk within every quorum.

    After any crash, the remaining servers have it if they suffice to continue. Views must be equal.
    """

    def check(committed: tuple[FirstCommit, ...], *disks: DiskContents) -> Answer:
        if not committed:
            return TRIVIAL
        for each in committed:
            without = {sid for sid, disk in zip(setup.sids, disks, strict=True) if each.txn not in disk.txns}
            if any(disk.view.contains_quorum(without) for disk in disks):
                return Finding(
                    "a quorum has not got on disk what was committed",
                    (("transaction", format_zxid(each.txn.zxid)), ("not on the disks of", sorted(without))),
                )
        return None

    meaning = "whatever was committed, or a client was told, is on the disk of a server of every quorum"
    return Property("Durability", reads_of(setup, disk_contents, HistoryPart.COMMITTED), check, meaning=meaning)


def only_voters_ack(setup: Setup) -> Property:
    """R4: no observer and no server outside the leader's view is counted for an epoch or for a proposal."""

    def counted(server: Server) -> frozenset[Sid] | str:
        leader = server.zab
        if not isinstance(leader, Leader):
            return "nothing"
        counted = {*leader.counted, *(sid for each in leader.outstanding for sid in each.acks)}
        return frozenset(counted - server.view.voters) if counted else "nothing"

    def check(*seen: frozenset[Sid] | str) -> Answer:
        if all(each == "nothing" for each in seen):
            return TRIVIAL
        wrong = [(sid, each) for sid, each in zip(setup.sids, seen, strict=True) if each and each != "nothing"]
        values = tuple((f"server.{sid} counts", sorted(each)) for sid, each in wrong)
        return Finding("a leader counts one that is no voter in its view", values) if wrong else None

    reads = tuple(Read(server_name(sid), counted) for sid in setup.sids)
    meaning = "a leader counts the acknowledgements of the voters in its own view, and of nobody else"
    return Property("OnlyVotersAck", reads, check, meaning=meaning)


_PAST = (Read(HISTORY, part(HistoryPart.ESTABLISHED)), Read(HISTORY, part(HistoryPart.COMMITTED)))
