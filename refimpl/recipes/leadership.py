"""What a procedure is given while it leads: the token to act with, and whether it should end.

Source: Curator's `LeaderSelectorListener.takeLeadership`, whose thread is interrupted; Python interrupts no threads.
"""

import threading

from refimpl.recipes.errors import LeadershipLost


class Leadership:
    """One time of leadership. `token` is the czxid of the leader's znode, greater than that of every earlier leader.

    `interrupted` is a `threading.Event`, set as soon as the client must not rely on its leadership any more. It is
    never cleared: when the client leads again, that is another leadership.
    """

    def __init__(self, path: str, token: int) -> None:
        self.path = path
        self.token = token
        self.interrupted = threading.Event()

    def check(self) -> None:
        """Raise `LeadershipLost` if it has ended."""
        if self.interrupted.is_set():
            raise LeadershipLost(f"{self.path}: the leadership of token {self.token:#x} has ended")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, at most so many seconds (None: without end); whether it has."""
        return self.interrupted.wait(seconds)
