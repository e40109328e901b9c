"""An operator who deletes znodes of clients: a client may lose its znode while its session is open.

Rules of this module: only the znode of a client that waits is deleted. A leader does not watch its own znode, so it
would get no notification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checker.engine import Actor, Move, Outcome, Read, Rule, Send
from checker.models.recipes.setup import OPERATOR, ROOT, RecipeSetup, first_of
from checker.models.service import LEADER, Leader
from checker.models.service.messages import Propose
from spec.tree.requests import Delete, SessionId


def operator_actor() -> Actor:
    """The number of znodes that may still be deleted."""

    def step(values: tuple[Any, ...], _: object) -> Outcome | None:
        (left,) = values
        return Outcome((left - 1,)) if left else None

    return Actor(OPERATOR, (OPERATOR,), step)


def removals(setup: RecipeSetup) -> Rule:
    """The rule that deletes the znode of a waiting client, with a request in that client's session.

    The requester makes no difference to the outcome.
    """

    def there(leader: Leader) -> tuple[tuple[str, SessionId], ...] | None:
        first = first_of(setup, leader.store)
        waiting = [(path, znode) for path, znode in leader.store.nodes if path.startswith(f"{ROOT}/")]
        return tuple((path, znode.ephemeral_owner) for path, znode in waiting if first and path != first[0]) or None

    def moves(there: tuple[tuple[str, SessionId], ...], _left: bool) -> Iterator[Move]:
        for path, owner in there:
            asked = Propose(owner, Delete(path, -1))
            yield Move("remove", (path,), (Send(OPERATOR, None), Send(LEADER, asked)))

    return Rule("the operator deletes", (Read(LEADER, there), Read(OPERATOR, lambda left: left > 0 or None)), moves)
