"""The steps of a place in a queue of ephemeral sequential znodes, shared by the fair recipes.

Each participant creates a znode `_c_<id>-<word>NNNNNNNNNN` below the root. The smallest number holds. Every other
participant watches the znode just below its own, and lists the queue again when that znode is gone.

Rules of this module:

- After a lost reply to a creation, the client searches for its id before it creates again. It has the server catch up
  before the search, because a created znode may not have arrived there yet.
- The predecessor is watched with getData, not with exists, so that no watch remains on a path without a znode.
- The absence of the predecessor alone proves nothing: it may have left from the middle of the queue.
- A client reads everything again after a reconnect.
- A deletion is repeated until it is answered.
- A place that was held and given up is deleted even if it is wanted again before: each hold has a separate token.
- The token is the znode's czxid: it is greater for a later holder, and the servers know it (Chubby's sequencer).
- In a recipe with announcements, the first in the queue creates the announcement and holds once it exists. Others learn
  only from the announcement who the leader is. The announcement is deleted before the place.

Source: ZooKeeper's recipes, "Leader Election" and "Locks"; Curator's `LockInternals.internalLockLoop`,
`LeaderLatch.checkLeadership`, `LeaderLatch.handleStateChange`, `CreateBuilderImpl.findProtectedNodeInForeground`.
"""

from msgspec.structs import replace

from spec.effects import Step
from spec.recipes import transitions
from spec.recipes.contest import Contest, reset, withdraw
from spec.recipes.events import Answered, RecipeStep
from spec.recipes.member import Link, MemberPhase, QueueMember, QueueRules
from spec.recipes.replies import answered
from spec.variants import Variant


class Queue(Contest[QueueRules, QueueMember]):
    """The contest of the fair recipes."""

    def joined(self, member: QueueMember, id: str) -> QueueMember:
        """Keep an id that a search for a created znode may still need; a hold from before is given up."""
        present = member.id if member.phase not in (MemberPhase.OUT, MemberPhase.LEAVING) else id
        return replace(member, wanted=True, held=member.held and member.wanted, id=present)

    def released(self, member: QueueMember) -> QueueMember:
        """A member that held has to delete its znode, even if it is wanted again before."""
        return replace(member, wanted=False, released=member.held or member.released)

    def enter(self, rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
        """Create a znode at the end of the queue."""
        return transitions.enter(rules, member)

    def leave(self, rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
        """Retract a possible announcement, then delete the znode."""
        return transitions.leave(rules, member)

    def answered(self, rules: QueueRules, member: QueueMember, answer: Answered) -> RecipeStep[QueueMember]:
        """Handle the reply; see `spec.recipes.replies`."""
        return answered(rules, member, answer)

    def notified(self, rules: QueueRules, member: QueueMember, path: str) -> RecipeStep[QueueMember]:
        """Handle a notification: ignore one of an earlier watch, and remember one that overtakes a reply."""
        if path != member.behind:
            return Step(member)
        if member.phase is not MemberPhase.WAITING:
            return Step(replace(member, notified=True))
        unread = Variant.NO_REREAD in rules.variants
        return transitions.lead(rules, member) if unread else transitions.look(rules, member)

    def expired(self, rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
        """Handle the loss of the session; a member that held is out, unless the recipe queues again."""
        if Variant.NO_RESET in rules.variants and member.phase is MemberPhase.HOLDING:
            return Step(replace(member, link=Link.EXPIRED))
        return reset(member, wanted=member.wanted and (rules.returns or not member.held))

    def renewed(self, rules: QueueRules, member: QueueMember, id: str) -> RecipeStep[QueueMember]:
        """Continue in a new session, in which nothing of the old one is left."""
        if Variant.NO_RESET in rules.variants and member.phase is MemberPhase.HOLDING:
            return transitions.hold(member)
        return super().renewed(rules, member, id)

    def resumed(self, rules: QueueRules, member: QueueMember, id: str) -> RecipeStep[QueueMember]:
        """Continue in the same session: read again what was watched."""
        match member.phase:
            case MemberPhase.WAITING if Variant.NO_REREAD_ON_RECONNECT in rules.variants:
                return Step(member)
            case MemberPhase.HOLDING if rules.resets and Variant.NO_RESET not in rules.variants:
                return transitions.leave(rules, replace(member, id=id))
            case MemberPhase.WAITING | MemberPhase.HOLDING:
                # Meanwhile an operator may have deleted the znode of a holder, although the session is the same.
                return transitions.look(rules, member) if member.stays else transitions.leave(rules, member)
            case _:
                return Step(member)  # a reply, or Unanswered, is still to arrive

    def repeat(self, rules: QueueRules, member: QueueMember) -> RecipeStep[QueueMember]:
        """Ask again; search for a znode that may have been created, before it is created again."""
        match member.phase:
            case MemberPhase.ENTERING if rules.variants & {Variant.NO_PROTECTION, Variant.RETRY_WITHOUT_LOOKING}:
                return transitions.enter(rules, member) if member.wanted else withdraw(member)
            case MemberPhase.ENTERING | MemberPhase.SYNCING | MemberPhase.SEARCHING:
                unsynced = Variant.SEARCH_WITHOUT_SYNC in rules.variants
                return transitions.search(rules, member) if unsynced else transitions.sync(rules, member)
            case MemberPhase.CLAIMING:
                return transitions.claim(member)
            case MemberPhase.RETRACTING:
                return transitions.retract(member, rules.announces or "")
            case MemberPhase.LEAVING if Variant.RELEASE_ONCE in rules.variants:
                return transitions.enter(rules, member) if member.wanted else withdraw(member)
            case MemberPhase.LEAVING:
                return transitions.delete(member)
            case _:
                return transitions.look(rules, member)


step = Queue().step
"""The step of a member of a queue on an event."""
