"""Wrong on purpose: known defects of ZooKeeper, and mutants, each at the one place of the specification that differs.

A variant that no invariant catches is a failing test, and an invariant that no variant breaks is suspect
(`tests/quality`). Known defects are named after the issue that reported them; the code that a variant stands for is
named where the specification asks for it.
"""

import enum
from collections.abc import Mapping

import msgspec


class Variant(enum.Enum):
    """The variants; the values are the names by which a scenario or the command line asks for one."""

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


class Described(msgspec.Struct, frozen=True):
    """What a variant does in the wrong order; `fixed` is the first release without it, empty for a mutant."""

    wrong: str
    fixed: str = ""


DESCRIBED: Mapping[Variant, Described] = {
    Variant.VOTE_ORDER_CYCLES: Described(
        "the server id breaks a tie of zxids whatever the epochs are, so that the order of votes has cycles",
        "3.4.4, 3.5.0",
    ),
    Variant.LEADER_OF_AN_OLD_ROUND: Described(
        "FOLLOWING notifications of another round make their subject a leader again", "3.4.4"
    ),
    Variant.TREE_BEHIND_LOG: Described(
        "the tree kept across elections lags behind the log, and its zxid is what is voted and synchronised with",
        "3.4.12, 3.5.4, 3.6.0",
    ),
    Variant.COMMITS_AFTER_UPTODATE: Described(
        "what was committed while synchronising is applied some time after UPTODATE was acknowledged", "3.9.3"
    ),
    Variant.LOGGED_AFTER_UPTODATE: Described(
        "NEWLEADER is acknowledged while the proposals of the DIFF are in memory; they are logged after UPTODATE",
        "3.5.9, 3.6.3, 3.7.0",
    ),
    Variant.NEWLEADER_FORGETS_PROPOSALS: Described(
        "NEWLEADER logs and forgets proposals not yet committed, so that their COMMIT finds nothing", "3.9.3"
    ),
    Variant.EPOCH_BEFORE_LOG: Described(
        "on NEWLEADER currentEpoch is written before the synchronised proposals are logged", "3.9.3"
    ),
    Variant.NEWLEADER_ACK_BEFORE_SYNC: Described(
        "synchronised proposals are queued for the disk, and NEWLEADER is acknowledged before they are on it", "3.9.3"
    ),
    Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK: Described(
        "the sync thread may acknowledge a synchronised proposal before NEWLEADER is acknowledged", "3.9.3"
    ),
    Variant.QUEUE_SURVIVES_SHUTDOWN: Described(
        "a learner that shuts down leaves its sync thread with a queue, and reads its last zxid before that is flushed",
        "after 3.9.3 (not by the fix of the five above)",
    ),
    Variant.ACKS_SURVIVE_TRUNCATION: Described(
        "a follower that comes back is told to truncate a proposal which is outstanding, and its earlier "
        "acknowledgement of it stays counted",
        "in no release yet: so it stands in 3.9.4, as far as this specification can tell; found by its checker",
    ),
    Variant.SYNC_FROM_APPLIED: Described(
        "a leader synchronises from what it has applied, so that a follower which comes back truncates what is "
        "committed and not yet applied by the leader, until it is sent again",
        "in no release yet: so it stands in 3.9.4, as far as this specification can tell; found by its checker",
    ),
    Variant.HALF_IS_A_QUORUM: Described("half of the voters count as a quorum of acknowledgements"),
    Variant.OBSERVER_COUNTED: Described("acknowledgements of observers, and of any learner, are counted"),
    Variant.ACK_BEFORE_LOG: Described("a proposal is acknowledged when it arrives, before it is on disk"),
    Variant.NO_TRUNCATION: Described(
        "a learner with transactions that its leader never had is sent a DIFF, and not a TRUNC"
    ),
    Variant.LOG_OUT_OF_ORDER: Described("the sync thread writes the newest transaction of its queue first"),
    Variant.TORN_RECORD: Described("a crash while a transaction is written leaves a record with another value"),
    Variant.COMMIT_BEFORE_QUORUM: Described("a leader commits a proposal as soon as it has logged it itself"),
    Variant.SYNC_WITHOUT_TAIL: Described("a DIFF leaves out the leader's last transaction"),
}
"""Every variant, in words."""


def is_defect(variant: Variant) -> bool:
    """Whether a variant is a known defect of ZooKeeper, and not a mutant of this project."""
    return bool(DESCRIBED[variant].fixed)
