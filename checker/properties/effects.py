"""Properties that read effects: timers, applied transactions and quorum connections fit the states of servers.

The differences are facts of `checker.models.ensemble.effects`. Each property is examined while some server is in a
state that needs such effects.
"""

from collections.abc import Callable

import msgspec

from checker.engine import TRIVIAL, Finding, Kind, Read
from checker.models.ensemble.effects import Concern, Misfit
from checker.models.ensemble.history import HistoryPart, PendingSync, part
from checker.models.ensemble.setup import HISTORY, Setup, server_name
from checker.properties.projections import AWAY, ENSEMBLE_PROPERTIES, ZAB
from checker.properties.registry import Answer, Condition
from spec.election.vote import ServerState
from spec.quorum import Sid
from spec.server import Server
from spec.txn import counter_of, format_zxid
from spec.zab.state import Leader, Learner


@ENSEMBLE_PROPERTIES.declare(
    "TimersRun",
    Kind.ALWAYS,
    meaning="After each step, a LOOKING server has the timer of its state armed, and no other server has a timer",
    premise="Some server is LOOKING",
    source="`FastLeaderElection.lookForLeader`, which polls with a timeout",
    notes="The running timer follows from the effects `Arm` and `Disarm` of the step and from the timer of the "
    "state before it. Durations are not compared.",
    needs=ZAB,
)
def _timers_run(setup: Setup) -> Condition:
    def looks(server: Server) -> bool:
        return server.election is not None and server.election.state is ServerState.LOOKING

    return _of_misfits(setup, Concern.TIMER, looks)


@ENSEMBLE_PROPERTIES.declare(
    "TreeFollowsCommits",
    Kind.ALWAYS,
    meaning="The zxids that a serving server applies in a step ascend, and end at the last applied zxid of its state",
    premise="Some server serves",
    source="`FinalRequestProcessor`",
    notes="The effects `Apply` of each step are compared with the state after it: the first zxid is above the last "
    "one of the tree before the step, and the last one is the last transaction of the log up to the applied zxid. A "
    "zxid that is missing in between is not found here, but by AppliedInOrder, which compares the reported "
    "transactions.",
    needs=ZAB,
)
def _tree_follows_commits(setup: Setup) -> Condition:
    def serves(server: Server) -> bool:
        return server.zab is not None and server.zab.serves

    return _of_misfits(setup, Concern.TREE, serves)


@ENSEMBLE_PROPERTIES.declare(
    "ConnectionsFollowRoles",
    Kind.ALWAYS,
    meaning="A server connects to its leader when it begins to follow, and closes the connections of a role when "
    "the role ends",
    premise="Some server leads or follows",
    source="`Leader.lead`, `Follower.followLeader`, and their `shutdown`",
    notes="The effects `Connect` and `Disconnect` of each step are compared with the states before and after it. A "
    "leader also closes each connection that no handler serves, and does not close the connection of a handler.",
    needs=ZAB,
)
def _connections_follow_roles(setup: Setup) -> Condition:
    def has_a_role(server: Server) -> bool:
        return server.zab is not None

    return _of_misfits(setup, Concern.CONNECTION, has_a_role)


@ENSEMBLE_PROPERTIES.declare(
    "SyncIsFresh",
    Kind.ALWAYS,
    meaning="A learner answers a sync after every transaction that was committed at the time of its request",
    premise="A sync waits, and some transaction was committed at its request",
    requirements=("R13",),
    source="`Leader.processSync`",
    notes="Only commits in the epoch of the learner's leader or a lower one count: ZooKeeper answers a sync without "
    "a quorum, so an old leader does not know later commits. A leader answers a sync of a client without "
    "waiting for its commit processor (`LeaderZooKeeperServer`: `matchSyncs` is false), so that sync is not "
    "examined.",
    needs=ZAB,
)
def _sync_is_fresh(_: Setup) -> Condition:
    def check(found: tuple[PendingSync, ...]) -> Answer:
        for report in found:
            if report.answered is not None:
                values = (
                    ("server", report.server),
                    ("committed", format_zxid(report.committed)),
                    ("applied", format_zxid(report.answered)),
                )
                return Finding("a sync is answered before what was committed when it was asked", values)
        return None if any(report.committed for report in found) else TRIVIAL

    return Condition((Read(HISTORY, part(HistoryPart.SYNCS)),), check)


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
    if isinstance(part_of, Leader) and not server.runs_standalone:
        learners = tuple(handler.sid for handler in part_of.handlers)
        quorum = server.view.contains_quorum({server.sid, *learners})
        waits = bool(part_of.queue or part_of.commits or part_of.syncs or (quorum and part_of.outstanding))
        return CommitProgress(server.sid, part_of.epoch, learners, part_of.applied if part_of.serves else None, waits)
    if isinstance(part_of, Learner):
        waits = bool(part_of.queue or part_of.commits or part_of.syncs or part_of.pending)
        return CommitProgress(part_of.leader, part_of.epoch, (), part_of.delivered if part_of.serves else None, waits)
    return AWAY


@ENSEMBLE_PROPERTIES.declare(
    "CaughtUp",
    Kind.FINAL,
    meaning="In every state without a next step, learners have applied and answered everything that their leader "
    "has committed",
    premise="Some leader serves",
    source="`Leader.tryToCommit`, `Leader.sendSync`",
    notes="Every packet has then arrived. A leader that serves with a quorum has committed its proposals. The "
    "learners that it has handlers for, in its epoch, have applied its transactions and have no proposal, commit or "
    "sync left to process.",
    needs=ZAB,
)
def _caught_up(setup: Setup) -> Condition:
    def check(*seen: CommitProgress | str) -> Answer:
        progress = {sid: part for sid, part in zip(setup.sids, seen, strict=True) if isinstance(part, CommitProgress)}
        leaders = {sid: part for sid, part in progress.items() if part.leader == sid and part.applied is not None}
        if not leaders:
            return TRIVIAL
        for sid, leader in leaders.items():
            for peer in (sid, *leader.learners):
                mine = progress.get(peer)
                if mine is None or (mine.leader, mine.epoch) != (sid, leader.epoch):
                    continue
                behind = peer != sid and (mine.applied is None or mine.applied < leader.applied_transactions)
                if mine.waits or behind:
                    values = (("server", peer), ("behind the leader", sid), ("waits", mine.waits))
                    return Finding("nothing more can happen, and a server has not caught up with its leader", values)
        return None

    reads = tuple(Read(server_name(sid), _commit_progress) for sid in setup.sids)
    return Condition(reads, check)


def _of_misfits(setup: Setup, concern: Concern, needs: Callable[[Server], bool]) -> Condition:
    def check(found: tuple[Misfit, ...], *needed: bool) -> Answer:
        for misfit in found:
            if misfit.concern is concern:
                values = (("server", misfit.server), ("difference", misfit.what))
                return Finding(f"the effects of a step do not fit its state: {concern.value}", values)
        return None if any(needed) else TRIVIAL

    servers = (Read(server_name(sid), needs) for sid in setup.sids)
    return Condition((Read(HISTORY, part(HistoryPart.MISFITS)), *servers), check)
