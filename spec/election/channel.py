"""One direction of the connection between two servers, as in QuorumCnxManager.

Two servers share one socket for both directions. For each peer a server keeps a send queue with room for **one**
message, the newest, and it remembers the last message that it sent. A new connection begins with the queued message, or
repeats the last one if the queue is empty. A server that was disconnected therefore hears an old vote first.

Rules this module keeps:

- A `Channel` holds all messages from one server to another: in flight, queued and last sent. The opposite direction is
  a separate value with the **same status**. The caller applies each operation together with its counterpart on the
  opposite direction:

      operation on a -> b          on b -> a
      send, if it connects         establish
      self_crashed (a crashed)     peer_crashed
      self_reset (a reset)         peer_reset
      cut                          cut
      reachable                    reachable

- The sending thread is eager: a message goes in flight as soon as it can. ZooKeeper's thread takes messages from the
  queue a moment later, and a message that is replaced in that moment is never sent. Every loss of this kind is followed
  by a newer message, and a `capacity` of 1 has such losses.
- The model does not depend on which side keeps the socket. A server with the smaller id connects, sends its id and
  address, and closes; the server with the larger id calls back (`startConnection`, `handleConnection`). The result is
  one socket, with one SendWorker on each side, and both SendWorkers begin in the same way.
- In flight means anywhere between the sender's queue and the receiver's step: both socket buffers and the receiver's
  queues. Messages in flight survive a crash of the sender. A cut of the link or a crash of the receiver loses them.

Sources: `QuorumCnxManager.toSend`, `addToSendQueue`, `connectOne`, `SEND_CAPACITY` (QuorumCnxManager:109),
`SendWorker.run` (:1258), `SendWorker.finish`.
"""

import enum

import msgspec
from msgspec.structs import replace

from spec.effects import Message


class Status(enum.Enum):
    """The status of the connection of a channel."""

    DEAD = "dead"
    """No connection is possible: one end does not run, or the link is cut."""
    IDLE = "idle"
    """Both ends run and can reach each other, but neither has connected yet."""
    OPEN = "open"
    """There is a socket."""


class ChannelRules(msgspec.Struct, frozen=True):
    """The settings that all channels of a run share.

    - `capacity`: the number of messages that may be in flight, at least 1. When it is reached the socket accepts no
      further message (TCP's back pressure); the newest message waits in the queue and is sent at the next delivery.
    - `resend`: whether the last message is sent again on reconnection. False also forgets it. This saves states in the
      checker, and is sound for runs without broken connections.
    - `merge_repeats`: a message equal to the newest one in flight is not added to it. This keeps repeated broadcasts
      finite. Every run with it is a run of the real system: the second message replaced the first before
      the sending thread had taken it from the queue. A violation found with it is therefore real. The converse does not
      hold: it omits runs where both copies arrive and the receiver changes in between.

    Raises ValueError when the capacity is below 1.
    """

    capacity: int = 2
    resend: bool = True
    merge_repeats: bool = False

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ValueError(f"a channel needs a capacity of at least 1, not {self.capacity}")


class Channel(msgspec.Struct, frozen=True):
    """The messages from one server to another.

    - `queued`: the newest unsent message; the send queue holds at most one.
    - `last`: the last message sent, kept only while it could be sent again. It cannot be while a message is queued: a
      new connection begins with the queued message, which then becomes the last one.
    - `in_flight`: the messages that are sent and not yet received, oldest first.
    """

    status: Status = Status.DEAD
    queued: Message | None = None
    last: Message | None = None
    in_flight: tuple[Message, ...] = ()


class Transmission(msgspec.Struct, frozen=True):
    """The channel after `send`; if `connected`, apply `establish` to the opposite direction."""

    channel: Channel
    connected: bool = False


class Delivery(msgspec.Struct, frozen=True):
    """The message that arrived, and the channel without it."""

    message: Message
    channel: Channel


DEFAULT_RULES = ChannelRules()


def send(
    channel: Channel, message: Message, rules: ChannelRules = DEFAULT_RULES, knows_peer: bool = True
) -> Transmission:
    """`toSend`: the message replaces the queued one, and a connection is made if there is none.

    `knows_peer` says whether the sender's view contains the receiver. An answer to an unknown server can use a
    connection that this server has made, but cannot make one: the address is unknown, `connectOne` warns of an
    invalid server id, and the message waits in the queue until the unknown server connects.
    """
    if channel.status is Status.OPEN:
        return Transmission(_transmit(channel, message, rules))
    waiting = replace(channel, queued=message, last=None)
    if channel.status is Status.DEAD or not knows_peer:
        return Transmission(waiting)
    return Transmission(establish(waiting, rules), connected=True)


def establish(channel: Channel, rules: ChannelRules = DEFAULT_RULES) -> Channel:
    """Open the connection: the queued message is sent first, or the last message again if nothing is queued.

    A channel that is already OPEN does not change. Raises ValueError when the channel is DEAD.
    """
    if channel.status is Status.DEAD:
        raise ValueError("a channel between servers that cannot reach each other was connected")
    if channel.status is Status.OPEN:
        return channel
    first = channel.last if channel.queued is None else channel.queued
    opened = replace(channel, status=Status.OPEN, queued=None)
    return opened if first is None else _transmit(opened, first, rules)


def deliver(channel: Channel, rules: ChannelRules = DEFAULT_RULES) -> Delivery | None:
    """Deliver the oldest message in flight; None if nothing is in flight.

    The queued message takes its place if there is a socket.
    """
    if not channel.in_flight:
        return None
    message, *later = channel.in_flight
    rest = replace(channel, in_flight=tuple(later))
    if channel.queued is not None and channel.status is Status.OPEN:
        rest = _transmit(replace(rest, queued=None), channel.queued, rules)
    return Delivery(message, rest)


def self_crashed(channel: Channel) -> Channel:
    """The sender crashed: messages in flight still arrive; the queue and the last message are forgotten."""
    return Channel(Status.DEAD, in_flight=channel.in_flight)


def peer_crashed(channel: Channel) -> Channel:
    """The receiver crashed: messages in flight are lost; the sender keeps its queue and its last message."""
    return replace(channel, status=Status.DEAD, in_flight=())


def cut(channel: Channel) -> Channel:
    """The link is cut: this direction behaves as if the receiver had crashed, and both ends keep their state."""
    return peer_crashed(channel)


def reachable(channel: Channel) -> Channel:
    """Both ends run and the link is up again (a peer started, or a cut healed).

    This does not connect them: the next `send` of either side does.
    """
    return replace(channel, status=Status.IDLE) if channel.status is Status.DEAD else channel


def self_reset(channel: Channel) -> Channel:
    """The sender closed the connection and keeps running (`QuorumCnxManager.halt`): a crash and an immediate return."""
    return _closed(self_crashed(channel), channel.status)


def peer_reset(channel: Channel) -> Channel:
    """The receiver closed the connection and keeps running."""
    return _closed(peer_crashed(channel), channel.status)


def _closed(channel: Channel, before: Status) -> Channel:
    """The channel without its socket; it stays DEAD if it was DEAD before."""
    return replace(channel, status=Status.DEAD if before is Status.DEAD else Status.IDLE)


def _transmit(channel: Channel, message: Message, rules: ChannelRules) -> Channel:
    """Put a message in flight, or into the queue when the capacity is reached."""
    if rules.merge_repeats and channel.queued is None and channel.in_flight[-1:] == (message,):
        return replace(channel, last=message if rules.resend else None)
    if len(channel.in_flight) >= rules.capacity:
        return replace(channel, queued=message, last=None)
    return replace(
        channel,
        queued=None,
        last=message if rules.resend else None,
        in_flight=(*channel.in_flight, message),
    )
