"""The steps that all recipes with one holder share: joining, leaving, lost replies, and the connection.

A recipe is a subclass of `Contest`, which adds its requests and its reactions to replies: `spec.recipes.queue` for fair
recipes, `spec.recipes.unfair` for the election on one znode.

Rules of this module:

- A request whose reply was lost is followed by `repeat` as soon as there is a connection.
- A client without a connection does not hold, as far as it knows.
- An expired session takes everything of the client with it. A client that is still wanted begins again.
- A client that leaves gives up its belief immediately, and its znode as soon as there is a connection and nothing is
  outstanding.
- A client whose request is refused does not take part any longer. A znode that it cannot delete goes with the session.

Source: Curator's `LeaderLatch.handleStateChange` and `LockInternals`, which share no code.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes.events import (
    Answered,
    Ask,
    Connected,
    Event,
    Expired,
    Failed,
    HoldsNoMore,
    Join,
    Leave,
    Notified,
    RecipeStep,
    Suspended,
    Unanswered,
    Withdrawn,
)
from spec.recipes.member import Link, Member, MemberPhase
from spec.tree.data import Record
from spec.variants import Variant


class ContestRules(Protocol):
    """The part of the rules that every contest has."""

    @property
    def variants(self) -> frozenset[Variant]:
        """The defects to reproduce."""


M = TypeVar("M", bound=Member)
R = TypeVar("R", bound=ContestRules)


class Contest(ABC, Generic[R, M]):
    """A contest for one holder; `step` is common to all contests."""

    def step(self, rules: R, member: M, event: Event) -> RecipeStep[M]:
        """The step of a member on an event."""
        match event:
            case Join(id):
                return self.go_on(rules, self.joined(member, id))
            case Leave():
                return self._leave(rules, self.released(member))
            case Answered():
                return self.answered(rules, member, event)
            case Unanswered() if member.phase is not MemberPhase.OUT:
                lost = replace(member, lost=True)
                return self._repeat(rules, lost) if member.link is Link.CONNECTED else Step(lost)
            case Notified(_, path) if member.link is Link.CONNECTED:
                return self.notified(rules, member, path)
            case Suspended():
                cut_off = replace(member, link=Link.SUSPENDED)
                stays = Variant.LEAD_WHILE_SUSPENDED in rules.variants
                return Step(cut_off) if stays else no_longer(cut_off, "suspended")
            case Expired():
                return self.expired(rules, member)
            case Connected(resumed, id):
                return self._connected(rules, replace(member, link=Link.CONNECTED), resumed, id)
            case _:
                return Step(member)

    def go_on(self, rules: R, member: M) -> RecipeStep[M]:
        """Create a znode for a member that is wanted, connected and out."""
        able = member.phase is MemberPhase.OUT and member.wanted and member.link is Link.CONNECTED
        return self.enter(rules, member) if able else Step(member)

    def _leave(self, rules: R, member: M) -> RecipeStep[M]:
        if member.phase is MemberPhase.OUT:
            return Step(member, (Observe(Withdrawn()),))
        if member.phase in (MemberPhase.WAITING, MemberPhase.HOLDING) and member.link is Link.CONNECTED:
            return self.leave(rules, member)
        return no_longer(member, "released")

    def _connected(self, rules: R, member: M, resumed: bool, id: str) -> RecipeStep[M]:
        if not resumed:
            return self.renewed(rules, member, id)
        if member.lost:
            return self._repeat(rules, member)
        if member.phase is MemberPhase.OUT:
            return self.go_on(rules, replace(member, id=id))
        return self.resumed(rules, member, id)

    def _repeat(self, rules: R, member: M) -> RecipeStep[M]:
        return self.repeat(rules, replace(member, lost=False))

    def expired(self, _rules: R, member: M) -> RecipeStep[M]:
        """Handle the loss of the session and of the znode."""
        return reset(member, wanted=member.wanted)

    def renewed(self, rules: R, member: M, id: str) -> RecipeStep[M]:
        """Continue in a new session, in which nothing of the old one is left."""
        return self.go_on(rules, replace(member, id=id))

    @abstractmethod
    def joined(self, member: M, id: str) -> M:
        """The member that is now wanted; `id` is for a znode yet to be created."""

    @abstractmethod
    def released(self, member: M) -> M:
        """The member that is no longer wanted."""

    @abstractmethod
    def enter(self, rules: R, member: M) -> RecipeStep[M]:
        """Create the member's znode."""

    @abstractmethod
    def leave(self, rules: R, member: M) -> RecipeStep[M]:
        """Give up waiting or holding, with a connection and nothing outstanding."""

    @abstractmethod
    def repeat(self, rules: R, member: M) -> RecipeStep[M]:
        """Ask again after a lost reply, now that there is a connection."""

    @abstractmethod
    def resumed(self, rules: R, member: M, id: str) -> RecipeStep[M]:
        """Continue in the same session, with no reply lost and not out."""

    @abstractmethod
    def notified(self, rules: R, member: M, path: str) -> RecipeStep[M]:
        """Handle a notification."""

    @abstractmethod
    def answered(self, rules: R, member: M, answer: Answered) -> RecipeStep[M]:
        """Handle the reply that the member's phase waits for."""


# -- single actions ------------------------------------------------------------------------------------------


def after(first: RecipeStep[M], then: Callable[[M], RecipeStep[M]]) -> RecipeStep[M]:
    """Compose two steps into one."""
    second = then(first.state)
    return Step(second.state, (*first.effects, *second.effects))


def ask(member: M, phase: MemberPhase, record: Record) -> RecipeStep[M]:
    """Send a request, and wait for its reply in this phase."""
    return Step(replace(member, phase=phase, notified=False), (Ask(record),))


def no_longer(member: M, why: str) -> RecipeStep[M]:
    """Give up the belief that the member holds, and report it."""
    return Step(replace(member, holds=False), (Observe(HoldsNoMore(why)),)) if member.holds else Step(member)


def reset(member: M, *, wanted: bool) -> RecipeStep[M]:
    """Begin again after the session has expired, or withdraw if the member is not wanted."""
    fresh = type(member)(link=Link.EXPIRED, wanted=wanted)
    return after(no_longer(member, "expired"), lambda _: Step(fresh, () if wanted else (Observe(Withdrawn()),)))


def withdraw(member: M) -> RecipeStep[M]:
    """Take no part any longer, without a znode."""
    return after(no_longer(member, "out"), lambda m: Step(type(m)(link=m.link), (Observe(Withdrawn()),)))


def refuse(member: M, answer: Answered) -> RecipeStep[M]:
    """Fail: the root is missing, or an ACL forbids the request."""
    failed = after(no_longer(member, "refused"), lambda m: Step(m, (Observe(Failed(answer.code)),)))
    return after(failed, withdraw)
