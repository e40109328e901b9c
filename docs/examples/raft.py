"""Raft, after Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm" (2014), figure 2. Run it with

    quorate run "docs/examples/raft.py:model()"

Membership changes and snapshots are left out. A refused vote is not answered: to its candidate it is a lost message. A
leader sends the entries that a follower lacks when it is elected, for each command, and for each answer. Two errors can
be planted: `error="two votes"` keeps no vote on disk, and `error="earlier term"` counts the copies of any entry (figure
8). Two more show on late disks, where `writes` of a server may be unfinished at a time: with `error="early votes"` and
`error="early entries"` a server sends its vote, or its entries and answers to them, before they are durable.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from checker.engine import TRIVIAL, Finding, Model, Property, Read
from checker.kit import Action, Environment, Machine, Network, Reaction, Traits, network_model, to_each

FOLLOWER, CANDIDATE, LEADER = "follower", "candidate", "leader"
NO_ENTRY = (0, 0)  # the term and the index of the last entry of an empty log


class Step(Action):
    """The steps of a server that no message causes."""

    TIME_OUT = "time out", Traits(budget="timeouts", caption="{} hears no leader in time and asks for votes")
    REQUEST = "request", Traits(fair=False, caption="a client sends a command to {}")


STEPS = tuple(Step)


class Entry(NamedTuple):
    term: int
    command: int


@dataclass(frozen=True)
class RequestVote:
    term: int
    last: tuple[int, int]


@dataclass(frozen=True)
class VoteGranted:
    term: int


@dataclass(frozen=True)
class AppendEntries:
    term: int
    index: int  # of the entry before the new ones; indices count from 1
    previous: int  # the term of that entry
    entries: tuple[Entry, ...]
    commit: int


@dataclass(frozen=True)
class Appended:
    term: int
    match: int | None  # the index up to which the logs agree; None if the follower lacks the entry before


EARLY: dict[str | None, tuple[type, ...]] = {
    "early votes": (RequestVote, VoteGranted),
    "early entries": (AppendEntries, Appended),
}
"""The messages that do not wait for the disk, by the error that is planted."""


@dataclass(frozen=True)
class Server:
    term: int = 0
    voted: str | None = None
    log: tuple[Entry, ...] = ()
    role: str = FOLLOWER
    commit: int = 0
    votes: frozenset[str] = frozenset()  # of a candidate
    match: frozenset[tuple[str, int]] = frozenset()  # of a leader: for each peer the index up to which it has the log
    next: frozenset[tuple[str, int]] = frozenset()  # of a leader: the next index to send to each peer

    def lane_fields(self) -> dict[str, Any]:
        """The fields of a server in a trace."""
        log = " ".join(f"{entry.term}.{entry.command}" for entry in self.log)
        return {"term": self.term, "role": self.role, "voted": self.voted, "log": log or "empty", "commit": self.commit}

    @property
    def last(self) -> tuple[int, int]:
        return (self.log[-1].term, len(self.log)) if self.log else NO_ENTRY


@dataclass(frozen=True)
class Raft:
    """The step functions of one server."""

    name: str
    peers: tuple[str, ...]
    commands: int  # the length of a log at which clients send no more
    error: str | None
    hurries: bool  # whether its timer may run out

    @property
    def majority(self) -> int:
        return (len(self.peers) + 1) // 2 + 1

    def durable(self, own: Server) -> Server:
        return Server(own.term, None if self.error == "two votes" else own.voted, own.log)

    def reaction(self, own: Server, *messages: tuple[str, Any]) -> Reaction:
        """The messages wait for the disk: "updated on stable storage before responding to RPCs" (figure 2)."""
        early = bool(messages) and isinstance(messages[0][1], EARLY.get(self.error, ()))
        return Reaction(own, messages) if early else Reaction(own, after_sync=messages)

    def choices(self, own: Server) -> list[Step]:
        if own.role == LEADER:
            return [Step.REQUEST] if len(own.log) < self.commands else []
        return [Step.TIME_OUT] if self.hurries else []

    def on_choice(self, own: Server, choice: Step) -> Reaction:
        if choice is Step.REQUEST:
            own = replace(own, log=(*own.log, Entry(own.term, len(own.log) + 1)))
            return self.reaction(own, *((peer, self.lacking(own, peer)) for peer in self.peers))
        own = Server(own.term + 1, self.name, own.log, CANDIDATE, own.commit, frozenset({self.name}))
        return self.reaction(own, *to_each(self.peers, RequestVote(own.term, own.last)))

    def on_message(self, own: Server, source: str, message: Any) -> Reaction | None:
        if message.term < own.term:
            return None
        if message.term > own.term:
            own = Server(message.term, None, own.log, FOLLOWER, own.commit)
        match message:
            case RequestVote():
                return self.vote(own, source, message)
            case VoteGranted():
                return self.count(own, source)
            case AppendEntries():
                return self.append(own, source, message)
            case Appended():
                return self.advance(own, source, message.match)

    def vote(self, own: Server, candidate: str, asked: RequestVote) -> Reaction:
        if own.voted not in (None, candidate) or asked.last < own.last:
            return Reaction(own)
        return self.reaction(replace(own, voted=candidate), (candidate, VoteGranted(own.term)))

    def count(self, own: Server, voter: str) -> Reaction | None:
        if own.role != CANDIDATE:
            return None
        own = replace(own, votes=own.votes | {voter})
        if len(own.votes) < self.majority:
            return Reaction(own)
        match = frozenset((peer, 0) for peer in self.peers)
        following = frozenset((peer, len(own.log) + 1) for peer in self.peers)
        own = replace(own, role=LEADER, votes=frozenset(), match=match, next=following)
        return self.reaction(own, *((peer, self.lacking(own, peer)) for peer in self.peers))

    def lacking(self, own: Server, peer: str) -> AppendEntries:
        index = dict(own.next)[peer] - 1
        previous = own.log[index - 1].term if index else 0
        return AppendEntries(own.term, index, previous, own.log[index:], own.commit)

    def append(self, own: Server, leader: str, sent: AppendEntries) -> Reaction:
        own = replace(own, role=FOLLOWER, votes=frozenset())
        if sent.index and (len(own.log) < sent.index or own.log[sent.index - 1].term != sent.previous):
            return self.reaction(own, (leader, Appended(own.term, None)))
        log, end = own.log, sent.index + len(sent.entries)
        if log[sent.index : end] != sent.entries:  # a conflict, or entries that are new
            log = log[: sent.index] + sent.entries
        own = replace(own, log=log, commit=max(own.commit, min(sent.commit, end)))
        return self.reaction(own, (leader, Appended(own.term, end)))

    def advance(self, own: Server, peer: str, index: int | None) -> Reaction | None:
        if own.role != LEADER:
            return None
        match, following = dict(own.match), dict(own.next)
        match[peer] = max(match[peer], index or 0)
        # Two refused requests must not take it below the entries that the follower is known to have.
        following[peer] = max(match[peer] + 1, following[peer] - 1) if index is None else match[peer] + 1
        own = replace(own, match=frozenset(match.items()), next=frozenset(following.items()))
        stored = sorted((len(own.log), *match.values()), reverse=True)[self.majority - 1]
        if stored > own.commit and (self.error == "earlier term" or own.log[stored - 1].term == own.term):
            own = replace(own, commit=stored)
        lacks = following[peer] <= len(own.log)
        return self.reaction(own, *(((peer, self.lacking(own, peer)),) if lacks else ()))


def one_leader(*leads: int) -> Finding | None:
    terms = [term for term in leads if term]
    return Finding("two servers lead in one term", (("terms", terms),)) if len(set(terms)) < len(terms) else None


def leader_has_committed(*servers: Server) -> Any:
    """A leader has every entry that a server of its term, or of an earlier one, knows to be committed."""
    leaders = [server for server in servers if server.role == LEADER]
    known = [(leader, other) for leader in leaders for other in servers if other.commit and other.term <= leader.term]
    for leader, other in known:
        if leader.log[: other.commit] != other.log[: other.commit]:
            lacks = (("leader of term", leader.term), ("committed", other.log[: other.commit]))
            return Finding("a leader lacks a committed entry", lacks)
    return None if known else TRIVIAL


def relevant(own: Server) -> Server:
    """The part of a server that LeaderCompleteness reads."""
    return Server(own.term, None, own.log if own.role == LEADER else own.log[: own.commit], own.role, own.commit)


def committed_alike(*committed: tuple[Entry, ...]) -> Finding | None:
    alike = all(one[: len(other)] == other[: len(one)] for one in committed for other in committed)
    return None if alike else Finding("two servers have committed different entries", (("committed", committed),))


def model(
    timeouts: int = 2,
    commands: int = 1,
    crashes: int = 1,
    partitions: int = 1,
    losses: int = 1,
    error: str | None = None,
    candidates: int = 3,
    writes: int = 0,
) -> Model:
    names = ("s1", "s2", "s3")
    steps = {
        name: Raft(name, tuple(peer for peer in names if peer != name), commands, error, number < candidates)
        for number, name in enumerate(names)
    }
    machines = [
        Machine(name, Reaction(Server()), raft.on_message, raft.choices, raft.on_choice, STEPS, durable=raft.durable)
        for name, raft in steps.items()
    ]
    checks = {
        "ElectionSafety": (one_leader, lambda own: own.term if own.role == LEADER else 0),
        "LeaderCompleteness": (leader_has_committed, relevant),
        "StateMachineSafety": (committed_alike, lambda own: own.log[: own.commit]),
    }
    properties = [
        Property(title, tuple(Read(name, projection) for name in names), check)
        for title, (check, projection) in checks.items()
    ]
    faults = Environment(crashes, crashes, 0, partitions, partitions, losses, timeouts, writes)
    return network_model("Raft", machines, Network(ordered=True), faults=faults, properties=properties)
