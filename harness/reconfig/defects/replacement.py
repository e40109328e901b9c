"""{1, 2, 3} becomes {3, 4, 5}: the scene of two defects, up to the moment when 1, 3, 4 and 5 have logged the change.

Server 2 gets no proposal, and all acknowledgements are held. The callers decide which of them count, and who learns of
the commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.reconfig.facts import FactBench, wait_logged
from harness.reconfig.servers import RECONFIG, ReconfigServers
from harness.reproduce.proxies import Way
from harness.session import Session

ZXID = 0x100000001
NEW = "0x100000001: {3, 4, 5}"
OLD_SIDE, NEW_SIDE = (1, 2), (3, 4, 5)


@contextmanager
def ensemble(bench: FactBench, name: str) -> Iterator[ReconfigServers]:
    """Servers 1, 2 and 3, led by 3, and the joiners 4 and 5, which follow without a vote."""
    with bench.servers(name, (1, 2, 3, 4, 5), keys={"syncLimit": "16"}) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        for sid in (4, 5):
            servers.begin(sid, (1, 2, 3, sid))
        servers.wait_serving([4, 5])
        yield servers


def log_everywhere(servers: ReconfigServers) -> Session:
    """Ask for the change at 3, and wait for the logs; return the client, which waits for its reply."""
    servers.hold(2, 3, Way.DOWN)
    for sid in (1, 4, 5):
        servers.hold(sid, 3, Way.UP)
    client = servers.connect(3)
    client.send(RECONFIG, *servers.change(join=[4, 5], leave=[1, 2]))
    wait_logged(servers, (1, 3, 4, 5), ZXID)
    return client
