"""The pieces of a step in a lane, a few words each: arrivals and marks, changes, sendings and losses.

Tables of steps consist of these pieces in every format. A picture draws messages itself, and takes only the changes
from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checker.job import DiagramEvent, Json
from checker.traces.trace import Trace, TraceStep
from checker.traces.values import canonical, show


def pieces(step: TraceStep, lane: str) -> list[str]:
    """All pieces of a step in a lane, changed fields in full: `gets m3`, `state=LOOKING`, `sends m4->server.2`."""
    fields = step.lanes.get(lane, {})
    changed = [
        f"{name}={show(fields[name])}" if name in fields else f"no {name}" for name in step.changed.get(lane, ())
    ]
    return _around(step, lane, changed)


def short_pieces(trace: Trace, step: TraceStep, lane: str) -> list[str]:
    """Like `pieces`, but a changed record shows only the parts that changed."""
    changed = [f"{name}={value}" if value else name for name, value in changes(trace, step, lane)]
    return _around(step, lane, changed)


def changes(trace: Trace, step: TraceStep, lane: str) -> Iterator[tuple[str, str]]:
    """The fields of a lane that a step changed, as (name, value); a removed one is `no name` without a value."""
    fields = step.lanes.get(lane, {})
    before = trace.steps[step.number - 1].lanes.get(lane, {}) if step.number else {}
    for name in step.changed.get(lane, ()):
        if name in fields:
            yield name, change_text(before.get(name), fields[name])
        else:
            yield f"no {name}", ""


def change_text(old: Json, new: Json) -> str:
    """The new value; of a record, only the parts that differ from the old one."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return show(new)
    differs = {key: value for key, value in new.items() if key not in old or canonical(old[key]) != canonical(value)}
    gone = [f"no {key}" for key in old if key not in new]
    told = [f"{key}: {show(value)}" for key, value in differs.items()]
    return ", ".join([*told, *gone]) or show(new)


def is_marked(text: str) -> bool:
    """Whether a text is between stars, the mark of a presenter for text that a reader must not miss."""
    return len(text) > 2 and text.startswith("*") and text.endswith("*")


def _around(step: TraceStep, lane: str, changed: list[str]) -> list[str]:
    drawn = [d for d in step.drawn if d.lane == lane and (d.kind, d.text) != ("note", step.caption)]
    before = [_mark(d) for d in drawn if d.kind not in ("send", "lost")]
    return [*before, *changed, *_listed("sends", drawn, "send"), *_listed("lost:", drawn, "lost")]


def _mark(drawn: DiagramEvent) -> str:
    if drawn.kind == "deliver":
        return f"gets m{drawn.message}"
    if drawn.kind == "note":
        return drawn.text
    peer = f" {drawn.peer}" if drawn.peer and f" {drawn.peer} " not in f" {drawn.text} " else ""
    text = "" if drawn.text == drawn.kind else f": {drawn.text}"
    return f"*{drawn.kind}{peer}{text}*"


def _listed(word: str, drawn: Iterable[DiagramEvent], kind: str) -> list[str]:
    names = [f"m{d.message}->{d.peer}" for d in drawn if d.kind == kind]
    return [f"{word} {names[0]}", *names[1:]] if names else []
