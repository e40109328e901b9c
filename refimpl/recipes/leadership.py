"""The argument of a procedure that runs as the leader: the token to act with, and the request to end.

Source: Curator's `LeaderSelectorListener.takeLeadership`, whose thread is interrupted; Python cannot interrupt threads.
"""

import threading

from refimpl.recipes.errors import LeadershipLost


class Leadership:
    """One period of leadership. `token` is the czxid of the leader's znode, greater than that of every earlier leader.

    `interrupted` is a `threading.Event`, set as soon as the client must no longer rely on its leadership. It is never
    cleared: if the client leads again, that is another `Leadership`.
    """

    def __init__(self, path: str, token: int) -> None:
        self.path = path
        self.token = token
        self.interrupted = threading.Event()

    def check(self) -> None:
        """Raise `LeadershipLost` if the leadership has ended."""
        if self.interrupted.is_set():
            raise LeadershipLost(f"{self.path}: the leadership of token {self.token:#x} has ended")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the leadership has ended, at most `seconds` (None: no limit); return whether it has."""
        return self.interrupted.wait(seconds)
