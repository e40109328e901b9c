"""The two clocks of a node, in milliseconds, as ZooKeeper counts time.

Source: `org.apache.zookeeper.common.Time`.
"""

from refimpl.system import system


def monotonic_ms() -> int:
    """Returns a time that never goes back, for timeouts (`Time.currentElapsedTime`)."""
    return system().monotonic_ms()


def wall_ms() -> int:
    """Returns the time since 1970, which transactions carry (`Time.currentWallTime`)."""
    return system().wall_ms()
