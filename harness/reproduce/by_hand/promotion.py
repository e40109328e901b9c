"""Finding H: an observer is to become a voter, a connection breaks, and no write is answered.

Server 1 has seen the new configuration, and its connection breaks before its acknowledgement arrives. It needs votes of
three of the four to follow again, and the observer's does not count; the leader needs three acknowledgements, and the
observer sends none.

Source: `FastLeaderElection.lookForLeader` (validVoter), `getVoteTracker`; `Leader.lead` (syncedAckSet).
"""

import time
from collections.abc import Iterable
from contextlib import suppress

from harness.processes import ServerError
from harness.reproduce.by_hand.hand_made import HandMadeRun, HandStep
from harness.reproduce.by_hand.observation import wait_logged
from harness.reproduce.by_hand.servers import ReconfigServers
from harness.reproduce.ends import Effect
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG
from harness.session import Session
from harness.zoo_cfg import OBSERVER, PARTICIPANT

ZXID = 0x100000001
ROLES = {1: PARTICIPANT, 2: PARTICIPANT, 3: PARTICIPANT, 4: OBSERVER}
WRITE, LATER = "/while-waiting", "/restarted"
SECONDS = 60.0
"""An election ends within this time on a busy machine; without one the wait has no end."""


class Promotion(HandMadeRun):
    """Observer 4 becomes a voter, and the connection of 1 breaks when it has logged that."""

    scenario = "observer-promoted-stops-service"
    effects = frozenset({Effect.NO_ANSWER})
    sids = tuple(ROLES)
    servers: ReconfigServers
    client: Session

    def make(self) -> None:
        """Make the four servers."""
        self.servers = self.bench.servers(self.name, ROLES)

    def begin(self) -> None:
        """Start the voters and the observer."""
        self.servers.begin_led_by(3, ROLES)

    def steps(self) -> tuple[HandStep, ...]:
        """The steps. Where the connection does not break, the held packets pass at last."""
        return (
            HandStep("the packets from 1 to leader 3 are held", lambda: self.servers.hold(1, 3, Way.UP)),
            HandStep("a client asks 3 to make observer 4 a voter; 1, 2 and 3 log it", self._ask),
            HandStep("the connection of 1 breaks", lambda: self.servers.link(1, 3).drop(), decisive=True),
            HandStep("all packets pass again, and a client writes at 3", self._write),
        )

    def recover(self) -> None:
        """Restart leader 3, and write again."""
        self.client.drop()
        self.servers.kill(3)
        self.servers.start(3)
        self.servers.wait_serving(self.servers.sids)
        self._create(LATER)
        self.look_up(self.servers.exists)

    def _ask(self) -> None:
        self.client = self.servers.connect(3)
        self.client.send(RECONFIG, *self.servers.change(join=[4]))
        wait_logged(self.servers, (1, 2, 3), ZXID)

    def _write(self) -> Iterable[str]:
        if (link := self.servers.network.link(1, 3)) is not None:
            link.free(Way.UP)
        deadline = time.monotonic() + SECONDS
        attempts = 0
        while time.monotonic() < deadline:
            attempts += 1  # each with its own path: a write without a reply may be committed later
            path = f"{WRITE}-{attempts}"
            with suppress(ServerError, OSError):  # no reply until the session expires
                self._create(path)
                return [f"the write of {path} is acknowledged by server 3"]
            time.sleep(0.5)
        self.result.unanswered += (WRITE,)
        roles = (f"server {sid} is {self.servers.role(sid) or 'not serving'}" for sid in ROLES)
        return [f"no write has an answer within {SECONDS:g} s: {', '.join(roles)}"]

    def _create(self, path: str) -> None:
        if error := self.servers.create(3, path).err:
            raise ServerError(f"the write of {path} fails with {error}")
        self.acknowledge(path, 3)
