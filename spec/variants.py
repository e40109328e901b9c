"""Deliberate defects: known defects of ZooKeeper, and mutants, each at the one place of the specification that differs.

A variant that no invariant catches is a failing test, and an invariant that no variant breaks is suspect
(`tests/quality`). Known defects are named after the issue that reported them. The place in the specification that tests
for a variant also names ZooKeeper's code.
"""

import enum
from collections.abc import Mapping

import msgspec


class Variant(enum.Enum):
    """The variants; a scenario or the command line selects one by its value."""

    # A step asks for several variants, and `Enum.__hash__` is a function in Python: a tenth of the time of a commit.
    __hash__ = object.__hash__

    VOTE_ORDER_CYCLES = "ZOOKEEPER-1419"
    LEADER_OF_AN_OLD_ROUND = "ZOOKEEPER-1514"
    SNAPSHOT_OF_UNCOMMITTED = "ZOOKEEPER-1549"
    TREE_BEHIND_LOG = "ZOOKEEPER-2845"
    PROMISES_OF_OBSERVERS = "ZOOKEEPER-2959"
    COMMITS_AFTER_UPTODATE = "ZOOKEEPER-3023"
    PARTIAL_SNAPSHOT_KEPT = "ZOOKEEPER-3642"
    LOGGED_AFTER_UPTODATE = "ZOOKEEPER-3911"
    NEWLEADER_FORGETS_PROPOSALS = "ZOOKEEPER-4394"
    EPOCH_BEFORE_LOG = "ZOOKEEPER-4643"
    NEWLEADER_ACK_BEFORE_SYNC = "ZOOKEEPER-4646"
    PROPOSAL_ACK_BEFORE_NEWLEADER_ACK = "ZOOKEEPER-4685"
    QUEUE_SURVIVES_SHUTDOWN = "ZOOKEEPER-4712"
    SNAPSHOT_SURVIVES_TRUNC = "ZOOKEEPER-4837"
    DISK_ERROR_KEEPS_TREE = "ZOOKEEPER-4882"
    COMMITTED_LOG_WITH_GAP = "ZOOKEEPER-4925"
    TREE_AHEAD_OF_LOG = "ZOOKEEPER-5094"

    ACKS_SURVIVE_TRUNCATION = "acks-survive-truncation"
    SYNC_FROM_APPLIED = "sync-from-applied"
    TRUNC_AFTER_SNAP = "trunc-after-snap"
    FUZZY_SNAPSHOT = "fuzzy-snapshot"
    RESTORE_UNDONE = "restore-undone"

    # Variants of dynamic reconfiguration.
    PENDING_VIEW_ACTIVATED = "pending-view-activated"
    EPOCH_OF_ACTIVE_VIEW = "epoch-of-active-view"
    LAST_SEEN_FORGOTTEN = "last-seen-forgotten"
    ACTIVATION_NOT_COUNTED = "activation-not-counted"
    LAST_SEEN_IGNORED = "last-seen-ignored"
    COMMIT_BY_OLD_QUORUM = "commit-by-old-quorum"
    ANY_SUCCESSOR = "any-successor"
    STALE_VIEW_ACTIVATED = "stale-view-activated"
    VERSION_IS_A_COUNT = "version-is-a-count"

    HALF_IS_A_QUORUM = "half-is-a-quorum"
    OBSERVER_COUNTED = "observer-counted"
    ACK_BEFORE_LOG = "ack-before-log"
    NO_TRUNCATION = "no-truncation"
    LOG_OUT_OF_ORDER = "log-out-of-order"
    TORN_RECORD = "torn-record"
    COMMIT_BEFORE_QUORUM = "commit-before-quorum"
    SYNC_WITHOUT_TAIL = "sync-without-tail"

    # Variants of the service as clients see it.
    STALE_AFTER_MOVING = "stale-after-moving"
    WATCH_AFTER_DATA = "watch-after-data"
    LOST_WATCH = "lost-watch"
    WATCH_FIRES_TWICE = "watch-fires-twice"
    EVENTS_OUT_OF_ORDER = "events-out-of-order"
    REUSED_SEQUENCE_NUMBER = "reused-sequence-number"
    HALF_A_MULTI = "half-a-multi"
    EPHEMERAL_OUTLIVES_SESSION = "ephemeral-outlives-session"
    EPHEMERAL_DIES_WITH_CONNECTION = "ephemeral-dies-with-connection"
    TWO_CREATORS = "two-creators"
    ANSWERED_BEFORE_COMMIT = "answered-before-commit"
    REORDERED_REQUESTS = "reordered-requests"
    SYNC_WITHOUT_WAITING = "sync-without-waiting"

    # Variants of the recipes.
    NO_PROTECTION = "no-protection"
    RETRY_WITHOUT_LOOKING = "retry-without-looking"
    SEARCH_WITHOUT_SYNC = "search-without-sync"
    WATCH_THE_LEADER = "watch-the-leader"
    WATCH_THE_CHILDREN = "watch-the-children"
    EXISTS_AND_WATCH = "exists-and-watch"
    NO_REREAD = "no-reread"
    NO_REREAD_ON_RECONNECT = "no-reread-on-reconnect"
    LEAD_WHILE_SUSPENDED = "lead-while-suspended"
    LEAD_UNANNOUNCED = "lead-unannounced"
    RELEASE_ONCE = "release-once"
    ENTER_TWICE = "enter-twice"
    LEAVE_AT_ONCE = "leave-at-once"
    NO_RESET = "no-reset"
    OLD_TOKEN = "old-token"
    NO_FENCING = "no-fencing"


class Area(enum.Enum):
    """The part of the specification that a variant changes, which determines the models that can show it."""

    ELECTION = "the election"
    ZAB = "leading and following"
    RECONFIGURATION = "dynamic reconfiguration"
    SERVICE = "the service as clients see it"
    RECIPES = "the recipes"


class Defect(msgspec.Struct, frozen=True):
    """The wrong behaviour of a variant, and its area. `spec.releases` has the releases with a defect of ZooKeeper."""

    wrong: str
    area: Area = Area.ZAB


_OF_SERVERS: Mapping[Variant, Defect] = {
    Variant.VOTE_ORDER_CYCLES: Defect(
        "the server id breaks a tie of zxids even if the epochs differ, so the order of votes has cycles",
        Area.ELECTION,
    ),
    Variant.LEADER_OF_AN_OLD_ROUND: Defect(
        "FOLLOWING notifications of another round make their subject a leader again", Area.ELECTION
    ),
    Variant.SNAPSHOT_OF_UNCOMMITTED: Defect(
        "a server that begins to lead takes a snapshot of all that it has logged, committed or not, and a later TRUNC "
        "keeps that snapshot",
    ),
    Variant.TREE_BEHIND_LOG: Defect(
        "the tree that a server keeps across elections lags behind its log, and the server votes and "
        "synchronises with the zxid of the tree"
    ),
    Variant.PENDING_VIEW_ACTIVATED: Defect(
        "a learner that joins while a reconfiguration is not committed activates its view with UPTODATE",
        Area.RECONFIGURATION,
    ),
    Variant.EPOCH_OF_ACTIVE_VIEW: Defect(
        "an epoch needs a quorum of the active view only, although a later view may be committed",
        Area.RECONFIGURATION,
    ),
    Variant.LAST_SEEN_FORGOTTEN: Defect(
        "a server that starts twice forgets the view that it has seen last, although it has acknowledged its change",
        Area.RECONFIGURATION,
    ),
    Variant.ACTIVATION_NOT_COUNTED: Defect(
        "an observer that is synchronised does not count INFORMANDACTIVATE in its check of the order, so the next "
        "INFORM seems to leave a gap and ends its connection",
        Area.RECONFIGURATION,
    ),
    Variant.LAST_SEEN_IGNORED: Defect(
        "a new leader neither asks the quorum of a later view that it has seen, nor activates it", Area.RECONFIGURATION
    ),
    Variant.COMMIT_BY_OLD_QUORUM: Defect(
        "a reconfiguration, and what follows it, needs a quorum of the old view only", Area.RECONFIGURATION
    ),
    Variant.ANY_SUCCESSOR: Defect(
        "a leader that is removed designates the voter with the highest id, which may lack the reconfiguration",
        Area.RECONFIGURATION,
    ),
    Variant.STALE_VIEW_ACTIVATED: Defect(
        "a learner activates the view of NEWLEADER or COMMITANDACTIVATE even if its own is later", Area.RECONFIGURATION
    ),
    Variant.VERSION_IS_A_COUNT: Defect(
        "the version of a new view is that of the last one plus 1, so two leaders may choose the same",
        Area.RECONFIGURATION,
    ),
    Variant.COMMITS_AFTER_UPTODATE: Defect(
        "a learner applies transactions that were committed during its synchronisation only after it has "
        "acknowledged UPTODATE"
    ),
    Variant.PROMISES_OF_OBSERVERS: Defect(
        "a leader counts any learner, also an observer, for its epoch: in FOLLOWERINFO and in ACKEPOCH"
    ),
    Variant.PARTIAL_SNAPSHOT_KEPT: Defect(
        "a learner that gives up between SNAP and NEWLEADER keeps the snapshot in memory, and votes and synchronises "
        "with it, though it is not on its disk"
    ),
    Variant.LOGGED_AFTER_UPTODATE: Defect(
        "NEWLEADER is acknowledged while the proposals of the DIFF are in memory; they are logged after UPTODATE"
    ),
    Variant.NEWLEADER_FORGETS_PROPOSALS: Defect(
        "NEWLEADER logs and forgets proposals not yet committed, so that their COMMIT finds nothing"
    ),
    Variant.EPOCH_BEFORE_LOG: Defect(
        "on NEWLEADER currentEpoch is written before the synchronised proposals are logged"
    ),
    Variant.NEWLEADER_ACK_BEFORE_SYNC: Defect(
        "synchronised proposals are queued for the disk, and NEWLEADER is acknowledged before they are on it"
    ),
    Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK: Defect(
        "the sync thread may acknowledge a synchronised proposal before NEWLEADER is acknowledged"
    ),
    Variant.QUEUE_SURVIVES_SHUTDOWN: Defect(
        "a learner that shuts down leaves its sync thread with a queue, and reads its last zxid before that is flushed"
    ),
    Variant.SNAPSHOT_SURVIVES_TRUNC: Defect(
        "a TRUNC cuts the log and keeps a snapshot beyond the cut, which the server then loads again",
    ),
    Variant.DISK_ERROR_KEEPS_TREE: Defect(
        "a server whose log could not be written rejoins with its tree in memory, which is ahead of the log, so that "
        "the log has a gap",
    ),
    Variant.COMMITTED_LOG_WITH_GAP: Defect(
        "transactions that a learner applies during its synchronisation are missing in its committedLog; if it leads "
        "later, its DIFF leaves them out, and the follower accepts the gap",
    ),
    Variant.TREE_AHEAD_OF_LOG: Defect(
        "a learner that gives up between TRUNC and NEWLEADER keeps the transactions that it has applied since, and "
        "votes and synchronises with them, though they are not in its log",
    ),
    Variant.ACKS_SURVIVE_TRUNCATION: Defect(
        "a returning follower truncates an outstanding proposal, and its earlier acknowledgement of that "
        "proposal still counts"
    ),
    Variant.SYNC_FROM_APPLIED: Defect(
        "a leader synchronises from the transactions that it has applied, so a returning follower truncates "
        "committed transactions that the leader has not applied yet, until they are sent again"
    ),
    Variant.TRUNC_AFTER_SNAP: Defect(
        "a TRUNC to a zxid that came by SNAP, and so is not in the log, keeps the next transaction, because the log is "
        "cut behind the first record that is not before the zxid",
    ),
    Variant.FUZZY_SNAPSHOT: Defect(
        "a snapshot that is being written while a server gives up contains the transactions that the shutdown applies "
        "beyond its zxid; a TRUNC between the two keeps it",
    ),
    Variant.RESTORE_UNDONE: Defect(
        "a restored snapshot replaces the tree of the running server alone, and no file has it: when the server ends "
        "its part, the tree from before the restore is back",
    ),
    Variant.HALF_IS_A_QUORUM: Defect("half of the voters count as a quorum of acknowledgements"),
    Variant.OBSERVER_COUNTED: Defect("acknowledgements of observers, and of any learner, are counted"),
    Variant.ACK_BEFORE_LOG: Defect("a proposal is acknowledged when it arrives, before it is on disk"),
    Variant.NO_TRUNCATION: Defect(
        "a learner with transactions that its leader never had receives a DIFF and not a TRUNC"
    ),
    Variant.LOG_OUT_OF_ORDER: Defect("the sync thread writes the newest transaction of its queue first"),
    Variant.TORN_RECORD: Defect("a crash while a transaction is written leaves a record with another value"),
    Variant.COMMIT_BEFORE_QUORUM: Defect("a leader commits a proposal as soon as it has logged the proposal"),
    Variant.SYNC_WITHOUT_TAIL: Defect("a DIFF leaves out the leader's last transaction"),
}

_OF_THE_SERVICE: Mapping[Variant, str] = {
    Variant.STALE_AFTER_MOVING: "a server accepts a client that has seen newer data than the server has",
    Variant.WATCH_AFTER_DATA: "notifications are sent after replies that were ready later",
    Variant.LOST_WATCH: "a client that reconnects does not register its watches again",
    Variant.WATCH_FIRES_TWICE: "a watch stays registered when it has fired",
    Variant.EVENTS_OUT_OF_ORDER: "a client receives the newest event first",
    Variant.REUSED_SEQUENCE_NUMBER: "the number of a sequential znode is the number of its siblings",
    Variant.HALF_A_MULTI: "a failed multi keeps the changes of the operations before the failure",
    Variant.EPHEMERAL_OUTLIVES_SESSION: "closeSession ends the session, and its ephemeral znodes stay",
    Variant.EPHEMERAL_DIES_WITH_CONNECTION: "a server deletes a client's ephemeral znodes when the connection is lost",
    Variant.TWO_CREATORS: "the check whether a path is free uses the tree of a lagging server",
    Variant.ANSWERED_BEFORE_COMMIT: "a write is answered before it is committed, and may be dropped afterwards",
    Variant.REORDERED_REQUESTS: "the requests of one client may overtake each other",
    Variant.SYNC_WITHOUT_WAITING: "a sync is answered before the server has caught up",
}

_OF_RECIPES: Mapping[Variant, str] = {
    Variant.NO_PROTECTION: "the name of a znode has no id, so a client cannot find its znode again after a lost reply",
    Variant.RETRY_WITHOUT_LOOKING: (
        "a client whose reply to a creation was lost creates again without a search for the first znode"
    ),
    Variant.SEARCH_WITHOUT_SYNC: "a client searches for its znode at a server that may lag behind the creation",
    Variant.WATCH_THE_LEADER: "a waiting client watches the smallest znode, and not its predecessor",
    Variant.WATCH_THE_CHILDREN: "a waiting client watches all children",
    Variant.EXISTS_AND_WATCH: (
        "a client watches its predecessor with exists, which leaves a watch if the predecessor is gone"
    ),
    Variant.NO_REREAD: "a client leads when its predecessor is deleted, without a check of the children",
    Variant.NO_REREAD_ON_RECONNECT: "a client continues to wait after a reconnection lost its watch",
    Variant.LEAD_WHILE_SUSPENDED: "a leader continues to lead while it is disconnected",
    Variant.LEAD_UNANNOUNCED: (
        "other clients follow a client without a predecessor before it announces itself as the leader"
    ),
    Variant.RELEASE_ONCE: "a client does not repeat a deletion whose reply was lost",
    Variant.ENTER_TWICE: "a client that takes a lock that it already holds waits behind its own znode",
    Variant.LEAVE_AT_ONCE: "one release frees a lock that was taken twice",
    Variant.NO_RESET: "a latch keeps its state across a disconnection, and does not check the children again",
    Variant.OLD_TOKEN: "a latch that joins the queue again writes with its previous token",
    Variant.NO_FENCING: "the resource accepts writes with any token",
}

DESCRIBED: Mapping[Variant, Defect] = {
    **_OF_SERVERS,
    **{variant: Defect(wrong, area=Area.SERVICE) for variant, wrong in _OF_THE_SERVICE.items()},
    **{variant: Defect(wrong, area=Area.RECIPES) for variant, wrong in _OF_RECIPES.items()},
}
"""The description of every variant."""


def of_area(*areas: Area) -> frozenset[Variant]:
    """The variants of these parts of the specification."""
    return frozenset(variant for variant, described in DESCRIBED.items() if described.area in areas)
