"""Invariants of the delivered transactions: the broadcast properties of Zab, and agreement of replicas.

"Delivered" means committed by a leader that serves, or applied by a learner that serves; "log" means logged or handed
to the disk. Every property returns the clause that decided and its witnesses, and is trivial while no server has
transactions that it concerns.

Sources: Junqueira, Reed, Serafini, "Zab" (DSN 2011), section 2 (Integrity, Total order, Agreement, Local and global
primary order, Primary integrity); the TLA+ specifications of ZooKeeper, for the consistency of logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from typing import Any

from checker.engine import TRIVIAL, Finding, Property
from checker.engine.model import Trivial
from checker.models.ensemble.effects import Misapplied, applied_zxid, up_to
from checker.models.ensemble.history import FirstCommit, HistoryPart, ProposedTxn
from checker.models.ensemble.setup import Setup
from checker.properties.projections import ServerStatus, as_applied, reads_of, server_status
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn, epoch_of, format_zxid

Answer = Finding | Trivial | None
Servers = dict[Sid, ServerStatus]
"""The servers that lead or follow and have reached the phases that `ServerStatus` covers."""


# Properties of one server.


def applied_in_order(setup: Setup) -> Property:
    """Each server applies the transactions of its log once each, in zxid order.

    Source: Zab (DSN 2011), Integrity and Total order; `CommitProcessor` passes requests to `FinalRequestProcessor` in
    the order of their commits, and `DataTree.processTxn` applies one transaction at a time. The other invariants of
    delivery derive the delivered transactions of a server from its log; this one justifies that.
    """

    def has_two(server: Server) -> bool:
        zxid = applied_zxid(server)
        return zxid is not None and len(up_to(tuple(server.durable.txns), zxid)) > 1

    def check(reports: tuple[Misapplied, ...], *has_two: bool) -> Answer:
        for report in reports[:1]:
            return Finding(
                "a server applies other transactions than the next ones of its log, or not in zxid order",
                (
                    (f"server.{report.server} applied", _zxids(report.applied)),
                    ("its log to there", _zxids(report.logged)),
                    ("epoch", report.epoch),
                ),
            )
        return None if any(has_two) else TRIVIAL

    meaning = "each server applies the transactions of its log in zxid order, without a gap"
    return Property("AppliedInOrder", reads_of(setup, has_two, HistoryPart.MISAPPLIED), check, meaning=meaning)


# Delivered prefixes.


def prefix_consistency(setup: Setup) -> Property:
    """Of any two servers, one has delivered a prefix of the transactions that the other has delivered."""

    def check(servers: Servers) -> Answer:
        pairs = _able_to_differ(servers)
        if not pairs:
            return TRIVIAL
        return _first(
            _differ("neither has delivered a prefix of what the other has", servers, a, b)
            for a, b in pairs
            if not _agree(servers[a].delivered, servers[b].delivered)
        )

    meaning = "of any two servers that serve, one has delivered a prefix of what the other has"
    return _of_seen("PrefixConsistency", setup, check, meaning)


def agreement(setup: Setup) -> Property:
    """If one server delivers a and another delivers b, the first delivers b too, or the second delivers a."""

    def check(servers: Servers) -> Answer:
        pairs = _able_to_differ(servers)
        if not pairs:
            return TRIVIAL
        return _first(
            _differ("each has delivered a transaction that the other has not", servers, a, b)
            for a, b in pairs
            if set(servers[a].delivered) - set(servers[b].delivered)
            and set(servers[b].delivered) - set(servers[a].delivered)
        )

    meaning = "if one server delivers a and another b, the first delivers b too or the second a"
    return _of_seen("Agreement", setup, check, meaning)


def total_order(setup: Setup) -> Property:
    """If one server delivers a before b, every server that delivers b delivers a before it."""

    def check(servers: Servers) -> Answer:
        known = [s for s in servers if len(servers[s].delivered) > 1]
        pairs = [(a, b) for a, b in permutations(servers, 2) if a in known and servers[b].delivered]
        if not pairs:
            return TRIVIAL
        for one, other in pairs:
            first, second = servers[one].delivered, servers[other].delivered
            for before, after in combinations(first, 2):
                if after in second and before not in second[: second.index(after)]:
                    clause = "one server delivers a before b, another b without a before it"
                    return _out_of_order(clause, one, other, before, after)
        return None

    meaning = "if one server delivers a before b, whoever delivers b has delivered a before it"
    return _of_seen("TotalOrder", setup, check, meaning)


def global_primary_order(setup: Setup) -> Property:
    """A server delivers transactions of a lower epoch before those of a higher one."""

    def check(servers: Servers) -> Answer:
        long = {s: each for s, each in servers.items() if len({epoch_of(txn.zxid) for txn in each.delivered}) > 1}
        if not long:
            return TRIVIAL
        return _first(
            Finding(
                "a transaction of a higher epoch is delivered before one of a lower",
                ((f"server.{sid} delivers", _zxids(each.delivered)),),
            )
            for sid, each in long.items()
            if any(epoch_of(a.zxid) > epoch_of(b.zxid) for a, b in combinations(each.delivered, 2))
        )

    meaning = "a server delivers what was proposed in a lower epoch before what was proposed in a higher"
    return _of_seen("GlobalPrimaryOrder", setup, check, meaning)


# Leader and follower.


def process_consistency(setup: Setup) -> Property:
    """From its ACK of NEWLEADER until it serves, a follower's log is a prefix of its leader's."""
    return _log_property(
        "ProcessConsistency",
        setup,
        lambda _, follower: not follower.serves,
        "a follower has acknowledged NEWLEADER, and its log is no prefix of its leader's",
        "once a follower has acknowledged NEWLEADER, and until it serves, its log is a prefix of its leader's",
    )


def history_consistency(setup: Setup) -> Property:
    """While both serve, a follower's log is a prefix of its leader's."""
    return _log_property(
        "HistoryConsistency",
        setup,
        lambda leader, follower: follower.serves and leader.serves,
        "a follower serves, and its log is no prefix of its leader's",
        "while leader and follower serve, the follower's log is a prefix of the leader's",
    )


def _log_property(
    name: str, setup: Setup, applies: Callable[[ServerStatus, ServerStatus], bool], clause: str, meaning: str
) -> Property:
    def check(servers: Servers) -> Answer:
        pairs = [(a, b) for a, b in _led(servers) if servers[b].log and applies(servers[a], servers[b])]
        if not pairs:
            return TRIVIAL
        return _first(
            Finding(
                clause,
                (
                    ("epoch", servers[a].epoch),
                    (f"leader server.{a} has logged", _zxids(servers[a].log)),
                    (f"server.{b} has logged", _zxids(servers[b].log)),
                ),
            )
            for a, b in pairs
            if servers[a].log[: len(servers[b].log)] != servers[b].log
        )

    return _of_seen(name, setup, check, meaning)


def commit_consistency(setup: Setup) -> Property:
    """While both serve, a follower has delivered a prefix of the transactions that its leader has delivered."""

    def check(servers: Servers) -> Answer:
        pairs = [(a, b) for a, b in _led(servers) if servers[a].serves and servers[b].delivered]
        if not pairs:
            return TRIVIAL
        return _first(
            _differ("a follower has delivered what is no prefix of what its leader has", servers, a, b)
            for a, b in pairs
            if servers[a].delivered[: len(servers[b].delivered)] != servers[b].delivered
        )

    meaning = "while leader and follower serve, what the follower has delivered is a prefix of what the leader has"
    return _of_seen("CommitConsistency", setup, check, meaning)


def replicas_agree(setup: Setup) -> Property:
    """Two servers that serve under one leader have the same transaction under one zxid (R10, after healing)."""

    def check(servers: Servers) -> Answer:
        serving = [s for s in servers if servers[s].serves]
        pairs = [(a, b) for a, b in combinations(serving, 2) if _of_one_reign(servers[a], servers[b])]
        pairs = [(a, b) for a, b in pairs if _zxids_of(servers[a]) & _zxids_of(servers[b])]
        if not pairs:
            return TRIVIAL
        for one, other in pairs:
            there = {txn.zxid: txn for txn in servers[other].delivered}
            for txn in servers[one].delivered:
                if there.get(txn.zxid, txn) != txn:
                    return Finding(
                        "two servers serve behind one leader, and one zxid is two transactions",
                        (
                            ("leader", servers[one].leader),
                            ("zxid", format_zxid(txn.zxid)),
                            (f"server.{one} has", txn.value),
                            (f"server.{other} has", there[txn.zxid].value),
                        ),
                    )
        return None

    meaning = "servers that serve behind one leader in one epoch have the same transaction under the same zxid"
    return _of_seen("ReplicasAgree", setup, check, meaning)


# Comparison with earlier broadcasts and commits.


def integrity(setup: Setup) -> Property:
    """Every delivered transaction was proposed by a leader, or was on a disk from the beginning."""
    given = {txn for member in setup.members for txn in member.durable.txns}

    def check(_: Any, broadcast: tuple[ProposedTxn, ...], servers: Servers) -> Answer:
        delivered = {txn for each in servers.values() for txn in each.delivered}
        if not delivered:
            return TRIVIAL
        strange = delivered - given - {each.txn for each in broadcast}
        values = tuple(("delivered", f"{format_zxid(txn.zxid)} ({txn.value})") for txn in strange)
        return Finding("a transaction is delivered that no leader proposed", values) if strange else None

    return _of_past("Integrity", setup, check, "whatever a server delivers was proposed by a leader")


def local_primary_order(setup: Setup) -> Property:
    """If a leader proposes a before b, every server that delivers b has delivered a before it."""

    def check(_: Any, broadcast: tuple[ProposedTxn, ...], servers: Servers) -> Answer:
        pairs = [(a.txn, b.txn) for a, b in combinations(broadcast, 2) if (a.epoch, a.leader) == (b.epoch, b.leader)]
        asked = [(a, b, s) for a, b in pairs for s in servers if b in servers[s].delivered]
        if not asked:
            return TRIVIAL
        for before, after, sid in asked:
            delivered = servers[sid].delivered
            if before not in delivered[: delivered.index(after)]:
                return Finding(
                    "a leader proposed a before b, and a server delivers b without a before it",
                    (
                        ("a", format_zxid(before.zxid)),
                        ("b", format_zxid(after.zxid)),
                        (f"server.{sid} delivers", _zxids(delivered)),
                    ),
                )
        return None

    meaning = "if a leader proposes a before b, whoever delivers b has delivered a before it"
    return _of_past("LocalPrimaryOrder", setup, check, meaning)


def primary_integrity(setup: Setup) -> Property:
    """A leader that proposes has delivered every transaction of lower epochs that was ever committed or delivered."""

    def check(committed: tuple[FirstCommit, ...], broadcast: tuple[ProposedTxn, ...], servers: Servers) -> Answer:
        proposing = {(each.epoch, each.leader) for each in broadcast}
        asked = [
            (sid, each.txn)
            for sid, server in servers.items()
            if server.leads and server.serves and (server.epoch, sid) in proposing
            for each in committed
            if epoch_of(each.txn.zxid) < server.epoch
        ]
        if not asked:
            return TRIVIAL
        return _first(
            Finding(
                "a leader proposes, and has not delivered what was delivered in an earlier epoch",
                (("leader", sid), ("epoch", servers[sid].epoch), ("not delivered by it", format_zxid(txn.zxid))),
            )
            for sid, txn in asked
            if txn not in servers[sid].delivered
        )

    meaning = "a leader that proposes has delivered everything of earlier epochs that anybody has delivered"
    return _of_past("PrimaryIntegrity", setup, check, meaning)


def committed_log_monotonicity(setup: Setup) -> Property:
    """The committed log only grows: of this log and the delivered transactions of a server, one is a prefix."""

    def check(committed: tuple[FirstCommit, ...], _: Any, servers: Servers) -> Answer:
        log = tuple(each.txn for each in committed)
        serving = [sid for sid in servers if servers[sid].delivered]
        if len(log) < 2 or not serving:
            return TRIVIAL
        return _first(
            Finding(
                "a server has delivered what does not go on from the committed log",
                (("committed, in this order", _zxids(log)), (f"server.{sid} delivers", _zxids(servers[sid].delivered))),
            )
            for sid in serving
            if not _agree(log, servers[sid].delivered)
        )

    meaning = "the committed log only grows: whatever a server delivers goes on from what was committed before"
    return _of_past("CommittedLogMonotonicity", setup, check, meaning)


# The parts of these properties.


def _of_seen(name: str, setup: Setup, check: Callable[[Servers], Answer], meaning: str) -> Property:
    reads = reads_of(setup, server_status, HistoryPart.MISAPPLIED)
    return Property(name, reads, lambda reports, *views: check(_present(setup, reports, views)), meaning=meaning)


def _of_past(name: str, setup: Setup, check: Callable[[Any, Any, Servers], Answer], meaning: str) -> Property:
    """A property of the committed and proposed transactions so far, and of the delivered ones."""
    reads = reads_of(setup, server_status, HistoryPart.COMMITTED, HistoryPart.BROADCAST, HistoryPart.MISAPPLIED)

    def check_past(
        committed: Any, broadcast: Any, reports: tuple[Misapplied, ...], *views: ServerStatus | str
    ) -> Answer:
        return check(committed, broadcast, _present(setup, reports, views))

    return Property(name, reads, check_past, meaning=meaning)


def _present(setup: Setup, reports: tuple[Misapplied, ...], views: tuple[ServerStatus | str, ...]) -> Servers:
    present = {sid: each for sid, each in zip(setup.sids, views, strict=True) if isinstance(each, ServerStatus)}
    return {sid: as_applied(sid, each, reports) for sid, each in present.items()} if reports else present


def _led(servers: Servers) -> Iterator[tuple[Sid, Sid]]:
    """Each leader with each server that follows it in its epoch."""
    for sid, each in servers.items():
        leader = servers.get(each.leader)
        if not each.leads and leader is not None and leader.leads and leader.epoch == each.epoch:
            yield each.leader, sid


def _able_to_differ(servers: Servers) -> list[tuple[Sid, Sid]]:
    """Each pair of servers with delivered transactions, and with at least two different ones together."""
    pairs = combinations([sid for sid in servers if servers[sid].delivered], 2)
    return [(a, b) for a, b in pairs if len({*servers[a].delivered, *servers[b].delivered}) > 1]


def _zxids_of(each: ServerStatus) -> set[int]:
    return {txn.zxid for txn in each.delivered}


def _of_one_reign(one: ServerStatus, other: ServerStatus) -> bool:
    return (one.leader, one.epoch) == (other.leader, other.epoch)


def _agree(one: tuple[Txn, ...], other: tuple[Txn, ...]) -> bool:
    """Whether one is a prefix of the other."""
    common = min(len(one), len(other))
    return one[:common] == other[:common]


def _first(findings: Iterator[Finding]) -> Finding | None:
    return next(findings, None)


def _differ(clause: str, servers: Servers, one: Sid, other: Sid) -> Finding:
    values = tuple((f"server.{sid} has delivered", _zxids(servers[sid].delivered)) for sid in (one, other))
    return Finding(clause, values)


def _out_of_order(clause: str, one: Sid, other: Sid, before: Txn, after: Txn) -> Finding:
    return Finding(
        clause,
        (("a", format_zxid(before.zxid)), ("b", format_zxid(after.zxid)), ("in order at", one), ("not at", other)),
    )


def _zxids(txns: tuple[Txn, ...]) -> list[str]:
    """Transactions as text: zxid and value."""
    return [f"{format_zxid(txn.zxid)} ({txn.value})" for txn in txns]
