"""A trace as a log for ShiViz, which draws it as a space-time diagram from vector clocks.

The file begins with the regular expression that ShiViz parses it with, and an empty line as its delimiter of
executions. Each event then has two lines: its text, and its host with its vector clock. Rules of this module:

- A lane is a host. The actions of a lane in a step are one event. A message that leaves and arrives in the same step
  leaves in a separate event before that.
- A host's own component grows by one with each of its events. An event in which messages arrive merges the clocks of
  their sendings; a message in flight before the first step has none.
- A loss is not an event of a host: the text of the first event of the step reports it.

Source: ShiViz, "Log format" and "Parser" (bestchai.bitbucket.io/shiviz).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from checker.printable import on_a_line
from checker.traces.summary import Fate, MessageLife, messages_of, short_pieces, turns
from checker.traces.trace import Trace, TraceStep

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
            lost = [f"m{m.number} to {m.receiver} is lost" for m in self._messages if _lost_in(m, step)]
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
        lanes = {*step.changed, *(d.lane for d in step.events if d.kind != "lost")}
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
    return message.fate is Fate.LOST and message.ended == step.number


def _word(lane: str) -> str:
    """A lane as the name of a host: without blanks, and never empty."""
    return re.sub(r"[\s{}\x00-\x1f\x7f-\x9f\ud800-\udfff]+", "_", lane) or "_"


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken by another lane."""
    return next(each for each in (name, *(f"{name}_{n}" for n in range(2, len(taken) + 3))) if each not in taken)
