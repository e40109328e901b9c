"""Finding G: two leaders establish one epoch, because FOLLOWERINFO and ACKEPOCH are counted by the active view alone.

{1, 2, 3} becomes {3, 4, 5}, and only leader 3 has activated it. 3 is cut off. 1, which has the proposal, is elected
with the votes of both configurations; the connections of 4 and 5 to it are late. For its epoch it counts 1 and 2
alone. Then 4 and 5 hear 3, adopt its configuration, and elect one of the three: the same epoch.

Source: `Leader.getEpochToPropose`, `waitForEpochAck` (getQuorumVerifier), `FastLeaderElection.getVoteTracker`.
"""

from collections.abc import Iterable

from harness.processes import wait_until
from harness.reproduce.by_hand.hand_made import HandStep
from harness.reproduce.by_hand.observation import wait_config
from harness.reproduce.by_hand.replacement import NEW, NEW_SIDE, NEW_WRITE, OLD_SIDE, Replacement
from harness.reproduce.disks import read_current_epoch
from harness.reproduce.ends import Effect
from harness.reproduce.proxies import Way

EPOCH = 2
SECONDS = 60.0


class EpochOfActiveView(Replacement):
    """Servers 1 and 2 establish epoch 2, and so do 3, 4 and 5."""

    scenario = "epoch-of-active-view"
    effects = frozenset({Effect.TWO_LEADERS})

    def steps(self) -> tuple[HandStep, ...]:
        """The steps. No step can be left out alone."""
        return (
            HandStep("a client asks leader 3 to replace 1 and 2 by 4 and 5; 1, 3, 4 and 5 log it", self.log_everywhere),
            HandStep("3 commits with the ACKs of 1, 4 and 5, and all commits to others are held", self._commit),
            HandStep("3 is cut off, and all packets of the others are held", self._cut_off),
            HandStep("1 and 2 reach each other: both write currentEpoch 2", self._establish),
            HandStep("the network splits: {1, 2} and {3, 4, 5}; one of the latter leads", self._split),
            HandStep("a client writes at 4", lambda: self.write(4, NEW_WRITE, SECONDS)),
        )

    def recover(self) -> None:
        """Note who has established the epoch, and mend the network."""
        for packet in self.servers.packets("NEWLEADER"):
            if packet.packet.zxid == EPOCH << 32:
                self.result.leaders[packet.sender] = EPOCH
        self.servers.network.is_open = True
        self.servers.join()
        self.servers.network.open()
        self.servers.wait_serving(self.servers.sids)
        self.look_up(self.servers.exists)

    def _commit(self) -> None:
        for sid in (1, 4, 5):
            self.servers.hold(sid, 3, Way.DOWN)
            self.servers.link(sid, 3).free(Way.UP)
        wait_config(self.servers, [3], NEW)
        self.client.drop()

    def _cut_off(self) -> None:
        self.servers.network.close(frozenset())
        self.servers.part([3], (1, 2, 4, 5))

    def _establish(self) -> Iterable[str]:
        wait_until(self._established_by_2, SECONDS, "servers 1 and 2 have epoch 2")
        senders = sorted({packet.sender for packet in self.servers.packets("NEWLEADER")} & set(OLD_SIDE))
        return [f"server {sid} sends NEWLEADER" for sid in senders]

    def _established_by_2(self) -> bool:
        """Let the packets between 1 and 2 pass, and those of no other connection; whether both have the epoch."""
        link = self.servers.network.link(2, 1)
        if link is not None:
            for way in Way:
                link.free(way)
        return all(read_current_epoch(self.servers.data(sid)) == EPOCH for sid in OLD_SIDE)

    def _split(self) -> None:
        self.servers.part(OLD_SIDE, NEW_SIDE)
        self.servers.network.is_open = True  # the cuts stay
        self.servers.join()
        self.servers.part(OLD_SIDE, NEW_SIDE)
        self.servers.wait_serving(NEW_SIDE)
