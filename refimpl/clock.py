"""The two clocks of a node, in milliseconds, as ZooKeeper counts time.

Source: `org.apache.zookeeper.common.Time`.
"""

import time


def monotonic_ms() -> int:
    """A clock that never goes back: for time-outs (`Time.currentElapsedTime`)."""
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Since 1970: the time that transactions bear (`Time.currentWallTime`)."""
    return time.time_ns() // 1_000_000
