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
from spec.recipes.contest import after, no_longer, refuse, withdraw
from spec.recipes.events import Answered, Follows, RecipeStep
from spec.recipes.member import MemberPhase, QueueMember, QueueRules
from spec.tree.data import Stat
from spec.tree.paths import below
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply, StatReply
from spec.variants import Variant

Answering = Callable[[QueueRules, QueueMember, Answered], RecipeStep[QueueMember]]


def answered(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """Handle the reply that the phase of this member waits for; ignore a reply in any other phase."""
    return ANSWERS[member.phase](rules, member, answer) if member.phase in ANSWERS else Step(member)


def _entered(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not isinstance(answer.reply, Create2Reply):
        return refuse(member, answer)
    member = _with_token(replace(member, path=answer.reply.path), answer.reply.stat)
    return transitions.look(rules, member) if member.wanted else transitions.leave(rules, member)


def _with_token(member: QueueMember, stat: Stat) -> QueueMember:
    """Set the token to the znode's czxid; only a variant has an older token here."""
    return replace(member, token=stat.czxid if member.token is None else member.token)


def _synced(rules: QueueRules, member: QueueMember, _answer: Answered) -> RecipeStep[QueueMember]:
    return transitions.search(rules, member)


def _searched(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not isinstance(answer.reply, ChildrenReply):
        return refuse(member, answer)
    name = names.of_id(answer.reply.children, member.id)
    if name is None:
        return transitions.enter(rules, member) if member.wanted else withdraw(member)
    member = replace(member, path=below(rules.root, name))
    return transitions.claim(member) if member.wanted else transitions.leave(rules, member)


def _claimed(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if isinstance(answer.reply, StatReply):
        member = _with_token(member, answer.reply.stat)
        return transitions.look(rules, member) if member.wanted else transitions.leave(rules, member)
    if answer.code is not Code.NO_NODE:
        return refuse(member, answer)
    return transitions.enter(rules, member) if member.wanted else withdraw(member)


def _looked(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """`StandardLockInternalsDriver.getsTheLock`, for one holder at a time."""
    if not member.stays:
        return transitions.leave(rules, member)
    if not isinstance(answer.reply, ChildrenReply):
        return refuse(member, answer)
    queue, path = names.paths(rules.root, answer.reply.children, rules.word), transitions.own(member)
    if path not in queue:
        return _deleted(rules, member)
    if queue[0] == path:
        return transitions.lead(rules, member)
    observed = (Observe(Follows(queue[0])),) if Variant.LEAD_UNANNOUNCED in rules.variants else ()
    before = queue[0] if Variant.WATCH_THE_LEADER in rules.variants else queue[queue.index(path) - 1]
    return after(Step(member, observed), lambda p: _queue_behind(rules, p, before))


def _deleted(rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
    """Handle the loss of the member's znode to a deletion. After a lost lock the member is out; others queue again.

    If the member has announced itself, the announcement still exists and would keep all others waiting. It is retracted
    first.
    """
    lost = no_longer(member, "deleted")
    if member.announced:
        return after(lost, lambda p: transitions.leave(rules, p))
    over = member.held and not rules.returns
    return after(lost, lambda p: withdraw(p) if over else transitions.enter(rules, p))


def _queue_behind(rules: QueueRules, member: QueueMember, before: str) -> RecipeStep[QueueMember]:
    if Variant.WATCH_THE_CHILDREN not in rules.variants:
        return transitions.watch(rules, member, before)
    return transitions.look(rules, member) if member.notified else transitions.wait(member)


def _watched(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not member.stays:
        return transitions.leave(rules, member)
    if member.notified or answer.code is Code.NO_NODE:
        return transitions.look(rules, member)
    if not isinstance(answer.reply, DataReply | StatReply):
        return refuse(member, answer)
    asks = rules.announces is not None and Variant.LEAD_UNANNOUNCED not in rules.variants
    return transitions.ask_leader(member, rules.announces or "") if asks else transitions.wait(member)


def _leader_read(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """Handle the reply with the leader's announcement. There may be none yet; the watch is set in either case."""
    if not member.stays:
        return transitions.leave(rules, member)
    if member.notified:
        return transitions.look(rules, member)
    if not isinstance(answer.reply, DataReply):
        return transitions.wait(member)
    observed = Observe(Follows((answer.reply.data or b"").decode(errors="replace")))
    return after(Step(member, (observed,)), transitions.wait)


def _announced(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    if not member.stays:
        return transitions.leave(rules, member)
    if answer.code is Code.NODE_EXISTS:
        return transitions.defer(member, rules.announces or "")
    return transitions.hold(member) if isinstance(answer.reply, Create2Reply) else refuse(member, answer)


def _deferred(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    mine = isinstance(answer.reply, DataReply) and answer.reply.data == transitions.own(member).encode()
    member = replace(member, announced=mine)
    if not member.stays:
        return transitions.leave(rules, member)
    if mine:
        return transitions.hold(member)
    return (
        transitions.look(rules, member) if member.notified or answer.code is not Code.OK else transitions.wait(member)
    )


def _retracted(_rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    return transitions.delete(member) if answer.code in (Code.OK, Code.NO_NODE) else refuse(member, answer)


def _left(rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
    """Handle the deletion of the znode. A reset latch, and a member that is wanted again meanwhile, enter the queue."""
    if answer.code not in (Code.OK, Code.NO_NODE):
        return refuse(member, answer)
    return transitions.enter(rules, member) if member.wanted else withdraw(member)


ANSWERS: Mapping[MemberPhase, Answering] = {
    MemberPhase.ENTERING: _entered,
    MemberPhase.SYNCING: _synced,
    MemberPhase.SEARCHING: _searched,
    MemberPhase.CLAIMING: _claimed,
    MemberPhase.LOOKING: _looked,
    MemberPhase.WATCHING: _watched,
    MemberPhase.ASKING: _leader_read,
    MemberPhase.ANNOUNCING: _announced,
    MemberPhase.DEFERRING: _deferred,
    MemberPhase.RETRACTING: _retracted,
    MemberPhase.LEAVING: _left,
}
