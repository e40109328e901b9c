"""The notifications, events and facts of an election.

Rules this module keeps:

- A notification has the fields of the wire, except those that no step reads: no addresses, and the configuration only
  when it can matter (see `Notification`).
- An event has one outcome. Where the environment has a choice, there are several events.

Sources: `FastLeaderElection.Notification` and `buildMsg`; for the events, `QuorumPeer.run`.
"""

from typing import TypeAlias

import msgspec

from spec.effects import Fact, Message, Timer
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, View


class Notification(Message, frozen=True):
    """A vote in flight: the sender's state, its vote, its round, and its configuration if that is versioned.

    `election_epoch` is the sender's round. `config` is the sender's view if its version is above 0, otherwise None. A
    receiver reads only a version higher than its own, so version 0, which means that reconfiguration is off, is never
    read.
    """

    state: ServerState
    vote: Vote
    election_epoch: int
    config: View | None = None


class Start(msgspec.Struct, frozen=True):
    """The server boots with this configuration file, for the first time or after a crash."""

    view: View


class Deliver(msgspec.Struct, frozen=True):
    """A notification arrives from another server."""

    source: Sid
    notification: Notification


class Fired(msgspec.Struct, frozen=True):
    """A timer that was armed has run out."""

    timer: Timer


class LeaderLost(msgspec.Struct, frozen=True):
    """A follower or observer gives up its leader (`followLeader` or `observeLeader` ends)."""


class QuorumLost(msgspec.Struct, frozen=True):
    """A leader stops leading, because too few servers follow it (`Leader.lead` ends)."""


class EpochBegun(msgspec.Struct, frozen=True):
    """The epoch of the leader is established, so the vote is reported with it from now on.

    Source: `QuorumPeer.updateElectionVote`, called when a leader has its quorum of NEWLEADER acks and when a
    learner is up to date.
    """

    epoch: int


class Elected(msgspec.Struct, frozen=True):
    """The election oracle has decided for this LOOKING server: `vote` names its leader, in this round.

    Only runs of the coarse grain have this event; it stands for all the messages of an election.
    """

    vote: Vote
    election_epoch: int


class ViewHeard(msgspec.Struct, frozen=True):
    """A notification with this configuration arrives at a LOOKING server; the vote in it is left out.

    Only runs of the coarse grain have this event, because they have no notifications.
    """

    view: View


ElectionEvent: TypeAlias = Start | Deliver | Fired | LeaderLost | QuorumLost | EpochBegun | Elected | ViewHeard


class VoteReceived(Fact, frozen=True):
    """`server` has recorded the vote of `sender`; the last one of each sender is in its receive bucket.

    Reported for its own vote, too, and by decided servers, which ignore it. Not reported for votes that cannot be
    counted: those of senders and leaders outside the server's view, of observers, and, while the server looks for a
    leader, LOOKING votes of a lower round.
    """

    server: Sid
    sender: Sid
    vote: Vote
    election_epoch: int
    state: ServerState


class Looked(Fact, frozen=True):
    """`server` began an election in `round`."""

    server: Sid
    round: int


class Led(Fact, frozen=True):
    """`server` decided in `round` that it leads."""

    server: Sid
    round: int


class Followed(Fact, frozen=True):
    """`server` decided in `round` to follow or, as an observer, to observe `leader`."""

    server: Sid
    leader: Sid
    round: int
