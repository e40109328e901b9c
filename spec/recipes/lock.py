"""A re-entrant lock: a place in a queue, and the number of times that its holder has taken it.

Rules of this module:

- A holder takes the lock again immediately; it is given up after as many releases.
- A lost lock (its session expired, its znode was deleted) is not acquired again automatically. Its holder has to know
  of the loss, because its work since then may not have been exclusive.
- Here a client is one owner. Telling threads apart is the duty of the application's side.

Source: Curator's `InterProcessMutex.internalLock`, `release`.
"""

import msgspec
from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes import queue
from spec.recipes.events import Event, Holds, Join, Leave, RecipeStep, Withdrawn
from spec.recipes.member import MemberPhase, QueueMember, QueueRules
from spec.variants import Variant


class Lock(msgspec.Struct, frozen=True):
    """`taken` is the number of acquisitions without a release yet, including one that still waits."""

    place: QueueMember = QueueMember()
    taken: int = 0


def step(rules: QueueRules, lock: Lock, event: Event) -> RecipeStep[Lock]:
    """The step of a lock on an event."""
    match event:
        case Join() if lock.taken:
            return _again(rules, replace(lock, taken=lock.taken + 1), event)
        case Join():
            return _through(rules, replace(lock, taken=1), event)
        case Leave():
            count = 0 if Variant.LEAVE_AT_ONCE in rules.variants else max(lock.taken - 1, 0)
            lock = replace(lock, taken=count)
            return _through(rules, lock, event) if count == 0 else Step(lock)
        case _:
            return _through(rules, lock, event)


def _again(rules: QueueRules, lock: Lock, event: Join) -> RecipeStep[Lock]:
    if Variant.ENTER_TWICE in rules.variants and lock.place.holds:
        return _through(rules, replace(lock, place=QueueMember(link=lock.place.link)), event)
    is_holder = lock.place.holds and lock.place.phase is MemberPhase.HOLDING
    observed = (Observe(Holds(lock.place.path or "", lock.place.token or 0)),) if is_holder else ()
    return Step(lock, observed)


def _through(rules: QueueRules, lock: Lock, event: Event) -> RecipeStep[Lock]:
    result = queue.step(rules, lock.place, event)
    out = Observe(Withdrawn()) in result.effects
    return Step(Lock(result.state, 0 if out else lock.taken), result.effects)
