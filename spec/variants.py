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

    VOTE_ORDER_CYCLES = "ZOOKEEPER-1419"
    LEADER_OF_AN_OLD_ROUND = "ZOOKEEPER-1514"
    TREE_BEHIND_LOG = "ZOOKEEPER-2845"
    COMMITS_AFTER_UPTODATE = "ZOOKEEPER-3023"
    LOGGED_AFTER_UPTODATE = "ZOOKEEPER-3911"
    NEWLEADER_FORGETS_PROPOSALS = "ZOOKEEPER-4394"
    EPOCH_BEFORE_LOG = "ZOOKEEPER-4643"
    NEWLEADER_ACK_BEFORE_SYNC = "ZOOKEEPER-4646"
    PROPOSAL_ACK_BEFORE_NEWLEADER_ACK = "ZOOKEEPER-4685"
    QUEUE_SURVIVES_SHUTDOWN = "ZOOKEEPER-4712"

    ACKS_SURVIVE_TRUNCATION = "acks-survive-truncation"
    SYNC_FROM_APPLIED = "sync-from-applied"

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
    SERVICE = "the service as clients see it"
    RECIPES = "the recipes"


class Defect(msgspec.Struct, frozen=True):
    """The wrong behaviour of a variant, its first release without it (`fixed`, empty for a mutant), and its area."""

    wrong: str
    fixed: str = ""
    area: Area = Area.ZAB


_OF_SERVERS: Mapping[Variant, Defect] = {
    Variant.VOTE_ORDER_CYCLES: Defect(
        "the server id breaks a tie of zxids whatever the epochs are, so that the order of votes has cycles",
        "3.4.4, 3.5.0",
        Area.ELECTION,
    ),
    Variant.LEADER_OF_AN_OLD_ROUND: Defect(
        "FOLLOWING notifications of another round make their subject a leader again", "3.4.4", Area.ELECTION
    ),
    Variant.TREE_BEHIND_LOG: Defect(
        "the tree kept across elections lags behind the log, and its zxid is what is voted and synchronised with",
        "3.4.12, 3.5.4, 3.6.0",
    ),
    Variant.COMMITS_AFTER_UPTODATE: Defect(
        "what was committed while synchronising is applied some time after UPTODATE was acknowledged", "3.9.3"
    ),
    Variant.LOGGED_AFTER_UPTODATE: Defect(
        "NEWLEADER is acknowledged while the proposals of the DIFF are in memory; they are logged after UPTODATE",
        "3.5.9, 3.6.3, 3.7.0",
    ),
    Variant.NEWLEADER_FORGETS_PROPOSALS: Defect(
        "NEWLEADER logs and forgets proposals not yet committed, so that their COMMIT finds nothing", "3.9.3"
    ),
    Variant.EPOCH_BEFORE_LOG: Defect(
        "on NEWLEADER currentEpoch is written before the synchronised proposals are logged", "3.9.3"
    ),
    Variant.NEWLEADER_ACK_BEFORE_SYNC: Defect(
        "synchronised proposals are queued for the disk, and NEWLEADER is acknowledged before they are on it", "3.9.3"
    ),
    Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK: Defect(
        "the sync thread may acknowledge a synchronised proposal before NEWLEADER is acknowledged", "3.9.3"
    ),
    Variant.QUEUE_SURVIVES_SHUTDOWN: Defect(
        "a learner that shuts down leaves its sync thread with a queue, and reads its last zxid before that is flushed",
        "after 3.9.3 (not by the fix of the five above)",
    ),
    Variant.ACKS_SURVIVE_TRUNCATION: Defect(
        "a follower that comes back is told to truncate a proposal which is outstanding, and its earlier "
        "acknowledgement of it stays counted",
        "in no release yet: so it stands in 3.9.4, as far as this specification can tell; found by its checker",
    ),
    Variant.SYNC_FROM_APPLIED: Defect(
        "a leader synchronises from what it has applied, so that a follower which comes back truncates what is "
        "committed and not yet applied by the leader, until it is sent again",
        "in no release yet: so it stands in 3.9.4, as far as this specification can tell; found by its checker",
    ),
    Variant.HALF_IS_A_QUORUM: Defect("half of the voters count as a quorum of acknowledgements"),
    Variant.OBSERVER_COUNTED: Defect("acknowledgements of observers, and of any learner, are counted"),
    Variant.ACK_BEFORE_LOG: Defect("a proposal is acknowledged when it arrives, before it is on disk"),
    Variant.NO_TRUNCATION: Defect(
        "a learner with transactions that its leader never had is sent a DIFF, and not a TRUNC"
    ),
    Variant.LOG_OUT_OF_ORDER: Defect("the sync thread writes the newest transaction of its queue first"),
    Variant.TORN_RECORD: Defect("a crash while a transaction is written leaves a record with another value"),
    Variant.COMMIT_BEFORE_QUORUM: Defect("a leader commits a proposal as soon as it has logged it itself"),
    Variant.SYNC_WITHOUT_TAIL: Defect("a DIFF leaves out the leader's last transaction"),
}

_OF_THE_SERVICE: Mapping[Variant, str] = {
    Variant.STALE_AFTER_MOVING: "a server takes in a client that has seen more than the server has",
    Variant.WATCH_AFTER_DATA: "events of watches are sent after answers that were ready later",
    Variant.LOST_WATCH: "a client that reconnects does not register its watches again",
    Variant.WATCH_FIRES_TWICE: "a watch stays registered when it has fired",
    Variant.EVENTS_OUT_OF_ORDER: "a client is told the newest event first",
    Variant.REUSED_SEQUENCE_NUMBER: "the number of a sequential znode is the number of its siblings",
    Variant.HALF_A_MULTI: "a multi that fails leaves what it did before it failed",
    Variant.EPHEMERAL_OUTLIVES_SESSION: "closeSession ends the session, and its ephemeral znodes stay",
    Variant.EPHEMERAL_DIES_WITH_CONNECTION: "a server deletes a client's ephemeral znodes when the connection is lost",
    Variant.TWO_CREATORS: "whether a path is free is looked up in what a lagging server has applied",
    Variant.ANSWERED_BEFORE_COMMIT: "a write is answered before it is committed, and may then be dropped",
    Variant.REORDERED_REQUESTS: "the requests of one client may overtake each other",
    Variant.SYNC_WITHOUT_WAITING: "a sync is answered before the server has caught up",
}

_OF_RECIPES: Mapping[Variant, str] = {
    Variant.NO_PROTECTION: "the name of a znode holds no id by which a lost creation is found again",
    Variant.RETRY_WITHOUT_LOOKING: "a creation whose answer was lost is asked for again, without a look",
    Variant.SEARCH_WITHOUT_SYNC: "a lost creation is looked for at a server that may lag behind it",
    Variant.WATCH_THE_LEADER: "whoever waits watches the smallest znode, and not the one below its own",
    Variant.WATCH_THE_CHILDREN: "whoever waits watches all children",
    Variant.EXISTS_AND_WATCH: "the predecessor is watched by exists, which leaves a watch where it is gone",
    Variant.NO_REREAD: "a deleted predecessor is taken for leadership, without a look at the children",
    Variant.NO_REREAD_ON_RECONNECT: "whoever waits goes on waiting after a reconnection lost its watch",
    Variant.LEAD_WHILE_SUSPENDED: "a leader goes on leading while it is disconnected",
    Variant.LEAD_UNANNOUNCED: "having no predecessor is taken for a leader's announcement by the others",
    Variant.RELEASE_ONCE: "a deletion whose answer was lost is not asked for again",
    Variant.ENTER_TWICE: "whoever holds a lock and asks for it again queues behind itself",
    Variant.LEAVE_AT_ONCE: "the first release of a lock that was taken twice gives it up",
    Variant.NO_RESET: "a latch keeps what it had before it was disconnected, and does not look again",
    Variant.OLD_TOKEN: "a latch that queues anew writes with the token of its place before",
    Variant.NO_FENCING: "the resource takes writes with any token",
}

DESCRIBED: Mapping[Variant, Defect] = {
    **_OF_SERVERS,
    **{variant: Defect(wrong, area=Area.SERVICE) for variant, wrong in _OF_THE_SERVICE.items()},
    **{variant: Defect(wrong, area=Area.RECIPES) for variant, wrong in _OF_RECIPES.items()},
}
"""The description of every variant."""


def is_defect(variant: Variant) -> bool:
    """Whether a variant is a known defect of ZooKeeper, and not a mutant of this project."""
    return bool(DESCRIBED[variant].fixed)


def of_area(*areas: Area) -> frozenset[Variant]:
    """The variants of these parts of the specification."""
    return frozenset(variant for variant, described in DESCRIBED.items() if described.area in areas)
