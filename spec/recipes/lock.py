"""A re-entrant lock: a place in a queue, and how often its holder has taken it.

Rules of this module:

- Whoever holds takes it again at once; only as many releases give it up.
- A lock that was lost (its session expired, its znode was deleted) is not taken again by itself: its holder has to
  be told, and whatever it did since may not have been alone.
- Who tells one thread from another is the application's side; here a client is one owner.

Source: Curator's `InterProcessMutex.internalLock`, `release`.
"""

import msgspec
from msgspec.structs import replace

from spec.effects import Observe
from spec.recipes import queue
from spec.recipes.events import Event, Gone, Holds, Step, Unwanted, Wanted
from spec.recipes.place import Phase, Place, Rules
from spec.variants import Variant


class Lock(msgspec.Struct, frozen=True):
    """`taken` is how often the lock was taken and not yet released, waiting included."""

    place: Place = Place()
    taken: int = 0


def step(rules: Rules, lock: Lock, event: Event) -> Step[Lock]:
    """What becomes of a lock with an event."""
    match event:
        case Wanted() if lock.taken:
            return _again(rules, replace(lock, taken=lock.taken + 1), event)
        case Wanted():
            return _through(rules, replace(lock, taken=1), event)
        case Unwanted():
            left = 0 if Variant.LEAVE_AT_ONCE in rules.variants else max(lock.taken - 1, 0)
            lock = replace(lock, taken=left)
            return _through(rules, lock, event) if left == 0 else Step(lock)
        case _:
            return _through(rules, lock, event)


def _again(rules: Rules, lock: Lock, event: Wanted) -> Step[Lock]:
    if Variant.ENTER_TWICE in rules.variants and lock.place.holds:
        return _through(rules, replace(lock, place=Place(link=lock.place.link)), event)
    held = lock.place.holds and lock.place.phase is Phase.HOLDING
    told = (Observe(Holds(lock.place.path or "", lock.place.token or 0)),) if held else ()
    return Step(lock, told)


def _through(rules: Rules, lock: Lock, event: Event) -> Step[Lock]:
    """The place decides; whoever is out has taken nothing."""
    done = queue.step(rules, lock.place, event)
    out = Observe(Gone()) in done.effects
    return Step(Lock(done.state, 0 if out else lock.taken), done.effects)
