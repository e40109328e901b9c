"""The presenter of an author: an object with any of the methods `lanes`, `caption` and `diagram`.

The default presenter has the other methods. Every call passes through this module: an exception of the author, or a
result of a wrong form, is a ModelError that names the method, the place and what would be right.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any

from checker.engine.contract import call, wrong
from checker.engine.model import Model, ModelError, Move, Row
from checker.job import DiagramEvent, Job, Json
from checker.present.generic import BarePresenter, DefaultPresenter
from checker.traces.trace import RESERVED

METHODS = ("lanes", "caption", "diagram")
KINDS = ("send", "deliver", "lost", "removed", "late", "crash", "start", "cut", "heal", "decide", "note")


class AuthorPresenter:
    """The presenter of a model by an object of its author. See `checker.job.Presenter`.

    `given` is the object, or a class or function that makes it, of the model or of nothing. Raises ModelError for an
    object without any of the methods.
    """

    def __init__(self, name: str, given: Any, model: Model) -> None:
        self.name, self.default = name, DefaultPresenter(model)
        self._object = given
        if callable(given):
            arguments = (model,) if _takes(given, model) else ()
            self._object = call(f"the presenter {name!r}", given, *arguments)
        if not any(callable(getattr(self._object, method, None)) for method in METHODS):
            right = f"it needs one or more of the methods {', '.join(METHODS)}"
            raise ModelError(f"{name!r} is no presenter but {type(self._object).__name__}; {right}")

    def lanes(self, row: Row) -> Mapping[str, Mapping[str, Json]]:
        """The lanes of the author; else one for each column that holds no messages."""
        lanes, method = self._called("lanes", row)
        if not isinstance(lanes, Mapping) or not all(isinstance(fields, Mapping) for fields in lanes.values()):
            raise self._wrong("lanes", lanes, "a map from each lane to the map of its fields is right", method)
        for lane in lanes:
            if not isinstance(lane, str) or lane.startswith(RESERVED):
                right = f"a lane is a text that does not begin with {' or '.join(RESERVED)}"
                raise self._wrong("lanes", lane, right, method)
        return lanes

    def caption(self, move: Move) -> str:
        """The caption of the author; else that of the action."""
        caption, method = self._called("caption", move)
        if not isinstance(caption, str):
            raise self._wrong("caption", caption, "a text is right", method)
        return caption

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The elements of the author; else the messages of the channels and the faults."""
        events, method = self._called("diagram", before, move, after)
        if not isinstance(events, Iterable) or isinstance(events, str | Mapping):
            raise self._wrong("diagram", events, "a tuple of DiagramEvent is right", method)
        events = tuple(events)
        lanes = {*self.lanes(before), *self.lanes(after)}
        for event in events:
            if not isinstance(event, DiagramEvent) or event.kind not in KINDS:
                kinds = f"a DiagramEvent has one of the kinds {', '.join(KINDS)}"
                raise self._wrong("diagram", event, kinds, method)
            if not {event.lane, event.peer or event.lane} <= lanes:
                raise self._wrong("diagram", event, f"its lanes are among {', '.join(sorted(lanes))}", method)
        return events

    def _called(self, name: str, *arguments: Any) -> tuple[Any, Callable[..., Any]]:
        """The result of a method of the author, or of the default presenter, and the method."""
        method = getattr(self._object, name, None) or getattr(self.default, name)
        return call(f"{name} of the presenter {self.name!r}", method, *arguments), method

    def _wrong(self, name: str, result: Any, right: str, method: Callable[..., Any]) -> ModelError:
        return wrong(f"{name} of the presenter {self.name!r}", result, right, method)


def _takes(function: Callable[..., Any], model: Model) -> bool:
    """Whether a function can be called with a model."""
    try:
        signature(function).bind(model)
    except (TypeError, ValueError):
        return False
    return True


def presented_otherwise(job: Job) -> Job | None:
    """The same job with the presenter to take if its own fails; None if there is no other.

    A failing presenter of an author is replaced by the default one, and a failing default one by `BarePresenter`.
    """
    if isinstance(job.presenter, BarePresenter):
        return None
    if not isinstance(job.presenter, AuthorPresenter):
        return replace(job, presenter=BarePresenter(job.model))
    source = {key: value for key, value in job.source.items() if key != "presenter"}
    return replace(job, presenter=job.presenter.default, source=source)
