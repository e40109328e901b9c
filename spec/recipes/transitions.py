"""The actions of a client in a queue, each as a step: the vocabulary of `spec.recipes.queue` and `answers`.

Rules of this module:

- Each function that ends in an `Ask` sets the phase that waits for its reply.
- No function here decides what has happened; its callers have evaluated the event.

Source: as in `spec.recipes.queue`, and noted at each function.
"""

from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes import names
from spec.recipes.contest import after, ask, no_longer
from spec.recipes.events import First, Holds, RecipeStep, Waits
from spec.recipes.member import MemberPhase, QueueMember, QueueRules
from spec.tree.data import OPEN_ACL_UNSAFE, Record
from spec.tree.paths import below
from spec.tree.requests import Create2, CreateMode, Delete, Exists, GetChildren, GetData, Sync
from spec.variants import Variant


def own(member: QueueMember) -> str:
    """The path of the member's znode. Callers ask only in phases that have one."""
    assert member.path is not None, "a client in this phase has a znode"
    return member.path


# -- into the queue ------------------------------------------------------------------------------------------


def enter(rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
    """Create a znode with a unique name (`CreateBuilderImpl`, `withProtection`)."""
    name = names.protected("" if Variant.NO_PROTECTION in rules.variants else member.id, rules.word)
    record = Create2(below(rules.root, name), rules.data, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL)
    token = member.token if Variant.OLD_TOKEN in rules.variants else None
    anew = QueueMember(member.phase, member.link, member.wanted, holds=member.holds, id=member.id, token=token)
    return ask(anew, MemberPhase.ENTERING, record)


def sync(rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
    """Ask the server to catch up, before the search for a znode that may have been created."""
    return ask(member, MemberPhase.SYNCING, Sync(rules.root))


def search(rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
    """Search for the znode that may have been created (`findProtectedNodeInForeground`)."""
    return ask(member, MemberPhase.SEARCHING, GetChildren(rules.root, False))


def claim(member: QueueMember) -> RecipeStep[QueueMember]:
    """Ask for the Stat of the znode that the search found, because its czxid is the token."""
    return ask(member, MemberPhase.CLAIMING, Exists(own(member), False))


# -- in the queue --------------------------------------------------------------------------------------------


def look(rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
    """List the queue (`LockInternals.getSortedChildren`)."""
    watch = Variant.WATCH_THE_CHILDREN in rules.variants
    return ask(
        replace(member, behind=rules.root if watch else None), MemberPhase.LOOKING, GetChildren(rules.root, watch)
    )


def watch(rules: QueueRules, member: QueueMember, behind: str) -> RecipeStep[QueueMember]:
    """Watch the predecessor's znode (`LeaderLatch.checkLeadership`: "previously we used exists()")."""
    by_exists = Variant.EXISTS_AND_WATCH in rules.variants
    record: Record = Exists(behind, True) if by_exists else GetData(behind, True)
    return ask(replace(member, behind=behind), MemberPhase.WATCHING, record)


def ask_leader(member: QueueMember, announcement: str) -> RecipeStep[QueueMember]:
    """Read the leader's announcement; the watch on the predecessor is already set."""
    return ask(member, MemberPhase.ASKING, GetData(announcement, False))


def wait(member: QueueMember) -> RecipeStep[QueueMember]:
    """Wait until the watch fires."""
    return Step(replace(member, phase=MemberPhase.WAITING), (Observe(Waits(member.behind or "")),))


# -- first in the queue --------------------------------------------------------------------------------------


def lead(rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
    """Act as the first in the queue: hold, or create the announcement before holding."""
    if rules.announces is None or Variant.LEAD_UNANNOUNCED in rules.variants:
        return hold(member)
    record = Create2(rules.announces, own(member).encode(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
    announcing = ask(replace(member, behind=None, announced=True), MemberPhase.ANNOUNCING, record)
    return Step(announcing.state, (Observe(First(own(member))), *announcing.effects))


def defer(member: QueueMember, announcement: str) -> RecipeStep[QueueMember]:
    """Read the existing announcement: the member's own, whose reply was lost, or that of a leader not yet gone."""
    return ask(replace(member, behind=announcement), MemberPhase.DEFERRING, GetData(announcement, True))


def hold(member: QueueMember) -> RecipeStep[QueueMember]:
    """Hold, and report it unless the member already believes it."""
    holder = replace(member, phase=MemberPhase.HOLDING, holds=True, held=True, behind=None)
    return Step(holder, () if member.holds else (Observe(Holds(own(member), member.token or 0)),))


# -- out of the queue ----------------------------------------------------------------------------------------


def leave(rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
    """Release the member: retract a possible announcement, then delete the znode.

    As long as the znode exists, no other member is first, so the announcement is the member's own.
    """
    announcement = rules.announces if member.announced else None
    released = no_longer(replace(member, behind=None), "released")
    return after(released, delete if announcement is None else lambda p: retract(p, announcement))


def retract(member: QueueMember, announcement: str) -> RecipeStep[QueueMember]:
    """Delete the announcement."""
    return ask(member, MemberPhase.RETRACTING, Delete(announcement, -1))


def delete(member: QueueMember) -> RecipeStep[QueueMember]:
    """Delete the member's znode."""
    return ask(member, MemberPhase.LEAVING, Delete(own(member), -1))
