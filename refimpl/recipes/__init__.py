"""Recipes that applications run, over kazoo, at any ZooKeeper from 3.5 on: a lock, a latch, a selector, an election.

    errors        what can go wrong, as exceptions
    calls         records as kazoo's calls, kazoo's results as answers
    driver        runs a step function over a client; decides nothing
    waiting       a belief that one thread changes and others wait for
    herald        calls the application's listeners
    lock          exclusive, fair, re-entrant
    standing      what the elections have in common
    latch         leadership from `start` to `close`, whenever it can be had
    leadership    what a procedure is given while it leads
    selector      leadership while a procedure runs, again and again
    election      leadership for one call
    participants  who is in a queue, read from the znodes
    aio           the lock for asyncio
    counting      has a client number its requests on over a lost connection

What they decide is in `spec.recipes`: the same step functions that the checker explores. They need the extra `recipes`.
"""

from refimpl.recipes.aio import AsyncLock
from refimpl.recipes.counting import keep_counting
from refimpl.recipes.election import Election
from refimpl.recipes.errors import ClientClosed, LatchClosed, LeadershipLost, LockLost, RecipeError, Refused
from refimpl.recipes.latch import LatchState, LeaderLatch
from refimpl.recipes.leadership import Leadership
from refimpl.recipes.lock import Lock
from refimpl.recipes.participants import Participant
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
