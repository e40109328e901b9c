"""The small election: rounds, votes and receive buckets, without zxids, faults or configuration.

It is the model for benchmarks and for comparisons with other checkers, small enough to be written again in Promela or
TLA+ from this page. Its counts are known independently: 6,544 states and 23,905 transitions for three servers,
13,822,383 and 87,985,030 for four.

A server starts once, votes for itself in round 1 and sends its vote to all others. While LOOKING it adopts a higher
round, answers a lower one, and in its own round adopts a better vote. It decides when a strict majority of its recvset
equals its vote. On a message of a decided server it also decides for that server's vote, if a majority of its recvset
equals this vote and the leader itself has been heard.
"""

from typing import NamedTuple

from checker.engine.model import Finding, Model, Property, Read
from checker.kit import WAIT, Machine, Network, Reaction, network_model
from spec.text import required_integer

NOT_STARTED, LOOKING, LEADING, FOLLOWING = "NOT_STARTED", "LOOKING", "LEADING", "FOLLOWING"
START, DECIDE = "start", "decide"


class Message(NamedTuple):
    """A notification: the sender's round, vote and state."""

    round: int
    vote: int
    state: str


class Local(NamedTuple):
    """A server: `recvset[i]` is the last counted vote of server i + 1, 0 for none. Ids count from 1."""

    state: str
    round: int
    vote: int
    recvset: tuple[int, ...]


def election(servers: int) -> Model:
    """The model of that many servers, with agreement as its only property."""
    locals_ = tuple(Read(str(sid)) for sid in range(1, servers + 1))
    first = Local(NOT_STARTED, 0, 0, (0,) * servers)
    return network_model(
        f"election of {servers}",
        [_Server(sid, servers).machine(first) for sid in range(1, servers + 1)],
        Network(ordered=True),
        properties=[Property("OneLeader", tuple(Read(r.column, _leads) for r in locals_), _one_leader)],
    )


def _leads(local: Local) -> bool:
    return local.state == LEADING


def _one_leader(*leading: bool) -> Finding | None:
    """At most one server is LEADING. Three servers violate it in one round: a follower may have moved on. See docs."""
    leaders = [sid for sid, leads in enumerate(leading, 1) if leads]
    return Finding("two servers are LEADING", (("leaders", tuple(leaders)),)) if len(leaders) > 1 else None


def _choices(local: Local) -> tuple[str, ...]:
    if local.state == NOT_STARTED:
        return (START,)
    return (DECIDE,) if local.state == LOOKING and _majority(local.recvset, local.vote) else ()


class _Server:
    """The step function of one server; its only data are the server's id and their number."""

    def __init__(self, sid: int, servers: int) -> None:
        self.sid, self.servers = sid, servers

    def machine(self, first: Local) -> Machine:
        return Machine(str(self.sid), Reaction(first), self._receive, _choices, self._choose, fair=True)

    def _choose(self, local: Local, choice: str) -> Reaction:
        if choice == DECIDE:
            return Reaction(self._decided(local, local.vote))
        return self._announce(Local(LOOKING, 1, self.sid, self._recorded((0,) * self.servers, self.sid, self.sid)))

    def _receive(self, local: Local, source: str, message: Message) -> Reaction:
        if local.state == NOT_STARTED:
            return WAIT
        sender = required_integer(source)
        if local.state != LOOKING:
            answer = ((str(sender), Message(local.round, local.vote, local.state)),)
            return Reaction(local, answer if message.state == LOOKING else ())
        if message.state == LOOKING:
            return self._compare_rounds(local, sender, message)
        if message.round != local.round:
            return Reaction(local)
        recvset = self._recorded(local.recvset, sender, message.vote)
        heard = message.vote == self.sid or recvset[message.vote - 1] != 0
        if heard and _majority(recvset, message.vote):
            return Reaction(self._decided(local, message.vote))
        return Reaction(local._replace(recvset=recvset))

    def _compare_rounds(self, local: Local, sender: int, message: Message) -> Reaction:
        if message.round < local.round:
            return Reaction(local, ((str(sender), Message(local.round, local.vote, LOOKING)),))
        vote, recvset = local.vote, local.recvset
        if message.round > local.round:
            vote, recvset = self.sid, (0,) * self.servers
        best = max(vote, message.vote)
        recvset = self._recorded(self._recorded(recvset, self.sid, best), sender, message.vote)
        after = Local(LOOKING, message.round, best, recvset)
        return Reaction(after) if (after.round, best) == (local.round, local.vote) else self._announce(after)

    def _announce(self, local: Local) -> Reaction:
        message = Message(local.round, local.vote, LOOKING)
        peers = (sid for sid in range(1, self.servers + 1) if sid != self.sid)
        return Reaction(local, tuple((str(peer), message) for peer in peers))

    def _decided(self, local: Local, leader: int) -> Local:
        # A decided server never reads its recvset again, so it is cleared: states that behave alike are equal.
        state = LEADING if leader == self.sid else FOLLOWING
        return Local(state, local.round, leader, (0,) * self.servers)

    @staticmethod
    def _recorded(recvset: tuple[int, ...], sender: int, vote: int) -> tuple[int, ...]:
        return (*recvset[: sender - 1], vote, *recvset[sender:])


def _majority(recvset: tuple[int, ...], vote: int) -> bool:
    return 2 * recvset.count(vote) > len(recvset)
