"""What the schedules of the findings E, F and G share: leader 3 of {1, 2, 3} is asked to take in the joiners 4 and 5.

The joiners follow without a vote. The packets of the reconfiguration are held, so that some servers only know of it.
"""

import time
from collections.abc import Iterable
from contextlib import suppress

from harness.processes import ServerError, wait_until
from harness.reproduce.by_hand.hand_made import HandMadeRun
from harness.reproduce.by_hand.observation import wait_logged
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG
from harness.session import Session
from spec.quorum import Sid
from spec.tree.replies import Code
from spec.txn import epoch_of

OLD_SIDE, NEW_SIDE = (1, 2), (3, 4, 5)
ZXID = 0x100000001
NEW = "0x100000001: {3, 4, 5}"
OLD_WRITE, NEW_WRITE = "/old-side", "/new-side"
KEYS = {"syncLimit": "120"}
"""A leader ends the connection of a learner that owes it an acknowledgement for so many ticks, here for a minute."""
SECONDS_TO_SERVE = 40.0
SECONDS_TO_RETURN = 20.0
QUIET_SECONDS = 3.0


class Replacement(HandMadeRun):
    """Servers 1, 2 and 3, led by 3, and the joiners 4 and 5."""

    sids = (1, 2, 3, 4, 5)
    servers: ReconfigServers
    client: Session

    def __init__(self, bench: Bench, name: str = "servers") -> None:
        super().__init__(bench, name)
        self.seconds = SECONDS_TO_SERVE
        self.zxids: dict[str, int] = {}

    def make(self) -> None:
        """Make the five servers."""
        self.servers = self.bench.servers(self.name, self.sids, keys=KEYS)

    def begin(self) -> None:
        """Start all five servers."""
        self.servers.begin_led_by(3, (1, 2, 3))
        for sid in (4, 5):
            self.servers.begin(sid, (1, 2, 3, sid))
        self.servers.wait_serving([4, 5])

    def ask(self, leave: Iterable[Sid]) -> None:
        """Ask leader 3 to add 4 and 5, and to remove `leave`; the client waits for its reply."""
        self.client = self.servers.connect(3)
        self.client.send(RECONFIG, *self.servers.change(join=[4, 5], leave=leave))

    def log_everywhere(self) -> None:
        """Ask for {3, 4, 5}, and wait for the logs of 1, 3, 4 and 5.

        Server 2 gets no proposal, and all acknowledgements are held. The schedules decide which of them count, and who
        learns of the commit.
        """
        self.servers.hold(2, 3, Way.DOWN)
        for sid in (1, 4, 5):
            self.servers.hold(sid, 3, Way.UP)
        self.ask(OLD_SIDE)
        wait_logged(self.servers, (1, 3, 4, 5), ZXID)

    def write(self, sid: Sid, path: str, seconds: float) -> Iterable[str]:
        """Write at a server as soon as it serves. Raises ServerError if it does not within some time.

        If the path exists, an attempt without a reply was committed, and a write of another path asks for a reply.
        """
        deadline = time.monotonic() + seconds
        name = path
        while True:
            try:
                answer = self.servers.create(sid, name)
            except (ServerError, OSError) as error:
                if time.monotonic() > deadline:
                    raise ServerError(f"server {sid} does not serve within {seconds:g} s") from error
                time.sleep(0.1)
                continue
            if answer.err == Code.NODE_EXISTS and name == path:
                name = f"{path}-again"
                continue
            if answer.err:
                raise ServerError(f"the write of {name} fails with {answer.err}")
            self.acknowledge(name, sid)
            self.zxids[path] = answer.zxid
            return [f"the write of {name} is acknowledged by server {sid}, {answer.zxid:#x}"]

    def note_leaders(self) -> Iterable[str]:
        """Note the servers that lead now, and their epochs."""
        for sid in self.servers.sids:
            if self.servers.role(sid) == "leader":
                self.result.leaders[sid] = epoch_of(self.servers.applied(sid) or 0)
        return [f"server {sid} leads in epoch {epoch}" for sid, epoch in self.result.leaders.items()]

    def recover(self) -> None:
        """Mend the network, and start 1 and 2 again, as an operator would who finds two leaders.

        A server may not return: its configuration lacks it, or its epoch is greater than the leader's.
        """
        self.servers.network.open()
        self.servers.join()
        time.sleep(QUIET_SECONDS)
        for sid in OLD_SIDE:
            self.servers.kill(sid)
            self.servers.start(sid)
            with suppress(ServerError):
                self.servers.wait_ended_or_serving(sid, SECONDS_TO_RETURN)
            time.sleep(QUIET_SECONDS)
        self.look_up(self.servers.exists)

    def take_reply(self) -> None:
        """Wait until the reconfiguration has its reply. Raises ServerError if it is refused."""
        wait_until(self.client.readable, 10.0, "the client has its reply")
        if error := self.client.receive(RECONFIG).err:
            raise ServerError(f"the reconfiguration was refused with {error}")
        self.client.drop()
