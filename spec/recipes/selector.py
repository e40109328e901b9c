"""Leadership while a procedure of the application runs: a place in a queue that is given up when the procedure returns.

Rules of this module:

- The procedure is called when the client starts to hold, and never while an earlier call still runs.
- The procedure is interrupted when the belief in leadership ends (a lost connection, an expired session), and by the
  application's `interrupt_leadership` or `close`.
- When the procedure has returned, the place is given up. With `requeues` the client then queues again.

Source: Curator's `LeaderSelector.doWork`, `interruptLeadership`, `autoRequeue`; `LeaderSelectorListenerAdapter` for the
interruption on SUSPENDED and LOST.
"""

import msgspec
from msgspec.structs import replace

from spec.effects import Observe, Step
from spec.recipes import queue
from spec.recipes.events import (
    Effect,
    Event,
    Failed,
    Holds,
    HoldsNoMore,
    Interrupt,
    Interrupted,
    Join,
    Leave,
    RecipeStep,
    Returned,
    TakeLeadership,
    Withdrawn,
    facts,
)
from spec.recipes.member import MemberPhase, QueueMember, QueueRules


class Selector(msgspec.Struct, frozen=True):
    """`called` is the token passed to the running procedure. `open`: the client was not closed."""

    place: QueueMember = QueueMember()
    called: int | None = None
    open: bool = False
    requeues: bool = False
    id: str = ""

    @property
    def runs(self) -> bool:
        """Whether the procedure was called and has not returned."""
        return self.called is not None


def step(rules: QueueRules, selector: Selector, event: Event) -> RecipeStep[Selector]:
    """The step of a selector on an event."""
    match event:
        case Join(id):
            if selector.runs or selector.place.wanted:
                return Step(replace(selector, open=True, id=id))
            return _through(rules, replace(selector, open=True, id=id), event)
        case Leave() if selector.runs:
            # The place is kept until the procedure has returned, so that no other client leads meanwhile.
            return Step(replace(selector, open=False), (Observe(Interrupt()),))
        case Leave():
            return _through(rules, replace(selector, open=False), event)
        case Interrupted():
            return Step(selector, (Observe(Interrupt()),) if selector.runs else ())
        case Returned():
            return _returned(rules, replace(selector, called=None))
        case _:
            return _through(rules, selector, event)


def _returned(rules: QueueRules, selector: Selector) -> RecipeStep[Selector]:
    """Give up leadership; if the place is already out, queue again if that is due."""
    if selector.place.phase is MemberPhase.OUT:
        return _anew(rules, selector)
    return _through(rules, selector, Leave())


def _anew(rules: QueueRules, selector: Selector) -> RecipeStep[Selector]:
    if not (selector.open and selector.requeues) or selector.runs:
        return Step(selector)
    return _through(rules, selector, Join(selector.id))


def _through(rules: QueueRules, selector: Selector, event: Event) -> RecipeStep[Selector]:
    result = queue.step(rules, selector.place, event)
    selector = replace(selector, place=result.state)
    effects: list[Effect] = []
    for effect in result.effects:
        effects.append(effect)
        match effect:
            case Observe(Holds(_, token)) if not selector.runs:
                selector = replace(selector, called=token)
                effects.append(Observe(TakeLeadership(token)))
            case Observe(HoldsNoMore()) if selector.runs:
                effects.append(Observe(Interrupt()))
            case _:
                pass
    return _settled(rules, selector, tuple(effects))


def _settled(rules: QueueRules, selector: Selector, effects: tuple[Effect, ...]) -> RecipeStep[Selector]:
    """Queue again after the place is out, if the rules say so, but not after a refusal by the servers."""
    refused = any(isinstance(fact, Failed) for fact in facts(effects))
    following = _anew(rules, selector) if Observe(Withdrawn()) in effects and not refused else Step(selector)
    return Step(following.state, (*effects, *following.effects))
