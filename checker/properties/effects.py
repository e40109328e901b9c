"""Properties that read effects: timers, applied transactions and quorum connections fit the states of servers.

The differences are facts of `checker.models.ensemble.effects`. Each property is examined while some server is in a
state that needs such effects.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from checker.engine import TRIVIAL, Finding, Property, Read
from checker.engine.model import Kind, Trivial
from checker.models.ensemble.effects import Concern, Misfit
from checker.models.ensemble.history import HistoryPart, PendingSync, part
from checker.models.ensemble.names import HISTORY, server_name
from checker.models.ensemble.setup import Setup
from checker.properties.projections import AWAY
from spec.election.vote import ServerState
from spec.quorum import Sid
from spec.server import Server
from spec.txn import counter_of, format_zxid
from spec.zab.state import Leader, Learner

Answer = Finding | Trivial | None


def timers_run(setup: Setup) -> Property:
    """A LOOKING server waits with a timeout (`FastLeaderElection.lookForLeader`), and no other server does."""

    def looks(server: Server) -> bool:
        return server.election is not None and server.election.state is ServerState.LOOKING

    meaning = "a server that looks for a leader has the timer of its state armed, and no other server has one"
    return _property(setup, "TimersRun", Concern.TIMER, looks, meaning)


def tree_follows_commits(setup: Setup) -> Property:
    """A server that serves applies each transaction once, in order, up to the zxid in its state.

    Source: `FinalRequestProcessor`.
    """

    def serves(server: Server) -> bool:
        return server.zab is not None and server.zab.serves

    meaning = "a server that serves has applied to its tree what its state says, once each and in order"
    return _property(setup, "TreeFollowsCommits", Concern.TREE, serves, meaning)


def connections_follow_roles(setup: Setup) -> Property:
    """A learner connects to its leader. The end of a role closes its connections (`shutdown`)."""

    def has_a_role(server: Server) -> bool:
        return server.zab is not None

    meaning = "a learner connects to its leader, and a server that gives up a role closes the connections of it"
    return _property(setup, "ConnectionsFollowRoles", Concern.CONNECTION, has_a_role, meaning)


def sync_is_fresh(setup: Setup) -> Property:  # noqa: ARG001 (every property is built from a setup)
    """R13: a learner answers a sync after every transaction that was committed at its request (`Leader.processSync`).

    Only commits in the epoch of the learner's leader or a lower one count: ZooKeeper answers a sync without a quorum,
    so an old leader does not know later commits. A leader answers its own client's sync without waiting for its commit
    processor (`LeaderZooKeeperServer`: `matchSyncs` is false), so that sync is not examined.
    """

    def check(found: tuple[PendingSync, ...]) -> Answer:
        for each in found:
            if each.answered is not None:
                values = (
                    ("server", each.server),
                    ("committed", format_zxid(each.committed)),
                    ("applied", format_zxid(each.answered)),
                )
                return Finding("a sync is answered before what was committed when it was asked", values)
        return None if any(each.committed for each in found) else TRIVIAL

    meaning = "a learner answers a sync behind all that was committed in its epoch or before when it was asked"
    return Property("SyncIsFresh", (Read(HISTORY, part(HistoryPart.SYNCS)),), check, meaning=meaning)


class CommitProgress(msgspec.Struct, frozen=True):
    """The progress of a leader or a learner.

    `waits`: some requested operation is not complete. `applied` is its last applied zxid; None before it serves.
    """

    leader: Sid
    epoch: int
    learners: tuple[Sid, ...]
    applied: int | None
    waits: bool

    @property
    def applied_transactions(self) -> int:
        """The last zxid that a learner must have applied; 0 if the leader has none of its epoch."""
        return 0 if self.applied is None or counter_of(self.applied) == 0 else self.applied


def _commit_progress(server: Server) -> CommitProgress | str:
    part_of = server.zab
    if isinstance(part_of, Leader):
        learners = tuple(handler.sid for handler in part_of.handlers)
        quorum = server.view.contains_quorum({server.sid, *learners})
        waits = bool(part_of.queue or part_of.commits or part_of.syncs or (quorum and part_of.outstanding))
        return CommitProgress(server.sid, part_of.epoch, learners, part_of.applied if part_of.serves else None, waits)
    if isinstance(part_of, Learner):
        waits = bool(part_of.queue or part_of.commits or part_of.syncs or part_of.pending)
        return CommitProgress(part_of.leader, part_of.epoch, (), part_of.delivered if part_of.serves else None, waits)
    return AWAY


def caught_up(setup: Setup) -> Property:
    """Every proposal, commit and sync is completed (`Leader.tryToCommit`, `Leader.sendSync`).

    In a state without a next step, every packet has arrived. A leader that serves with a quorum has then committed its
    proposals. The learners with a handler serve too, have applied these transactions, and have answered their syncs.
    """

    def check(*seen: CommitProgress | str) -> Answer:
        found = {sid: each for sid, each in zip(setup.sids, seen, strict=True) if isinstance(each, CommitProgress)}
        leaders = {sid: each for sid, each in found.items() if each.leader == sid and each.applied is not None}
        if not leaders:
            return TRIVIAL
        for sid, leader in leaders.items():
            for other in (sid, *leader.learners):
                own = found.get(other)
                if own is None or (own.leader, own.epoch) != (sid, leader.epoch):
                    continue
                behind = other != sid and (own.applied is None or own.applied < leader.applied_transactions)
                if own.waits or behind:
                    values = (("server", other), ("behind the leader", sid), ("waits", own.waits))
                    return Finding("nothing more can happen, and a server has not caught up with its leader", values)
        return None

    meaning = "where nothing more can happen, learners have applied and answered what their leader has committed"
    reads = tuple(Read(server_name(sid), _commit_progress) for sid in setup.sids)
    return Property("CaughtUp", reads, check, Kind.FINAL, meaning=meaning)


def _property(setup: Setup, name: str, concern: Concern, needs: Callable[[Server], bool], meaning: str) -> Property:
    def check(found: tuple[Misfit, ...], *needed: bool) -> Answer:
        for each in found:
            if each.concern is concern:
                values = (("server", each.server), ("difference", each.what))
                return Finding(f"the effects of a step do not fit its state: {concern.value}", values)
        return None if any(needed) else TRIVIAL

    servers = (Read(server_name(sid), needs) for sid in setup.sids)
    return Property(name, (Read(HISTORY, part(HistoryPart.MISFITS)), *servers), check, meaning=meaning)
