"""A quorum connection in the checker's model: two streams, two sides that end separately, and the notified servers.

Expected values: the rules at the top of `checker/models/ensemble/connection.py`, which are TCP's as `Learner` and
`LearnerHandler` experience it: packets that a closed side has sent still arrive, packets sent to it are lost.
"""

from typing import Any

import pytest

from checker.engine import Outcome, Send
from checker.models.ensemble.connection import (
    Close,
    Connection,
    Disconnection,
    Open,
    Pass,
    PeerClosed,
    Take,
    Transmit,
    connection_actor,
    opening_actor,
)
from checker.models.ensemble.setup import server_name
from spec.zab.events import Receive
from spec.zab.packets import Ack, FollowerInfo, LeaderInfo, QuorumPacket, QuorumPing

LEARNER, LEADER = 1, 2
HELLO, ANSWER, PING = FollowerInfo(0), LeaderInfo(1), QuorumPing()
NEW = Connection(LEARNER, LEADER)


def holding(
    up: tuple[QuorumPacket, ...] = (),
    down: tuple[QuorumPacket, ...] = (),
    *,
    without: int | None = None,
) -> Connection:
    """Return a connection with these packets in flight; one side may be gone."""
    return Connection(LEARNER, LEADER, without != LEARNER, without != LEADER, up, down)


def outcome(connection: Connection | None, operation: Any) -> Outcome:
    done = connection_actor(LEARNER, LEADER).step((connection,), operation)
    assert done is not None
    return done


def after(connection: Connection | None, operation: Any) -> Connection | None:
    (value,) = outcome(connection, operation).values
    assert value is None or isinstance(value, Connection)
    return value


def told(connection: Connection | None, operation: Any) -> list[tuple[str, int]]:
    """Return the notifications: the notified server, and the one that is gone."""
    sends = outcome(connection, operation).sends
    return [(each.actor, each.operation.peer) for each in sends if isinstance(each.operation, PeerClosed)]


# Streams.


def test_packets_arrive_in_the_order_in_which_they_were_sent() -> None:
    sent = after(after(NEW, Transmit(LEARNER, (HELLO,))), Transmit(LEARNER, (Ack(1), PING)))

    assert sent == holding(up=(HELLO, Ack(1), PING))
    assert after(sent, Take(LEADER)) == holding(up=(Ack(1), PING))


def test_the_two_directions_do_not_mix() -> None:
    sent = after(after(NEW, Transmit(LEARNER, (HELLO,))), Transmit(LEADER, (ANSWER,)))

    assert sent == holding(up=(HELLO,), down=(ANSWER,))
    assert after(sent, Take(LEARNER)) == holding(up=(HELLO,))


@pytest.mark.parametrize(
    ("source", "gone"), [(LEARNER, LEADER), (LEADER, LEARNER)], ids=["to the leader", "to the learner"]
)
def test_what_is_sent_to_a_side_that_is_gone_is_lost(source: int, gone: int) -> None:
    half = holding(without=gone)

    assert after(half, Transmit(source, (PING,))) == half


def test_without_a_connection_whatever_is_sent_or_closed_comes_to_nothing() -> None:
    for operation in (Transmit(LEARNER, (PING,)), Close(LEARNER), Disconnection(), Take(LEADER)):
        assert outcome(None, operation) == Outcome((None,), ())


def test_a_packet_may_pass_in_one_step() -> None:
    """A packet is taken from the stream and delivered to the reader."""
    done = outcome(holding(up=(HELLO, PING)), Pass(LEADER))

    assert done == Outcome((holding(up=(PING,)),), (Send(server_name(LEADER), Receive(LEARNER, HELLO)),))


@pytest.mark.parametrize("connection", [None, NEW, holding(up=(HELLO,), without=LEARNER)])
def test_nothing_passes_where_nothing_waits_or_one_side_is_gone(connection: Connection | None) -> None:
    assert outcome(connection, Pass(LEADER)) == Outcome((connection,), ())


# Ends.


def test_the_last_packets_of_a_learner_still_arrive() -> None:
    closed = after(holding(up=(Ack(1), Ack(2)), down=(PING,)), Close(LEARNER))

    assert closed == holding(up=(Ack(1), Ack(2)), without=LEARNER)
    assert after(after(closed, Take(LEADER)), Take(LEADER)) is None


def test_a_leader_learns_of_the_end_when_it_has_read_everything() -> None:
    """Immediately if nothing is left; otherwise with the last packet, and then its reader is notified."""
    assert told(NEW, Close(LEARNER)) == [(server_name(LEADER), LEARNER)]
    assert told(holding(up=(Ack(1),)), Close(LEARNER)) == []
    assert holding(up=(Ack(1),), without=LEARNER).last_word_of(LEARNER)
    assert not holding(up=(Ack(1), Ack(2)), without=LEARNER).last_word_of(LEARNER)
    assert not holding(up=(Ack(1),)).last_word_of(LEARNER)


def test_the_last_packets_of_a_leader_still_arrive() -> None:
    closed = after(holding(up=(Ack(1),), down=(ANSWER, PING)), Close(LEADER))

    assert closed == holding(down=(ANSWER, PING), without=LEADER)
    assert not closed.last_word_of(LEADER)
    assert holding(down=(PING,), without=LEADER).last_word_of(LEADER)


def test_a_learner_learns_of_the_end_when_it_has_read_everything() -> None:
    assert told(NEW, Close(LEADER)) == [(server_name(LEARNER), LEADER)]
    assert told(holding(down=(PING,)), Close(LEADER)) == []


def test_a_learner_that_has_not_noticed_yet_keeps_its_side() -> None:
    """While it writes to its disk it reads nothing; its side exists until it closes it."""
    left = after(NEW, Close(LEADER))

    assert left == holding(without=LEADER)
    assert outcome(left, Close(LEARNER)) == Outcome((None,), ())


def test_when_the_second_side_ends_nothing_is_left() -> None:
    assert after(holding(up=(Ack(1),), without=LEARNER), Close(LEADER)) is None
    assert after(holding(down=(PING,), without=LEADER), Close(LEARNER)) is None


# Cuts and openings.


def test_a_cut_drops_what_is_in_flight_and_both_are_told() -> None:
    busy = holding(up=(Ack(1),), down=(PING,))

    assert after(busy, Disconnection()) == holding(without=LEADER)
    assert sorted(told(busy, Disconnection())) == [(server_name(LEARNER), LEADER), (server_name(LEADER), LEARNER)]


def test_a_cut_tells_a_leader_of_a_learner_that_had_gone_before() -> None:
    """The packets of the learner are dropped, so the leader has read everything that will ever arrive."""
    left = holding(up=(Ack(1),), without=LEARNER)

    assert after(left, Disconnection()) is None
    assert told(left, Disconnection()) == [(server_name(LEADER), LEARNER)]


def test_a_cut_tells_a_learner_of_a_leader_that_had_gone_before() -> None:
    assert (server_name(LEARNER), LEADER) in told(holding(down=(PING,), without=LEADER), Disconnection())


def test_a_new_connection_takes_the_place_of_an_old_one() -> None:
    """The direction of leadership makes no difference."""
    opened = opening_actor(LEARNER, LEADER).step((holding(up=(Ack(1),)), frozenset()), Open(LEADER, LEARNER, HELLO))

    assert opened is not None
    assert opened.values[0] == Connection(LEADER, LEARNER, up=(HELLO,))


def test_nothing_opens_on_a_cut_link() -> None:
    cut = frozenset({(LEARNER, LEADER)})
    opened = opening_actor(LEARNER, LEADER).step((NEW, cut), Open(LEARNER, LEADER, HELLO))

    assert opened == Outcome((None, cut))


def test_a_connection_fails_on_an_operation_that_is_none_of_its_own() -> None:
    with pytest.raises(ValueError, match="does not know"):
        outcome(NEW, "no operation")
