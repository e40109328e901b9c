"""The handling of replies by a client in a queue: one function for each phase that waits for a reply.

Rules of this module:

- A client that is not wanted leaves the queue, with all that the reply has revealed about its znode.
- NO_NODE is a successful reply to a deletion: the znode is gone.

Source: as in `spec.recipes.queue`.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes import names, transitions
from spec.recipes.events import Answered, Follows, RecipeStep
from spec.recipes.member import MemberPhase, QueueMember, QueueRules
from spec.tree.data import Stat
from spec.tree.paths import below
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply, StatReply
from spec.variants import Variant

Answering = Callable[[QueueRules, QueueMember, Answered], RecipeStep[QueueMember]]


def answered(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """Handle the reply that the phase of this place waits for; ignore a reply in any other phase."""
    return ANSWERS[place.phase](rules, place, answer) if place.phase in ANSWERS else Step(place)


def _entered(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not isinstance(answer.reply, Create2Reply):
        return transitions.refused(place, answer)
    place = _with_token(replace(place, path=answer.reply.path), answer.reply.stat)
    return transitions.look(rules, place) if place.wanted else transitions.leave(rules, place)


def _with_token(place: QueueMember, stat: Stat) -> QueueMember:
    """Set the token to the znode's czxid; only a variant has an older token here."""
    return replace(place, token=stat.czxid if place.token is None else place.token)


def _synced(rules: QueueRules, place: QueueMember, _answer: Answered) -> RecipeStep[QueueMember]:
    return transitions.search(rules, place)


def _searched(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not isinstance(answer.reply, ChildrenReply):
        return transitions.refused(place, answer)
    found = names.of_id(answer.reply.children, place.id)
    if found is None:
        return transitions.enter(rules, place) if place.wanted else transitions.out(place)
    place = replace(place, path=below(rules.root, found))
    return transitions.claim(place) if place.wanted else transitions.leave(rules, place)


def _claimed(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if isinstance(answer.reply, StatReply):
        place = _with_token(place, answer.reply.stat)
        return transitions.look(rules, place) if place.wanted else transitions.leave(rules, place)
    if answer.code is not Code.NO_NODE:
        return transitions.refused(place, answer)
    return transitions.enter(rules, place) if place.wanted else transitions.out(place)


def _looked(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """`StandardLockInternalsDriver.getsTheLock`, for one holder at a time."""
    if not place.stays:
        return transitions.leave(rules, place)
    if not isinstance(answer.reply, ChildrenReply):
        return transitions.refused(place, answer)
    queue, own = names.paths(rules.root, answer.reply.children, rules.word), transitions.own(place)
    if own not in queue:
        return _deleted(rules, place)
    if queue[0] == own:
        return transitions.lead(rules, place)
    told = (Observe(Follows(queue[0])),) if Variant.LEAD_UNANNOUNCED in rules.variants else ()
    before = queue[0] if Variant.WATCH_THE_LEADER in rules.variants else queue[queue.index(own) - 1]
    return transitions.after(Step(place, told), lambda p: _queue_behind(rules, p, before))


def _deleted(rules: QueueRules, place: QueueMember) -> RecipeStep[QueueMember]:
    """Handle the loss of the place's znode to a deletion. After a lost lock the place is out; others queue again.

    If the place has announced itself, the announcement still exists and would keep all others waiting. It is retracted
    first.
    """
    lost = transitions.no_longer(place, "deleted")
    if place.announced:
        return transitions.after(lost, lambda p: transitions.leave(rules, p))
    out = place.held and not rules.returns
    return transitions.after(lost, lambda p: transitions.out(p) if out else transitions.enter(rules, p))


def _queue_behind(rules: QueueRules, place: QueueMember, before: str) -> RecipeStep[QueueMember]:
    if Variant.WATCH_THE_CHILDREN not in rules.variants:
        return transitions.watch(rules, place, before)
    return transitions.look(rules, place) if place.notified else transitions.wait(place)


def _watched(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not place.stays:
        return transitions.leave(rules, place)
    if place.notified or answer.code is Code.NO_NODE:
        return transitions.look(rules, place)
    if not isinstance(answer.reply, DataReply | StatReply):
        return transitions.refused(place, answer)
    asks = rules.announces is not None and Variant.LEAD_UNANNOUNCED not in rules.variants
    return transitions.ask_leader(place, rules.announces or "") if asks else transitions.wait(place)


def _asked(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """Handle the reply with the leader's announcement. There may be none yet; the watch is set in either case."""
    if not place.stays:
        return transitions.leave(rules, place)
    if place.notified:
        return transitions.look(rules, place)
    if not isinstance(answer.reply, DataReply):
        return transitions.wait(place)
    told = Observe(Follows((answer.reply.data or b"").decode(errors="replace")))
    return transitions.after(Step(place, (told,)), transitions.wait)


def _announced(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not place.stays:
        return transitions.leave(rules, place)
    if answer.code is Code.NODE_EXISTS:
        return transitions.defer(place, rules.announces or "")
    return transitions.hold(place) if isinstance(answer.reply, Create2Reply) else transitions.refused(place, answer)


def _deferred(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    mine = isinstance(answer.reply, DataReply) and answer.reply.data == transitions.own(place).encode()
    place = replace(place, announced=mine)
    if not place.stays:
        return transitions.leave(rules, place)
    if mine:
        return transitions.hold(place)
    return transitions.look(rules, place) if place.notified or answer.code is not Code.OK else transitions.wait(place)


def _retracted(_rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    return transitions.delete(place) if answer.code in (Code.OK, Code.NO_NODE) else transitions.refused(place, answer)


def _left(rules: QueueRules, place: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """Handle the deletion of the znode. A reset latch, and a place that is wanted again meanwhile, enter the queue."""
    if answer.code not in (Code.OK, Code.NO_NODE):
        return transitions.refused(place, answer)
    return transitions.enter(rules, place) if place.wanted else transitions.out(place)


ANSWERS: Mapping[MemberPhase, Answering] = {
    MemberPhase.ENTERING: _entered,
    MemberPhase.SYNCING: _synced,
    MemberPhase.SEARCHING: _searched,
    MemberPhase.CLAIMING: _claimed,
    MemberPhase.LOOKING: _looked,
    MemberPhase.WATCHING: _watched,
    MemberPhase.ASKING: _asked,
    MemberPhase.ANNOUNCING: _announced,
    MemberPhase.DEFERRING: _deferred,
    MemberPhase.RETRACTING: _retracted,
    MemberPhase.LEAVING: _left,
}
