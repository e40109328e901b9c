"""The peer-visible actions of the specification, and those that a campaign has reached.

An action is a packet that the server under test reads or sends in a phase of its role, or a loss in a phase. The table
is written by hand from the packets of `spec.zab.learner`, `spec.zab.leader` and their parts.

INFORM and COMMITANDACTIVATE before NEWLEADER are not in it: the leader of the specification sends everything up to
NEWLEADER in one step, with PROPOSAL and COMMIT (`spec.zab.leader_sync.stream`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from checker.models.ensemble.actions import ServerAction

LEARNER = {
    "learner DISCOVERY": (("LEADERINFO",), ("FOLLOWERINFO", "OBSERVERINFO")),
    "learner SYNCHRONIZATION": (
        ("DIFF", "TRUNC", "SNAP", "PROPOSAL", "COMMIT", "NEWLEADER"), ("ACKEPOCH",),
    ),
    "learner SYNCED": (
        ("PROPOSAL", "COMMIT", "INFORM", "COMMITANDACTIVATE", "INFORMANDACTIVATE", "UPTODATE"), ("ACK",),
    ),
    "learner BROADCAST": (
        ("PROPOSAL", "COMMIT", "INFORM", "COMMITANDACTIVATE", "INFORMANDACTIVATE", "SYNC"),
        ("ACK", "REQUEST", "REQUEST sync"),
    ),
}  # fmt: skip
LEADER = {
    "leader FOLLOWERINFO": (("FOLLOWERINFO", "OBSERVERINFO"), ()),
    "leader ACKEPOCH": (("FOLLOWERINFO", "OBSERVERINFO", "ACKEPOCH"), ("LEADERINFO",)),
    "leader NEWLEADER_ACK": (
        ("FOLLOWERINFO", "OBSERVERINFO", "ACKEPOCH", "ACK"),
        ("LEADERINFO", "DIFF", "TRUNC", "SNAP", "PROPOSAL", "COMMIT", "NEWLEADER"),
    ),
    "leader BROADCAST": (
        ("FOLLOWERINFO", "OBSERVERINFO", "ACKEPOCH", "ACK", "REQUEST", "REQUEST sync"),
        ("LEADERINFO", "DIFF", "TRUNC", "SNAP", "PROPOSAL", "COMMIT", "INFORM", "COMMITANDACTIVATE",
         "INFORMANDACTIVATE", "NEWLEADER", "UPTODATE", "SYNC"),
    ),
}  # fmt: skip
"""For each phase the packets that the server reads, and those after which it is in the phase when they are sent."""
LOSSES = (ServerAction.CRASH, ServerAction.DISCONNECT)


@dataclass
class Coverage:
    """How often each kind of event was caused, and each kind of packet seen, with the phase of the server.

    `choices` has the events with more of the state: they decide which event is rare.
    """

    events: Counter[tuple[str, ...]] = field(default_factory=Counter)
    choices: Counter[tuple[object, ...]] = field(default_factory=Counter)
    packets: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def missing(self) -> list[str]:
        """The actions that were not reached, in words."""
        return [words for words, reached in self._actions() if not reached]

    def counts(self) -> tuple[int, int]:
        """The number of actions that were reached, and of all."""
        reached = [reached for _, reached in self._actions()]
        return sum(reached), len(reached)

    def _actions(self) -> Iterator[tuple[str, bool]]:
        for phase, (reads, sends) in (LEARNER | LEADER).items():
            for name in reads:
                yield f"{phase} reads {name}", self.events[ServerAction.RECEIVE, "tested reads", name, phase] > 0
            for name in sends:
                yield f"{phase} sends {name}", self.packets[name, phase] > 0
            for action in LOSSES:
                if action != ServerAction.DISCONNECT or phase != "leader FOLLOWERINFO":  # it has no connection yet
                    yield f"{phase}, {action}", self.events[action, "tested", phase] > 0
