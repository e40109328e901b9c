"""Zab after Apache's specification in TLA+, `Zab.tla` of ZooKeeper's repository, with the same states and transitions.

    quorate run "benchmarks/tlc/zab.py:model(3, 1, 1)" --reduce symmetric

The arguments are the number of servers, MaxTimeoutFailures, MaxTransactionNum, MaxEpoch (None: unlimited) and
MaxRestarts, in the order of the constant `Parameters`. Actions and properties have the names of the file. The column
`pc` is the last action with its servers, as in the variable `recorder`; it multiplies the states.

- A state has the variables of the file, so that the numbers of distinct states are equal. The variables of a leader
  have a separate column. They stay when the server leads no longer, and a follower does not read them.
- TLC generates a successor for each true part of a disjunction. An ACK has two such disjunctions: see `Heard.second`.
- A follower has a leader if and only if it is a learner of that leader, which leads. So a time-out depends on the
  follower alone.
- `LocalPrimaryOrder` demands the order of *all* pairs of transactions of a primary. The file demands it of *some* pair.
  A transaction paired with itself suffices, so that the formula of the file is true in every state.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from checker.engine import TRIVIAL, Actor, Column, Finding, Model, Move, Outcome, Property, Read, Rule, Send
from checker.kit import (
    Environment,
    FaultAction,
    Insert,
    Network,
    Remove,
    channel,
    interchangeable,
    shared_budgets,
    spend,
)

LOOKING, FOLLOWING, LEADING = "LOOKING", "FOLLOWING", "LEADING"
ELECTION, DISCOVERY, SYNCHRONIZATION, BROADCAST = "ELECTION", "DISCOVERY", "SYNCHRONIZATION", "BROADCAST"
TO_LEADER = frozenset({"CEPOCH", "ACKEPOCH", "ACKLD", "ACK"})
CLEAR = FaultAction.CRASH  # an operation of a channel
LEAD, FOLLOW, STOP, RESTART, PROPOSE = "lead", "follow", "stop", "restart", "propose"  # operations of a server, and
JOIN, LOSE, FORGET, APPEND = "join", "lose", "forget", "append"  # those with an argument
CONNECT = "ConnectAndFollowerSendCEPOCH"

Sends: TypeAlias = tuple[Send, ...]
Zxid: TypeAlias = tuple[int, int]
NO_ZXID = (0, 0)


class Txn(msgspec.Struct, frozen=True):
    zxid: Zxid
    value: int
    acks: frozenset[str]
    epoch: int


History: TypeAlias = tuple[Txn, ...]


class Message(msgspec.Struct, frozen=True):
    kind: str
    epoch: int = 0
    zxid: Zxid = NO_ZXID
    history: History = ()
    data: int = 0


class Peer(msgspec.Struct, frozen=True):
    """An entry of cepochRecv, ackeRecv or ackldRecv: a server, its connection, and the content of its message."""

    sid: str
    connected: bool
    epoch: int = 0
    history: History = ()


Peers: TypeAlias = frozenset[Peer]


class Server(msgspec.Struct, frozen=True):
    state: str = LOOKING
    phase: str = ELECTION
    accepted: int = 0
    current: int = 0
    history: History = ()
    committed: int = 0
    committed_zxid: Zxid = NO_ZXID
    leader: str | None = None

    def lane_fields(self) -> dict[str, Any]:
        """The fields of a server in a trace."""
        log = " ".join(f"{txn.zxid[0]}.{txn.zxid[1]}" for txn in self.history) or "empty"
        epochs = {"accepted": self.accepted, "current": self.current}
        return {"state": self.state, "phase": self.phase, **epochs, "history": log, "committed": self.committed}


class Lead(msgspec.Struct, frozen=True):
    """The variables of a leader. At the end of its leadership only the learners change."""

    learners: frozenset[str] = frozenset()
    cepochs: Peers = frozenset()
    ackes: Peers = frozenset()
    acklds: Peers = frozenset()
    sent: int = 0


class Heard(msgspec.Struct, frozen=True):
    """The arrival of a message. `second` asks for the successor of an ACK by the second true part of a disjunction."""

    source: str
    message: Message
    second: bool = False


class Proposal(msgspec.Struct, frozen=True):
    source: str
    epoch: int
    zxid: Zxid
    data: int


def last_zxid(history: History) -> Zxid:
    return history[-1].zxid if history else NO_ZXID


def index_of(history: History, zxid: Zxid) -> int:
    """ZxidToIndex: from 1; 0 for no zxid, -1 if it occurs twice, and one more than the length if it does not occur."""
    places = [place for place, txn in enumerate(history, 1) if txn.zxid == zxid]
    if zxid == NO_ZXID or len(places) > 1:
        return 0 if zxid == NO_ZXID else -1
    return places[0] if places else len(history) + 1


def with_peer(peers: Peers, peer: Peer) -> Peers:
    return frozenset(entry for entry in peers if entry.sid != peer.sid) | {peer}


def without(peers: Peers, sid: str) -> Peers:
    return frozenset(replace(peer, connected=False) if peer.sid == sid else peer for peer in peers)


def recency(peer: Peer) -> tuple[Any, ...]:
    """The order of MoreResentOrEqual, and an order of histories that are equal there."""
    return (peer.epoch, last_zxid(peer.history), *((txn.zxid, txn.value, txn.epoch) for txn in peer.history))


def pc(action: str, *names: str) -> Send:
    return Send("pc", (action, *names))


def flagged(flag: str, condition: bool = True) -> Sends:
    """Sets a member of violatedInvariants."""
    return (Send("flags", flag),) if condition else ()


def stopped(server: Server) -> Server:
    """FollowerShutdown, and the same part of LeaderShutdown."""
    return replace(server, state=LOOKING, phase=ELECTION, leader=None)


@dataclass(frozen=True)
class Steps:
    """The step functions of one server."""

    name: str
    peers: tuple[str, ...]

    def is_quorum(self, names: Iterable[str]) -> bool:
        return 2 * len(set(names)) > len(self.peers) + 1

    def is_heard(self, peers: Peers) -> bool:
        return self.is_quorum(peer.sid for peer in peers)

    def to(self, peer: str, kind: str, **fields: Any) -> Send:
        return Send(f"{self.name}->{peer}", Insert((Message(kind, **fields),)))

    def broadcast(self, lead: Lead, peers: Peers, kind: str, **fields: Any) -> Sends:
        connected = lead.learners & {peer.sid for peer in peers if peer.connected}
        return tuple(self.to(peer, kind, **fields) for peer in self.peers if peer in connected)

    def clear(self, *receivers: str) -> Sends:
        """CleanInputBuffer."""
        senders = (self.name, *self.peers)
        return tuple(Send(f"{a}->{b}", CLEAR) for b in receivers for a in senders if a != b)

    def clean(self, peer: str) -> Sends:
        return Send(f"{peer}->{self.name}", CLEAR), Send(f"{self.name}->{peer}", CLEAR)

    def moves(self, server: Server) -> list[Move]:
        """The actions that depend on no message."""
        name, lead = self.name, f"{self.name}->lead"
        moves: list[Move] = []
        ended: Sends = ()
        if server.state == LOOKING:
            for role, action in ((LEAD, "UpdateLeader"), (FOLLOW, "FollowLeader")):
                moves.append(Move(action, (name,), (Send("oracle", (role, name)), pc(action, name))))
        elif server.state == LEADING:
            ended = (Send(lead, STOP),)
            if server.phase == BROADCAST:
                action = "LeaderBroadcastPROPOSE"
                moves.append(Move(action, (name,), (Send(lead, PROPOSE), pc(action, name))))
        elif server.leader is None:
            ended = (Send(name, STOP), *self.clear(name))
            moves.append(Move(CONNECT, (name,), (Send("oracle", (JOIN, name)),)))
        else:
            ended = (Send(f"{server.leader}->lead", (LOSE, name)),)
            names = (server.leader, name)
            moves.append(Move("Timeout", names, (spend("timeouts"), *ended, pc("Timeout", *names))))
        restart = (spend("timeouts"), spend("restarts"), *ended, Send(name, RESTART), pc("Restart", name))
        return [*moves, Move("Restart", (name,), restart)]

    # Operations on a server alone

    def step(self, values: tuple[Any, ...], operation: Any) -> Outcome:
        server: Server = values[0]
        match operation:
            case Heard():
                return self.hear_leader(server, operation.source, operation.message)
            case ("join", leader):
                return Outcome((replace(server, leader=leader),), (self.to(leader, "CEPOCH", epoch=server.accepted),))
            case ("append", value):
                epoch, counter = last_zxid(server.history)
                zxid = (server.current, counter + 1 if epoch == server.current else 1)
                txn = Txn(zxid, value, frozenset({self.name}), server.current)
                return Outcome((replace(server, history=(*server.history, txn)),))
            case "follow":
                return Outcome((replace(server, state=FOLLOWING, phase=DISCOVERY),))
            case "stop":
                return Outcome((stopped(server),))
            case _:
                return Outcome((replace(server, committed=0, committed_zxid=NO_ZXID),))

    def hear_leader(self, server: Server, source: str, message: Message) -> Outcome:
        if server.state != FOLLOWING or server.leader != source:
            return Outcome((server,), flagged("messageIllegal"))
        match message.kind:
            case "NEWEPOCH":
                after, sends = self.accept(server, source, message)
            case "NEWLEADER":
                after, sends = self.adopt(server, source, message)
            case "COMMITLD":
                index = index_of(server.history, message.zxid)
                after = replace(server, committed=index, committed_zxid=message.zxid, phase=BROADCAST)
                sends = flagged("proposalInconsistent", not 0 <= index <= len(server.history))
            case "PROPOSE":
                after, sends = self.append(server, source, message)
            case _:
                after, sends = self.commit(server, message)
        return Outcome((after,), (*sends, pc(f"FollowerProcess{message.kind}", self.name, source)))

    def leave(self, server: Server, leader: str) -> tuple[Server, Sends]:
        return stopped(server), (*self.clean(leader), Send(f"{leader}->lead", (FORGET, self.name)))

    def accept(self, server: Server, leader: str, message: Message) -> tuple[Server, Sends]:
        if message.epoch < server.accepted:
            return self.leave(server, leader)
        if server.phase != DISCOVERY:
            return server, flagged("stateInconsistent")
        answer = self.to(leader, "ACKEPOCH", epoch=server.current, history=server.history)
        return replace(server, accepted=message.epoch, phase=SYNCHRONIZATION), (answer,)

    def adopt(self, server: Server, leader: str, message: Message) -> tuple[Server, Sends]:
        if message.epoch != server.accepted:
            return self.leave(server, leader)
        flags = flagged("stateInconsistent", server.phase != SYNCHRONIZATION)
        answer = self.to(leader, "ACKLD", zxid=last_zxid(message.history))
        return replace(server, current=server.accepted, history=message.history), (*flags, answer)

    def append(self, server: Server, leader: str, message: Message) -> tuple[Server, Sends]:
        (epoch, counter), (next_epoch, next_counter) = last_zxid(server.history), message.zxid
        if epoch < next_epoch if next_counter == 1 else (epoch, counter + 1) == message.zxid:
            txn = Txn(message.zxid, message.data, frozenset(), server.current)
            return replace(server, history=(*server.history, txn)), (self.to(leader, "ACK", zxid=message.zxid),)
        exists = 0 < index_of(server.history, message.zxid) <= len(server.history)
        return server, flagged("proposalInconsistent", not exists)

    def commit(self, server: Server, message: Message) -> tuple[Server, Sends]:
        if server.committed >= len(server.history):
            return server, ()
        if server.history[server.committed].zxid != message.zxid:
            return server, flagged("commitInconsistent")
        return replace(server, committed=server.committed + 1, committed_zxid=message.zxid), ()

    # Operations on a server and its variables of a leader

    def lead_step(self, values: tuple[Any, ...], operation: Any) -> Outcome | None:
        server: Server = values[0]
        lead: Lead = values[1]
        match operation:
            case Heard():
                return self.hear_learner(server, lead, operation)
            case ("join", follower):
                if server.state != LEADING or follower in lead.learners:
                    return None
                lead = replace(lead, learners=lead.learners | {follower})
                return Outcome((server, lead), (Send(follower, (JOIN, self.name)),))
            case ("lose", learner):
                if not self.is_quorum(lead.learners - {learner}):
                    return self.shut_down(server, lead)
                return Outcome((server, self.removed(lead, learner)), (Send(learner, STOP), *self.clean(learner)))
            case ("forget", learner):
                return Outcome((server, self.removed(lead, learner)))
            case "lead":
                cepoch = Peer(self.name, True, server.accepted)
                acke = Peer(self.name, True, server.current, server.history)
                ackld = Peer(self.name, True)
                lead = Lead(frozenset({self.name}), frozenset({cepoch}), frozenset({acke}), frozenset({ackld}))
                return Outcome((replace(server, state=LEADING, phase=DISCOVERY), lead))
            case "stop":
                return self.shut_down(server, lead)
            case _:
                return self.propose(server, lead)

    def removed(self, lead: Lead, learner: str) -> Lead:
        """RemoveLearner."""
        cepochs, ackes, acklds = (without(peers, learner) for peers in (lead.cepochs, lead.ackes, lead.acklds))
        return Lead(lead.learners - {learner}, cepochs, ackes, acklds, lead.sent)

    def shut_down(self, server: Server, lead: Lead) -> Outcome:
        """LeaderShutdown."""
        learners = [peer for peer in self.peers if peer in lead.learners]
        sends = (*(Send(learner, STOP) for learner in learners), *self.clear(self.name, *learners))
        return Outcome((stopped(server), replace(lead, learners=frozenset())), sends)

    def propose(self, server: Server, lead: Lead) -> Outcome | None:
        """LeaderBroadcastPROPOSE."""
        epoch, counter = last_zxid(server.history)
        if epoch != server.current or lead.sent >= counter:
            return None
        txn = server.history[index_of(server.history, (server.current, lead.sent + 1)) - 1]
        sends = self.broadcast(lead, lead.ackes, "PROPOSE", zxid=txn.zxid, data=txn.value)
        return Outcome((server, replace(lead, sent=lead.sent + 1)), (*sends, self.proposed(server.current, (txn,))))

    def proposed(self, epoch: int, history: History) -> Send:
        """The addition to proposalMsgsLog."""
        return Send("proposals", frozenset(Proposal(self.name, epoch, txn.zxid, txn.value) for txn in history))

    def hear_learner(self, server: Server, lead: Lead, heard: Heard) -> Outcome | None:
        source, message = heard.source, heard.message
        if server.state != LEADING or source not in lead.learners:
            return None if heard.second else Outcome((server, lead), flagged("messageIllegal"))
        match message.kind:
            case "CEPOCH":
                outcome = self.count_cepoch(server, lead, Peer(source, True, message.epoch))
            case "ACKEPOCH":
                outcome = self.count_ackepoch(server, lead, Peer(source, True, message.epoch, message.history))
            case "ACKLD":
                outcome = self.count_ackld(server, lead, source, message.zxid)
            case _:
                acked = self.count_ack(server, lead, source, message.zxid, heard.second)
                if acked is None:
                    return None
                outcome = acked
        return outcome._replace(sends=(*outcome.sends, pc(f"LeaderProcess{message.kind}", self.name, source)))

    def count_cepoch(self, server: Server, lead: Lead, peer: Peer) -> Outcome:
        after = replace(lead, cepochs=with_peer(lead.cepochs, peer))
        sends: Sends = ()
        if self.is_heard(lead.cepochs):
            sends = (self.to(peer.sid, "NEWEPOCH", epoch=server.accepted),)
        elif self.is_heard(after.cepochs):
            server = replace(server, accepted=max(entry.epoch for entry in after.cepochs) + 1)
            sends = self.broadcast(after, after.cepochs, "NEWEPOCH", epoch=server.accepted)
        flags = flagged("stateInconsistent", not self.is_heard(lead.cepochs) and server.phase != DISCOVERY)
        return Outcome((server, after), (Send("epoch", server.accepted), *flags, *sends))

    def count_ackepoch(self, server: Server, lead: Lead, peer: Peer) -> Outcome:
        after = replace(lead, ackes=with_peer(lead.ackes, peer))
        if self.is_heard(lead.ackes):
            answer = self.to(peer.sid, "NEWLEADER", epoch=server.accepted, history=server.history)
            return Outcome((server, after), (answer, self.proposed(server.accepted, server.history)))
        flags = flagged("stateInconsistent", server.phase != DISCOVERY)
        if not self.is_heard(after.ackes):
            return Outcome((server, after), flags)
        newest = max(after.ackes, key=recency).history
        history = tuple(replace(txn, acks=frozenset({self.name})) for txn in newest)
        server = replace(server, current=server.accepted, history=history, phase=SYNCHRONIZATION)
        sends = self.broadcast(after, after.ackes, "NEWLEADER", epoch=server.accepted, history=history)
        leader = Send("leaders", (server.accepted, self.name))
        return Outcome((server, after), (*flags, leader, *sends, self.proposed(server.accepted, history)))

    def count_ackld(self, server: Server, lead: Lead, source: str, zxid: Zxid) -> Outcome:
        after = replace(lead, acklds=with_peer(lead.acklds, Peer(source, True)))
        history = (replace(txn, acks=txn.acks | {source}) if txn.zxid <= zxid else txn for txn in server.history)
        server = replace(server, history=tuple(history))
        if self.is_heard(lead.acklds):
            flags = flagged("stateInconsistent", server.phase != BROADCAST)
            answer = self.to(source, "COMMITLD", zxid=server.committed_zxid)
            return Outcome((server, after), (*flags, answer))
        flags = flagged("stateInconsistent", server.phase != SYNCHRONIZATION)
        if not self.is_heard(after.acklds):
            return Outcome((server, after), flags)
        last = last_zxid(server.history)
        server = replace(server, committed=len(server.history), committed_zxid=last, phase=BROADCAST)
        return Outcome((server, after), (*flags, *self.broadcast(after, after.acklds, "COMMITLD", zxid=last)))

    def count_ack(self, server: Server, lead: Lead, source: str, zxid: Zxid, second: bool) -> Outcome | None:
        index, length = index_of(server.history, zxid), len(server.history)
        acked = [place for place, txn in enumerate(server.history, 1) if source in txn.acks]
        wrong = (not 1 <= index <= length, bool(acked) and acked[-1] + 1 != index)
        if any(wrong):
            return Outcome((server, lead), flagged("ackInconsistent")) if all(wrong) or not second else None
        txn = server.history[index - 1]
        txn = replace(txn, acks=txn.acks | {source})
        committed = server.committed
        after = replace(server, history=(*server.history[: index - 1], txn, *server.history[index:]))
        settled = (committed >= length, zxid <= server.committed_zxid)
        reasons = settled if any(settled) else (committed < index - 1, not self.is_quorum(txn.acks))
        if second or any(reasons):
            return Outcome((after, lead)) if all(reasons) or not second else None
        after = replace(after, committed=index, committed_zxid=zxid)
        flags = flagged("commitInconsistent", committed + 1 != index)
        return Outcome((after, lead), (*flags, *self.broadcast(lead, lead.acklds, "COMMIT", zxid=zxid)))


def delivery_rule(source: str, receiver: str) -> Rule:
    name = f"{source}->{receiver}"

    def moves(messages: tuple[Message, ...]) -> list[Move]:
        if not messages:
            return []
        message = messages[0]
        is_to_leader = message.kind in TO_LEADER
        action = f"{'Leader' if is_to_leader else 'Follower'}Process{message.kind}"
        actor = f"{receiver}->lead" if is_to_leader else receiver
        return [
            Move(action, (receiver, source), (Send(name, Remove(message)), Send(actor, Heard(source, message, second))))
            for second in ((False, True) if message.kind == "ACK" else (False,))
        ]

    return Rule(f"messages {name}", (Read(name),), moves)


def request_rule(name: str, peers: tuple[str, ...]) -> Rule:
    def length(server: Server) -> int:
        return len(server.history)

    def length_at_leader(server: Server) -> int | None:
        return len(server.history) + 1 if server.state == LEADING and server.phase == BROADCAST else None

    def moves(*lengths: int) -> list[Move]:
        request = Send("transactions", (name, max(lengths)))
        return [Move("LeaderProcessRequest", (name,), (request, pc("LeaderProcessRequest", name)))]

    reads = (Read(name, length_at_leader), *(Read(peer, length) for peer in peers))
    return Rule(f"requests to {name}", reads, moves)


def recorder(transactions: int, epochs: int | None) -> tuple[Actor, ...]:
    """The counters of the recorder with their limits, the oracle, and the variables that only properties read."""

    def count_request(values: tuple[Any, ...], operation: tuple[str, int]) -> Outcome | None:
        longest, requests = values[0]
        name, length = operation
        return Outcome(((length, requests + 1),), (Send(name, (APPEND, requests)),)) if longest < transactions else None

    def count_epoch(values: tuple[Any, ...], accepted: int) -> Outcome | None:
        return None if epochs is not None and values[0] >= epochs else Outcome((max(values[0], accepted),))

    def oracle(values: tuple[Any, ...], operation: tuple[str, str]) -> Outcome | None:
        leader: str | None = values[0]
        kind, name = operation
        if kind == LEAD:
            return None if leader == name else Outcome((name,), (Send(f"{name}->lead", LEAD),))
        if leader is None:
            return None
        if kind == JOIN:
            return Outcome((leader,), (Send(f"{leader}->lead", operation), pc(CONNECT, leader, name)))
        return Outcome((leader,), (Send(f"{name}->lead", LEAD) if leader == name else Send(name, FOLLOW),))

    return (
        Actor("transactions", ("transactions",), count_request),
        Actor("epoch", ("epoch",), count_epoch),
        Actor("oracle", ("oracle",), oracle),
        Actor("proposals", ("proposals",), lambda values, proposals: Outcome((values[0] | proposals,))),
        Actor("leaders", ("leaders",), lambda values, leader: Outcome((values[0] | {leader},))),
        Actor("flags", ("flags",), lambda values, flag: Outcome((values[0] | {flag},))),
        Actor("pc", ("pc",), lambda _, action: Outcome((action,))),
    )


Delivered: TypeAlias = tuple[tuple[Zxid, int], ...]


def delivered(server: Server) -> Delivered:
    """The committed transactions. Like TLC, this raises an error if the history is shorter."""
    return tuple((server.history[place].zxid, server.history[place].value) for place in range(server.committed))


def delivered_by_follower(server: Server) -> Delivered:
    return delivered(server) if server.state == FOLLOWING else ()


def established(server: Server) -> int:
    return server.current if server.state == LEADING and server.phase in (SYNCHRONIZATION, BROADCAST) else -1


def in_broadcast(server: Server) -> tuple[int, str | None, Delivered]:
    """The epoch of a leader in BROADCAST, the leader of a follower in BROADCAST, and what either delivered."""
    if server.phase != BROADCAST:
        return (0, None, ())
    return (server.current if server.state == LEADING else 0, server.leader, delivered(server))


def orders(proposals: frozenset[Proposal]) -> list[tuple[Any, Any]]:
    """The pairs of transactions that a primary broadcast in one epoch, in the order of their zxids."""
    pairs = ((a, b) for a, b in product(proposals, repeat=2) if (a.source, a.epoch) == (b.source, b.epoch))
    return [((a.zxid, a.data), (b.zxid, b.data)) for a, b in pairs if a.zxid < b.zxid]


def keeps(log: Delivered, earlier: Any, later: Any) -> bool:
    """Whether a log with the later transaction has the earlier one before it."""
    return later not in log or (earlier, later) in combinations(log, 2)


def long(*logs: Delivered) -> list[Delivered]:
    return [log for log in logs if len(log) > 1]


def invariant(
    clause: str, holds: Callable[..., bool], premise: Callable[..., Any] = lambda *_: True
) -> Callable[..., Any]:
    """A check of a property that must hold where its premise holds."""

    def check(*values: Any) -> Any:
        if not premise(*values):
            return TRIVIAL
        return None if holds(*values) else Finding(clause, (("values", values),))

    return check


def properties(names: tuple[str, ...]) -> tuple[Property, ...]:
    """The invariants of the file."""
    logs, followers, epochs, broadcast = (
        tuple(Read(name, projection) for name in names)
        for projection in (delivered, delivered_by_follower, established, in_broadcast)
    )
    txns = Read("proposals", lambda proposals: frozenset((proposal.zxid, proposal.data) for proposal in proposals))

    def followed(servers: tuple[Any, ...]) -> list[tuple[int, Delivered, Delivered]]:
        """For each follower of a leader, both in BROADCAST: the leader's epoch and deliveries, and those of both."""
        by_name = dict(zip(names, servers, strict=True))
        pairs = [(by_name[leader], log) for _, leader, log in servers if leader and log]
        return [(epoch, log_of_leader, log) for (epoch, _, log_of_leader), log in pairs if epoch]

    flags_are_unset = invariant("a condition of violatedInvariants is true", lambda flags: not flags)
    one_leader = invariant(
        "two established leaders have one epoch",
        lambda *epochs: all(a != b or a < 0 for a, b in combinations(epochs, 2)),
    )
    one_leader_ever = invariant(
        "an epoch had two leaders", lambda leaders: len({epoch for epoch, _ in leaders}) == len(leaders)
    )
    prefix = invariant(
        "two servers committed different transactions",
        lambda *logs: all(a[: len(b)] == b[: len(a)] for a, b in combinations(logs, 2)),
    )
    integrity = invariant(
        "a follower delivered a transaction that no primary broadcast",
        lambda txns, *logs: all(txns.issuperset(log) for log in logs),
        lambda _, *logs: any(logs),
    )
    agreement = invariant(
        "each of two followers delivered a transaction that the other did not deliver",
        lambda *logs: all({*a} <= {*b} or {*b} <= {*a} for a, b in combinations(logs, 2)),
        lambda *logs: sum(map(bool, logs)) > 1,
    )
    total_order = invariant(
        "two servers delivered two transactions in different orders",
        lambda *logs: all(keeps(b, *pair) for a, b in product(long(*logs), repeat=2) for pair in combinations(a, 2)),
        long,
    )
    local_order = invariant(
        "a server delivered a transaction without, before it, an earlier one of the same primary",
        lambda proposals, *logs: all(keeps(log, *pair) for log in long(*logs) for pair in orders(proposals)),
        lambda proposals, *logs: long(*logs) and orders(proposals),
    )
    global_order = invariant(
        "a server delivered a transaction before one of an earlier epoch",
        lambda *logs: all(a[0][0] <= b[0][0] for log in logs for a, b in pairwise(log)),
        long,
    )
    primary_integrity = invariant(
        "a leader lacks a transaction of an earlier epoch that its follower delivered",
        lambda *servers: all(
            txn[0][0] >= epoch or txn in log_of_leader for epoch, log_of_leader, log in followed(servers) for txn in log
        ),
        lambda *servers: followed(servers),
    )
    return (
        Property("ShouldNotBeTriggered", (Read("flags"),), flags_are_unset),
        Property("Leadership1", epochs, one_leader),
        Property("Leadership2", (Read("leaders"),), one_leader_ever),
        Property("PrefixConsistency", logs, prefix),
        Property("Integrity", (txns, *followers), integrity),
        Property("Agreement", followers, agreement),
        Property("TotalOrder", logs, total_order),
        Property("LocalPrimaryOrder", (Read("proposals"), *logs), local_order),
        Property("GlobalPrimaryOrder", logs, global_order),
        Property("PrimaryIntegrity", broadcast, primary_integrity),
    )


def model(
    servers: int = 3, timeouts: int = 1, transactions: int = 1, epochs: int | None = None, restarts: int = 0
) -> Model:
    names = tuple(f"s{number}" for number in range(1, servers + 1))
    steps = {name: Steps(name, tuple(peer for peer in names if peer != name)) for name in names}
    links = [(source, receiver) for source in names for receiver in names if source != receiver]
    channels = [channel(Network(ordered=True), *link) for link in links]
    budgets = shared_budgets(Environment(timeouts=timeouts, restarts=restarts))
    firsts = {"transactions": (0, 0), "epoch": 0, "oracle": None, "pc": ("Init",)}
    whole = Model(
        "Zab.tla",
        columns=(
            *(Column(name, Server()) for name in names),
            *(Column(f"{name}->lead", Lead()) for name in names),
            *(column for parts in (*channels, budgets) for column in parts.columns),
            *(Column(name, first) for name, first in firsts.items()),
            *(Column(name, frozenset()) for name in ("proposals", "leaders", "flags")),
        ),
        actors=(
            *(Actor(name, (name,), functions.step) for name, functions in steps.items()),
            *(
                Actor(f"{name}->lead", (name, f"{name}->lead"), functions.lead_step)
                for name, functions in steps.items()
            ),
            *(actor for parts in (*channels, budgets) for actor in parts.actors),
            *recorder(transactions, epochs),
        ),
        rules=(
            *(Rule(f"steps of {name}", (Read(name),), functions.moves) for name, functions in steps.items()),
            *(delivery_rule(*link) for link in links),
            *(request_rule(name, functions.peers) for name, functions in steps.items()),
        ),
        properties=properties(names),
    )
    return interchangeable(whole, names)
