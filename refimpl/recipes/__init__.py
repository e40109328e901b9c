"""Coordination recipes on kazoo, for ZooKeeper 3.5 or later: a lock, a latch, a selector and an election.

    errors        the exceptions
    calls         records as kazoo calls, kazoo results as answers
    driver        runs a step function over a client; makes no decisions
    waiting       a belief that one thread updates and other threads wait for
    herald        calls the application's listeners
    lock          exclusive, fair, re-entrant
    standing      the common part of the elections
    latch         leadership from `start` to `close`, whenever it is available
    leadership    the argument of a procedure that runs as the leader
    selector      leadership while a procedure runs, repeatedly
    election      leadership for one call
    participants  the members of a queue, read from the znodes
    aio           the lock for asyncio
    counting      makes a client keep its request numbers across connections

The decisions are in `spec.recipes`, the same step functions that the checker explores. The recipes need the extra
`recipes`.
"""

from refimpl.recipes.aio import AsyncLock
from refimpl.recipes.election import Election
from refimpl.recipes.errors import ClientClosed, LatchClosed, LeadershipLost, LockLost, RecipeError, Refused
from refimpl.recipes.latch import LatchState, LeaderLatch
from refimpl.recipes.leadership import Leadership
from refimpl.recipes.lock import Lock
from refimpl.recipes.participants import Participant
from refimpl.recipes.preserve_xids import keep_counting
from refimpl.recipes.selector import LeaderSelector

__all__ = [
    "AsyncLock",
    "ClientClosed",
    "Election",
    "LatchClosed",
    "LatchState",
    "LeaderLatch",
    "LeaderSelector",
    "Leadership",
    "LeadershipLost",
    "Lock",
    "LockLost",
    "Participant",
    "RecipeError",
    "Refused",
    "keep_counting",
]
