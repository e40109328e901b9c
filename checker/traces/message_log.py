"""The life of each message of a trace: its sender and receiver, the step of its sending, and its fate.

Views that draw or list messages take them from here, so that all views agree on each message. Rules of this module: the
number of a message identifies it. A message whose sending was not seen was in flight before the first step. A message
that neither arrives nor is lost is still in flight at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from checker.traces.trace import Trace


class Fate(Enum):
    """The fate of a message."""

    ARRIVED = "arrives"
    LOST = "lost"
    UNDER_WAY = "on its way"


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
    known: dict[int, MessageLife] = {}
    for step in trace.steps:
        for event in step.events:
            if event.message is None or event.peer is None:
                continue
            number, here = event.message, (event.lane, event.peer)
            sender, receiver = (event.peer, event.lane) if event.kind == "deliver" else here
            message = known.get(number) or MessageLife(number, sender, receiver, event.text)
            sent, ended, fate = message.sent, message.ended, message.fate
            if event.kind == "send":
                sent = step.number
            else:
                ended, fate = step.number, Fate.LOST if event.kind == "lost" else Fate.ARRIVED
            known[number] = MessageLife(number, message.sender, message.receiver, message.text, sent, ended, fate)
    return list(known.values())
