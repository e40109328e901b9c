"""Laws of a channel under any sequence of sends, deliveries, crashes, cuts and returns.

The messages are numbers that count up, so "newer" means "greater".
"""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from spec.effects import Message
from spec.election.channel import (
    Channel,
    ChannelRules,
    Status,
    cut,
    deliver,
    establish,
    peer_crashed,
    reachable,
    self_crashed,
    send,
)


class Number(Message, frozen=True):
    value: int


class ChannelLaws(RuleBasedStateMachine):
    """One direction of a connection; the call of `establish` plays the opposite direction."""

    def __init__(self) -> None:
        super().__init__()
        self.channel = Channel()
        self.limits = ChannelRules()
        self.sent = 0
        self.received = 0
        self.remembered = 0

    @initialize(capacity=st.integers(1, 3), merge=st.booleans())
    def choose(self, capacity: int, merge: bool) -> None:
        self.limits = ChannelRules(capacity=capacity, merge_repeats=merge)

    @rule(repeat=st.booleans())
    def send_a_message(self, repeat: bool) -> None:
        self.sent += not (repeat and self.remembered)
        self.remembered = self.sent
        self.channel = send(self.channel, Number(self.sent), self.limits).channel

    @rule()
    def deliver_one(self) -> None:
        done = deliver(self.channel, self.limits)
        if done is None:
            assert not self.channel.in_flight
            return
        assert isinstance(done.message, Number)
        assert 1 <= done.message.value <= self.sent, "delivered what was never sent"
        assert done.message.value >= self.received, "an old message after a newer one"
        self.received = done.message.value
        self.channel = done.channel

    @rule()
    def the_sender_crashes(self) -> None:
        self.channel = self_crashed(self.channel)
        self.remembered = 0

    @rule()
    def the_receiver_crashes(self) -> None:
        self.channel = peer_crashed(self.channel)
        self.received = 0

    @rule()
    def the_link_is_cut(self) -> None:
        self.channel = cut(self.channel)
        self.received = 0

    @rule()
    def both_are_there_again(self) -> None:
        self.channel = reachable(self.channel)

    @precondition(lambda self: self.channel.status is Status.IDLE)
    @rule()
    def the_other_side_connects_and_the_newest_message_arrives(self) -> None:
        self.channel = establish(self.channel, self.limits)
        rest, heard = self.channel, 0
        while (done := deliver(rest, self.limits)) is not None:
            assert isinstance(done.message, Number)
            rest, heard = done.channel, done.message.value
        assert heard >= self.remembered

    @invariant()
    def no_more_in_flight_than_the_socket_takes(self) -> None:
        assert len(self.channel.in_flight) <= self.limits.capacity

    @invariant()
    def what_waits_is_the_newest_that_the_sender_remembers(self) -> None:
        for kept in (self.channel.queued, self.channel.last):
            assert kept in {None, Number(self.remembered)}

    @invariant()
    def one_representation_for_each_meaning(self) -> None:
        assert self.channel.queued is None or self.channel.last is None

    @invariant()
    def an_open_channel_holds_nothing_back_that_fits(self) -> None:
        if self.channel.status is Status.OPEN and self.channel.queued is not None:
            assert len(self.channel.in_flight) == self.limits.capacity


TestChannelLaws = ChannelLaws.TestCase


@given(st.lists(st.integers(0, 3)), st.integers(1, 3))
def test_merging_repeats_changes_nothing_but_repeats(values: list[int], capacity: int) -> None:
    """Without back pressure, the messages that arrive are the same, except those equal to the previous one."""
    merging = ChannelRules(capacity=capacity + len(values), merge_repeats=True)
    channel = Channel(Status.OPEN)
    for value in values:
        channel = send(channel, Number(value), merging).channel

    changes = [value for place, value in enumerate(values) if place == 0 or values[place - 1] != value]
    assert channel.in_flight == tuple(Number(value) for value in changes)
