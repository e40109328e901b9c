"""The parts that every view of a trace shares: the claim, the pieces of a step in a lane, the life of each message.

The claim is a summary of the run in one sentence. It names the decisive steps, so that a reader knows the cause of the
finding before the details. Tables of steps consist of pieces, a few words each: arrivals and marks, changes, sendings
and losses. A picture draws messages itself, and takes only the changes from here. Rules of this module:

- The claim consists of captions of steps, each with the number of its step, and adds nothing to the trace.
- The decisive steps are the last step, the first step of the failure of a liveness property, the turning steps (a
  crash, a start, a cut, a heal, a decision or a marked note), the steps right before the finding, and the other steps
  with a note, in this order of precedence.
- The claim has at most `PARTS` steps. Later steps of a class are preferred, because they are closer to the finding. A
  "…" replaces turning steps that are left out.
- The number of a message identifies it. A message whose sending was not seen was in flight before the first step. A
  message that neither arrives nor is lost is still in flight at the end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from checker.engine.values import canonical, show
from checker.job import DiagramEvent, Json
from checker.traces.trace import Trace, TraceStep, Truth

PARTS = 8
NEAR = 3  # steps right before the finding, with the last step
FEWEST = 4  # steps at the end of a run that repeats for ever; also the fewest decisive steps
TURNING = frozenset({"crash", "start", "cut", "heal", "decide"})  # kinds of drawings that make a step a turning step
WORDS = {
    Truth.FAILS: "fails",
    Truth.WITNESSED: "is witnessed",
    Truth.HOLDS: "holds again",
    Truth.REACHED: "has its goal",
}
MEANING = {
    Truth.HOLDS: "holds",
    Truth.FAILS: "fails",
    Truth.TRIVIAL: "says nothing",
    Truth.WITNESSED: "witnessed",
    Truth.UNSEEN: "not witnessed",
    Truth.REACHED: "has its goal",
    Truth.OPEN: "wants its goal",
}


def claim(trace: Trace) -> str:
    """The summary of the run: `step 1: the operator stops server.2; step 6: server.1 elects server.3; ...`."""
    chosen, omitted = _decisive(trace)
    parts = []
    for before, number in pairwise([0, *chosen]):
        parts += ["…"] if any(before < omission < number for omission in omitted) else []
        parts.append(f"step {number}: {trace.steps[number].caption}")
    if trace.loop is not None:
        parts.append(f"then {trace.repetition}")
    return "; ".join(parts) or "the run ends where it begins"


def _decisive(trace: Trace) -> tuple[list[int], set[int]]:
    """The numbers of the decisive steps in ascending order, and those of the turning steps that are left out."""
    numbers = [step.number for step in reversed(trace.steps[1:])]
    turning = [number for number in numbers if _is_turning(trace.steps[number])]
    noted = [number for number in numbers if any(event.kind == "note" for event in trace.steps[number].events)]
    repeats = trace.loop is not None and trace.loop < trace.depth
    first = [*numbers[: FEWEST if repeats else 1], *([trace.since] if trace.since else [])]
    chosen = list(dict.fromkeys([*first, *turning, *numbers[:NEAR], *noted]))[:PARTS]
    if len(chosen) < FEWEST:
        chosen = list(dict.fromkeys([*chosen, *numbers[:FEWEST]]))
    return sorted(chosen), set(turning) - set(chosen)


def _is_turning(step: TraceStep) -> bool:
    return any(event.kind in TURNING or is_marked(event.text) for event in step.events)


def finding(trace: Trace) -> str:
    """The clause, and the values that made it so; empty for a walk."""
    values = ", ".join(f"{name} = {show(value)}" for name, value in trace.values)
    return f"{trace.clause}: {values}" if values else trace.clause


def about(trace: Trace) -> list[tuple[str, str]]:
    """The job, its grain, its verdict and its bounds, as pairs of a name and a text."""
    rows = [("run", trace.job), ("grain", trace.grain)]
    rows += [] if trace.verdict is None else [("verdict", trace.verdict.value)]
    return [*rows, ("bounds", "; ".join(trace.bounds))] if trace.bounds else rows


def turns(trace: Trace, step: TraceStep) -> list[str]:
    """The remarks on a step: properties that begin to fail, hold again or are witnessed, and the ends of a loop."""
    before = trace.steps[step.number - 1].truth if step.number else {}
    lines = []
    for name, truth in step.truth.items():
        is_notable = truth in (Truth.FAILS, Truth.WITNESSED, Truth.REACHED) or before.get(name) is Truth.FAILS
        if is_notable and truth is not before.get(name) and truth in WORDS:
            lines.append(f"{name} {WORDS[truth]}")
    return [*lines, *trace.turning(step.number)]


def truth_lines(trace: Trace) -> list[tuple[str, str]]:
    """The steps of each truth value of each property: `holds: 0, 6-7; says nothing: 1-5; fails: 8`."""
    lines = []
    for name in dict.fromkeys(name for step in trace.steps for name in step.truth):
        where: dict[Truth, list[int]] = {}
        for step in trace.steps:
            if name in step.truth:
                where.setdefault(step.truth[name], []).append(step.number)
        lines.append((name, "; ".join(f"{MEANING[truth]}: {spans(steps)}" for truth, steps in where.items())))
    return lines


def spans(numbers: Sequence[int]) -> str:
    """Ascending numbers: `0, 6-8`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


NOT_SHOWN = (
    "step 0 has every field of a lane, later steps those that change; "
    "of the rest of the state (what a channel holds, say) only messages are shown"
)
REPLAY = "quorate replay FILE, with the .itf.json, .html or .py file of this trace"


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
    removed = [f"no {key}" for key in old if key not in new]
    changed = [f"{key}: {show(value)}" for key, value in differs.items()]
    return ", ".join([*changed, *removed]) or show(new)


def is_marked(text: str) -> bool:
    """Whether a text is between stars, the mark of a presenter for text that a reader must not miss."""
    return len(text) > 2 and text.startswith("*") and text.endswith("*")


def _around(step: TraceStep, lane: str, changed: list[str]) -> list[str]:
    events = [d for d in step.events if d.lane == lane and (d.kind, d.text) != ("note", step.caption)]
    before = [_mark(d) for d in events if d.kind not in ("send", "lost", "removed")]
    ends = (*_listed("lost:", events, "lost"), *_listed("removed:", events, "removed"))
    return [*before, *changed, *_listed("sends", events, "send"), *ends]


def _mark(event: DiagramEvent) -> str:
    if event.kind == "deliver":
        return f"gets m{event.message}"
    if event.kind == "note":
        return event.text
    peer = f" {event.peer}" if event.peer and f" {event.peer} " not in f" {event.text} " else ""
    text = "" if event.text == event.kind else f": {event.text}"
    return f"*{event.kind}{peer}{text}*"


def _listed(word: str, events: Iterable[DiagramEvent], kind: str) -> list[str]:
    names = [f"m{d.message}->{d.peer}" for d in events if d.kind == kind]
    return [f"{word} {names[0]}", *names[1:]] if names else []


class Fate(Enum):
    """The fate of a message."""

    ARRIVED = "arrives"
    LOST = "lost"
    REMOVED = "removed"
    UNDER_WAY = "on its way"


FATES = {"deliver": Fate.ARRIVED, "lost": Fate.LOST, "removed": Fate.REMOVED}
"""The fate of a message by the kind of its last event."""


@dataclass(frozen=True)
class MessageLife:
    """A message of a trace. `sent` and `ended` are numbers of steps; None if that is not part of the run."""

    number: int
    sender: str
    receiver: str
    text: str
    sent: int | None = None
    ended: int | None = None
    fate: Fate = Fate.UNDER_WAY

    @property
    def start_text(self) -> str:
        """The time of its sending, as text."""
        return "under way from the start" if self.sent is None else f"sent in step {self.sent}"

    @property
    def end_text(self) -> str:
        """Its fate and the step of it, as text."""
        return self.fate.value if self.ended is None else f"{self.fate.value} in step {self.ended}"

    @property
    def sentence(self) -> str:
        """The whole message, in one line."""
        return f"m{self.number} {self.sender} -> {self.receiver}: {self.text}; {self.start_text}, {self.end_text}"


def messages_of(trace: Trace) -> list[MessageLife]:
    """Every message of a trace, in the order in which they are first seen."""
    lives: dict[int, MessageLife] = {}
    for step in trace.steps:
        for event in step.events:
            if event.message is None or event.peer is None:
                continue
            number, pair = event.message, (event.lane, event.peer)
            sender, receiver = (event.peer, event.lane) if event.kind == "deliver" else pair
            message = lives.get(number) or MessageLife(number, sender, receiver, event.text)
            begin, ended, fate = message.sent, message.ended, message.fate
            if event.kind == "send":
                begin = step.number
            else:
                ended, fate = step.number, FATES[event.kind]
            lives[number] = MessageLife(number, message.sender, message.receiver, message.text, begin, ended, fate)
    return list(lives.values())
