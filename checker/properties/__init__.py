"""The registry of all properties of ensembles: the constructor, the meaning and the parameter of each, by name.

A scenario, or the command line, names a property and may give it a parameter (`Leads: 3`). Rules of this registry: an
unknown name raises `UnknownPropertyError` with the nearest one, a wrong parameter raises `ParameterError`; the caller
adds the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from checker.engine import Kind, Property
from checker.models.ensemble.setup import Grain, Setup
from checker.properties import delivery_order, effects, election, leadership, liveness, messages, role_patterns
from checker.properties.lookup import UnknownPropertyError
from checker.properties.patterns import (
    ParameterError,
    buckets_of,
    check_parameter,
    format_pattern,
    pattern_of,
    server_of,
)

__all__ = [
    "DEFAULTS",
    "PROPERTIES",
    "Entry",
    "ParameterError",
    "UnknownPropertyError",
    "build",
    "defaults",
    "entry",
    "names",
]


@dataclass(frozen=True)
class Entry:
    """A property that can be named; `parameter` describes its parameter, and is empty for a property without one.

    `needs_zab`: it applies only to servers that lead and follow.
    """

    name: str
    kind: Kind
    meaning: str
    build: Callable[[Setup, Any], Property]
    parameter: str = ""
    needs_zab: bool = False


def _plain(name: str, kind: Kind, meaning: str, make: Callable[[Setup], Property]) -> Entry:
    return Entry(name, kind, meaning, lambda setup, _: make(setup))


def _of_server(name: str, kind: Kind, meaning: str, make: Callable[[Setup, int], Property]) -> Entry:
    return Entry(name, kind, meaning, lambda s, value: make(s, server_of(s, value)), "the id of a server")


def _of_pattern(name: str, kind: Kind, meaning: str, make: Callable[..., Property]) -> Entry:
    def build_it(setup: Setup, value: Any) -> Property:
        return make(pattern_of(setup, value), format_pattern(value))

    return Entry(name, kind, meaning, build_it, "servers, and how each stands: {1: LEADING, 2: FOLLOWING 1}")


def _buckets(setup: Setup, value: Any) -> Property:
    name, table = buckets_of(setup, value)
    shown = name or format_pattern({sid: bucket.state.name for sid, bucket in table.items()})
    return election.buckets(f"Buckets({shown})", table)


_ALL = (
    _plain(
        "OneLeader",
        Kind.ALWAYS,
        "no two servers each lead with a quorum of their own view behind them",
        election.one_leader,
    ),
    _plain(
        "OnlyVotersCounted",
        Kind.ALWAYS,
        "a server counts votes of the voters in its own view, and of nobody else",
        election.only_voters_counted,
    ),
    _plain(
        "LeaderIsAVoter",
        Kind.ALWAYS,
        "a server follows voters of its own view only, and leads only if it is one",
        election.leader_is_a_voter,
    ),
    _plain(
        "OneVotePerSender",
        Kind.ALWAYS,
        "a receive bucket holds one vote of each sender",
        role_patterns.one_vote_per_sender,
    ),
    _of_server("NeverLeads", Kind.ALWAYS, "a server never leads with a quorum behind it", election.never_leads),
    _of_pattern("NeverStands", Kind.ALWAYS, "at no moment do servers stand so", role_patterns.never_stands),
    _plain("Elected", Kind.SOMETIMES, "a server leads with a quorum of its view within reach", election.elected),
    _plain(
        "AllSettled",
        Kind.SOMETIMES,
        "every server runs and follows, observes or is an established leader",
        election.all_settled,
    ),
    _of_server("Leads", Kind.SOMETIMES, "a server leads with a quorum of its view behind it", election.leads),
    _of_pattern("Stands", Kind.SOMETIMES, "at one moment servers stand so", role_patterns.stands),
    Entry(
        "Buckets",
        Kind.SOMETIMES,
        "at one moment servers have exactly these receive buckets",
        _buckets,
        "servers with their state and votes: {1: {state: LOOKING, votes: {1: 1, 3: [8, 3]}}}",
    ),
    _plain(
        "Serves",
        Kind.FINAL,
        "where nothing more can happen within the bounds, a server leads with a quorum of its view within reach",
        role_patterns.serves,
    ),
    _plain(
        "ServesNoMore",
        Kind.FINAL,
        "where nothing more can happen within the bounds, no server leads with a quorum of its view within reach",
        role_patterns.serves_no_more,
    ),
    _plain(
        "Settles",
        Kind.RECOVERABLE,
        "from every state some run comes to one in which all that run within reach of a leader are with it",
        liveness.settles,
    ),
    _plain(
        "Elects",
        Kind.EVENTUALLY,
        "a quorum that runs and stays within reach of itself comes to an established leader, on every fair run",
        liveness.elects,
    ),
)
_ZAB = tuple(
    Entry(name, Kind.ALWAYS, meaning, lambda setup, _, make=make: make(setup), needs_zab=True)  # type: ignore[misc]
    for name, meaning, make in (
        ("Leadership", "at most one leader of each epoch is ever established", leadership.leadership),
        (
            "LeaderLogCompleteness",
            "a leader begins with every transaction that is ever committed in an earlier epoch",
            leadership.leader_log_completeness,
        ),
        (
            "CommittedLogDurability",
            "no server truncates a transaction that was committed in an earlier epoch",
            leadership.committed_log_durability,
        ),
        ("Durability", "whatever was committed is on the disk of a server of every quorum", leadership.durability),
        ("OneTxnPerZxid", "no two committed transactions have the same zxid", leadership.one_txn_per_zxid),
        ("OnlyVotersAck", "a leader counts voters of its own view, and nobody else", leadership.only_voters_ack),
        (
            "AppliedInOrder",
            "each server applies the transactions of its log in zxid order, without a gap",
            delivery_order.applied_in_order,
        ),
        (
            "PrefixConsistency",
            "of two servers one has delivered a prefix of what the other has",
            delivery_order.prefix_consistency,
        ),
        ("Integrity", "whatever a server delivers was proposed by a leader", delivery_order.integrity),
        ("Agreement", "of two servers one has delivered all that the other has", delivery_order.agreement),
        ("TotalOrder", "servers deliver transactions in the same order", delivery_order.total_order),
        ("LocalPrimaryOrder", "what one leader proposes is delivered in its order", delivery_order.local_primary_order),
        ("GlobalPrimaryOrder", "what lower epochs proposed is delivered first", delivery_order.global_primary_order),
        (
            "PrimaryIntegrity",
            "a leader that proposes has delivered whatever was delivered of earlier epochs",
            delivery_order.primary_integrity,
        ),
        (
            "CommittedLogMonotonicity",
            "whatever a server delivers goes on from what was committed before",
            delivery_order.committed_log_monotonicity,
        ),
        (
            "ProcessConsistency",
            "after NEWLEADER, until it serves, a follower's log is a prefix of its leader's",
            delivery_order.process_consistency,
        ),
        (
            "HistoryConsistency",
            "while both serve, a follower's log is a prefix of its leader's",
            delivery_order.history_consistency,
        ),
        (
            "CommitConsistency",
            "while both serve, a follower has delivered a prefix of what its leader has",
            delivery_order.commit_consistency,
        ),
        ("ReplicasAgree", "behind one leader one zxid is one transaction", delivery_order.replicas_agree),
        ("NoBadState", "packets arrive in the phase they are meant for", messages.no_bad_state),
        ("NoBadAck", "the first ACK is that of NEWLEADER, later ones are of proposals", messages.no_bad_ack),
        ("NoBadProposal", "proposals arrive without a gap", messages.no_bad_proposal),
        ("NoBadCommit", "a COMMIT is of the oldest proposal not yet committed", messages.no_bad_commit),
    )
)
_EFFECTS = tuple(
    Entry(name, Kind.ALWAYS, meaning, lambda setup, _, make=make: make(setup), needs_zab=True)  # type: ignore[misc]
    for name, meaning, make in (
        ("TimersRun", "a server that looks has the timer of its state armed, others have none", effects.timers_run),
        (
            "TreeFollowsCommits",
            "a server applies what it has committed, once and in order",
            effects.tree_follows_commits,
        ),
        (
            "ConnectionsFollowRoles",
            "a learner connects to its leader, and a role that ends closes its connections",
            effects.connections_follow_roles,
        ),
        (
            "SyncIsFresh",
            "a learner answers a sync behind all that was committed when it was asked",
            effects.sync_is_fresh,
        ),
    )
)
_CAUGHT_UP = Entry(
    "CaughtUp",
    Kind.FINAL,
    "where nothing more can happen, learners have applied and answered what their leader has committed",
    lambda setup, _: effects.caught_up(setup),
    needs_zab=True,
)
PROPERTIES: Mapping[str, Entry] = {each.name: each for each in (*_ALL, *_ZAB, *_EFFECTS, _CAUGHT_UP)}
DEFAULTS = ("OneLeader", "LeaderIsAVoter", "OnlyVotersCounted")
"""The default invariants of an ensemble whose servers only elect."""
ZAB_DEFAULTS = ("LeaderIsAVoter", "OnlyVotersCounted", *(each.name for each in _ZAB))
"""The defaults where servers lead and follow; there two servers may both be LEADING for a moment."""


def defaults(setup: Setup) -> tuple[str, ...]:
    """The defaults that are meaningful for this setup.

    The oracle's servers count no votes; and "within every quorum" means little where the quorums of views differ.
    """
    names = DEFAULTS if setup.zab is None else ZAB_DEFAULTS
    silent = {"OnlyVotersCounted"} if setup.grain is Grain.ORACLE else set()
    if len({view.quorums for view in setup.reachable_views}) > 1:
        silent.add("Durability")
    return tuple(name for name in names if name not in silent)


def names() -> tuple[str, ...]:
    """The names of all properties, in the order of listings."""
    return tuple(PROPERTIES)


def entry(name: object) -> Entry:
    """The property of that name. Raises UnknownPropertyError."""
    if not isinstance(name, str) or name not in PROPERTIES:
        raise UnknownPropertyError(name, PROPERTIES)
    return PROPERTIES[name]


def build(setup: Setup, name: object, parameter: Any = None) -> Property:
    """A property of an ensemble. Raises UnknownPropertyError, and ParameterError."""
    found = entry(name)
    check_parameter(name, found.parameter, parameter)
    if found.needs_zab and setup.zab is None:
        raise ParameterError(f"{name} speaks of servers that lead and follow", "write protocol: zab")
    return found.build(setup, parameter)
