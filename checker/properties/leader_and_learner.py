"""Invariants of a leader and the learners behind it: their logs agree, and their messages arrive in the right state.

A learner is behind a leader if both are present in the same epoch and it follows or observes that leader. "Log" means
logged or handed to the disk.

Four families of messages must not arrive in the state of their receiver. The specification reports such a message where
it is read (`spec.zab.events.Unexpected`), and then continues like a real server. Each family is examined while some
server waits for messages of its kind.

Source: the TLA+ specifications of ZooKeeper: consistency of logs; bad states, acks, proposals, commits.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from checker.engine import TRIVIAL, Finding
from checker.models.ensemble.history import HistoryPart
from checker.models.ensemble.setup import Setup
from checker.properties.delivery_order import differ, first, format_txns
from checker.properties.projections import (
    LogStatus,
    Presence,
    Servers,
    ServerStatus,
    SyncObligation,
    log_status,
    of_present,
    reads_of,
    sync_obligation,
    zab_invariant,
)
from checker.properties.registry import Answer, Condition
from spec.quorum import Sid
from spec.txn import format_zxid
from spec.zab.events import MessageKind, Unexpected


@zab_invariant(
    "ProcessConsistency",
    meaning="From its ACK of NEWLEADER until it serves, a learner's log is a prefix of its leader's log",
    premise="A learner with a log has acknowledged NEWLEADER and has not received UPTODATE",
    source="TLA+ `ProcessConsistency`",
    notes="The published invariant also covers a learner that serves; here HistoryConsistency does.",
)
def _process_consistency(setup: Setup) -> Condition:
    return _log_condition(
        setup,
        lambda _, follower: not follower.serves,
        "a follower has acknowledged NEWLEADER, and its log is no prefix of its leader's",
    )


@zab_invariant(
    "HistoryConsistency",
    meaning="While both serve, a learner's log is a prefix of its leader's log",
    violation="a follower serves with a log that is not its leader's",
    premise="A leader and a learner behind it serve, and the log of the learner is not empty",
    source="TLA+, consistency of histories in BROADCAST",
)
def _history_consistency(setup: Setup) -> Condition:
    return _log_condition(
        setup,
        lambda leader, follower: follower.serves and leader.serves,
        "a follower serves, and its log is no prefix of its leader's",
    )


def _log_condition(setup: Setup, applies: Callable[[LogStatus, LogStatus], bool], clause: str) -> Condition:
    def check(*views: LogStatus | str) -> Answer:
        servers = {sid: view for sid, view in zip(setup.sids, views, strict=True) if isinstance(view, LogStatus)}
        pairs = [(a, b) for a, b in _led(servers) if servers[b].log and applies(servers[a], servers[b])]
        if not pairs:
            return TRIVIAL
        return first(
            Finding(
                clause,
                (
                    ("epoch", servers[a].epoch),
                    (f"leader server.{a} has logged", format_txns(servers[a].log)),
                    (f"server.{b} has logged", format_txns(servers[b].log)),
                ),
            )
            for a, b in pairs
            if servers[a].log[: len(servers[b].log)] != servers[b].log
        )

    return Condition(reads_of(setup, log_status), check)


@zab_invariant(
    "CommitConsistency",
    meaning="While both serve, the delivered transactions of a learner are a prefix of those of its leader",
    premise="A leader and a learner behind it serve, and the learner has delivered something",
    source="TLA+, consistency of commits in BROADCAST",
)
def _commit_consistency(setup: Setup) -> Condition:
    def check(servers: Servers) -> Answer:
        pairs = [(a, b) for a, b in _led(servers) if servers[a].serves and servers[b].delivered]
        if not pairs:
            return TRIVIAL
        return first(
            differ("a follower has delivered what is no prefix of what its leader has", servers, a, b)
            for a, b in pairs
            if servers[a].delivered[: len(servers[b].delivered)] != servers[b].delivered
        )

    return of_present(setup, check)


@zab_invariant(
    "ReplicasAgree",
    meaning="Servers that serve behind one leader have the same transaction under the same zxid",
    violation="all follow one leader in the end, but their data differ",
    premise="Two such servers have delivered a transaction under one zxid",
    requirements=("R10",),
    source="This project: replicas that stay different in one ensemble after healing",
    notes="The leader and its learners in one epoch are compared. HistoryConsistency finds the same error; this "
    "invariant states it in the terms of an operator, with zxid and values.",
)
def _replicas_agree(setup: Setup) -> Condition:
    def check(servers: Servers) -> Answer:
        serving = [s for s in servers if servers[s].serves]
        pairs = [(a, b) for a, b in combinations(serving, 2) if _of_one_epoch(servers[a], servers[b])]
        pairs = [(a, b) for a, b in pairs if _zxids_of(servers[a]) & _zxids_of(servers[b])]
        if not pairs:
            return TRIVIAL
        for one_sid, other_sid in pairs:
            txns = {txn.zxid: txn for txn in servers[other_sid].delivered}
            for txn in servers[one_sid].delivered:
                if txns.get(txn.zxid, txn) != txn:
                    return Finding(
                        "two servers serve behind one leader, and one zxid is two transactions",
                        (
                            ("leader", servers[one_sid].leader),
                            ("zxid", format_zxid(txn.zxid)),
                            (f"server.{one_sid} has", txn.value),
                            (f"server.{other_sid} has", txns[txn.zxid].value),
                        ),
                    )
        return None

    return of_present(setup, check)


def _led(servers: Mapping[Sid, Presence]) -> Iterator[tuple[Sid, Sid]]:
    for sid, server in servers.items():
        leader = servers.get(server.leader)
        if not server.leads and leader is not None and leader.leads and leader.epoch == server.epoch:
            yield server.leader, sid


def _zxids_of(each: ServerStatus) -> set[int]:
    return {txn.zxid for txn in each.delivered}


def _of_one_epoch(one: ServerStatus, other: ServerStatus) -> bool:
    return (one.leader, one.epoch) == (other.leader, other.epoch)


Obligations = dict[Sid, SyncObligation]


@zab_invariant(
    "NoBadState",
    meaning="A packet arrives only in a phase where its receiver expects it",
    premise="Some server leads or follows, from its decision on",
    source="TLA+, bad states",
    notes="It also covers the ACK of UPTODATE: a serving learner whose ACK of UPTODATE the leader has read has "
    "applied the last transaction with which the leader began, or a later one.",
)
def _no_bad_state(setup: Setup) -> Condition:
    return _family(setup, MessageKind.STATE, lambda _: True, also=_served_too_early)


@zab_invariant(
    "NoBadAck",
    meaning="The first ACK of a learner is its ACK of NEWLEADER, and each later ACK belongs to a proposal",
    premise="Some leader has sent a learner everything up to NEWLEADER",
    source="TLA+, bad acks",
    notes="Until a leader serves, the first ACK that it reads from a learner is that of NEWLEADER. An ACK that it "
    "reads while it serves and a proposal is outstanding belongs to UPTODATE, to a committed proposal, or to an "
    "outstanding one.",
)
def _no_bad_ack(setup: Setup) -> Condition:
    return _family(setup, MessageKind.ACK, lambda each: each.awaits_acks)


@zab_invariant(
    "NoBadProposal",
    meaning="Proposals arrive without a gap",
    premise="Some learner has received DIFF, TRUNC or SNAP",
    source="TLA+, bad proposals. `Learner.enforceContinuousProposal`",
    notes="While a learner synchronises, each PROPOSAL after the first has the next zxid or one of a later epoch. "
    "While it serves, each has the next zxid of its epoch or is the first of a later one.",
)
def _no_bad_proposal(setup: Setup) -> Condition:
    return _family(setup, MessageKind.PROPOSAL, lambda each: each.awaits_proposals)


@zab_invariant(
    "NoBadCommit",
    meaning="A COMMIT belongs to the oldest proposal that is not committed",
    premise="Some learner has a proposal that is not committed",
    source="TLA+, bad commits",
    notes="Each COMMIT that a learner reads finds a proposal that is not committed. While the learner serves, and "
    "between TRUNC or SNAP and NEWLEADER, this is the oldest such proposal.",
)
def _no_bad_commit(setup: Setup) -> Condition:
    return _family(setup, MessageKind.COMMIT, lambda each: each.awaits_commits)


def _family(
    setup: Setup,
    family: MessageKind,
    awaits: Callable[[SyncObligation], bool],
    also: Callable[[Obligations], Finding | None] = lambda _: None,
) -> Condition:
    def check(unexpected: tuple[Unexpected, ...], *views: SyncObligation | str) -> Answer:
        report = next((fact for fact in unexpected if fact.family is family), None)
        if report is not None:
            values = (("server", report.server), ("message", report.what))
            return Finding(f"an unexpected {family.value} message arrived", values)
        duties = {sid: view for sid, view in zip(setup.sids, views, strict=True) if isinstance(view, SyncObligation)}
        if not any(awaits(duty) for duty in duties.values()):
            return TRIVIAL
        return also(duties)

    return Condition(reads_of(setup, sync_obligation, HistoryPart.UNEXPECTED), check)


def _served_too_early(duties: Obligations) -> Finding | None:
    """A leader has read an ACK of UPTODATE from a follower that has not applied the leader's initial transactions."""
    for sid, leader in duties.items():
        for learner in leader.served:
            duty = duties.get(learner)
            behind = duty is not None and (duty.leader, duty.epoch) == (sid, leader.epoch) and duty.applied is not None
            if duty is not None and behind and (duty.applied or 0) < leader.initial:
                return Finding(
                    "a leader has read an ACK of UPTODATE from a server that has not applied what came before",
                    (
                        ("leader", sid),
                        ("server", learner),
                        ("applied up to", format_zxid(duty.applied or 0)),
                        ("the leader began with", format_zxid(leader.initial)),
                    ),
                )
    return None
