"""The exceptions of the recipes. Only reads (`participants`, `leader`) raise kazoo's own.

Each is named for the event that it reports.
"""

# ruff: noqa: N818

from spec.tree.replies import Code


class RecipeError(Exception):
    """Base class of the errors that the servers or the state of the client cause."""


class Refused(RecipeError):
    """The servers refuse a request that the recipe needs; `code` is the reason, for example `NO_AUTH`."""

    def __init__(self, path: str, code: Code) -> None:
        super().__init__(f"{path}: the servers refuse the requests of the recipe: {code.name}")
        self.code = code


class ClientClosed(RecipeError):
    """The kazoo client is not started, or was stopped, so the wait would never end."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: the kazoo client is not started, or was stopped; start it before")


class LatchClosed(RecipeError):
    """The latch was closed and will never lead (Curator: `EOFException`)."""


class LockLost(RecipeError):
    """The lock was lost before it was released: work under it may have overlapped with another holder's."""


class SessionLost(RecipeError):
    """The session has expired: the client is not registered at the barrier, and the others do not wait for it."""


class LeadershipLost(RecipeError):
    """The leadership has ended: connection or session lost, interrupted, or closed."""
