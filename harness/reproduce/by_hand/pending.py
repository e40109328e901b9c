"""Finding E: a learner that joins during an outstanding reconfiguration activates it, although it is not committed.

The leader sends its last-seen configuration in NEWLEADER, also while it serves, and the learner activates that one at
UPTODATE. From then on the learner gossips it, a LOOKING server adopts it, and a quorum of the uncommitted configuration
alone elects a leader, while a quorum of the committed one elects another.

The scenario replaces 1 and 2, and 3 crashes (`CRASH`). The run that is reproduced is `SPLIT`: nothing crashes there,
and the two leaders came in every run.

Source: `Leader.getQuorumVerifierBytes`, `LearnerHandler.run`, `Learner.syncWithLeader` (UPTODATE),
`FastLeaderElection.WorkerReceiver.run`, `getVoteTracker`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.processes import ServerError, wait_until
from harness.reproduce.by_hand.hand_made import HandStep
from harness.reproduce.by_hand.observation import drop_links, wait_logged
from harness.reproduce.by_hand.replacement import (
    NEW_SIDE,
    NEW_WRITE,
    OLD_SIDE,
    OLD_WRITE,
    Replacement,
)
from harness.reproduce.by_hand.servers import Bench
from harness.reproduce.ends import Effect
from harness.reproduce.proxies import Way
from harness.zoo_cfg import version_of
from spec.quorum import Sid

PENDING = 0x100000002
BEFORE = "/before"
SECONDS = 40.0


@dataclass(frozen=True)
class PendingRun:
    """One run: its name, who leaves when 4 and 5 join, and the fault: 3 is killed, or the network splits."""

    name: str
    leave: tuple[Sid, ...]
    fault: str

    @property
    def kills(self) -> bool:
        """Whether 3 is killed."""
        return self.fault == KILLED


KILLED = "3 is killed"
SPLIT = PendingRun("3 to 5", (), "the network splits")
CRASH = PendingRun("1 and 2 are replaced by 4 and 5", OLD_SIDE, KILLED)


class PendingView(Replacement):
    """4 and 5 are added, 4 connects again before the commit, and the network splits."""

    scenario = "pending-view-activated"
    is_needed = False  # this one goes on to the writes of clients
    effects = frozenset({Effect.TWO_LEADERS, Effect.DIFFERENT})

    def __init__(self, bench: Bench, name: str = "servers", variant: PendingRun = SPLIT) -> None:
        super().__init__(bench, name)
        self.variant = variant

    def begin(self) -> None:
        """Start all five servers, and write, so that logs have a record."""
        super().begin()
        self.servers.create(3, BEFORE)

    def steps(self) -> tuple[HandStep, ...]:
        """The steps of the variant."""
        who = "replace 1 and 2 by 4 and 5" if self.variant.leave else "add 4 and 5"
        sides = "" if self.variant.kills else ": {1, 2} and {3, 4, 5}"
        return (
            HandStep("the packets from leader 3 to 1 and 2 are held", self._hold),
            HandStep(f"a client asks 3 to {who}; 3, 4 and 5 log it, and it is not committed", self._ask),
            HandStep("the connection of 4 breaks; it joins 3 again, and shows the new configuration", self._join, True),
            HandStep(self.variant.fault + sides, self.fail),
            HandStep("a client writes at 1", lambda: self._write(1, OLD_WRITE)),
            HandStep("a client writes at 4", lambda: self._write(4, NEW_WRITE)),
        )

    def recover(self) -> None:
        """Note the leaders, start 3 again or mend the network, and then start 1 and 2 again."""
        self.note_leaders()
        if self.variant.kills:
            self.servers.start(3)
        super().recover()

    def _hold(self) -> None:
        for sid in OLD_SIDE:
            self.servers.hold(sid, 3, Way.DOWN)

    def _ask(self) -> None:
        self.ask(self.variant.leave)
        wait_logged(self.servers, NEW_SIDE, PENDING)

    def _join(self) -> None:
        """Break the connection of 4, and see whether it activates the configuration. Raises ServerError if not.

        4 decides that at UPTODATE, before it serves again. The leader waits for the acknowledgements of 1 and 2 for
        `syncLimit` alone, so a run with the correction cannot wait for a configuration that never comes.
        """
        earlier = self._joins()
        self.servers.link(4, 3).drop()
        wait_until(lambda: self._joins() > earlier, SECONDS, "server 4 joins server 3 again")
        wait_until(lambda: self.servers.config(4) != "", SECONDS, "server 4 serves again")
        if (version := version_of(self.servers.config(4))) != PENDING:
            raise ServerError(f"server 4 serves with the configuration {version:#x}, and not with {PENDING:#x}")

    def _joins(self) -> int:
        """How often server 4 has been told by leader 3 to serve."""
        packets = self.servers.packets("UPTODATE")
        return sum((packet.sender, packet.receiver) == (3, 4) for packet in packets)

    def fail(self) -> None:
        """Split the network, or kill 3, before the reconfiguration has its reply."""
        if self.client.readable():
            raise ServerError("the reconfiguration has its reply, although two of three servers do not have it")
        self.client.drop()
        if self.variant.kills:
            self.servers.kill(3)
            drop_links(self.servers, 3)
        else:
            self.servers.part(OLD_SIDE, NEW_SIDE)

    def _write(self, sid: Sid, path: str) -> Iterable[str]:
        return self.write(sid, path, self.seconds)
