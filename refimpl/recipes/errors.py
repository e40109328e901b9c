"""What can go wrong with a recipe, as exceptions; kazoo's own are raised by reads (`participants`, `leader`) alone.

They are named for what has happened.
"""

# ruff: noqa: N818

from spec.tree.replies import Code


class RecipeError(Exception):
    """Base of all that the recipes raise for what happened at the servers or to the client."""


class Refused(RecipeError):
    """The servers refuse what the recipe needs; `code` says why (`NO_AUTH`, for one)."""

    def __init__(self, path: str, code: Code) -> None:
        super().__init__(f"{path}: the servers refuse what the recipe asks for: {code.name}")
        self.code = code


class ClientClosed(RecipeError):
    """The kazoo client is not started, or was stopped, and nobody else would end the wait."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: the kazoo client is not started, or was stopped; start it before")


class LatchClosed(RecipeError):
    """The latch was closed, so that it will never lead (Curator: `EOFException`)."""


class LockLost(RecipeError):
    """The lock was lost before it was released: whatever was done under it may not have been alone."""


class LeadershipLost(RecipeError):
    """The leadership has ended: connection or session lost, interrupted, or closed."""
