"""Invariants of leaders and commits: one leader for each epoch, and no committed transaction is ever lost.

Sources: "Zab" (DSN 2011), section 4 (claims on established leaders); the TLA+ specifications of ZooKeeper (Leadership,
leader log completeness, no loss of a committed log); requirements R4, R9, R11.
"""

from itertools import combinations
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Read
from checker.models.ensemble.history import EstablishedEpoch, FirstCommit, HistoryPart, part
from checker.models.ensemble.setup import HISTORY, Setup, server_name
from checker.properties.projections import (
    AWAY,
    ENSEMBLE_PROPERTIES,
    ZAB,
    ZAB_EQUAL_QUORUMS,
    ZAB_STANDALONE,
    DiskContents,
    disk_contents,
    reads_of,
    truncates,
    zab_invariant,
)
from checker.properties.registry import Answer, Condition
from spec.quorum import Sid, View
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab.state import Leader

_PAST = (Read(HISTORY, part(HistoryPart.ESTABLISHED)), Read(HISTORY, part(HistoryPart.COMMITTED)))


@zab_invariant(
    "Leadership",
    meaning="In each epoch at most one server is ever established, and at most once",
    violation="two leaders are established in one epoch, each by a quorum of its own file",
    premise="Leaders have been established at least twice, in any epochs",
    requirements=("R11",),
    source="Paper, on established leaders. TLA+ `Leadership1`, `Leadership2`",
    notes="A quorum of ACKEPOCH is complete at most once for every epoch. The property compares *established* leaders "
    "of one epoch at any two moments of the run (`Leadership2`). Two servers that are LEADING in one round of the "
    "election, or at one moment, do not violate it: this happens in correct ZooKeeper when finalizeWait ends early.",
)
def _leadership(_: Setup) -> Condition:
    def check(established: tuple[EstablishedEpoch, ...], _: Any) -> Answer:
        if len(established) < 2:
            return TRIVIAL
        twice = [(a, b) for a, b in combinations(established, 2) if a.epoch == b.epoch]
        if not twice:
            return None
        first, second = twice[0]
        values = (("epoch", first.epoch), ("leaders", [first.leader, second.leader]))
        same = first.leader == second.leader
        clause = "one leader establishes one epoch twice" if same else "two leaders of one epoch are established"
        return Finding(clause, values)

    return Condition(_PAST, check)


def _of_earlier_epochs(
    established: tuple[EstablishedEpoch, ...], commits: tuple[FirstCommit, ...]
) -> list[tuple[EstablishedEpoch, FirstCommit]]:
    """Each established epoch with each commit of an earlier one, which its leader must have."""
    return [(reign, commit) for reign in established for commit in commits if commit.epoch < reign.epoch]


@zab_invariant(
    "LeaderLogCompleteness",
    meaning="A leader begins its epoch with every transaction that is ever committed in an earlier epoch",
    violation="a write that was committed is lost",
    premise="A leader was established in an epoch above the epoch of some first commit",
    requirements=("R9", "R11"),
    source="Paper, on established leaders. TLA+ `LeaderLogCompleteness`",
    notes="The commit may be before or after the establishment: an old leader that commits late must find its "
    "transaction in the log with which the new leader began. The published invariant compares the leader that the "
    "election oracle names with the transactions that are committed at that moment.",
)
def _leader_log_completeness(_: Setup) -> Condition:
    def check(established: tuple[EstablishedEpoch, ...], committed: tuple[FirstCommit, ...]) -> Answer:
        cases = _of_earlier_epochs(established, committed)
        for reign, commit in cases:
            if commit.txn not in reign.initial:
                return Finding(
                    "a leader was established without a transaction that was committed in an earlier epoch",
                    (
                        ("leader", reign.leader),
                        ("epoch", reign.epoch),
                        ("it began with", [format_zxid(txn.zxid) for txn in reign.initial]),
                        ("missing", f"{format_zxid(commit.txn.zxid)}, first committed in epoch {commit.epoch}"),
                    ),
                )
        return None if cases else TRIVIAL

    return Condition(_PAST, check)


@ENSEMBLE_PROPERTIES.declare(
    "AcknowledgedLogCompleteness",
    Kind.ALWAYS,
    meaning="A leader begins its epoch with every transaction for which an earlier leader has counted a quorum",
    violation="an acknowledged write is lost",
    premise="A leader was established in an epoch above that of a transaction with a quorum of acknowledgements",
    requirements=("R9",),
    source="This project: the writes whose clients have an answer. `Leader.tryToCommit`, `FinalRequestProcessor`",
    notes="LeaderLogCompleteness also covers what one server has applied without a quorum, as some defects let it: a "
    "client may have read it, and no client has an answer for it. This property covers answers alone.",
    needs=ZAB,
)
def _acknowledged_log_completeness(_: Setup) -> Condition:
    def check(established: tuple[EstablishedEpoch, ...], counted: tuple[FirstCommit, ...]) -> Answer:
        cases = _of_earlier_epochs(established, counted)
        for reign, commit in cases:
            if commit.txn not in reign.initial:
                values = (("leader", reign.leader), ("epoch", reign.epoch), ("missing", format_zxid(commit.txn.zxid)))
                return Finding("a leader was established without a transaction that a quorum acknowledged", values)
        return None if cases else TRIVIAL

    return Condition((Read(HISTORY, part(HistoryPart.ESTABLISHED)), Read(HISTORY, part(HistoryPart.COUNTED))), check)


@zab_invariant(
    "StandaloneLogCompleteness",
    meaning="A server that starts standalone has every transaction that was committed before",
    violation="a write that was committed is lost: a server starts standalone without it",
    premise="A server runs standalone, and a transaction is committed",
    requirements=("R9",),
    source="This project: the counterpart of LeaderLogCompleteness, since a standalone server leads no epoch. "
    "`ZooKeeperServer.loadData`",
    notes="It has the transactions on its own disk, and asks no other server. So it must have them all before the "
    "others stop.",
    default=ZAB_STANDALONE,
)
def _standalone_log_completeness(setup: Setup) -> Condition:
    def check(
        begun_without: tuple[tuple[Sid, Txn], ...], committed: tuple[FirstCommit, ...], *standalone: bool
    ) -> Answer:
        if not begun_without:
            return None if committed and any(standalone) else TRIVIAL
        sid, txn = begun_without[0]
        values = (("server", sid), ("missing", format_zxid(txn.zxid)))
        return Finding("a server starts standalone without a transaction that was committed", values)

    def runs_standalone(server: Server) -> bool:
        return server.runs_standalone

    return Condition(reads_of(setup, runs_standalone, HistoryPart.BEGUN_WITHOUT, HistoryPart.COMMITTED), check)


@zab_invariant(
    "CommittedLogDurability",
    meaning="No leader makes a server drop a transaction that was committed in an earlier epoch",
    violation="a write that was committed is truncated",
    premise="A transaction is committed, and a server synchronises by TRUNC, or by a SNAP without a transaction that "
    "is on its disk; or a server has lost a transaction before",
    requirements=("R9",),
    source="TLA+ `CommittedLogDurability`",
    notes="A server drops a transaction from its disk by TRUNC, or by a SNAP that does not contain it. Only drops by "
    "the leader of a *later* epoch count; the published invariant counts every truncation. A leader may truncate its "
    "own outstanding proposals on a follower and send them again. A follower returns in this way while proposals are "
    "outstanding, and these may be committed in the meantime. Durability and LeaderLogCompleteness find the harm that "
    "this can do.",
)
def _committed_log_durability(setup: Setup) -> Condition:
    def check(lost: tuple[tuple[Sid, Txn], ...], committed: tuple[FirstCommit, ...], *truncating: bool) -> Answer:
        if not lost:
            return None if committed and any(truncating) else TRIVIAL
        sid, txn = lost[0]
        values = (("server", sid), ("transaction", format_zxid(txn.zxid)))
        return Finding("a server truncates a transaction that was committed in an earlier epoch", values)

    reads = reads_of(setup, truncates, HistoryPart.LOST, HistoryPart.COMMITTED)
    return Condition(reads, check)


@zab_invariant(
    "Durability",
    meaning="Every quorum of every view contains a server with each committed transaction on its disk",
    premise="Some transaction is committed",
    requirements=("R9",),
    source="This project: an acknowledged transaction survives the loss of any minority",
    notes="It is stronger than the published invariants. It reads disks, not logs, in every state, and does not wait "
    "until a server without the transaction leads. It therefore fails earlier than LeaderLogCompleteness for the same "
    "defect. It is meant for equal views.",
    default=ZAB_EQUAL_QUORUMS,
)
def _durability(setup: Setup) -> Condition:
    def check(committed: tuple[FirstCommit, ...], *disks: DiskContents) -> Answer:
        if not committed:
            return TRIVIAL
        views = {disk.view for disk in disks}
        for commit in committed:
            without = {sid for sid, disk in zip(setup.sids, disks, strict=True) if commit.txn not in disk.txns}
            if any(view.contains_quorum(without) for view in views):
                return Finding(
                    "a quorum has not got on disk what was committed",
                    (("transaction", format_zxid(commit.txn.zxid)), ("not on the disks of", sorted(without))),
                )
        return None

    return Condition(reads_of(setup, disk_contents, HistoryPart.COMMITTED), check)


@ENSEMBLE_PROPERTIES.declare(
    "InitialHistoryDurability",
    Kind.ALWAYS,
    meaning="A voter that has entered an epoch has on disk every transaction with which the leader of the epoch began",
    premise="A voter has entered an epoch, and its leader began with a transaction",
    requirements=("R9",),
    source="Paper, on the initial history of an epoch. `Learner.syncWithLeader`, which writes currentEpoch last",
    notes="A server has entered an epoch if its files currentEpoch and acceptedEpoch both name it. Servers that are "
    "down count, because an election compares currentEpoch before zxids: such a server must not win with a log that "
    "misses the history of its epoch. A server that has accepted a later epoch may truncate, so it does not count, and "
    "an observer logs after UPTODATE.",
    needs=ZAB,
    in_journals=True,
)
def _initial_history_durability(setup: Setup) -> Condition:
    def entered(server: Server) -> tuple[int, tuple[Txn, ...]] | str:
        durable = server.durable
        if durable.accepted_epoch != durable.current_epoch or not server.view.is_voter(server.sid):
            return AWAY
        return durable.current_epoch, tuple(durable.txns)

    def check(established: tuple[EstablishedEpoch, ...], *disks: tuple[int, tuple[Txn, ...]] | str) -> Answer:
        voters = [(sid, *disk) for sid, disk in zip(setup.sids, disks, strict=True) if not isinstance(disk, str)]
        cases = [(old, *voter) for old in established if old.initial for voter in voters if voter[1] == old.epoch]
        for old, sid, epoch, txns in cases:
            missing = [format_zxid(txn.zxid) for txn in old.initial if txn not in txns]
            if missing:
                values = (("server", sid), ("epoch", epoch), ("leader", old.leader), ("missing", missing))
                return Finding("a server has entered an epoch, and its disk lacks part of the initial history", values)
        return None if cases else TRIVIAL

    return Condition(reads_of(setup, entered, HistoryPart.ESTABLISHED), check)


@zab_invariant(
    "OneTxnPerZxid",
    meaning="No two committed transactions have the same zxid",
    violation="both leaders commit, and one zxid is two different writes",
    premise="At least two transactions are committed",
    requirements=("R10",),
    source="This project: on the real system, one zxid named two transactions",
    notes="Commits on all servers and at all times are compared.",
)
def _one_txn_per_zxid(_: Setup) -> Condition:
    def check(committed: tuple[FirstCommit, ...]) -> Answer:
        if len(committed) < 2:
            return TRIVIAL
        for first, second in combinations(committed, 2):
            if first.txn.zxid == second.txn.zxid:
                return Finding(
                    "two transactions were committed under one zxid",
                    (("zxid", format_zxid(first.txn.zxid)), ("transactions", [first.txn.value, second.txn.value])),
                )
        return None

    return Condition((Read(HISTORY, part(HistoryPart.COMMITTED)),), check)


@zab_invariant(
    "OnlyVotersAck",
    meaning="A leader counts only acknowledgements of voters in its view",
    premise="Some leader has counted an acknowledgement",
    requirements=("R4",),
    source="This project. `Leader.isParticipant`, `SyncedLearnerTracker`",
    notes="Acknowledgements of the epoch, of NEWLEADER and of outstanding proposals are examined. During a "
    "reconfiguration the voters of both views count.",
)
def _only_voters_ack(setup: Setup) -> Condition:
    def counted(server: Server) -> frozenset[Sid] | str:
        leader = server.zab
        if not isinstance(leader, Leader):
            return "nothing"
        counted = {*leader.counted, *(sid for proposal in leader.outstanding for sid in proposal.acks)}
        voters = server.view.voters.union(*(view.voters for view in views_that_count(server, leader)))
        return frozenset(counted - voters) if counted else "nothing"

    def views_that_count(server: Server, leader: Leader) -> tuple[View, ...]:
        """The views that its proposals need, and a view that it has seen last."""
        return (*server.peer.views, *(view for proposal in leader.outstanding for view in proposal.views))

    def check(*seen: frozenset[Sid] | str) -> Answer:
        if all(acks == "nothing" for acks in seen):
            return TRIVIAL
        wrong = [(sid, acks) for sid, acks in zip(setup.sids, seen, strict=True) if acks and acks != "nothing"]
        values = tuple((f"server.{sid} counts", sorted(acks)) for sid, acks in wrong)
        return Finding("a leader counts one that is no voter in its view", values) if wrong else None

    reads = tuple(Read(server_name(sid), counted) for sid in setup.sids)
    return Condition(reads, check)
