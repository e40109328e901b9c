"""The lengths of the two timers of an election, in seconds.

Source: `FastLeaderElection.lookForLeader`, `finalizeWait`, `minNotificationInterval`, `maxNotificationInterval`.
"""

FINALIZE_WAIT = 0.2
"""The time to wait for a better vote before a decision."""
FIRST_NOTIFICATION_TIMEOUT, LAST_NOTIFICATION_TIMEOUT = 0.2, 60.0
"""The shortest and the longest silence after which a vote is sent again."""


def next_notification_timeout(timeout: float) -> float:
    """The notification timeout after one that has passed: twice as long, up to the longest."""
    return min(2 * timeout, LAST_NOTIFICATION_TIMEOUT)
