"""Bounds on the epochs that a server believes.

An epoch is the upper half of a signed 64-bit zxid, so `LAST_EPOCH` is the end of the protocol: an ensemble that reaches
it never serves again. ZooKeeper 3.9 takes any epoch from any learner, and one forged packet ends the ensemble.

A leader is elected for the newest history of its quorum. A voter of that quorum is ahead of it only by epochs that
were accepted and never established, and each of these costs an election. At one failed election a second without a
pause, `MAX_JUMP` is 12 days. A learner may also lag behind its leader, by the epochs that began while it was down.

Source: `Leader.getEpochToPropose`, `Learner.registerWithLeader`; the bound is an addition to ZooKeeper.
"""

LAST_EPOCH = (1 << 31) - 1
"""The highest epoch of a zxid that is not negative."""
MAX_JUMP = 1 << 20
"""The largest believed difference between the acceptedEpoch of a server and that of a peer."""


def believed_epochs(accepted: int) -> range:
    """The acceptedEpochs of a learner that a leader with this acceptedEpoch believes; an epoch follows each of them."""
    return range(min(accepted + MAX_JUMP, LAST_EPOCH - 1) + 1)


def followed_epochs(accepted: int) -> range:
    """The LEADERINFO epochs that a learner with this acceptedEpoch accepts.

    A server that has accepted no epoch yet, as with an empty disk, accepts any.
    """
    return range(accepted, (min(accepted + MAX_JUMP, LAST_EPOCH) if accepted else LAST_EPOCH) + 1)
