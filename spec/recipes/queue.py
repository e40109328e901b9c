"""The steps of a place in a queue of ephemeral sequential znodes, shared by the fair recipes.

Each participant creates a znode `_c_<id>-<word>NNNNNNNNNN` below the root. The smallest number holds. Every other
participant watches the znode just below its own, and lists the queue again when that znode is gone.

Rules of this module:

- After a lost reply to a creation, the client searches for its id before it creates again. It has the server catch up
  before the search, because a created znode may not have arrived there yet.
- The predecessor is watched with getData, not with exists, so that no watch remains on a path without a znode.
- The absence of the predecessor alone proves nothing: it may have left from the middle of the queue.
- A client without a connection does not hold, as far as it knows, and it reads everything again after a reconnect.
- A deletion is repeated until it is answered.
- A place that was held and given up is deleted even if it is wanted again before: each hold has a separate token.
- The token is the znode's czxid: it is greater for a later holder, and the servers know it (Chubby's sequencer).
- In a recipe with announcements, the first in the queue creates the announcement and holds once it exists. Others learn
  only from the announcement who the leader is. The announcement is deleted before the place.

Source: ZooKeeper's recipes, "Leader Election" and "Locks"; Curator's `LockInternals.internalLockLoop`,
`LeaderLatch.checkLeadership`, `LeaderLatch.handleStateChange`, `CreateBuilderImpl.findProtectedNodeInForeground`.
"""

from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes import transitions
from spec.recipes.events import (
    Answered,
    Connected,
    Event,
    Expired,
    Join,
    Leave,
    Notified,
    RecipeStep,
    Suspended,
    Unanswered,
    Withdrawn,
)
from spec.recipes.member import Link, MemberPhase, QueueMember, QueueRules
from spec.recipes.replies import answered
from spec.variants import Variant


def step(rules: QueueRules, place: QueueMember, event: Event) -> RecipeStep[QueueMember]:
    """The step of a place on an event."""
    match event:
        case Join(id):
            # Keep an id that a search for a created znode may still need; a hold from before is given up.
            kept = place.id if place.phase not in (MemberPhase.OUT, MemberPhase.LEAVING) else id
            return _go_on(rules, replace(place, wanted=True, held=place.held and place.wanted, id=kept))
        case Leave():
            return _unwanted(rules, replace(place, wanted=False, released=place.held or place.released))
        case Answered():
            return answered(rules, place, event)
        case Unanswered() if place.phase is not MemberPhase.OUT:
            lost = replace(place, lost=True)
            return _again(rules, lost) if place.link is Link.CONNECTED else Step(lost)
        case Notified(_, path):
            return _notified(rules, place, path)
        case Suspended():
            cut_off = replace(place, link=Link.SUSPENDED)
            stays = Variant.LEAD_WHILE_SUSPENDED in rules.variants
            return Step(cut_off) if stays else transitions.no_longer(cut_off, "suspended")
        case Expired():
            return _expired(rules, place)
        case Connected(resumed, id):
            place = replace(place, link=Link.CONNECTED)
            return _resumed(rules, place, id) if resumed else _anew(rules, place, id)
        case _:
            return Step(place)


def _go_on(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Create a znode for a place that is wanted, connected and out of the queue."""
    able = place.phase is MemberPhase.OUT and place.wanted and place.link is Link.CONNECTED
    return transitions.enter(rules, place) if able else Step(place)


def _unwanted(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Give up a hold immediately, and the znode as soon as there is a connection and nothing is outstanding."""
    if place.phase is MemberPhase.OUT:
        return Step(place, (Observe(Withdrawn()),))
    if place.phase in (MemberPhase.WAITING, MemberPhase.HOLDING) and place.link is Link.CONNECTED:
        return transitions.leave(rules, place)
    return transitions.no_longer(place, "released")


def _notified(rules: QueueRules, place: QueueMember, path: str) -> RecipeStep[QueueMember]:
    """Handle a notification: ignore one of an earlier watch, and remember one that overtakes a reply."""
    if path != place.behind or place.link is not Link.CONNECTED:
        return Step(place)
    if place.phase is not MemberPhase.WAITING:
        return Step(replace(place, notified=True))
    return transitions.lead(rules, place) if Variant.NO_REREAD in rules.variants else transitions.look(rules, place)


# -- the connection ------------------------------------------------------------------------------------------


def _expired(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Handle the loss of the session and its znode; a place that held is out, unless the recipe queues again."""
    if Variant.NO_RESET in rules.variants and place.phase is MemberPhase.HOLDING:
        return Step(replace(place, link=Link.EXPIRED))
    wanted = place.wanted and (rules.returns or not place.held)
    out: RecipeStep[QueueMember] = Step(
        QueueMember(link=Link.EXPIRED, wanted=wanted), () if wanted else (Observe(Withdrawn()),)
    )
    return transitions.after(transitions.no_longer(place, "expired"), lambda _: out)


def _anew(rules: QueueRules, place: QueueMember, id: str) -> RecipeStep[QueueMember]:
    """Continue in a new session, in which nothing of the old one is left."""
    if Variant.NO_RESET in rules.variants and place.phase is MemberPhase.HOLDING:
        return transitions.hold(place)
    return _go_on(rules, replace(place, id=id))


def _resumed(rules: QueueRules, place: QueueMember, id: str) -> RecipeStep[QueueMember]:
    """Continue in the same session: repeat the unanswered request, and read again what was watched."""
    if place.lost:
        return _again(rules, place)
    match place.phase:
        case MemberPhase.OUT:
            return _go_on(rules, replace(place, id=id))
        case MemberPhase.WAITING if Variant.NO_REREAD_ON_RECONNECT in rules.variants:
            return Step(place)
        case MemberPhase.HOLDING if rules.resets and Variant.NO_RESET not in rules.variants:
            return transitions.leave(rules, replace(place, id=id))
        case MemberPhase.WAITING | MemberPhase.HOLDING:
            # Meanwhile an operator may have deleted the znode of a holder, although the session is the same.
            return transitions.look(rules, place) if place.stays else transitions.leave(rules, place)
        case _:
            return Step(place)  # a reply, or Unanswered, is still to arrive


def _again(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Ask again after a lost reply, now that there is a connection."""
    place = replace(place, lost=False)
    match place.phase:
        case MemberPhase.ENTERING if rules.variants & {Variant.NO_PROTECTION, Variant.RETRY_WITHOUT_LOOKING}:
            return transitions.enter(rules, place) if place.wanted else transitions.out(place)
        case MemberPhase.ENTERING | MemberPhase.SYNCING | MemberPhase.SEARCHING:
            unsynced = Variant.SEARCH_WITHOUT_SYNC in rules.variants
            return transitions.search(rules, place) if unsynced else transitions.sync(rules, place)
        case MemberPhase.CLAIMING:
            return transitions.claim(place)
        case MemberPhase.RETRACTING:
            return transitions.retract(place, rules.announces or "")
        case MemberPhase.LEAVING if Variant.RELEASE_ONCE in rules.variants:
            return transitions.enter(rules, place) if place.wanted else transitions.out(place)
        case MemberPhase.LEAVING:
            return transitions.delete(place)
        case _:
            return transitions.look(rules, place)
