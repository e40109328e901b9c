"""The two clocks of a node, in milliseconds, as ZooKeeper counts time.

Source: `org.apache.zookeeper.common.Time`.
"""

import time


def monotonic_ms() -> int:
    """Returns a time that never goes back, for timeouts (`Time.currentElapsedTime`)."""
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Returns the time since 1970, which transactions carry (`Time.currentWallTime`)."""
    return time.time_ns() // 1_000_000
