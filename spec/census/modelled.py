"""The defects that the model has: their effect, condition and remedy.

Wrong behaviour and history are those of the variant (`spec.variants`, `spec.releases`). The last rows are defects
without a variant: the specification does as ZooKeeper does, and a scenario has the run.

Source: the Java methods that each row names; `docs/findings` for what real servers have shown.
"""

from collections.abc import Sequence

from spec.census.defect import Basis, Effect, Evidence, KnownDefect
from spec.releases import HISTORIES, SINCE_RECONFIG, TREE_KEPT, DefectHistory, Release, changes
from spec.variants import DESCRIBED, Variant

KNOWN_DEFECTS = "spec/scenarios/known-defects"
_READ_FROM = Release(3, 4, 14)
"""The oldest release whose code was read for the defects that are variants."""


def _computed(path: str) -> Evidence:
    return Evidence(Basis.COMPUTED, f"quorate run {path}")


def _seen(command: str) -> Evidence:
    return Evidence(Basis.SEEN, command)


def _variant(
    variant: Variant,
    effect: Effect,
    cause: str,
    *advice: str,
    scenario: str = "",
    seen: str = "",
    read_from: Release = _READ_FROM,
) -> KnownDefect:
    """The row of a variant; `advice` is its condition and its remedy."""
    condition, remedy = advice
    history = HISTORIES[variant]
    path = scenario or f"{KNOWN_DEFECTS}/{variant.value.lower()}.yaml"
    evidence = [_computed(path)]
    if history.reproduced:
        newest = max(history.reproduced)
        evidence.append(_seen(seen or f"quorate reproduce {path} --release {newest}"))
    return KnownDefect(
        name=variant.value,
        effect=effect,
        wrong=DESCRIBED[variant].wrong,
        cause=cause,
        condition=condition,
        remedy=remedy,
        history=history,
        evidence=tuple(evidence),
        variant=variant,
        read_from=read_from,
    )


_LATE_REMEDY = "Upgrade. Until then stop no second server before the first one that was stopped has rejoined."
_EMPTY_DISK = (
    "Give a server with a doubtful history an empty data directory (keep `myid`) while the others have a quorum."
)

_VARIANTS: Sequence[KnownDefect] = (
    # An acknowledged write can be lost.
    _variant(
        Variant.RESTORE_UNDONE,
        Effect.LOST,
        "ZooKeeperServer.restoreFromSnapshot",
        "A snapshot is restored by the AdminServer, and the leader ends afterwards, before each server was restarted.",
        "Restart each server once after the restore, the leader last, before clients write.",
        scenario="spec/scenarios/restore/restore-undone.yaml",
        seen="quorate reproduce restore-undone --release 3.9.5",
    ),
    _variant(
        Variant.TREE_BEHIND_LOG,
        Effect.LOST,
        "ZooKeeperServer.shutdown, QuorumPeer.getLastLoggedZxid",
        "The leader changes while a server has a transaction in its log that it has not applied.",
        "Upgrade. Until then restart a server that lost its leader under writes, before the next election.",
    ),
    _variant(
        Variant.QUEUE_SURVIVES_SHUTDOWN,
        Effect.LOST,
        "LearnerZooKeeperServer.shutdown",
        "A follower loses its leader while its disk is slow: its log is written behind its back. Kills under writes "
        "were enough on 3.8.0.",
        _LATE_REMEDY,
    ),
    _variant(
        Variant.LOGGED_AFTER_UPTODATE,
        Effect.LOST,
        "Learner.syncWithLeader",
        "A quorum fails just after an election, when the new followers have acknowledged NEWLEADER and not yet logged.",
        _LATE_REMEDY,
    ),
    _variant(
        Variant.PARTIAL_SNAPSHOT_KEPT,
        Effect.LOST,
        "Learner.shutdown, ZooKeeperServer.shutdown",
        "A leader fails while it sends a snapshot to a server, which then follows the next leader by DIFF, and "
        "restarts.",
        "Restart a server whose synchronisation by a snapshot was interrupted, before it has followed again. "
        "" + _EMPTY_DISK,
        read_from=Release(3, 4, 0),
    ),
    _variant(
        Variant.EPOCH_BEFORE_LOG,
        Effect.LOST,
        "Learner.syncWithLeader",
        "A follower fails just after an election, between `currentEpoch` and its log. A roll-out under writes with one "
        "broken connection is enough.",
        _LATE_REMEDY,
    ),
    _variant(
        Variant.NEWLEADER_ACK_BEFORE_SYNC,
        Effect.LOST,
        "Learner.syncWithLeader",
        "Leader and follower fail just after an election, before the follower's disk has what it acknowledged.",
        _LATE_REMEDY,
    ),
    _variant(
        Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK,
        Effect.LOST,
        "Learner.syncWithLeader, SendAckRequestProcessor",
        "A follower acknowledges a proposal of its synchronisation before NEWLEADER. Usually the ensemble only elects "
        "again; with a failure a write is lost.",
        _LATE_REMEDY,
    ),
    _variant(
        Variant.COMMITTED_LOG_WITH_GAP,
        Effect.LOST,
        "ZooKeeperServer.processTxn(TxnHeader, Record)",
        "A server that was synchronised under writes leads later, and a server that was away joins it. In 3.9.3 a DIFF "
        "is enough; elsewhere it takes a TRUNC.",
        "Upgrade. Compare the data of all servers after each change of the leader. " + _EMPTY_DISK,
    ),
    _variant(
        Variant.DISK_ERROR_KEEPS_TREE,
        Effect.LOST,
        "SyncRequestProcessor.run, ZooKeeperServer.shutdown",
        "The log of a server cannot be written for a moment, and the process goes on: a full disk, an error of a "
        "volume.",
        "Stop a server whose disk had an error, give it an empty data directory (keep `myid`), and start it while the "
        "others have a quorum. Keep space free on the disk of the log.",
    ),
    _variant(
        Variant.ACKS_SURVIVE_TRUNCATION,
        Effect.LOST,
        "Leader.processAck, LearnerHandler.syncFollower",
        "A follower loses its connection and returns while the leader's disk is slow, and the leader fails then.",
        "Use a fast disk for the log, and five servers. No setting prevents it.",
        read_from=Release(3, 4, 6),
    ),
    _variant(
        Variant.SYNC_FROM_APPLIED,
        Effect.LOST,
        "LearnerHandler.syncFollower",
        "A follower returns while the leader applies committed transactions, and the leader fails then.",
        "Use a fast disk for the log, and five servers. No setting prevents it.",
        read_from=Release(3, 4, 6),
    ),
    # Two leaders.
    _variant(
        Variant.PENDING_VIEW_ACTIVATED,
        Effect.SPLIT,
        "Leader.getQuorumVerifierBytes, Learner.syncWithLeader",
        "`reconfig`: a joiner connects again before the reply, and the network splits or the leader fails. "
        "Acknowledged writes are lost.",
        "Add or remove one server at a time. Restart no joiner between `reconfig` and its reply.",
        scenario="spec/scenarios/reconfiguration/pending-view-activated.yaml",
        seen="quorate reproduce pending-view-activated --release 3.9.5",
    ),
    _variant(
        Variant.LAST_SEEN_FORGOTTEN,
        Effect.SPLIT,
        "QuorumPeerMain.runFromConfig",
        "`reconfig`: a server that has acknowledged it is started twice before it is activated, and the network "
        "splits.",
        "Do not start a server a second time while `zoo.cfg.dynamic.next` is on its disk; let it connect first.",
        scenario="spec/scenarios/reconfiguration/last-seen-forgotten.yaml",
        seen="quorate reproduce last-seen-forgotten --release 3.9.5",
    ),
    _variant(
        Variant.PROMISES_OF_OBSERVERS,
        Effect.SPLIT,
        "Leader.getEpochToPropose, Leader.waitForEpochAck",
        "An ensemble with observers elects while its voters are separated from one another. Two leaders of one epoch "
        "are established; that a write is lost was not found.",
        "Stop the observers before a quorum of voters restarts.",
        read_from=Release(3, 4, 0),
    ),
    _variant(
        Variant.EPOCH_OF_ACTIVE_VIEW,
        Effect.SPLIT,
        "Leader.getEpochToPropose, Leader.waitForEpochAck",
        "`reconfig` replaces most servers, and its leader loses its followers before COMMITANDACTIVATE. One of the two "
        "leaders never serves; no lost write is known.",
        "Add or remove one server at a time.",
        scenario="spec/scenarios/reconfiguration/epoch-of-active-view.yaml",
        seen="quorate reproduce epoch-of-active-view --release 3.9.5",
    ),
    # Different data.
    _variant(
        Variant.TRUNC_AFTER_SNAP,
        Effect.DIVERGED,
        "FileTxnLog.truncate",
        "A server that was synchronised by a snapshot (a new or replaced one) is soon after told to truncate.",
        _EMPTY_DISK,
        read_from=Release(3, 4, 0),
    ),
    _variant(
        Variant.SNAPSHOT_SURVIVES_TRUNC,
        Effect.DIVERGED,
        "FileTxnSnapLog.truncateLog",
        "A leader that fails has a snapshot beyond what the others have, and is truncated when it returns.",
        _EMPTY_DISK,
        read_from=Release(3, 4, 0),
    ),
    _variant(
        Variant.SNAPSHOT_OF_UNCOMMITTED,
        Effect.DIVERGED,
        "ZooKeeperServer.loadData, Leader.lead",
        "A server leads for a moment with a write that is not committed, and is truncated when it returns.",
        _EMPTY_DISK,
        read_from=Release(3, 4, 0),
    ),
    _variant(
        Variant.FUZZY_SNAPSHOT,
        Effect.DIVERGED,
        "ZooKeeperServer.shutdown, ZKDatabase.fastForwardDataBase",
        "A server loses its leader while it writes a snapshot, and is truncated afterwards.",
        _EMPTY_DISK,
    ),
    _variant(
        Variant.TREE_AHEAD_OF_LOG,
        Effect.DIVERGED,
        "Learner.shutdown",
        "A server loses its leader in the middle of its synchronisation by TRUNC.",
        "Restart a server whose synchronisation was interrupted.",
    ),
    # Old data, and no service.
    _variant(
        Variant.COMMITS_AFTER_UPTODATE,
        Effect.STALE,
        "Learner.syncWithLeader",
        "A client reads at a follower in the moment after its synchronisation.",
        "Call `sync` before a read that must be new.",
    ),
    _variant(
        Variant.NEWLEADER_FORGETS_PROPOSALS,
        Effect.STOPPED,
        "Learner.syncWithLeader",
        "Writes arrive while a follower is synchronised: a NullPointerException ends its connection, and it tries "
        "again.",
        "Upgrade. Start followers while there are few writes.",
    ),
    _variant(
        Variant.VOTE_ORDER_CYCLES,
        Effect.STOPPED,
        "FastLeaderElection.totalOrderPredicate",
        "Servers with different epochs and equal zxids look for a leader at once.",
        "Restart the servers that stay LOOKING, one after the other.",
        read_from=Release(3, 4, 0),
    ),
    _variant(
        Variant.LEADER_OF_AN_OLD_ROUND,
        Effect.STOPPED,
        "FastLeaderElection.checkLeader",
        "A notification of an earlier election arrives late.",
        "Restart the server that leads without followers.",
        read_from=Release(3, 4, 0),
    ),
    _variant(
        Variant.ACTIVATION_NOT_COUNTED,
        Effect.STOPPED,
        "Learner.syncWithLeader",
        "Writes and a `reconfig` that leaves an observer its role are committed while it is synchronised: its "
        "connection ends, and it tries again.",
        "None is needed. Call `reconfig` when all observers serve.",
        scenario="spec/scenarios/reconfiguration/activation-not-counted.yaml",
        seen="quorate twin --release 3.9.5 --replay docs/findings/runs/activation-not-counted.txt",
    ),
)

_WITHOUT_VARIANT: Sequence[KnownDefect] = (
    KnownDefect(
        name="observer-becomes-voter",
        effect=Effect.LOST,
        wrong="a leader counts an observer that its own file has as a voter, and an observer acknowledges without a "
        "log",
        cause="Learner.syncWithLeader, SyncedLearnerTracker.addAck, Leader.isParticipant",
        condition="An observer becomes a voter by new files, and a voter gets its file first; or one `reconfig` makes "
        "two observers voters. Then a leader fails.",
        remedy="Restart the observer first, and wait for `Mode: follower`. One observer at a time with `reconfig`.",
        # Until 3.4.12 a leader counts by the type of the learner; ZOOKEEPER-2959 made it count by its own file.
        history=DefectHistory(
            introduced=(*changes("3.4.13 a09a67971"), *TREE_KEPT[1:]),
            found_here=True,
            reproduced=(Release(3, 6, 4), Release(3, 8, 0), Release(3, 8, 6), Release(3, 9, 5)),
        ),
        evidence=(
            _computed("spec/scenarios/r4-observers/r4-observer-promoted-loses-a-write.yaml"),
            _seen(
                "quorate reproduce spec/scenarios/r4-observers/r4-observer-promoted-loses-a-write.yaml --release 3.9.5"
            ),
        ),
    ),
    KnownDefect(
        name="disjoint-quorums",
        effect=Effect.SPLIT,
        wrong="servers that are restarted with new files follow their own file alone, and two files may have quorums "
        "that do not meet",
        cause="QuorumPeerConfig, FastLeaderElection: no server compares the members with those of another",
        condition="Members change by restarts, by more than one server at once, as from three to five. The leader "
        "restarts first, or the network splits. GitHub's outage of 2020-10-09 began in this way.",
        remedy="Ask `quorate rollout` for the order and its conditions, or add one server at a time.",
        history=DefectHistory(reproduced=(Release(3, 8, 0), Release(3, 9, 5))),
        evidence=(
            _computed("spec/scenarios/r10-whole-protocol/r10-zab-both-commit.yaml"),
            _seen("quorate reproduce spec/scenarios/r10-whole-protocol/r10-zab-both-commit.yaml --release 3.9.5"),
        ),
    ),
    KnownDefect(
        name="promotion-stops-service",
        effect=Effect.STOPPED,
        wrong="a leader waits for a voter that cannot follow it before the reconfiguration is committed, since an "
        "observer that is being promoted neither acknowledges nor votes",
        cause="Leader.tryToCommit, FastLeaderElection.getVoteTracker",
        condition="`reconfig` makes an observer a voter, and the connection of an old voter breaks before its reply.",
        remedy="Restart the leader. Instead of a promotion, remove the observer, and add it as a new server.",
        history=DefectHistory(
            introduced=SINCE_RECONFIG, reproduced=(Release(3, 6, 4), Release(3, 8, 6), Release(3, 9, 5))
        ),
        evidence=(
            _computed("spec/scenarios/reconfiguration/observer-promoted-stops-service.yaml"),
            _seen("quorate reproduce observer-promoted-stops-service --release 3.9.5"),
        ),
    ),
)

MODELLED: Sequence[KnownDefect] = (*_VARIANTS, *_WITHOUT_VARIANT)
"""The rows, most dangerous first within the variants and within the others."""
