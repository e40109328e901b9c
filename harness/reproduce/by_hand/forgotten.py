"""Finding F: a server forgets a reconfiguration which it has acknowledged, because each start deletes `.next`.

At a start the active configuration is set before the last-seen one, equals it for a moment, and so `.next` is deleted.
The last-seen configuration is then in memory only, and the next start does not know it, although its transaction is in
the log. A quorum of the old configuration can then lead without the new one.

Source: `QuorumPeerMain.runFromConfig` (setQuorumVerifier before setLastSeenQuorumVerifier),
`QuorumPeer.setQuorumVerifier` (deleteFile), `FastLeaderElection.getVoteTracker`.
"""

from collections.abc import Iterable

from harness.processes import wait_until
from harness.reproduce.by_hand.hand_made import HandStep
from harness.reproduce.by_hand.observation import look, wait_config
from harness.reproduce.by_hand.replacement import NEW, NEW_SIDE, NEW_WRITE, OLD_SIDE, OLD_WRITE, Replacement
from harness.reproduce.ends import Effect
from harness.reproduce.proxies import Way
from harness.zoo_cfg import NEXT, brief

SECONDS = 60.0


class ForgottenView(Replacement):
    """{3, 4, 5} is committed, {1, 2} are cut off, and server 1 starts twice."""

    scenario = "last-seen-forgotten"
    is_needed = False  # this one goes on to the writes of clients
    effects = frozenset({Effect.TWO_LEADERS})

    def steps(self) -> tuple[HandStep, ...]:
        """The steps; one start alone is harmless."""
        commits = "3 commits with the ACKs of 1, 4 and 5, and the client has its reply; the commit to 1 is held"
        return (
            HandStep("a client asks leader 3 to replace 1 and 2 by 4 and 5; 1, 3, 4 and 5 log it", self.log_everywhere),
            HandStep(commits, self._commit),
            HandStep("the network splits: {1, 2} and {3, 4, 5}", lambda: self.servers.part(OLD_SIDE, NEW_SIDE)),
            HandStep("a client writes at 4", lambda: self.write(4, NEW_WRITE, SECONDS)),
            HandStep("1 is killed, and starts again", self._start_again),
            HandStep("1 is killed, and starts again", self._start_again, decisive=True),
            HandStep("a client writes at 1", lambda: self.write(1, OLD_WRITE, self.seconds)),
        )

    def recover(self) -> None:
        """Note the leaders, mend the network, and start 1 and 2 again."""
        self.note_leaders()
        super().recover()

    def _commit(self) -> None:
        self.servers.hold(1, 3, Way.DOWN)
        for sid in (1, 4, 5):
            self.servers.link(sid, 3).free(Way.UP)
        wait_config(self.servers, NEW_SIDE, NEW)
        self.take_reply()

    def _start_again(self) -> Iterable[str]:
        self.servers.kill(1)
        self.servers.start(1)
        wait_until(lambda: look(self.servers, 1).gossip != "-", SECONDS, "server 1 looks for a leader")
        next_file = self.servers.file(1, NEXT)
        return [f"{NEXT} of 1: {brief(next_file) if next_file else 'missing'}"]
