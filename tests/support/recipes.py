"""A client with a recipe that a test drives step by step, with its requests and facts."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from spec.effects import Fact, Observe
from spec.recipes.events import Answered, Ask, Connected, Event, Expired, Notified, RecipeStep, Suspended, Unanswered
from spec.tree.apply import EventType
from spec.tree.data import Record, Stat
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply, StatReply

S = TypeVar("S")


def stat(czxid: int) -> Stat:
    return Stat(czxid, czxid, 0, 0, 0, 0, 0, 1, 0, 0, czxid)


class Told(Generic[S]):
    """A recipe's state machine and its current state. `asked` is the outstanding request; `facts` are those of the last
    step.
    """

    def __init__(self, step: Callable[[Any, S, Event], RecipeStep[S]], rules: Any, state: S) -> None:
        self._step, self._rules, self.state = step, rules, state
        self.asked: Record | None = None
        self.facts: tuple[Fact, ...] = ()

    def hear(self, *events: Event) -> Record | None:
        """Process these events, and return the outstanding request after the last one."""
        for event in events:
            if isinstance(event, Answered | Unanswered):
                assert self.asked is not None, "nothing is outstanding"
                self.asked = None
            done = self._step(self._rules, self.state, event)
            self.state = done.state
            self.facts = tuple(effect.fact for effect in done.effects if isinstance(effect, Observe))
            for effect in done.effects:
                if isinstance(effect, Ask):
                    assert self.asked is None, "two requests are outstanding"
                    self.asked = effect.record
        return self.asked

    def created(self, path: str, czxid: int) -> Record | None:
        return self.hear(Answered(Code.OK, Create2Reply(path, stat(czxid))))

    def children(self, *names: str) -> Record | None:
        return self.hear(Answered(Code.OK, ChildrenReply(names)))

    def data(self, data: bytes = b"") -> Record | None:
        return self.hear(Answered(Code.OK, DataReply(data, stat(1))))

    def found(self, czxid: int) -> Record | None:
        return self.hear(Answered(Code.OK, StatReply(stat(czxid))))

    def done(self, code: Code = Code.OK) -> Record | None:
        return self.hear(Answered(code))

    def deleted(self, path: str) -> Record | None:
        return self.hear(Notified(EventType.NODE_DELETED, path))

    def cut_off(self) -> Record | None:
        """Lose the connection, and with it the reply to the outstanding request."""
        return self.hear(Suspended(), *([Unanswered()] if self.asked is not None else []))

    def back(self, id: str = "b") -> Record | None:
        return self.hear(Connected(True, id))

    def expired_and_back(self, id: str = "b") -> Record | None:
        return self.hear(Expired(), Connected(False, id))
