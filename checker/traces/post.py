"""The life of each message of a trace: who sent it to whom, in which step, and what became of it.

Views that draw or list messages take them from here, so that all of them tell the same of one message. Rules: a message
is known by its number; one that was never seen being sent was under way before the first step; one that neither arrives
nor is lost is still on its way at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from checker.traces.trace import Trace


class Fate(Enum):
    """What became of a message."""

    ARRIVED = "arrives"
    LOST = "lost"
    UNDER_WAY = "on its way"


@dataclass(frozen=True)
class Message:
    """`sent` and `ended` are numbers of steps; None where that is not part of the run."""

    number: int
    sender: str
    receiver: str
    text: str
    sent: int | None = None
    ended: int | None = None
    fate: Fate = Fate.UNDER_WAY

    @property
    def begun(self) -> str:
        """When it was sent."""
        return "under way from the start" if self.sent is None else f"sent in step {self.sent}"

    @property
    def over(self) -> str:
        """What became of it, and when."""
        return self.fate.value if self.ended is None else f"{self.fate.value} in step {self.ended}"

    @property
    def told(self) -> str:
        """All of it, in a line."""
        return f"m{self.number} {self.sender} -> {self.receiver}: {self.text}; {self.begun}, {self.over}"


def messages_of(trace: Trace) -> list[Message]:
    """Every message of a trace, in the order in which they are first seen."""
    known: dict[int, Message] = {}
    for step in trace.steps:
        for drawn in step.drawn:
            if drawn.message is None or drawn.peer is None:
                continue
            number, here = drawn.message, (drawn.lane, drawn.peer)
            sender, receiver = (drawn.peer, drawn.lane) if drawn.kind == "deliver" else here
            message = known.get(number) or Message(number, sender, receiver, drawn.text)
            sent, ended, fate = message.sent, message.ended, message.fate
            if drawn.kind == "send":
                sent = step.number
            else:
                ended, fate = step.number, Fate.LOST if drawn.kind == "lost" else Fate.ARRIVED
            known[number] = Message(number, message.sender, message.receiver, message.text, sent, ended, fate)
    return list(known.values())
