"""The election oracle: the possible outcomes of an election, without its messages.

A model of something other than elections does not need to exchange votes. It asks this relation for the decisions that
are possible now and takes one of them as a single atomic step, with an event `Elected` for each server that decides.
The relation reads only summaries (`spec.server.summary`) and the cut links.

**The relation.** Fix a leader l, its vote v and a round r. The rules below are per server: q's voters, q's quorums and
q's order of votes are those of q's view (with a later view that q has seen last, the voters of both, and a quorum of
each), and no message passes a cut link. Where the addresses of two files differ, q hears p only over a connection: a
LOOKING server makes one by its own file (`spec.quorum.addresses`), a server that has decided makes no connection, and a
connection that was made before remains.

- q *hears the proposals* of p if p is a voter for q (else q only answers) and q is a voter for p (p sends its proposals
  only to its own voters). If q is outside p's view, q hears the vote that p sends to outsiders while LOOKING: the vote
  p booted with, or the last leader it had.
- *Supporters* are the LOOKING servers that can reach a proposal of v in round r: l itself, and every q that enters with
  a round of at most r and a vote that v beats, knows l as a voter, and hears v from a supporter. If l LEADS already, q
  hears v from l late: the LOOKING vote of l waits for q in a send queue of one message.
- q *can decide* for l, when others have decided already,
  (A) if q is a supporter, and a quorum of q consists of q itself, the supporters that q hears, and servers that have
      decided v in round r; or
  (B) if l is heard to lead in round r, and a quorum of q has decided for l in r or is heard to propose v; or
  (C) if l is heard to lead, and a quorum of q has decided for l in the same epoch, in any round.
  For l itself, "is heard to lead" is replaced by "the round of those that follow l already is l's own".
- **elect**: a set S of LOOKING servers, containing l, which is a supporter, decides in one step: its members can decide
  one after the other, each counting those before it, and afterwards the servers that follow l are a quorum of l's view.
- **join**: one LOOKING server decides for an l that LEADS.

**Why these are the outcomes of the fine election.** (A) is `voteSet.hasAllQuorums` for one's own proposal; (B) and (C)
are the two halves of `receivedFollowingNotification`, with `checkLeader`. The votes of one round only improve, so a
server proposes v at some time iff its first vote is not better and it hears v before anything better; messages can be
arbitrarily slow, so this can happen. Supporters outside S are counted, because a server that has voted for l need not
have decided when others do. Conversely, order the decisions for l in a fine run by time: each counted votes of
supporters and earlier decisions, which is (A), (B) or (C). When the views are equal, the supporters in S and outside it
are a quorum, and v is the greatest of their votes, as in the textbook; S may also contain a server with a better vote
that came late, as long as a quorum follows l.

**Omitted outcomes**: l LEADING without a quorum of followers, and servers that follow such an l (a fine run gives these
up again); two elections that each count a voter of the other, which needs mismatched views and two rounds; votes of a
server's earlier life, which need a crash between the vote and the decision. Rounds are exact within one election; a
round that a server hears from a sender whose vote it cannot use is not exact.

Sources: `FastLeaderElection.lookForLeader`, `receivedFollowingNotification`, `checkLeader`, `validVoter`.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import combinations

import msgspec

from spec.election.state import Summary
from spec.election.vote import NO_DATABASE, ServerState, Vote, is_better
from spec.quorum import Sid, have_quorums, opens

Link = frozenset[Sid]
"""The link between two servers: the set of both."""


class Outcome(msgspec.Struct, frozen=True):
    """`members`, in ascending order, decide for `leader` in `round`, all of them with `vote`."""

    leader: Sid
    members: tuple[Sid, ...]
    round: int
    vote: Vote


def outcomes(
    summaries: Iterable[Summary],
    cut: Iterable[Link] = (),
    late_votes: bool = True,
    connections: Iterable[Link] = (),
    hears_observers: bool = False,
) -> tuple[Outcome, ...]:
    """Every decision that is possible now, in a fixed order: elections first, then joins.

    `cut` contains the cut links; `connections` the links with an election connection that was made before, needed only
    where files differ in addresses. `late_votes` says whether a latecomer may hear the vote that elected the leader. It
    may not once leaders report the epoch that they have established (`EpochBegun`), because the two votes differ then.
    `hears_observers` is that of `ElectionRules`. Enumerates all subsets of the LOOKING servers, 2**n of them.
    """
    world = _World(
        {summary.sid: summary for summary in summaries}, frozenset(cut), frozenset(connections), hears_observers
    )
    results: list[Outcome] = []
    for leader in world.looking:
        results.extend(_elections(world, leader))
    for server in world.servers.values():
        if server.state is ServerState.LEADING:
            results.extend(_joins(world, server, late_votes))
    return tuple(results)


class _World:
    """The summaries of the servers, and which server hears which; all of that is computed once.

    - `looking`: the servers in the state LOOKING.
    - `views`: the views of which each server needs a quorum. `voters`: the servers whose votes it counts.
    - `accepted`: the servers whose votes each server accepts now.
    - `reporting`: the states whose notifications of a leader are read.
    """

    def __init__(
        self,
        servers: Mapping[Sid, Summary],
        cut: frozenset[Link],
        connections: frozenset[Link],
        hears_observers: bool,
    ) -> None:
        self.servers = dict(sorted(servers.items()))
        self.reporting = {ServerState.FOLLOWING, ServerState.LEADING} | (
            {ServerState.OBSERVING} if hears_observers else set()
        )
        self.cut = cut
        self.connections = connections
        self.looking = [server for server in self.servers.values() if server.state is ServerState.LOOKING]
        self.views = {sid: server.views for sid, server in self.servers.items()}
        self.voters = {sid: frozenset().union(*(view.voters for view in views)) for sid, views in self.views.items()}
        self.accepted = {
            q.sid: frozenset(p for p in self.servers if self._accepts(q, p)) for q in self.servers.values()
        }

    def deciders(self, leader: Sid) -> dict[Sid, "_Decided"]:
        """The servers that follow `leader`, or are it, and report this in a notification that is read."""
        return {
            server.sid: _Decided(server.vote, server.round, server.state is ServerState.LEADING)
            for server in self.servers.values()
            if server.leader == leader and server.state in self.reporting
        }

    def _accepts(self, q: Summary, p: Sid) -> bool:
        """Whether q accepts votes of p: p is a voter in q's view, and the link is not cut (`validVoter`)."""
        if p == q.sid or p not in self.voters[q.sid] or frozenset((p, q.sid)) in self.cut:
            return False
        return self._connected(q, self.servers[p])

    def _connected(self, q: Summary, p: Summary) -> bool:
        """Whether q, LOOKING, has a connection with p, or one of the two can make one now."""
        if _may_connect(q, p) or frozenset((p.sid, q.sid)) in self.connections:
            return True
        return _makes(p, q)

    def hears(self, q: Sid, p: Sid, vote: Vote) -> bool:
        """Whether q hears this vote from p, which is LOOKING: as a voter of p, or because p sends it to outsiders."""
        return p in self.accepted[q] and (q in self.voters[p] or self.servers[p].announced == vote)

    def has_all_quorums(self, q: Sid, servers: AbstractSet[Sid]) -> bool:
        """Whether servers are a quorum of each view of q."""
        return have_quorums(self.views[q], servers)


class _Decided(msgspec.Struct, frozen=True):
    """The answer of a server that has decided."""

    vote: Vote
    round: int
    leading: bool


class _Candidacy(msgspec.Struct, frozen=True):
    """One leader's vote in one round, and the LOOKING servers that can reach a proposal of it.

    `proposals`: those of them that each LOOKING server hears, if it can still count LOOKING votes of that round.
    """

    leader: Sid
    vote: Vote
    round: int
    supporters: frozenset[Sid]
    proposals: Mapping[Sid, frozenset[Sid]]


def made_connections(summaries: Iterable[Summary], cut: Iterable[Link], deciding: Iterable[Sid]) -> frozenset[Link]:
    """The connections that LOOKING servers have made when some of them decide, and that may become impossible later.

    A LOOKING server sends its vote to every voter of its view before it decides. A connection that both ends can make
    is left out: either end makes it again when it is next LOOKING.
    """
    servers = {summary.sid: summary for summary in summaries if summary.running}
    chosen, broken = set(deciding), frozenset(cut)
    pairs = set()
    for low, high in combinations(sorted(servers), 2):
        if (low in chosen or high in chosen) and frozenset((low, high)) not in broken:
            a, b = servers[low], servers[high]
            ways = (_makes(a, b), _makes(b, a))
            if any(ways) and not all(ways):
                pairs.add(frozenset((low, high)))
    return frozenset(pairs)


def _makes(one: Summary, other: Summary) -> bool:
    """Whether a server, if it looks, connects to the other one."""
    looks = one.state is ServerState.LOOKING
    return looks and one.is_voter(other.sid) and _may_connect(one, other)


def _may_connect(one: Summary, other: Summary) -> bool:
    """Whether the addresses of the two files allow the first server to connect to the second."""
    return opens(one.view.addresses, one.sid, other.view.addresses, other.sid)


def _elections(world: _World, leader: Summary) -> Iterator[Outcome]:
    """The elections of a LOOKING server as leader, each in the lowest round that allows it."""
    if leader.vote.leader != leader.sid or leader.vote.zxid == NO_DATABASE:
        return
    before = world.deciders(leader.sid)
    peers = [candidate.sid for candidate in world.looking if candidate.sid != leader.sid]
    # The servers that follow the leader already count, too.
    electing = [m for m in _electorates(peers, leader.sid) if world.has_all_quorums(leader.sid, {*m, *before})]
    electorates: set[tuple[Sid, ...]] = set()
    for in_round in sorted({candidate.round for candidate in world.looking if candidate.round >= leader.round}):
        if electing and _reaches_round(world, leader, in_round):
            candidacy = _candidacy(world, leader, in_round, _spread(world, leader, in_round, set()) | {leader.sid})
            first = {candidate.sid for candidate in world.looking if _can_decide(world, candidacy, candidate, before)}
            for members in electing:
                if members not in electorates and _all_decide(world, candidacy, members, first, before):
                    electorates.add(members)
                    yield Outcome(leader.sid, members, candidacy.round, candidacy.vote)


def _joins(world: _World, leader: Summary, late_votes: bool) -> Iterator[Outcome]:
    late: frozenset[Sid] = frozenset()
    if late_votes:
        heard = {supporter.sid for supporter in world.looking if supporter.sid in world.voters[leader.sid]}
        late = _spread(world, leader, leader.round, heard)
    candidacy = _candidacy(world, leader, leader.round, late)
    before = world.deciders(leader.sid)
    for joiner in world.looking:
        if _can_decide(world, candidacy, joiner, before):
            yield Outcome(leader.sid, (joiner.sid,), leader.round, leader.vote)


def _candidacy(world: _World, leader: Summary, in_round: int, supporters: frozenset[Sid]) -> _Candidacy:
    proposals = {
        q.sid: frozenset(p for p in supporters if world.hears(q.sid, p, leader.vote))
        for q in world.looking
        if _counts(q, in_round)
    }
    return _Candidacy(leader.sid, leader.vote, in_round, supporters, proposals)


def _reaches_round(world: _World, leader: Summary, in_round: int) -> bool:
    """Whether a LOOKING server can be lifted to a round without giving up its vote.

    The server hears a vote of that round which does not beat its own, from a server that is already in the round or is
    itself lifted to it.
    """
    lifted = {peer.sid for peer in world.looking if peer.round == in_round}
    below = [peer for peer in world.looking if peer.round < in_round]
    grown = True
    while grown and leader.sid not in lifted:
        rising = {q.sid for q in below if any(_lifts(world, q, p, leader.vote) for p in lifted)} - lifted
        lifted |= rising
        grown = bool(rising)
    return leader.sid in lifted


def _lifts(world: _World, q: Summary, p: Sid, vote: Vote) -> bool:
    """Whether p's notification brings q to p's round and keeps both open to `vote`."""
    entered = world.servers[p].vote
    if not world.hears(q.sid, p, entered) or entered.leader not in world.voters[q.sid]:
        return False
    return not is_better(q.view, entered, vote)


def _spread(world: _World, leader: Summary, in_round: int, late: set[Sid]) -> frozenset[Sid]:
    """The servers that a leader's vote reaches, from the leader itself or from a server that it has reached.

    `late` are the servers to which the leader had sent its vote before it decided.
    """
    vote = leader.vote
    reached: set[Sid] = set()
    open_to_it = [
        q.sid
        for q in world.looking
        if q.sid != leader.sid
        and _counts(q, in_round)
        and leader.sid in world.voters[q.sid]
        and is_better(q.view, vote, q.vote)
    ]
    sources = {leader.sid} if leader.state is ServerState.LOOKING else set()
    while True:
        more = {
            q
            for q in open_to_it
            if (q in late and leader.sid in world.accepted[q]) or any(world.hears(q, p, vote) for p in sources)
        } - reached
        if not more:
            return frozenset(reached)
        reached |= more
        sources |= more


def _all_decide(
    world: _World, candidacy: _Candidacy, members: tuple[Sid, ...], first: set[Sid], before: Mapping[Sid, _Decided]
) -> bool:
    """Whether these servers can decide one after the other, each counting those before it.

    `first` are the LOOKING servers that can decide after those that did so `before`.
    """
    decided = dict(before)
    waiting, ready = set(members), first.intersection(members)
    while ready and len(waiting) > len(ready):
        waiting -= ready
        for sid in ready:
            if sid not in world.servers[sid].view.observers:
                decided[sid] = _Decided(candidacy.vote, candidacy.round, sid == candidacy.leader)
        ready = {sid for sid in waiting if _can_decide(world, candidacy, world.servers[sid], decided)}
    return bool(ready)


def _can_decide(world: _World, candidacy: _Candidacy, q: Summary, decided: Mapping[Sid, _Decided]) -> bool:
    """The rules (A), (B) and (C) of the module's docstring."""
    if candidacy.leader not in world.voters[q.sid]:
        return False
    accepted = world.accepted[q.sid]
    heard = {sid: decision for sid, decision in decided.items() if sid in accepted}
    return _in_this_round(world, candidacy, q, heard) or _out_of_election(world, candidacy, q, heard)


def _in_this_round(world: _World, candidacy: _Candidacy, q: Summary, heard: Mapping[Sid, _Decided]) -> bool:
    """(A) and (B): the possible contents of recvset."""
    supports = q.sid in candidacy.supporters
    proposing = candidacy.proposals.get(q.sid, frozenset())
    voting = proposing | {q.sid} if supports else proposing
    same_round = {sid for sid, decision in heard.items() if decision.round == candidacy.round}
    same_vote = {sid for sid in same_round if heard[sid].vote == candidacy.vote}
    if supports and world.has_all_quorums(q.sid, voting | same_vote):
        return True
    return (
        (q.round == candidacy.round or bool(voting))
        and bool(same_vote)
        and _believes(candidacy, q, heard, same_round, candidacy.round)
        and world.has_all_quorums(q.sid, voting | same_round)
    )


def _out_of_election(world: _World, candidacy: _Candidacy, q: Summary, heard: Mapping[Sid, _Decided]) -> bool:
    """(C): the possible contents of outofelection, which never holds the server's own vote."""
    own_round = candidacy.round if q.sid in candidacy.supporters else q.round
    return _believes(candidacy, q, heard, set(heard), own_round) and any(
        world.has_all_quorums(q.sid, {sid for sid, decision in heard.items() if decision.vote.peer_epoch == epoch})
        for epoch in {decision.vote.peer_epoch for decision in heard.values()}
    )


def _counts(q: Summary, election_round: int) -> bool:
    """Whether q can still count LOOKING votes of that round."""
    return q.round <= election_round and q.vote.zxid != NO_DATABASE


def _believes(
    candidacy: _Candidacy, q: Summary, heard: Mapping[Sid, _Decided], among: set[Sid], own_round: int
) -> bool:
    """`checkLeader`: the leader has reported that it leads; or q is the leader, in the round of its followers."""
    if q.sid == candidacy.leader:
        return any(heard[sid].round == own_round for sid in among)
    return candidacy.leader in among and heard[candidacy.leader].leading


def _electorates(others: Iterable[Sid], leader: Sid) -> Iterator[tuple[Sid, ...]]:
    """Every set of servers with the leader, in ascending order of its servers; the smallest first, in a fixed order."""
    ordered = sorted(others)
    for size in range(len(ordered) + 1):
        for members in combinations(ordered, size):
            yield tuple(sorted((*members, leader)))
