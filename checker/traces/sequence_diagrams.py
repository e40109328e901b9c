"""A trace as text for two programs that draw messages between lanes: Mermaid and ShiViz.

Mermaid draws a sequence diagram: lanes are participants, messages are arrows. An arrow is placed where its message
arrives or is lost. It names the step of the sending if that was another step, because a diagram cannot show the two
ends of a message apart. Notes show everything else. Rules:

- The number on an arrow is the number of its step; notes begin with theirs.
- Steps that repeat for ever are in a `loop`.
- Text from a model is escaped, character by character, where Mermaid would read it as syntax: `#`, `;`, `%`, `<`, `>`,
  `&`, `$`, line breaks, and the word `end`.

ShiViz draws a space-time diagram from vector clocks. The file begins with the regular expression that ShiViz parses it
with, and an empty line as its delimiter of executions. Each event then has two lines: its text, and its host with its
vector clock. Rules:

- A lane is a host. The actions of a lane in a step are one event. A message that leaves and arrives in the same step
  leaves in a separate event before that.
- A host's own component grows by one with each of its events. An event in which messages arrive merges the clocks of
  their sendings; a message in flight before the first step has none.
- A loss is not an event of a host: the text of the first event of the step reports it.

Source: Mermaid's "Sequence diagrams" and "Entity codes to escape characters"; ShiViz, "Log format" and "Parser"
(bestchai.bitbucket.io/shiviz).
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from checker.job import DiagramEvent
from checker.traces.summary import Fate, MessageLife, finding, messages_of, short_pieces, turns
from checker.traces.trace import Trace, TraceStep, Truth
from spec.text import UNREADABLE, on_a_line

ESCAPED = {character: f"#{ord(character)};" for character in "#;%<>&$"}


def to_mermaid(trace: Trace) -> str:
    """The diagram, with a newline at the end; it goes between ```mermaid fences without changes."""
    return "\n".join(_Diagram(trace).lines()) + "\n"


def escaped(text: str) -> str:
    """Text that Mermaid shows unchanged, on one line of its source."""
    text = "".join(ESCAPED.get(character, character) for character in text)
    text = re.sub(r"\bend\b", lambda match: f"#{ord(match[0][0])};{match[0][1:]}", text, flags=re.IGNORECASE)
    return "<br/>".join(on_a_line(line).strip() for line in text.splitlines()).strip()


ENDS = {"deliver": ("", "->>"), "lost": (", lost", "-x"), "removed": (", removed", "->")}
"""The words and the arrow of a message by the kind of its last event; both of the others begin at the sender."""


class _Diagram:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        events = [d for step in trace.steps for d in step.events]
        names = (*trace.lanes, *(name for d in events for name in (d.lane, d.peer) if name is not None))
        self._ids = {name: f"p{number}" for number, name in enumerate(dict.fromkeys(names or ("model",)), 1)}
        self._sent = {d.message: step.number for step in trace.steps for d in step.events if d.kind == "send"}
        self._next_number = 1

    def lines(self) -> Iterator[str]:
        yield "sequenceDiagram"
        yield "    autonumber"
        for name, identifier in self._ids.items():
            yield f"    participant {identifier} as {escaped(name) or identifier}"
        trace, indent = self._trace, "    "
        for step in trace.steps:
            if step.number:
                lines = [line for event in step.events for line in self._line(step, event)]
                for line in lines or [self._note(self._touched(step), f"{step.number}: {step.caption}")]:
                    yield indent + line
            if step.number == trace.since:
                yield indent + self._note(list(self._ids), trace.turning(step.number)[0])
            if step.number == trace.loop and trace.loop < trace.depth:
                yield "    loop for ever"
                indent *= 2
        if len(indent) > 4:
            yield "    end"
        yield "    " + self._note(list(self._ids), self._conclusion())

    def _line(self, step: TraceStep, event: DiagramEvent) -> Iterator[str]:
        if event.kind == "send":
            return
        if event.message is None or event.peer is None:
            lanes = [event.lane, *([event.peer] if event.peer else [])]
            text = event.text if event.kind in ("note", event.text) else f"{event.kind}: {event.text}"
            yield self._note(lanes, f"{step.number}: {text}")
            return
        if self._next_number != step.number:
            yield f"autonumber {step.number}"
        self._next_number = step.number + 1
        word, arrow = ENDS[event.kind]
        sender, receiver = (event.lane, event.peer) if word else (event.peer, event.lane)
        origin = self._sent.get(event.message)
        when = f", sent in step {origin}" if origin not in (None, step.number) else ""
        text = escaped(f"m{event.message} {event.text}{word}{when}")
        yield f"{self._ids[sender]}{arrow}{self._ids[receiver]}: {text}"

    def _note(self, lanes: list[str], text: str) -> str:
        ends = list(dict.fromkeys([lanes[0], lanes[-1]])) if lanes else []
        return f"Note over {','.join(self._ids[lane] for lane in ends)}: {escaped(text)}"

    def _touched(self, step: TraceStep) -> list[str]:
        """The lanes for the note of a step that draws no line: the changed lanes, else the drawn ones, else all."""
        lanes = list(step.changed) or [d.lane for d in step.events] or list(self._ids)
        return sorted(lanes, key=list(self._ids).index)

    def _conclusion(self) -> str:
        trace = self._trace
        failing = [name for name, truth in trace.steps[-1].truth.items() if truth is Truth.FAILS and name != trace.prop]
        also = f"\nfails too: {', '.join(failing)}" if failing else ""
        clause = f"\n{finding(trace)}" if trace.clause else ""
        return f"{trace.headline}{clause}{also}"


REGEX = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
Clock = Counter[str]


def to_shiviz(trace: Trace) -> str:
    """The log, with a newline at the end."""
    return "\n".join([REGEX, "", *_Log(trace).lines()]) + "\n"


class _Log:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._messages = messages_of(trace)
        peers = [name for step in trace.steps for d in step.events for name in (d.lane, d.peer) if name is not None]
        self._hosts: dict[str, str] = {}
        for lane in dict.fromkeys((*trace.lanes, *peers)):
            self._hosts[lane] = _free(_word(lane), set(self._hosts.values()))
        self._clocks: dict[str, Clock] = {lane: Counter() for lane in self._hosts}
        self._sent: dict[int, Clock] = {}
        self._arriving: dict[int, list[MessageLife]] = defaultdict(list)
        for message in self._messages:
            if message.fate is Fate.ARRIVED and message.ended is not None:
                self._arriving[message.ended].append(message)

    def lines(self) -> Iterator[str]:
        for step in self._trace.steps:
            lost = [f"m{m.number} to {m.receiver} is {m.fate.value}" for m in self._messages if _lost_in(m, step)]
            text_before = "; ".join([f"step {step.number}: {step.caption}", *lost, *turns(self._trace, step)])
            sending = [m for m in self._messages if m.sent == step.number]
            for message in sending:
                if message.ended == step.number and message.fate is Fate.ARRIVED:
                    text = f"step {step.number}: {message.sender} sends m{message.number}"
                    yield from self._event(text, message.sender, [], [message])
            later = [m for m in sending if m.number not in self._sent]
            for lane in self._touched(step):
                arriving = [m for m in self._arriving[step.number] if m.receiver == lane]
                text = "; ".join([text_before, *short_pieces(self._trace, step, lane)])
                yield from self._event(text, lane, arriving, [m for m in later if m.sender == lane])
                text_before = f"step {step.number}: {step.caption}"

    def _touched(self, step: TraceStep) -> list[str]:
        """The lanes with an event in a step, at least one."""
        lanes = {*step.changed, *(d.lane for d in step.events if d.kind not in ("lost", "removed"))}
        lanes = lanes or {d.lane for d in step.events} or set(list(self._hosts)[:1])
        return sorted(lanes, key=list(self._hosts).index)

    def _event(self, text: str, lane: str, arriving: list[MessageLife], sent: list[MessageLife]) -> Iterator[str]:
        clock = self._clocks[lane]
        for message in arriving:
            clock |= self._sent.get(message.number, Counter())
        clock[self._hosts[lane]] += 1
        self._clocks[lane] = clock
        for message in sent:
            self._sent[message.number] = Counter(clock)
        yield on_a_line(" ".join(text.split())) or "-"
        yield f"{self._hosts[lane]} {json.dumps(clock)}"


def _lost_in(message: MessageLife, step: TraceStep) -> bool:
    """Whether a message ends in a step, and does not arrive."""
    return message.fate is not Fate.ARRIVED and message.ended == step.number


def _word(lane: str) -> str:
    """A lane as the name of a host: without blanks, and never empty."""
    return re.sub(rf"(?:[\s{{}}]|{UNREADABLE.pattern})+", "_", lane) or "_"


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken by another lane."""
    return next(option for option in (name, *(f"{name}_{n}" for n in range(2, len(taken) + 3))) if option not in taken)
