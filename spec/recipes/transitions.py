"""The actions of a client in a queue, each as a step: the vocabulary of `spec.recipes.queue` and `answers`.

Rules of this module:

- Each function that ends in an `Ask` sets the phase that waits for its reply.
- No function here decides what has happened; its callers have evaluated the event.

Source: as in `spec.recipes.queue`, and noted at each function.
"""

from collections.abc import Callable

from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes import names
from spec.recipes.events import Answered, Ask, Failed, First, Holds, HoldsNoMore, RecipeStep, Waits, Withdrawn
from spec.recipes.member import MemberPhase, QueueMember, QueueRules
from spec.tree.data import OPEN_ACL_UNSAFE, Record
from spec.tree.paths import below
from spec.tree.requests import Create2, CreateMode, Delete, Exists, GetChildren, GetData, Sync
from spec.variants import Variant


def after(
    first: RecipeStep[QueueMember], then: Callable[[QueueMember], RecipeStep[QueueMember]]
) -> RecipeStep[QueueMember]:
    """Compose two steps into one."""
    second = then(first.state)
    return Step(second.state, (*first.effects, *second.effects))


def own(place: QueueMember) -> str:
    """The path of the place's znode. Callers ask only in phases that have one."""
    assert place.path is not None, "a client in this phase has a znode"
    return place.path


def _ask(place: QueueMember, phase: MemberPhase, record: Record) -> RecipeStep[QueueMember]:
    return Step(replace(place, phase=phase, notified=False), (Ask(record),))


# -- into the queue ------------------------------------------------------------------------------------------


def enter(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Create a znode with a unique name (`CreateBuilderImpl`, `withProtection`)."""
    name = names.protected("" if Variant.NO_PROTECTION in rules.variants else place.id, rules.word)
    record = Create2(below(rules.root, name), rules.data, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL)
    token = place.token if Variant.OLD_TOKEN in rules.variants else None
    anew = QueueMember(place.phase, place.link, place.wanted, holds=place.holds, id=place.id, token=token)
    return _ask(anew, MemberPhase.ENTERING, record)


def sync(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Ask the server to catch up, before the search for a znode that may have been created."""
    return _ask(place, MemberPhase.SYNCING, Sync(rules.root))


def search(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Search for the znode that may have been created (`findProtectedNodeInForeground`)."""
    return _ask(place, MemberPhase.SEARCHING, GetChildren(rules.root, False))


def claim(place: QueueMember) -> RecipeStep[QueueMember]:
    """Ask for the Stat of the znode that the search found, because its czxid is the token."""
    return _ask(place, MemberPhase.CLAIMING, Exists(own(place), False))


# -- in the queue --------------------------------------------------------------------------------------------


def look(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """List the queue (`LockInternals.getSortedChildren`)."""
    watch = Variant.WATCH_THE_CHILDREN in rules.variants
    return _ask(
        replace(place, behind=rules.root if watch else None), MemberPhase.LOOKING, GetChildren(rules.root, watch)
    )


def watch(rules: QueueRules, place: QueueMember, behind: str) -> RecipeStep[QueueMember]:
    """Watch the predecessor's znode (`LeaderLatch.checkLeadership`: "previously we used exists()")."""
    by_exists = Variant.EXISTS_AND_WATCH in rules.variants
    record: Record = Exists(behind, True) if by_exists else GetData(behind, True)
    return _ask(replace(place, behind=behind), MemberPhase.WATCHING, record)


def ask_leader(place: QueueMember, announcement: str) -> RecipeStep[QueueMember]:
    """Read the leader's announcement; the watch on the predecessor is already set."""
    return _ask(place, MemberPhase.ASKING, GetData(announcement, False))


def wait(place: QueueMember) -> RecipeStep[QueueMember]:
    """Wait until the watch fires."""
    return Step(replace(place, phase=MemberPhase.WAITING), (Observe(Waits(place.behind or "")),))


# -- first in the queue --------------------------------------------------------------------------------------


def lead(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Act as the first in the queue: hold, or create the announcement before holding."""
    if rules.announces is None or Variant.LEAD_UNANNOUNCED in rules.variants:
        return hold(place)
    record = Create2(rules.announces, own(place).encode(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
    announcing = _ask(replace(place, behind=None, announced=True), MemberPhase.ANNOUNCING, record)
    return Step(announcing.state, (Observe(First(own(place))), *announcing.effects))


def defer(place: QueueMember, announcement: str) -> RecipeStep[QueueMember]:
    """Read the existing announcement: the place's own, whose reply was lost, or that of a leader not yet gone."""
    return _ask(replace(place, behind=announcement), MemberPhase.DEFERRING, GetData(announcement, True))


def hold(place: QueueMember) -> RecipeStep[QueueMember]:
    """Hold, and report it unless the place already believes it."""
    held = replace(place, phase=MemberPhase.HOLDING, holds=True, held=True, behind=None)
    return Step(held, () if place.holds else (Observe(Holds(own(place), place.token or 0)),))


def no_longer(place: QueueMember, why: str) -> RecipeStep[QueueMember]:
    """Give up the belief that the place holds, and report it."""
    return Step(replace(place, holds=False), (Observe(HoldsNoMore(why)),)) if place.holds else Step(place)


# -- out of the queue ----------------------------------------------------------------------------------------


def leave(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Release the place: retract a possible announcement, then delete the znode.

    As long as the znode exists, no other place is first, so the announcement is the place's own.
    """
    announcement = rules.announces if place.announced else None
    released = no_longer(replace(place, behind=None), "released")
    return after(released, delete if announcement is None else lambda p: retract(p, announcement))


def retract(place: QueueMember, announcement: str) -> RecipeStep[QueueMember]:
    """Delete the announcement."""
    return _ask(place, MemberPhase.RETRACTING, Delete(announcement, -1))


def delete(place: QueueMember) -> RecipeStep[QueueMember]:
    """Delete the place's znode."""
    return _ask(place, MemberPhase.LEAVING, Delete(own(place), -1))


def out(place: QueueMember) -> RecipeStep[QueueMember]:
    """Leave the queue without a znode."""
    return after(no_longer(place, "out"), lambda p: Step(QueueMember(link=p.link), (Observe(Withdrawn()),)))


def refused(place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """Fail: the root is missing, or an ACL forbids it. A znode that cannot be deleted goes with the session."""
    told = after(no_longer(place, "refused"), lambda p: Step(p, (Observe(Failed(answer.code)),)))
    return after(told, out)
