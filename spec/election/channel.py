"""One direction of the connection between two servers, as QuorumCnxManager keeps it.

Between two servers there is one socket for both directions. Towards each peer a server keeps a send queue
with room for **one** message, the newest, and remembers the last message it sent; a new connection begins
with the queued message, or with the last one over again. So a server that was away hears an old vote first.

Rules this module keeps:

- A `Channel` is everything about messages from one server to another: in flight, queued, sent last. The
  opposite direction is another value with the **same status**, and whoever applies an operation applies its
  counterpart there:

      operation on a -> b          on b -> a
      send, if it connects         establish
      self_crashed (a crashed)     peer_crashed
      self_reset (a reset)         peer_reset
      cut                          cut
      reachable                    reachable

- The thread that sends is eager: what can go in flight does so at once. The real one takes messages from the
  queue a moment later, and a message that is replaced in that moment is never sent. What is lost in this way
  is always followed by something newer, and `capacity` 1 has such losses.
- Which side keeps the socket makes no difference here. A server with the smaller id connects, gives its id
  and address, and closes; the larger one calls back (`startConnection`, `handleConnection`). In the end there
  is one socket, each side starts one SendWorker for it, and each SendWorker begins in the same way.
- In flight means anywhere between the sender's queue and the receiver's step: both socket buffers and the
  receiver's queues. A crash of the sender leaves that deliverable. A cut of the link, or a crash of the
  receiver, loses it.

Sources: `QuorumCnxManager.toSend`, `addToSendQueue`, `connectOne`, `SEND_CAPACITY` (QuorumCnxManager:109),
`SendWorker.run` (:1258), `SendWorker.finish`.
"""

import enum

import msgspec
from msgspec.structs import replace

from spec.effects import Message


class Status(enum.Enum):
    """How the two ends of a channel stand to each other."""

    DEAD = "dead"
    """No connection is possible: one end does not run, or the link is cut."""
    IDLE = "idle"
    """Both ends run and can reach each other, but neither has connected since."""
    OPEN = "open"
    """There is a socket."""


class ChannelRules(msgspec.Struct, frozen=True):
    """What is the same for all channels of a run.

    - `capacity`: how many messages may be in flight, at least 1. Beyond it the socket does not take any more
      (TCP's back pressure), the newest message waits in the queue, and it goes out at the next delivery.
    - `resend`: whether the last message is sent again on reconnection. False also forgets it, which saves
      the checker states, and is sound for a run in which no connection can break.
    - `merge_repeats`: a message equal to the newest one in flight is not added to it. This is how repeated
      broadcasts stay finite. Every run with it is a run of the real system: one in which the sending thread
      had not yet taken the first message from the queue when the second replaced it. So a violation found
      with it is real. The converse does not hold: runs are left out in which both copies arrive, and the
      receiver has changed in between.

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

    - `queued`: the newest message that has not been sent; the send queue holds no more than one.
    - `last`: the last message sent, kept only while it could be sent again. With a message in the queue it
      never will be: a new connection begins with the queued one, which then is the last.
    - `in_flight`: what was sent and not yet received, oldest first.
    """

    status: Status = Status.DEAD
    queued: Message | None = None
    last: Message | None = None
    in_flight: tuple[Message, ...] = ()


class Sent(msgspec.Struct, frozen=True):
    """The channel after `send`; if `connected`, apply `establish` to the opposite direction."""

    channel: Channel
    connected: bool = False


class Delivered(msgspec.Struct, frozen=True):
    """The message that arrived, and the channel without it."""

    message: Message
    channel: Channel


DEFAULT_RULES = ChannelRules()


def send(channel: Channel, message: Message, rules: ChannelRules = DEFAULT_RULES, knows_peer: bool = True) -> Sent:
    """`toSend`: the message replaces what is queued, and a connection is made if there is none.

    `knows_peer` says whether the sender's view names the receiver. An answer to a stranger can use a
    connection that the stranger has made, but cannot make one: there is no address for it, `connectOne` warns
    of an invalid server id, and the message waits in the queue until the stranger connects.
    """
    if channel.status is Status.OPEN:
        return Sent(_transmit(channel, message, rules))
    waiting = replace(channel, queued=message, last=None)
    if channel.status is Status.DEAD or not knows_peer:
        return Sent(waiting)
    return Sent(establish(waiting, rules), connected=True)


def establish(channel: Channel, rules: ChannelRules = DEFAULT_RULES) -> Channel:
    """A socket is there: the queued message goes out first, and the last one again if nothing is queued.

    Nothing happens to a channel that is OPEN already. Raises ValueError when the channel is DEAD.
    """
    if channel.status is Status.DEAD:
        raise ValueError("a channel between servers that cannot reach each other was connected")
    if channel.status is Status.OPEN:
        return channel
    first = channel.last if channel.queued is None else channel.queued
    opened = replace(channel, status=Status.OPEN, queued=None)
    return opened if first is None else _transmit(opened, first, rules)


def deliver(channel: Channel, rules: ChannelRules = DEFAULT_RULES) -> Delivered | None:
    """The oldest message in flight arrives; None if there is none.

    The room it leaves is taken by the queued message, if there is a socket to send it on.
    """
    if not channel.in_flight:
        return None
    message, *others = channel.in_flight
    rest = replace(channel, in_flight=tuple(others))
    if channel.queued is not None and channel.status is Status.OPEN:
        rest = _transmit(replace(rest, queued=None), channel.queued, rules)
    return Delivered(message, rest)


def self_crashed(channel: Channel) -> Channel:
    """The sender crashed: what was in flight still arrives; the queue and the last message are forgotten."""
    return Channel(Status.DEAD, in_flight=channel.in_flight)


def peer_crashed(channel: Channel) -> Channel:
    """The receiver crashed: what was in flight is lost; the sender keeps its queue and its last message."""
    return replace(channel, status=Status.DEAD, in_flight=())


def cut(channel: Channel) -> Channel:
    """The link is cut: for this direction it is as if the receiver had crashed, and nobody forgets."""
    return peer_crashed(channel)


def reachable(channel: Channel) -> Channel:
    """Both ends run and the link is whole again (a peer came up, or the cut has healed).

    Nobody connects for that reason alone: the next `send` of either side does.
    """
    return replace(channel, status=Status.IDLE) if channel.status is Status.DEAD else channel


def self_reset(channel: Channel) -> Channel:
    """The sender closed the connection and runs on (`QuorumCnxManager.halt`): as a crash and a return at once."""
    return _closed(self_crashed(channel), channel.status)


def peer_reset(channel: Channel) -> Channel:
    """The receiver closed the connection and runs on."""
    return _closed(peer_crashed(channel), channel.status)


def _closed(channel: Channel, before: Status) -> Channel:
    """Without a socket; a connection that could not be made before cannot be made now either."""
    return replace(channel, status=Status.DEAD if before is Status.DEAD else Status.IDLE)


def _transmit(channel: Channel, message: Message, rules: ChannelRules) -> Channel:
    """Puts a message in flight, or into the queue when no more fit."""
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
