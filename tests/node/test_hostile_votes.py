"""Votes that no server would cast, in the name of members and of strangers, during and after an election of three."""

import random
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.ensemble import Ensemble
from harness.processes import wait_until
from tests.node.hostile import (
    WAIT,
    check_unharmed,
    connection,
    framed,
    hang_up,
    has_ended,
    leads_alone,
    opening,
    resident,
    send,
    wait_looks,
    wait_said,
)
from tests.node.patience import LONG_LIMITS

Launch = Callable[..., Ensemble]
GROWTH = 24 << 20
LAST, FIRST = 2**63 - 1, -(2**63)
EXTREMES = (FIRST, -1, 0, 1, 2**31, LAST)
OTHER_VIEW = "server.1=127.0.0.1:1:2:participant\nversion=7fffffff"


def vote(state: int, leader: int, zxid: int, election_epoch: int, peer_epoch: int, config: str = "version=0") -> bytes:
    values = struct.pack(">iqqqqii", state, leader, zxid, election_epoch, peer_epoch, 2, len(config))
    return framed(values + config.encode())


@pytest.fixture(scope="module")
def ensemble(launch: Launch) -> Ensemble:
    return launch(["node", "node", "node"], tick_time=250, extra=LONG_LIMITS)


@pytest.fixture
def unharmed(ensemble: Ensemble) -> Iterator[Ensemble]:
    before = resident(ensemble)
    yield ensemble
    check_unharmed(ensemble, before, GROWTH)


def absurd(seed: int) -> Iterator[bytes]:
    """Yield votes of every kind with boundary values."""
    chance = random.Random(seed)
    for _ in range(60):
        leader = chance.choice((1, 2, 3, 77, *EXTREMES))
        numbers = [chance.choice((1, 2, 3, *EXTREMES)) for _ in range(3)]
        config = chance.choice(("version=0", "", OTHER_VIEW, "server.1=", "\xff", "version=" + "f" * 16))
        yield vote(chance.choice((0, 1, 2, 3, 3, 7, -1, FIRST % 2**31)), leader, *numbers, config)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sid", [3, 77, LAST])
def test_absurd_votes_to_servers_that_have_decided(seed: int, sid: int, unharmed: Ensemble) -> None:
    for to_sid in (1, 2):
        with connection(unharmed.member(to_sid).election_port) as to:
            send(to, opening(sid))
            for each in absurd(seed):
                assert send(to, each)
            hang_up(to)


def test_absurd_votes_to_a_server_that_looks_for_a_leader(ensemble: Ensemble) -> None:
    before = resident(ensemble)
    others = [2, 3]
    for sid in others:
        ensemble.stop(sid)
    wait_looks(ensemble, 1)
    try:
        for seed in range(6):
            with connection(ensemble.member(1).election_port) as to:
                send(to, opening((2, 3, 77)[seed % 3]))
                for each in absurd(100 + seed):
                    assert send(to, each)
                hang_up(to)
    finally:
        for sid in others:
            ensemble.start(sid)
    wait_until(lambda: leads_alone(ensemble), WAIT, "one server leads")
    check_unharmed(ensemble, before, GROWTH)


@pytest.mark.parametrize("forged", [LAST, LAST - 1, 2**62], ids=["last", "last but one", "half of the range"])
def test_elections_end_after_the_last_round_too(forged: int, ensemble: Ensemble) -> None:
    """A LOOKING server adopts any higher round: every server is raised to the forged one.

    The next rounds are above it, and the first round follows the last one, as in an AtomicLong.
    """
    ensemble.stop(2)
    ensemble.stop(3)
    wait_looks(ensemble, 1)
    with connection(ensemble.member(1).election_port) as to:
        send(to, opening(3) + vote(0, 1, 0, forged, 0))
        hang_up(to)
    ensemble.start(2)
    ensemble.start(3)
    ensemble.wait_serving()
    for _ in range(2):
        lost = ensemble.leader()
        ensemble.stop(lost)
        ensemble.wait_serving()
        ensemble.start(lost)
        ensemble.wait_serving()
    check_unharmed(ensemble, resident(ensemble), GROWTH)


def test_a_configuration_from_a_notification_is_not_taken(ensemble: Ensemble) -> None:
    before = resident(ensemble)
    ensemble.stop(2)
    ensemble.stop(3)
    wait_looks(ensemble, 1)
    try:
        with connection(ensemble.member(1).election_port) as to:
            send(to, opening(77) + vote(0, 1, 0, 1, 0, OTHER_VIEW))
            hang_up(to)
        assert ensemble.role(1) is None, "alone it would be a quorum of that configuration"
    finally:
        ensemble.start(2)
        ensemble.start(3)
    check_unharmed(ensemble, before, GROWTH)


NOWHERE = ["a..b:1", "x" * 70 + ":1", "\x00:1", "127.0.0.1:0", "[::zz]:1", "255.255.255.255:9"]


@pytest.mark.parametrize("address", NOWHERE)
def test_a_stranger_that_cannot_be_called_back(address: str, unharmed: Ensemble) -> None:
    for sid in (0, -1, FIRST, -77):
        with connection(unharmed.member(1).election_port) as to:
            send(to, opening(sid, address.encode()))
            assert has_ended(to)


def test_strangers_that_come_and_go_do_not_lock_out_the_next_one(unharmed: Ensemble) -> None:
    port = unharmed.member(1).election_port
    for sid in range(-300, 0):
        with connection(port) as to:
            send(to, opening(sid, b"127.0.0.1:1"))
            assert has_ended(to)
    with connection(port) as to:
        send(to, opening(500) + vote(0, 500, 0, 1, 0))
        assert len(to.recv(4)) == 4, "a stranger is answered with the current vote"


def test_more_strangers_than_are_known_at_a_time_are_refused(unharmed: Ensemble) -> None:
    with ExitStack() as opened:
        held = [opened.enter_context(connection(unharmed.member(1).election_port)) for _ in range(80)]
        for sid, each in enumerate(held, 1000):
            send(each, opening(sid))
        answered = vote(0, 500, 0, 1, 0)
        kept = sum(send(each, answered) and bool(heard(each)) for each in held)
        assert 1 <= kept <= 64 + 3


def heard(of: socket.socket) -> bytes:
    try:
        return of.recv(4)
    except OSError:
        return b""


def test_a_member_that_comes_again_and_again_takes_its_own_place_only(unharmed: Ensemble) -> None:
    port = unharmed.member(1).election_port
    for _ in range(100):
        with connection(port) as to:
            send(to, opening(3) + vote(2, 3, 0, 1, 1))
            hang_up(to)


@pytest.mark.parametrize("config", [OTHER_VIEW.replace(".1", ".9"), OTHER_VIEW], ids=["a stranger", "other ports"])
def test_a_configuration_that_is_heard_never_prevents_the_next_start(config: str, launch: Launch) -> None:
    """With reconfigEnabled a LOOKING server adopts a later configuration, but none that it would not start with."""
    extra = {"reconfigEnabled": "true", "skipACL": "yes"}
    ensemble = launch(["node", "node", "node"], tick_time=250, extra=LONG_LIMITS | extra)
    for sid in (2, 3):
        ensemble.stop(sid)
    wait_looks(ensemble, 1)
    with connection(ensemble.member(1).election_port) as to:
        send(to, opening(77) + vote(0, 1, 0, 1, 0, config.replace("7fffffff", "7fffffff00000000")))
        hang_up(to)
    wait_said(ensemble, 1, "of server 77 is not adopted")
    ensemble.stop(1)
    ensemble.start_all()
    ensemble.wait_serving()
