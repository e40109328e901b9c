"""Coordination recipes on kazoo, for ZooKeeper 3.5 or later: a lock, three kinds of election, and a barrier.

    errors             the exceptions
    kazoo_adapter      records as kazoo calls, kazoo results as answers; a client that keeps its request numbers
    driver             runs a step function over a client, without decisions; and calls the listeners
    lock               exclusive, fair, re-entrant; the same for asyncio
    participation      the common part of the elections, the argument of a procedure that leads, the members of a queue
    latch              leadership from `start` to `close`, whenever it is available
    selector           leadership while a procedure runs, repeatedly
    election           leadership for one call
    barrier            clients that start together and leave together

The decisions are in `spec.recipes`, the same step functions that the checker explores. The recipes need
kazoo.
"""

from refimpl.recipes.barrier import DoubleBarrier
from refimpl.recipes.election import Election
from refimpl.recipes.errors import (
    ClientClosed,
    LatchClosed,
    LeadershipLost,
    LockLost,
    RecipeError,
    Refused,
    SessionLost,
)
from refimpl.recipes.kazoo_adapter import keep_counting
from refimpl.recipes.latch import LatchState, LeaderLatch
from refimpl.recipes.lock import AsyncLock, Lock
from refimpl.recipes.participation import Leadership, Participant
from refimpl.recipes.selector import LeaderSelector

__all__ = [
    "AsyncLock",
    "ClientClosed",
    "DoubleBarrier",
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
    "SessionLost",
    "keep_counting",
]
