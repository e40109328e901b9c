"""Digests of the tree in mixed ensembles with real servers of 3.9.5: every server agrees with every leader.

A real server compares the digest in each transaction with that of its own tree, and counts the differences.
"""

from collections.abc import Callable
from functools import partial

import pytest

from harness.commands import OPEN
from harness.ensemble import Ensemble
from harness.processes import wait_until
from harness.session import Session
from tests.node.conftest import NEWEST

ROUNDS = 60


def write(port: int) -> None:
    """Transactions of every kind at a server."""
    client = Session(10_000)
    client.connect(port)
    for number in range(ROUNDS):
        client.ask(1, f"/a{number}", bytes(number), OPEN, number % 4)
        client.ask(19, f"/c{number}", b"", OPEN, 4)
        client.ask(5, f"/a{number}", b"set", -1)
        client.ask(5, f"/a{number}", b"set", 7)
        client.ask(7, f"/a{number}", OPEN, -1)
        if number % 3 == 0:
            client.ask(2, f"/a{number}", -1)
        client.ask(14, (1, (f"/m{number}", b"1", OPEN, 0)), (5, (f"/m{number}", None, -1)), (2, (f"/c{number}", -1)))
        client.ask(14, (1, (f"/n{number}", b"1", OPEN, 0)), (2, ("/none", -1)))
        client.ask(5, "/", bytes(number), -1)
        client.ask(1, f"/zookeeper/x{number}", b"", OPEN, 0)
    client.ask(-11)
    client.drop()


def mismatches(ensemble: Ensemble, sid: int) -> str:
    lines = dict(line.split("\t") for line in ensemble.word(sid, "mntr").splitlines())
    return lines["zk_digest_mismatches_count"]


def same(ensemble: Ensemble, sid: int, text: str) -> bool:
    return ensemble.word(sid, "hash") == text


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [["real", "real", "node"], ["node", "node", "real"]])
@pytest.mark.parametrize("leader", [2, 3])
def test_every_server_has_the_digests_of_the_leader(
    kinds: list[str], leader: int, launch: Callable[..., Ensemble]
) -> None:
    """The leader is the node in one case and the real server in the other, for each mixture."""
    ensemble = launch(kinds, first=leader, release=NEWEST)
    assert ensemble.leader() == leader
    write(ensemble.client_port(1))
    newest = ensemble.word(leader, "hash")
    for sid in ensemble.sids:
        wait_until(partial(same, ensemble, sid, newest), 20.0, f"server {sid} has the digests of the leader: {newest}")
    assert [mismatches(ensemble, sid) for sid in ensemble.sids] == ["0"] * 3
    assert len(newest.splitlines()) >= 3
    ensemble.shut_down()
