"""The steps of a place in a queue of ephemeral sequential znodes: what the fair recipes have in common.

Who wants something creates a znode `_c_<id>-<word>NNNNNNNNNN` below the root. The smallest number holds; everybody
else watches the znode just below its own, and looks again at all of them when that one is gone.

Rules of this module:

- Whoever has lost the answer to a creation looks for its id before it creates again, and has the server catch up
  before it looks: a znode that was created may not have arrived there yet.
- The predecessor is watched with getData, not with exists, so that no watch is left where nothing is any more.
- A predecessor that is gone says nothing by itself: it may have given up in the middle of the queue.
- A client that is not connected does not hold, as far as it knows, and whatever it knew is looked at again.
- A deletion is asked for until it is answered.
- What was held and given up is deleted, though it be wanted again before: each hold has a token of its own.
- The token is the znode's czxid: greater for whoever comes later, and known to the servers (Chubby's sequencer).
- Where leaders announce themselves: to have no predecessor is not to know it. Who is first creates the announcement,
  and holds when that is there; others learn from it alone who leads. It is taken back before the place is.

Source: ZooKeeper's recipes, "Leader Election" and "Locks"; Curator's `LockInternals.internalLockLoop`,
`LeaderLatch.checkLeadership`, `LeaderLatch.handleStateChange`, `CreateBuilderImpl.findProtectedNodeInForeground`.
"""

from msgspec.structs import replace

from spec.effects import Observe
from spec.recipes import moves
from spec.recipes.answers import answered
from spec.recipes.events import (
    Answered,
    Connected,
    Event,
    Expired,
    Gone,
    Notified,
    Step,
    Suspended,
    Unanswered,
    Unwanted,
    Wanted,
)
from spec.recipes.place import Link, Phase, Place, Rules
from spec.variants import Variant


def step(rules: Rules, place: Place, event: Event) -> Step[Place]:
    """What becomes of a place with an event."""
    match event:
        case Wanted(id):
            # An id by which a creation may yet have to be found is kept; what was held before is given up.
            kept = place.id if place.phase not in (Phase.OUT, Phase.LEAVING) else id
            return _go_on(rules, replace(place, wanted=True, held=place.held and place.wanted, id=kept))
        case Unwanted():
            return _unwanted(rules, replace(place, wanted=False, released=place.held or place.released))
        case Answered():
            return answered(rules, place, event)
        case Unanswered() if place.phase is not Phase.OUT:
            lost = replace(place, lost=True)
            return _again(rules, lost) if place.link is Link.CONNECTED else Step(lost)
        case Notified(_, path):
            return _notified(rules, place, path)
        case Suspended():
            cut_off = replace(place, link=Link.SUSPENDED)
            stays = Variant.LEAD_WHILE_SUSPENDED in rules.variants
            return Step(cut_off) if stays else moves.no_longer(cut_off, "suspended")
        case Expired():
            return _expired(rules, place)
        case Connected(resumed, id):
            place = replace(place, link=Link.CONNECTED)
            return _resumed(rules, place, id) if resumed else _anew(rules, place, id)
        case _:
            return Step(place)


def _go_on(rules: Rules, place: Place) -> Step[Place]:
    """Who takes part, is connected and has no znode creates one."""
    able = place.phase is Phase.OUT and place.wanted and place.link is Link.CONNECTED
    return moves.enter(rules, place) if able else Step(place)


def _unwanted(rules: Rules, place: Place) -> Step[Place]:
    """Give up what is held at once, and the znode as soon as there is a connection and nothing outstanding."""
    if place.phase is Phase.OUT:
        return Step(place, (Observe(Gone()),))
    if place.phase in (Phase.WAITING, Phase.HOLDING) and place.link is Link.CONNECTED:
        return moves.leave(rules, place)
    return moves.no_longer(place, "released")


def _notified(rules: Rules, place: Place, path: str) -> Step[Place]:
    """A watch of another time is none of our business; one that overtakes an answer is remembered."""
    if path != place.behind or place.link is not Link.CONNECTED:
        return Step(place)
    if place.phase is not Phase.WAITING:
        return Step(replace(place, notified=True))
    return moves.lead(rules, place) if Variant.NO_REREAD in rules.variants else moves.look(rules, place)


# -- the connection ------------------------------------------------------------------------------------------


def _expired(rules: Rules, place: Place) -> Step[Place]:
    """The znode goes with the session; who held it is out, unless the recipe stands again."""
    if Variant.NO_RESET in rules.variants and place.phase is Phase.HOLDING:
        return Step(replace(place, link=Link.EXPIRED))
    wanted = place.wanted and (rules.returns or not place.held)
    out = Step(Place(link=Link.EXPIRED, wanted=wanted), () if wanted else (Observe(Gone()),))
    return moves.after(moves.no_longer(place, "expired"), lambda _: out)


def _anew(rules: Rules, place: Place, id: str) -> Step[Place]:
    """There is a new session, and nothing left of the old one."""
    if Variant.NO_RESET in rules.variants and place.phase is Phase.HOLDING:
        return moves.hold(place)
    return _go_on(rules, replace(place, id=id))


def _resumed(rules: Rules, place: Place, id: str) -> Step[Place]:
    """The session lives on; what was asked and not answered, and what was watched, has to be asked again."""
    if place.lost:
        return _again(rules, place)
    match place.phase:
        case Phase.OUT:
            return _go_on(rules, replace(place, id=id))
        case Phase.WAITING if Variant.NO_REREAD_ON_RECONNECT in rules.variants:
            return Step(place)
        case Phase.HOLDING if rules.resets and Variant.NO_RESET not in rules.variants:
            return moves.leave(rules, replace(place, id=id))
        case Phase.WAITING | Phase.HOLDING:
            # What held may have been deleted meanwhile, by an operator, though the session is the same.
            return moves.look(rules, place) if place.stays else moves.leave(rules, place)
        case _:
            return Step(place)  # an answer, or the news that there will be none, is still to come


def _again(rules: Rules, place: Place) -> Step[Place]:
    """The outstanding request has no answer, and there is a connection to ask again."""
    place = replace(place, lost=False)
    match place.phase:
        case Phase.ENTERING if rules.variants & {Variant.NO_PROTECTION, Variant.RETRY_WITHOUT_LOOKING}:
            return moves.enter(rules, place) if place.wanted else moves.out(place)
        case Phase.ENTERING | Phase.SYNCING | Phase.SEARCHING:
            unsynced = Variant.SEARCH_WITHOUT_SYNC in rules.variants
            return moves.search(rules, place) if unsynced else moves.sync(rules, place)
        case Phase.CLAIMING:
            return moves.claim(place)
        case Phase.RETRACTING:
            return moves.retract(place, rules.announces or "")
        case Phase.LEAVING if Variant.RELEASE_ONCE in rules.variants:
            return moves.enter(rules, place) if place.wanted else moves.out(place)
        case Phase.LEAVING:
            return moves.delete(place)
        case _:
            return moves.look(rules, place)
