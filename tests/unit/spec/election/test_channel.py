"""One direction of a connection: messages are kept, lost and sent again as servers and links change."""

import pytest

from spec.effects import Message
from spec.election.channel import (
    Channel,
    ChannelRules,
    Status,
    cut,
    deliver,
    establish,
    peer_crashed,
    peer_reset,
    reachable,
    self_crashed,
    self_reset,
    send,
)


class Word(Message, frozen=True):
    text: str


A, B, C = Word("a"), Word("b"), Word("c")
IDLE = Channel(Status.IDLE)
OPEN = Channel(Status.OPEN)


def sent(channel: Channel, *messages: Message, rules: ChannelRules = ChannelRules()) -> Channel:
    for message in messages:
        channel = send(channel, message, rules).channel
    return channel


def test_towards_a_dead_peer_only_the_newest_message_is_kept() -> None:
    assert sent(Channel(), A, B) == Channel(Status.DEAD, queued=B)


def test_the_first_message_to_a_live_peer_makes_the_connection() -> None:
    done = send(IDLE, A)

    assert done.connected
    assert done.channel == Channel(Status.OPEN, last=A, in_flight=(A,))


def test_the_other_direction_then_sends_what_waits() -> None:
    waiting = Channel(Status.IDLE, queued=B)

    assert establish(waiting).in_flight == (B,)


def test_or_its_last_message_once_more() -> None:
    """So a restarted server can receive a vote from before its crash."""
    had_sent = peer_crashed(sent(OPEN, A, B))

    assert establish(reachable(had_sent)).in_flight == (B,)


def test_or_nothing_when_it_never_sent() -> None:
    assert establish(IDLE) == OPEN


def test_a_stranger_cannot_be_called_but_is_answered_when_it_calls() -> None:
    done = send(IDLE, A, knows_peer=False)

    assert not done.connected
    assert done.channel == Channel(Status.IDLE, queued=A)
    assert establish(done.channel).in_flight == (A,)


def test_messages_arrive_in_the_order_in_which_they_were_sent() -> None:
    first = deliver(sent(OPEN, A, B))

    assert first is not None
    assert first.message == A
    assert first.channel.in_flight == (B,)


def test_nothing_arrives_from_an_empty_channel() -> None:
    assert deliver(OPEN) is None


def test_when_the_socket_is_full_the_newest_message_waits_and_goes_out_at_the_next_delivery() -> None:
    one = ChannelRules(capacity=1)
    full = sent(OPEN, A, B, C, rules=one)
    after = deliver(full, one)

    assert full == Channel(Status.OPEN, queued=C, in_flight=(A,))
    assert after is not None
    assert after.channel == Channel(Status.OPEN, last=C, in_flight=(C,))


def test_when_the_sender_crashes_its_bytes_still_arrive_and_its_memory_is_gone() -> None:
    after = self_crashed(sent(OPEN, A))

    assert after == Channel(Status.DEAD, in_flight=(A,))
    assert deliver(after) is not None


def test_when_the_receiver_crashes_the_bytes_are_lost_and_the_last_message_is_kept() -> None:
    assert peer_crashed(sent(OPEN, A)) == Channel(Status.DEAD, last=A)


def test_a_cut_loses_the_bytes_and_forgets_nothing() -> None:
    assert cut(sent(OPEN, A)) == Channel(Status.DEAD, last=A)


def test_healing_alone_connects_nobody() -> None:
    assert reachable(cut(sent(OPEN, A))) == Channel(Status.IDLE, last=A)


def test_a_queued_message_that_repeats_the_newest_in_flight_is_merged_when_there_is_room() -> None:
    """A message equal to the newest one in flight is not sent twice, also when it comes from the queue."""
    rules = ChannelRules(capacity=2, merge_repeats=True)
    full = sent(OPEN, A, B, C, B, rules=rules)
    assert (full.in_flight, full.queued) == ((A, B), B)
    done = deliver(full, rules)
    assert done is not None
    assert (done.message, done.channel.in_flight, done.channel.queued) == (A, (B,), None)


def test_a_queued_message_makes_the_last_one_worthless() -> None:
    assert sent(cut(sent(OPEN, A)), B) == Channel(Status.DEAD, queued=B)


def test_without_resending_there_is_no_memory() -> None:
    forgetful = ChannelRules(resend=False)

    assert establish(reachable(cut(sent(OPEN, A, rules=forgetful))), forgetful) == OPEN


def test_a_repeat_of_the_newest_message_in_flight_can_be_merged_with_it() -> None:
    merging = ChannelRules(merge_repeats=True)

    assert sent(OPEN, A, A, rules=merging).in_flight == (A,)
    assert sent(OPEN, A, A).in_flight == (A, A)


def test_connecting_what_cannot_be_reached_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="cannot reach"):
        establish(Channel())


def test_a_channel_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        ChannelRules(capacity=0)


@pytest.mark.parametrize("reset", [self_reset, peer_reset])
def test_a_reset_closes_the_socket_and_makes_no_dead_link_whole(reset):
    assert reset(sent(OPEN, A)).status is Status.IDLE
    assert reset(cut(sent(OPEN, A))).status is Status.DEAD
