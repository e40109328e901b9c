"""Zab after Apache's specification in TLA+, `Zab.tla` of ZooKeeper's repository, with the same states and transitions.

    quorate run "benchmarks/tlc/zab.py:model(3, 1, 1)" --reduce symmetric

The arguments are the number of servers and the constants `Parameters` in the order of the file: MaxTimeoutFailures,
MaxTransactionNum, MaxEpoch (None: no limit) and MaxRestarts. Actions and properties have the names of the file. The
column `pc` is the last action with its servers, as in the variable `recorder`; it multiplies the states.

- A state has the variables of the file, so that distinct states are equal in number. The variables of a leader are in a
  column of their own, since they stay when it leads no more, and a follower does not read them.
- TLC generates a successor for each true part of a disjunction. An ACK has two such places: see `Heard.second`.
- A follower has a leader if and only if it is a learner of that leader, which leads. So a time-out depends on the
  follower alone.
- `LocalPrimaryOrder` demands the order of *all* pairs of transactions of a primary. The file demands it of *some* pair,
  and a transaction paired with itself will do, so that its formula is true in every state.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from checker.engine import TRIVIAL, Actor, Column, Finding, Model, Move, Outcome, Property, Read, Rule, Send
from checker.engine.model import Trivial
from checker.kit import interchangeable

LOOKING, FOLLOWING, LEADING = "LOOKING", "FOLLOWING", "LEADING"
ELECTION, DISCOVERY, SYNCHRONIZATION, BROADCAST = "ELECTION", "DISCOVERY", "SYNCHRONIZATION", "BROADCAST"
TO_LEADER = frozenset({"CEPOCH", "ACKEPOCH", "ACKLD", "ACK"})
TAKE, CLEAR = "take", "clear"  # the operations of a channel, besides a message to append
LEAD, FOLLOW, STOP, RESTART, PROPOSE = "lead", "follow", "stop", "restart", "propose"
CONNECT = "ConnectAndFollowerSendCEPOCH"

Zxid: TypeAlias = tuple[int, int]
Answer: TypeAlias = Finding | Trivial | None
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
    """An entry of cepochRecv, ackeRecv or ackldRecv: what a server said to the leader, and if it is still connected."""

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
        log = " ".join(f"{txn.zxid[0]}.{txn.zxid[1]}" for txn in self.history)
        epochs = {"accepted": self.accepted, "current": self.current}
        return {"state": self.state, "phase": self.phase, **epochs, "history": log, "committed": self.committed}


class Lead(msgspec.Struct, frozen=True):
    """The variables of a leader; they stay when it leads no more, but for its learners."""

    learners: frozenset[str] = frozenset()
    cepochs: Peers = frozenset()
    ackes: Peers = frozenset()
    acklds: Peers = frozenset()
    sent: int = 0


class Heard(msgspec.Struct, frozen=True):
    """A message arrives. `second` asks for another successor of an ACK, for the second true part of a disjunction."""

    source: str
    message: Message
    second: bool = False


class Join(msgspec.Struct, frozen=True):
    """A follower connects with the leader, or the leader with it."""

    name: str


class Lost(msgspec.Struct, frozen=True):
    """The leader loses a learner, and stops if the others are no quorum."""

    name: str


class Left(msgspec.Struct, frozen=True):
    """A learner leaves; the leader goes on."""

    name: str


class Request(msgspec.Struct, frozen=True):
    """A client's request to a server; `length` is that of the longest history after it."""

    name: str
    length: int


class Append(msgspec.Struct, frozen=True):
    value: int


class Proposal(msgspec.Struct, frozen=True):
    source: str
    epoch: int
    zxid: Zxid
    data: int


Sends: TypeAlias = tuple[Send, ...]
Led: TypeAlias = tuple[Server, Lead, Sends]


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


def newness(peer: Peer) -> tuple[Any, ...]:
    """The order of MoreResentOrEqual; of peers that are equal there, the one of equal content is as good."""
    return (peer.epoch, last_zxid(peer.history), *((txn.zxid, txn.value, txn.epoch) for txn in peer.history))


def pc(action: str, *names: str) -> Send:
    return Send("pc", (action, *names))


def flagged(flag: str, condition: bool = True) -> Sends:
    """A condition of violatedInvariants."""
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
        return Send(f"{self.name}->{peer}", Message(kind, **fields))

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
            moves.append(Move(CONNECT, (name,), (Send("oracle", Join(name)),)))
        else:
            ended = (Send(f"{server.leader}->lead", Lost(name)),)
            names = (server.leader, name)
            moves.append(Move("Timeout", names, (Send("failures", "timeout"), *ended, pc("Timeout", *names))))
        restart = (Send("failures", RESTART), *ended, Send(name, RESTART), pc("Restart", name))
        return [*moves, Move("Restart", (name,), restart)]

    # A server without the variables of a leader

    def step(self, values: tuple[Any, ...], operation: Any) -> Outcome:
        server: Server = values[0]
        match operation:
            case Heard():
                return self.hear_leader(server, operation.source, operation.message)
            case Join(leader):
                return Outcome((replace(server, leader=leader),), (self.to(leader, "CEPOCH", epoch=server.accepted),))
            case Append(value):
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
        return stopped(server), (*self.clean(leader), Send(f"{leader}->lead", Left(self.name)))

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

    # A server with the variables of a leader

    def lead_step(self, values: tuple[Any, ...], operation: Any) -> Outcome | None:
        server: Server = values[0]
        lead: Lead = values[1]
        match operation:
            case Heard():
                return self.hear_learner(server, lead, operation)
            case Join(follower):
                if server.state != LEADING or follower in lead.learners:
                    return None
                lead = replace(lead, learners=lead.learners | {follower})
                return Outcome((server, lead), (Send(follower, Join(self.name)),))
            case Lost(learner):
                if not self.is_quorum(lead.learners - {learner}):
                    return self.shut_down(server, lead)
                return Outcome((server, self.removed(lead, learner)), (Send(learner, STOP), *self.clean(learner)))
            case Left(learner):
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
        after: Led | None
        match message.kind:
            case "CEPOCH":
                after = self.count_cepoch(server, lead, source, message)
            case "ACKEPOCH":
                after = self.count_ackepoch(server, lead, source, message)
            case "ACKLD":
                after = self.count_ackld(server, lead, source, message)
            case _:
                after = self.count_ack(server, lead, heard)
        if after is None:
            return None
        server, lead, sends = after
        return Outcome((server, lead), (*sends, pc(f"LeaderProcess{message.kind}", self.name, source)))

    def count_cepoch(self, server: Server, lead: Lead, source: str, message: Message) -> Led:
        after = replace(lead, cepochs=with_peer(lead.cepochs, Peer(source, True, message.epoch)))
        flags = flagged("stateInconsistent", not self.is_heard(lead.cepochs) and server.phase != DISCOVERY)
        sends: Sends = ()
        if self.is_heard(lead.cepochs):
            sends = (self.to(source, "NEWEPOCH", epoch=server.accepted),)
        elif self.is_heard(after.cepochs):
            server = replace(server, accepted=max(peer.epoch for peer in after.cepochs) + 1)
            sends = self.broadcast(after, after.cepochs, "NEWEPOCH", epoch=server.accepted)
        return server, after, (Send("epoch", server.accepted), *flags, *sends)

    def count_ackepoch(self, server: Server, lead: Lead, source: str, message: Message) -> Led:
        after = replace(lead, ackes=with_peer(lead.ackes, Peer(source, True, message.epoch, message.history)))
        if self.is_heard(lead.ackes):
            sent = self.to(source, "NEWLEADER", epoch=server.accepted, history=server.history)
            return server, after, (sent, self.proposed(server.accepted, server.history))
        flags = flagged("stateInconsistent", server.phase != DISCOVERY)
        if not self.is_heard(after.ackes):
            return server, after, flags
        chosen = max(after.ackes, key=newness).history
        history = tuple(replace(txn, acks=frozenset({self.name})) for txn in chosen)
        server = replace(server, current=server.accepted, history=history, phase=SYNCHRONIZATION)
        sends = self.broadcast(after, after.ackes, "NEWLEADER", epoch=server.accepted, history=history)
        led = Send("leaders", (server.accepted, self.name))
        return server, after, (*flags, led, *sends, self.proposed(server.accepted, history))

    def count_ackld(self, server: Server, lead: Lead, source: str, message: Message) -> Led:
        after = replace(lead, acklds=with_peer(lead.acklds, Peer(source, True)))
        new = (replace(txn, acks=txn.acks | {source}) if txn.zxid <= message.zxid else txn for txn in server.history)
        zxid, server = last_zxid(server.history), replace(server, history=tuple(new))
        if self.is_heard(lead.acklds):
            flags = flagged("stateInconsistent", server.phase != BROADCAST)
            return server, after, (*flags, self.to(source, "COMMITLD", zxid=server.committed_zxid))
        flags = flagged("stateInconsistent", server.phase != SYNCHRONIZATION)
        if not self.is_heard(after.acklds):
            return server, after, flags
        server = replace(server, committed=len(server.history), committed_zxid=zxid, phase=BROADCAST)
        return server, after, (*flags, *self.broadcast(after, after.acklds, "COMMITLD", zxid=zxid))

    def count_ack(self, server: Server, lead: Lead, heard: Heard) -> Led | None:
        source, zxid = heard.source, heard.message.zxid
        index = index_of(server.history, zxid)
        acked = [place for place, txn in enumerate(server.history, 1) if source in txn.acks]
        wrong = (not 1 <= index <= len(server.history), bool(acked) and acked[-1] + 1 != index)
        if any(wrong):
            return (server, lead, flagged("ackInconsistent")) if all(wrong) or not heard.second else None
        txn = server.history[index - 1]
        txn = replace(txn, acks=txn.acks | {source})
        counted = replace(server, history=(*server.history[: index - 1], txn, *server.history[index:]))
        done = (server.committed >= len(server.history), zxid <= server.committed_zxid)
        early = (server.committed < index - 1, not self.is_quorum(txn.acks))
        reasons = done if any(done) else early
        if heard.second or any(reasons):
            return (counted, lead, ()) if all(reasons) or not heard.second else None
        flags = flagged("commitInconsistent", server.committed + 1 != index)
        counted = replace(counted, committed=index, committed_zxid=zxid)
        return counted, lead, (*flags, *self.broadcast(lead, lead.acklds, "COMMIT", zxid=zxid))


def channel(source: str, receiver: str) -> tuple[Actor, Rule]:
    name = f"{source}->{receiver}"

    def step(values: tuple[Any, ...], operation: Any) -> Outcome:
        (messages,) = values
        if operation == CLEAR:
            return Outcome(((),))
        return Outcome((messages[1:] if operation == TAKE else (*messages, operation),))

    def moves(messages: tuple[Message, ...]) -> list[Move]:
        if not messages:
            return []
        message = messages[0]
        is_to_leader = message.kind in TO_LEADER
        action = f"{'Leader' if is_to_leader else 'Follower'}Process{message.kind}"
        actor = f"{receiver}->lead" if is_to_leader else receiver
        return [
            Move(action, (receiver, source), (Send(name, TAKE), Send(actor, Heard(source, message, second))))
            for second in ((False, True) if message.kind == "ACK" else (False,))
        ]

    return Actor(name, (name,), step), Rule(f"messages {name}", (Read(name),), moves)


def request_rule(name: str, peers: tuple[str, ...]) -> Rule:
    def length(server: Server) -> int:
        return len(server.history)

    def length_at_leader(server: Server) -> int | None:
        return len(server.history) + 1 if server.state == LEADING and server.phase == BROADCAST else None

    def moves(*lengths: int) -> list[Move]:
        request = Send("transactions", Request(name, max(lengths)))
        return [Move("LeaderProcessRequest", (name,), (request, pc("LeaderProcessRequest", name)))]

    reads = (Read(name, length_at_leader), *(Read(peer, length) for peer in peers))
    return Rule(f"requests to {name}", reads, moves)


def recorder(timeouts: int, transactions: int, epochs: int | None, restarts: int) -> tuple[Actor, ...]:
    """The counters of the recorder with their limits, the oracle, and the variables that only properties read."""

    def count_failure(values: tuple[Any, ...], operation: str) -> Outcome | None:
        failed, restarted = values[0]
        if failed >= timeouts or (operation == RESTART and restarted >= restarts):
            return None
        return Outcome(((failed + 1, restarted + (operation == RESTART)),))

    def count_request(values: tuple[Any, ...], request: Request) -> Outcome | None:
        longest, requests = values[0]
        if longest >= transactions:
            return None
        return Outcome(((request.length, requests + 1),), (Send(request.name, Append(requests)),))

    def count_epoch(values: tuple[Any, ...], accepted: int) -> Outcome | None:
        return None if epochs is not None and values[0] >= epochs else Outcome((max(values[0], accepted),))

    def oracle(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        leader: str | None = values[0]
        if isinstance(operation, Join):
            return Outcome((leader,), (Send(f"{leader}->lead", operation), pc(CONNECT, str(leader), operation.name)))
        role, name = operation
        if role == LEAD:
            return None if leader == name else Outcome((name,), (Send(f"{name}->lead", LEAD),))
        if leader is None:
            return None
        return Outcome((leader,), (Send(f"{name}->lead", LEAD) if leader == name else Send(name, FOLLOW),))

    return (
        Actor("failures", ("failures",), count_failure),
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


def finding(holds: bool, clause: str, *values: Any) -> Finding | None:
    return None if holds else Finding(clause, (("servers", values),))


def properties(names: tuple[str, ...]) -> tuple[Property, ...]:
    """The invariants of the file."""

    def should_not_be_triggered(flags: frozenset[str]) -> Answer:
        return Finding("a condition should not be triggered", (("conditions", sorted(flags)),)) if flags else None

    def leadership1(*epochs: int) -> Answer:
        leaders = [epoch for epoch in epochs if epoch >= 0]
        return finding(len(set(leaders)) == len(leaders), "two established leaders have one epoch", *epochs)

    def leadership2(leaders: frozenset[tuple[int, str]]) -> Answer:
        return finding(len({epoch for epoch, _ in leaders}) == len(leaders), "an epoch had two leaders", *leaders)

    def prefix_consistency(*logs: Delivered) -> Answer:
        alike = all(a[: len(b)] == b[: len(a)] for a, b in combinations(logs, 2))
        return finding(alike, "two servers committed different transactions", *logs)

    def integrity(proposals: frozenset[tuple[Zxid, int]], *logs: Delivered) -> Answer:
        if not any(logs):
            return TRIVIAL
        return finding(all(proposals.issuperset(log) for log in logs), "no primary broadcast a transaction", *logs)

    def agreement(*logs: Delivered) -> Answer:
        pairs = [(a, b) for a, b in combinations(logs, 2) if a and b]
        if not pairs:
            return TRIVIAL
        holds = all(set(a) <= set(b) or set(b) <= set(a) for a, b in pairs)
        return finding(holds, "each of two followers delivered what the other did not", *logs)

    def total_order(*logs: Delivered) -> Answer:
        pairs = [(a, b) for a in logs for b in logs if len(a) >= 2 and len(b) >= 2]
        if not pairs:
            return TRIVIAL
        holds = all(
            later not in b or precedes(earlier, later, b) for a, b in pairs for earlier, later in combinations(a, 2)
        )
        return finding(holds, "two servers delivered two transactions in different orders", *logs)

    def local_primary_order(proposals: frozenset[Proposal], *logs: Delivered) -> Answer:
        orders = [
            ((a.zxid, a.data), (b.zxid, b.data))
            for a, b in product(proposals, repeat=2)
            if (a.source, a.epoch) == (b.source, b.epoch) and a.zxid < b.zxid
        ]
        longer = [log for log in logs if len(log) >= 2]
        if not orders or not longer:
            return TRIVIAL
        holds = all(later not in log or precedes(earlier, later, log) for log in longer for earlier, later in orders)
        return finding(
            holds, "a server delivered a transaction, and not before it an earlier one of its primary", *logs
        )

    def global_primary_order(*logs: Delivered) -> Answer:
        if not any(len(log) >= 2 for log in logs):
            return TRIVIAL
        holds = all(a[0][0] <= b[0][0] for log in logs for a, b in pairwise(log))
        return finding(holds, "a server delivered a transaction before one of an earlier epoch", *logs)

    def primary_integrity(*servers: tuple[int, str | None, Delivered]) -> Answer:
        by_name = dict(zip(names, servers, strict=True))
        pairs = [(by_name[leader], log) for _, leader, log in servers if leader and log and by_name[leader][0]]
        if not pairs:
            return TRIVIAL
        holds = all(txn[0][0] >= epoch or txn in server for (epoch, _, server), log in pairs for txn in log)
        return finding(holds, "a leader lacks what its follower delivered in an earlier epoch", *servers)

    def over(projection: Any) -> tuple[Read, ...]:
        return tuple(Read(name, projection) for name in names)

    def broadcast(proposals: frozenset[Proposal]) -> frozenset[tuple[Zxid, int]]:
        return frozenset((proposal.zxid, proposal.data) for proposal in proposals)

    return (
        Property("ShouldNotBeTriggered", (Read("flags"),), should_not_be_triggered),
        Property("Leadership1", over(established), leadership1),
        Property("Leadership2", (Read("leaders"),), leadership2),
        Property("PrefixConsistency", over(delivered), prefix_consistency),
        Property("Integrity", (Read("proposals", broadcast), *over(delivered_by_follower)), integrity),
        Property("Agreement", over(delivered_by_follower), agreement),
        Property("TotalOrder", over(delivered), total_order),
        Property("LocalPrimaryOrder", (Read("proposals"), *over(delivered)), local_primary_order),
        Property("GlobalPrimaryOrder", over(delivered), global_primary_order),
        Property("PrimaryIntegrity", over(in_broadcast), primary_integrity),
    )


def precedes(earlier: tuple[Zxid, int], later: tuple[Zxid, int], log: Delivered) -> bool:
    return earlier in log[: log.index(later)]


def model(
    servers: int = 3, timeouts: int = 1, transactions: int = 1, epochs: int | None = None, restarts: int = 0
) -> Model:
    names = tuple(f"s{number}" for number in range(1, servers + 1))
    steps = [Steps(name, tuple(peer for peer in names if peer != name)) for name in names]
    links = [(source, receiver) for source in names for receiver in names if source != receiver]
    channels = [channel(*link) for link in links]
    firsts = {"failures": (0, 0), "transactions": (0, 0), "epoch": 0, "oracle": None, "pc": ("Init",)}
    whole = Model(
        "Zab.tla",
        columns=(
            *(Column(name, Server()) for name in names),
            *(Column(f"{name}->lead", Lead()) for name in names),
            *(Column(f"{source}->{receiver}", ()) for source, receiver in links),
            *(Column(name, first) for name, first in firsts.items()),
            *(Column(name, frozenset()) for name in ("proposals", "leaders", "flags")),
        ),
        actors=(
            *(Actor(server.name, (server.name,), server.step) for server in steps),
            *(
                Actor(f"{server.name}->lead", (server.name, f"{server.name}->lead"), server.lead_step)
                for server in steps
            ),
            *(actor for actor, _ in channels),
            *recorder(timeouts, transactions, epochs, restarts),
        ),
        rules=(
            *(Rule(f"steps of {server.name}", (Read(server.name),), server.moves) for server in steps),
            *(rule for _, rule in channels),
            *(request_rule(server.name, server.peers) for server in steps),
        ),
        properties=properties(names),
    )
    return interchangeable(whole, names)
