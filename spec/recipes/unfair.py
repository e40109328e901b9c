"""Election on one ephemeral znode: its creator leads, all others watch it and try again when it is gone.

This is the shortest recipe, and it has the herd effect: with n clients the death of a leader notifies n - 1, and n - 2
of them ask in vain. The next leader is a matter of luck.

Rules of this module:

- The znode holds the id of its creator. A creation whose reply was lost is repeated. A refusal with NODE_EXISTS is
  followed by a read of the znode, which may be the candidate's own.
- A deletion whose reply was lost is not repeated without a read: by then the znode may belong to another candidate. The
  read waits until the server has caught up.
- The getData that reads the leader also sets the watch, so nothing can happen between the two.

Source: the requirements' "unfair election" (R15); `org.I0Itec.zkclient` users' usual way.
"""

import msgspec
from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes.contest import Contest, after, ask, no_longer, refuse, withdraw
from spec.recipes.events import Answered, Follows, Holds, RecipeStep
from spec.recipes.member import Member, MemberPhase
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.replies import Code, Create2Reply, DataReply
from spec.tree.requests import Create2, CreateMode, Delete, GetData, Sync
from spec.variants import Variant


class UnfairRules(msgspec.Struct, frozen=True):
    """The contested znode."""

    path: str
    variants: frozenset[Variant] = frozenset()


class UnfairElection(Contest[UnfairRules, Member]):
    """The contest for one znode."""

    def joined(self, member: Member, id: str) -> Member:
        """Keep the id that the znode may have until the candidate is out."""
        return replace(member, wanted=True, id=id if member.phase is MemberPhase.OUT else member.id)

    def released(self, member: Member) -> Member:
        """A candidate that led has to delete its znode, even if it is wanted again before."""
        return replace(member, wanted=False, released=member.token is not None or member.released)

    def enter(self, rules: UnfairRules, member: Member) -> RecipeStep[Member]:
        """Create the znode, with the id as its data."""
        record = Create2(rules.path, member.id.encode(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
        return ask(replace(member, token=None, released=False), MemberPhase.ENTERING, record)

    def leave(self, rules: UnfairRules, member: Member) -> RecipeStep[Member]:
        """Delete the znode of a leader; others have none."""
        if member.phase is not MemberPhase.HOLDING:
            return withdraw(member)
        return after(no_longer(member, "released"), lambda m: _delete(rules, m))

    def notified(self, rules: UnfairRules, member: Member, path: str) -> RecipeStep[Member]:
        """Handle a notification, which may overtake the reply to the read that set the watch."""
        if path != rules.path:
            return Step(member)
        if member.phase is MemberPhase.READING:
            return Step(replace(member, notified=True))
        return self.enter(rules, member) if member.phase is MemberPhase.WAITING else Step(member)

    def resumed(self, rules: UnfairRules, member: Member, _id: str) -> RecipeStep[Member]:
        """Read the znode, unless a variant forgets it."""
        if member.phase is MemberPhase.WAITING and Variant.NO_REREAD_ON_RECONNECT in rules.variants:
            return Step(member)
        # A holder checks that the znode is still its own; the others have lost their watch.
        return _read(rules, member)

    def repeat(self, rules: UnfairRules, member: Member) -> RecipeStep[Member]:
        """Ask again; a deletion is not repeated before the znode's owner is known."""
        match member.phase:
            case MemberPhase.ENTERING:
                # If the znode already exists, the refusal says so, and a read follows.
                return self.enter(rules, member)
            case MemberPhase.LEAVING | MemberPhase.SYNCING | MemberPhase.CHECKING:
                if Variant.RETRY_WITHOUT_LOOKING in rules.variants:
                    return _delete(rules, member)
                return ask(member, MemberPhase.SYNCING, Sync(rules.path))
            case _:
                return _read(rules, member)

    def answered(self, rules: UnfairRules, member: Member, answer: Answered) -> RecipeStep[Member]:
        """Handle the reply that the phase waits for."""
        match member.phase:
            case MemberPhase.ENTERING:
                if isinstance(answer.reply, Create2Reply):
                    return _is_own(rules, member, answer.reply.stat.czxid)
                return _read(rules, member) if answer.code is Code.NODE_EXISTS else refuse(member, answer)
            case MemberPhase.READING:
                return _was_read(rules, member, answer)
            case MemberPhase.LEAVING if answer.code in (Code.OK, Code.NO_NODE):
                return _free(rules, member)
            case MemberPhase.SYNCING:
                return ask(member, MemberPhase.CHECKING, GetData(rules.path, False))
            case MemberPhase.CHECKING:
                return _delete(rules, member) if _is_named(member, answer) else _free(rules, member)
            case _:
                return refuse(member, answer)


_ELECTION = UnfairElection()
step = _ELECTION.step
"""The step of a candidate on an event."""


def _read(rules: UnfairRules, member: Member) -> RecipeStep[Member]:
    return ask(member, MemberPhase.READING, GetData(rules.path, True))


def _delete(rules: UnfairRules, member: Member) -> RecipeStep[Member]:
    return ask(member, MemberPhase.LEAVING, Delete(rules.path, -1))


def _free(rules: UnfairRules, member: Member) -> RecipeStep[Member]:
    """Create the znode, which is not the candidate's own and may not exist, if it is wanted."""
    return _ELECTION.enter(rules, member) if member.wanted else withdraw(member)


def _is_named(member: Member, answer: Answered) -> bool:
    """Whether the znode that was read holds the candidate's id."""
    return isinstance(answer.reply, DataReply) and answer.reply.data == member.id.encode()


def _was_read(rules: UnfairRules, member: Member, answer: Answered) -> RecipeStep[Member]:
    if not isinstance(answer.reply, DataReply):
        return _free(rules, member) if answer.code is Code.NO_NODE else refuse(member, answer)
    is_own = _is_named(member, answer)
    # A candidate with a token knows that the znode is its own without a read.
    looks = member.token is not None or Variant.RETRY_WITHOUT_LOOKING not in rules.variants
    if is_own and looks:
        return _is_own(rules, member, answer.reply.stat.czxid)
    if not member.wanted:
        return withdraw(member)
    if member.notified:
        return _ELECTION.enter(rules, member)
    observed = Observe(Follows((answer.reply.data or b"").decode(errors="replace")))
    return Step(replace(member, phase=MemberPhase.WAITING), (observed,))


def _is_own(rules: UnfairRules, member: Member, token: int) -> RecipeStep[Member]:
    if not member.stays:
        return _delete(rules, member)
    holder = replace(member, phase=MemberPhase.HOLDING, token=token, holds=True)
    return Step(holder) if member.holds else Step(holder, (Observe(Holds(rules.path, token)),))
