"""Invariants of the order in which servers deliver transactions: the broadcast properties of Zab.

"Delivered" means committed by a leader that serves, or applied by a learner that serves. Every property returns the
clause that decided and its witnesses, and is trivial while no server has transactions that it concerns.

Source: Junqueira, Reed, Serafini, "Zab" (DSN 2011), section 2 (Integrity, Total order, Agreement, Local and global
primary order, Primary integrity).
"""

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise, permutations
from typing import Any

from checker.engine import TRIVIAL, Finding
from checker.models.ensemble.effects import NO_EPOCH, Misapplied, applied_zxid, up_to
from checker.models.ensemble.history import FirstCommit, HistoryPart, ProposedTxn
from checker.models.ensemble.setup import Setup
from checker.properties.projections import (
    Servers,
    ServerStatus,
    of_present,
    present_servers,
    reads_of,
    server_status,
    zab_invariant,
)
from checker.properties.registry import Answer, Condition
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn, epoch_of, format_zxid


@zab_invariant(
    "AppliedInOrder",
    meaning="A server applies exactly the next transactions of its log, in ascending order of their zxids",
    premise="Some server that serves has applied two or more transactions that are on its disk",
    source="Paper, Integrity and Total order. ZooKeeper `CommitProcessor`, `FinalRequestProcessor.processRequest`, "
    "`DataTree.processTxn`",
    notes="Every step is compared where a server reports transactions as applied, begins to serve, or names a "
    "later zxid as applied. The other invariants of delivery derive the delivered transactions from the log; this "
    "invariant justifies that.",
)
def _applied_in_order(setup: Setup) -> Condition:
    def has_two(server: Server) -> bool:
        zxid = applied_zxid(server)
        return zxid is not None and len(up_to(tuple(server.durable.txns), zxid)) > 1

    def check(reports: tuple[Misapplied, ...], *has_two: bool) -> Answer:
        for report in reports[:1]:
            return Finding(
                "a server applies other transactions than the next ones of its log, or not in zxid order",
                (
                    (f"server.{report.server} applied", format_txns(report.applied)),
                    ("its log to there", format_txns(report.logged)),
                    ("epoch", report.epoch),
                ),
            )
        return None if any(has_two) else TRIVIAL

    return Condition(reads_of(setup, has_two, HistoryPart.MISAPPLIED), check)


@zab_invariant(
    "PrefixConsistency",
    meaning="Of the transactions that any two servers have delivered, one sequence is a prefix of the other",
    violation="two servers have delivered different writes",
    premise="Two servers have each delivered something, and together at least two transactions",
    source="TLA+ `PrefixConsistency`",
)
def _prefix_consistency(setup: Setup) -> Condition:
    def check(servers: Servers) -> Answer:
        pairs = _able_to_differ(servers)
        if not pairs:
            return TRIVIAL
        return first(
            differ("neither has delivered a prefix of what the other has", servers, a, b)
            for a, b in pairs
            if not _is_prefix(servers[a].delivered, servers[b].delivered)
        )

    return of_present(setup, check)


@zab_invariant(
    "Integrity",
    meaning="Every delivered transaction was proposed by a leader, or was on a disk in the first state",
    premise="Some server has delivered something",
    source="Paper, Integrity. TLA+ `Integrity`",
)
def _integrity(setup: Setup) -> Condition:
    initial = {txn for member in setup.members for txn in member.durable.txns}

    def check(_: Any, broadcast: tuple[ProposedTxn, ...], servers: Servers) -> Answer:
        delivered = {txn for server in servers.values() for txn in server.delivered}
        if not delivered:
            return TRIVIAL
        strange = delivered - initial - {proposal.txn for proposal in broadcast}
        values = tuple(("delivered", f"{format_zxid(txn.zxid)} ({txn.value})") for txn in strange)
        return Finding("a transaction is delivered that no leader proposed", values) if strange else None

    return _of_past(setup, check)


@zab_invariant(
    "Agreement",
    meaning="If one server delivers A and another B, the first delivers B or the second A",
    premise="Two servers have each delivered something, and together at least two transactions",
    source="Paper, Agreement. TLA+ `Agreement`",
)
def _agreement(setup: Setup) -> Condition:
    def check(servers: Servers) -> Answer:
        pairs = _able_to_differ(servers)
        if not pairs:
            return TRIVIAL
        return first(
            differ("each has delivered a transaction that the other has not", servers, a, b)
            for a, b in pairs
            if set(servers[a].delivered) - set(servers[b].delivered)
            and set(servers[b].delivered) - set(servers[a].delivered)
        )

    return of_present(setup, check)


@zab_invariant(
    "TotalOrder",
    meaning="If one server delivers A before B, every server that delivers B has delivered A before it",
    premise="Some server has delivered at least two transactions, and another at least one",
    source="Paper, Total order. TLA+ `TotalOrder`",
    notes="One of the published forms demands that the other server has delivered two transactions, so that a "
    "server with *b* alone escapes. Here one transaction is enough.",
)
def _total_order(setup: Setup) -> Condition:
    def check(servers: Servers) -> Answer:
        present = [s for s in servers if len(servers[s].delivered) > 1]
        pairs = [(a, b) for a, b in permutations(servers, 2) if a in present and servers[b].delivered]
        if not pairs:
            return TRIVIAL
        for one_sid, other_sid in pairs:
            first, second = servers[one_sid].delivered, servers[other_sid].delivered
            if _is_prefix(first, second) and len(set(first)) == len(first):
                continue  # in the same order, as nearly always
            for before, after in combinations(first, 2):
                if after in second and before not in second[: second.index(after)]:
                    clause = "one server delivers a before b, another b without a before it"
                    return _out_of_order(clause, one_sid, other_sid, before, after)
        return None

    return of_present(setup, check)


@zab_invariant(
    "LocalPrimaryOrder",
    meaning="If a leader proposes A before B, every server that delivers B has delivered A before it",
    premise="Some server has delivered a transaction that is not the first one that its leader proposed",
    source="Paper, Local primary order. TLA+ `LocalPrimaryOrder`",
    notes='All proposals of one leader in one epoch count; "before" is the order of their zxids, and each is compared '
    "with the next one, from which the others follow. "
    "The published invariant states that such a pair *exists*, and lets both be equal, so it holds trivially. What a "
    "standalone server proposes is left out: after a crash it uses the zxid of an unwritten transaction again.",
)
def _local_primary_order(setup: Setup) -> Condition:
    def check(_: Any, broadcast: tuple[ProposedTxn, ...], servers: Servers) -> Answer:
        reigns: dict[tuple[int, Sid], list[Txn]] = {}
        for proposal in broadcast:
            if proposal.epoch != NO_EPOCH:
                reigns.setdefault((proposal.epoch, proposal.leader), []).append(proposal.txn)
        concerned = False
        for sid, server in servers.items():
            places = {txn: place for place, txn in enumerate(dict.fromkeys(server.delivered))}
            for proposed in reigns.values():
                for before, after in pairwise(proposed):
                    place = places.get(after)
                    if place is None:
                        continue
                    concerned = True
                    if places.get(before, len(places)) > place:
                        return Finding(
                            "a leader proposed a before b, and a server delivers b without a before it",
                            (
                                ("a", format_zxid(before.zxid)),
                                ("b", format_zxid(after.zxid)),
                                (f"server.{sid} delivers", format_txns(server.delivered)),
                            ),
                        )
        return None if concerned else TRIVIAL

    return _of_past(setup, check)


@zab_invariant(
    "GlobalPrimaryOrder",
    meaning="A server delivers transactions of a lower epoch before those of a higher epoch",
    premise="Some server has delivered transactions of two epochs",
    source="Paper, Global primary order. TLA+ `GlobalPrimaryOrder`",
    notes="The epoch is that of the zxid.",
)
def _global_primary_order(setup: Setup) -> Condition:
    layout = setup.layout

    def check(servers: Servers) -> Answer:
        long = {
            s: server
            for s, server in servers.items()
            if len({epoch_of(txn.zxid, layout) for txn in server.delivered}) > 1
        }
        if not long:
            return TRIVIAL
        return first(
            Finding(
                "a transaction of a higher epoch is delivered before one of a lower",
                ((f"server.{sid} delivers", format_txns(txns.delivered)),),
            )
            for sid, txns in long.items()
            if any(epoch_of(a.zxid, layout) > epoch_of(b.zxid, layout) for a, b in pairwise(txns.delivered))
        )

    return of_present(setup, check)


@zab_invariant(
    "PrimaryIntegrity",
    meaning="A leader that proposes has delivered every committed transaction of an earlier epoch",
    premise="A leader serves and has proposed something, and a transaction of an earlier epoch is committed",
    source="Paper, Primary integrity. TLA+ `PrimaryIntegrity`",
    notes="The paper demands the delivery before the proposal. Here every state after the proposal is examined; a "
    "leader delivers its initial transactions before it can propose.",
)
def _primary_integrity(setup: Setup) -> Condition:
    layout = setup.layout

    def check(committed: tuple[FirstCommit, ...], broadcast: tuple[ProposedTxn, ...], servers: Servers) -> Answer:
        proposing = {(entry.epoch, entry.leader) for entry in broadcast}
        cases = [
            (sid, entry.txn)
            for sid, server in servers.items()
            if server.leads and server.serves and (server.epoch, sid) in proposing
            for entry in committed
            if epoch_of(entry.txn.zxid, layout) < server.epoch
        ]
        if not cases:
            return TRIVIAL
        return first(
            Finding(
                "a leader proposes, and has not delivered what was delivered in an earlier epoch",
                (("leader", sid), ("epoch", servers[sid].epoch), ("not delivered by it", format_zxid(txn.zxid))),
            )
            for sid, txn in cases
            if txn not in servers[sid].delivered
        )

    return _of_past(setup, check)


@zab_invariant(
    "CommittedLogMonotonicity",
    meaning="The delivered transactions of a server and the committed log agree: one is a prefix of the other",
    premise="At least two transactions are committed, and some server has delivered one",
    source="TLA+: the committed log only grows",
    notes="The committed log has the transactions in the order of their first commits.",
)
def _committed_log_monotonicity(setup: Setup) -> Condition:
    def check(committed: tuple[FirstCommit, ...], _: Any, servers: Servers) -> Answer:
        log = tuple(commit.txn for commit in committed)
        serving = [sid for sid in servers if servers[sid].delivered]
        if len(log) < 2 or not serving:
            return TRIVIAL
        return first(
            Finding(
                "a server has delivered what does not go on from the committed log",
                (
                    ("committed, in this order", format_txns(log)),
                    (f"server.{sid} delivers", format_txns(servers[sid].delivered)),
                ),
            )
            for sid in serving
            if not _is_prefix(log, servers[sid].delivered)
        )

    return _of_past(setup, check)


# The parts of these properties.


def _of_past(setup: Setup, check: Callable[[Any, Any, Servers], Answer]) -> Condition:
    reads = reads_of(setup, server_status, HistoryPart.COMMITTED, HistoryPart.BROADCAST, HistoryPart.MISAPPLIED)

    def check_past(
        committed: Any, broadcast: Any, reports: tuple[Misapplied, ...], *views: ServerStatus | str
    ) -> Answer:
        return check(committed, broadcast, present_servers(setup, reports, views))

    return Condition(reads, check_past)


def _able_to_differ(servers: Servers) -> list[tuple[Sid, Sid]]:
    """Each pair of servers with delivered transactions, and with at least two different ones together."""
    pairs = combinations([sid for sid in servers if servers[sid].delivered], 2)
    return [(a, b) for a, b in pairs if len({*servers[a].delivered, *servers[b].delivered}) > 1]


def _is_prefix(one: tuple[Txn, ...], other: tuple[Txn, ...]) -> bool:
    common = min(len(one), len(other))
    return one[:common] == other[:common]


def first(findings: Iterator[Finding]) -> Finding | None:
    """The first finding, if there is one."""
    return next(findings, None)


def differ(clause: str, servers: Servers, one: Sid, other: Sid) -> Finding:
    """A finding with the transactions that two servers have delivered."""
    values = tuple((f"server.{sid} has delivered", format_txns(servers[sid].delivered)) for sid in (one, other))
    return Finding(clause, values)


def _out_of_order(clause: str, one: Sid, other: Sid, before: Txn, after: Txn) -> Finding:
    return Finding(
        clause,
        (("a", format_zxid(before.zxid)), ("b", format_zxid(after.zxid)), ("in order at", one), ("not at", other)),
    )


def format_txns(txns: tuple[Txn, ...]) -> list[str]:
    """Transactions as text: zxid and value."""
    return [f"{format_zxid(txn.zxid)} ({txn.value})" for txn in txns]
