"""The state of one server's election, and the part of the server that the election reads.

Rules this module keeps:

- One representation for each meaning: maps are tuples of pairs in ascending order of the server, and what
  can never matter again is not there. The checker counts every distinct value as another state.
- The bounds and variants of a run are `ElectionRules`; they are not state, and the same value serves every server.

Sources: the fields of `FastLeaderElection` and the local variables of `lookForLeader`.
"""

from collections.abc import Set as AbstractSet
from typing import TypeAlias, TypeVar

import msgspec

from spec.durable import Durable
from spec.election.vote import NO_DATABASE, ServerState, Vote, initial_vote
from spec.quorum import Sid, View, have_quorums, views_in_use, votes_in
from spec.txn import Txn
from spec.variants import Variant

FIRST_ROUND, LAST_ROUND = -(1 << 63), (1 << 63) - 1
"""The range of a round: logicalclock is an AtomicLong."""

T = TypeVar("T")
Pairs: TypeAlias = tuple[tuple[Sid, T], ...]
"""A map from servers to something, as pairs in ascending order of the server."""


class ElectionRules(msgspec.Struct, frozen=True):
    """The rules of a run, equal for all its servers.

    - `round_limit`: no server begins an election beyond this round; None for no limit.
    - `variants`: the known defects to reproduce.
    - `outsiders`: whether a server may ever hear from a server that does not vote in its view. False saves
      the checker the vote that only such a server gets; hearing from one nevertheless raises ValueError.
    - `hears_observers`: a server that looks counts an observer as a follower if it votes in the view seen last.
      `FastLeaderElection.lookForLeader` ignores it, so a server may wait for the vote of an observer that is to become
      a voter for as long as it observes (docs/findings/promotion-stops-service.md).
    """

    round_limit: int | None = None
    variants: frozenset[Variant] = frozenset()
    outsiders: bool = True
    hears_observers: bool = False

    def allows_round(self, election_round: int) -> bool:
        """Whether an election may begin in this round."""
        return self.round_limit is None or election_round <= self.round_limit


class Peer(msgspec.Struct, frozen=True):
    """The fields that the parts of a server read: its id, its own view, and its disk.

    Three fields are set in variants only. `tree` is the zxid of a tree that lags behind the log (ZOOKEEPER-2845);
    `unlogged` are transactions of a tree that is ahead of the log (ZOOKEEPER-4882, 5094); `unlisted` are the zxids that
    `committedLog` lacks (ZOOKEEPER-4925).

    `last_seen` is the configuration that the server has seen last, where it differs from `view`.
    """

    sid: Sid
    view: View
    durable: Durable
    tree: int | None = None
    unlogged: tuple[Txn, ...] = ()
    unlisted: tuple[int, ...] = ()
    last_seen: View | None = None

    @property
    def latest(self) -> View:
        """The configuration that this server has seen last, which may be the active one or older."""
        return self.view if self.last_seen is None else self.last_seen

    @property
    def views(self) -> tuple[View, ...]:
        """The configurations whose quorums are needed: the active one, and a later one that was seen last."""
        return views_in_use(self.view, self.last_seen)

    @property
    def proposed(self) -> View | None:
        """The configuration that this server has seen last, if it is later than its own: it may be committed."""
        return self.views[1] if len(self.views) > 1 else None

    def is_voter(self, sid: Sid) -> bool:
        """Whether votes of a server count in an election."""
        return votes_in(self.views, sid)

    def has_all_quorums(self, servers: AbstractSet[Sid]) -> bool:
        """Whether servers are a quorum of each view."""
        return have_quorums(self.views, servers)

    @property
    def last_zxid(self) -> int:
        """The zxid to compare this server with others (`QuorumPeer.getLastLoggedZxid`)."""
        last = self.durable.last_zxid if self.tree is None else self.tree
        return max(last, self.unlogged[-1].zxid) if self.unlogged else last

    @property
    def initial_vote(self) -> Vote:
        """The vote this server enters an election with."""
        return initial_vote(self.sid, self.view, self.last_zxid, self.durable.current_epoch)

    @property
    def boot_vote(self) -> Vote:
        """The current vote of a server that has just booted, observer or not.

        Source: `QuorumPeer.startLeaderElection`. Only outsiders get it, until a leader is found.
        """
        return Vote(self.sid, self.last_zxid, self.durable.current_epoch)

    @property
    def hears_itself(self) -> bool:
        """Whether this server is among those it notifies, and would count its own vote."""
        return self.view.is_voter(self.sid) and self.initial_vote.zxid != NO_DATABASE


class Summary(msgspec.Struct, frozen=True):
    """The view of a server that the election oracle, and invariants about elections, may use.

    - `state` and `round` are None and 0 while the server does not run.
    - `leader` is the server that a decided server follows or observes, or the server itself if it leads; None
      otherwise.
    - `vote` is the decided vote, and for a LOOKING server the vote with which it **entered** its election. Later
      changes of its proposal are left out, because an oracle abstracts from them.
    - `announced` is the vote that a LOOKING server sends to a server outside its view; None otherwise.
    - `last_seen` is the view that it has seen last, where that is not its own.
    """

    sid: Sid
    running: bool
    state: ServerState | None
    leader: Sid | None
    round: int
    vote: Vote
    announced: Vote | None
    view: View
    last_seen: View | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """The views of which an election needs a quorum each."""
        return views_in_use(self.view, self.last_seen)

    def is_voter(self, sid: Sid) -> bool:
        """Whether this server counts the votes of another one."""
        return votes_in(self.views, sid)


class Ballot(msgspec.Struct, frozen=True):
    """A vote of this round, and whether its sender had decided when it sent it."""

    vote: Vote
    state: ServerState


class Claim(msgspec.Struct, frozen=True):
    """The claim of a decided server: its leader, in which epoch, and whether it is that leader itself.

    Zxid and round are left out, since `Vote.equals` does not compare them among decided servers.
    """

    leader: Sid
    peer_epoch: int
    leading: bool


class Election(msgspec.Struct, frozen=True):
    """The election of a running server.

    - `round` is logicalclock. It is volatile: a server that boots begins with 1.
    - `vote` is the proposal while LOOKING, and the decided vote afterwards (then `getCurrentVote`).
    - `announced` is the vote for outsiders while LOOKING: `getCurrentVote` again, so the vote of the last
      leader, or the server itself since it booted, and **not** the proposal. None once decided.
    - `recvset`: the last vote of each voter in this round, this server's own included.
    - `outofelection`: the last claim of each decided voter, of any round.
    - `finalizing`: a quorum agrees with the proposal, and FinalizeWait is running. While LOOKING and not
      finalizing, NotificationTimeout is running.

    Everything but the first three fields is empty once the server has decided.
    """

    state: ServerState
    round: int
    vote: Vote
    announced: Vote | None = None
    recvset: Pairs[Ballot] = ()
    outofelection: Pairs[Claim] = ()
    finalizing: bool = False


def next_round(election_round: int) -> int:
    """The round after this one; the first one follows the last (`AtomicLong.incrementAndGet`).

    A forged vote can raise every server to the last round. A server in a lower round adopts the round of a higher
    vote, so the servers meet again after the overflow.
    """
    return election_round + 1 if election_round < LAST_ROUND else FIRST_ROUND


def put(pairs: Pairs[T], sid: Sid, value: T) -> Pairs[T]:
    """The same map with `sid` mapped to `value`."""
    rest = [pair for pair in pairs if pair[0] != sid]
    return tuple(sorted([*rest, (sid, value)], key=lambda pair: pair[0]))


FINALIZE_WAIT = 0.2
"""Seconds to wait for a better vote before a decision (`finalizeWait`)."""
FIRST_NOTIFICATION_TIMEOUT, LAST_NOTIFICATION_TIMEOUT = 0.2, 60.0
"""The shortest and the longest silence, in seconds, after which a vote is sent again (`minNotificationInterval`)."""


def next_notification_timeout(timeout: float) -> float:
    """The notification timeout after one that has passed: twice as long, up to the longest."""
    return min(2 * timeout, LAST_NOTIFICATION_TIMEOUT)
