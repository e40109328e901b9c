"""Single-decree Paxos as a register: a put proposes a value, a get returns the decision where it is known. Run it with

quorate run "docs/examples/paxos.py:model(2)"
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from checker.engine import Model
from checker.kit import Machine, Network, Reaction, to_each
from checker.kit.register import GetReply, GetRequest, PutReply, PutRequest, register_model, scripted_clients


class Message(NamedTuple):
    kind: str  # prepare, prepared, accept, accepted or decided
    ballot: tuple  # (round, server)
    content: tuple | None = None


@dataclass(frozen=True)
class Server:
    ballot: tuple = (0, "")
    proposal: tuple | None = None  # (request, client, value)
    prepared: frozenset = frozenset()  # (server, what it had accepted)
    accepted_by: frozenset = frozenset()
    accepted: tuple | None = None  # (ballot, proposal)
    decided: bool = False


class Paxos:
    def __init__(self, name, servers):
        self.name, self.peers, self.majority = name, [each for each in servers if each != name], len(servers) // 2 + 1

    def on_message(self, own, source, message):
        if own.decided:
            if isinstance(message, GetRequest):
                return Reaction(own, ((source, GetReply(message.request, own.accepted[1][2])),))
            return None
        if isinstance(message, PutRequest) and own.proposal is None:
            ballot, proposal = (own.ballot[0] + 1, self.name), (message.request, source, message.value)
            own = replace(own, ballot=ballot, proposal=proposal, prepared=frozenset({(self.name, own.accepted)}))
            return Reaction(own, to_each(self.peers, Message("prepare", ballot)))
        if not isinstance(message, Message) or (message.ballot < own.ballot and message.kind != "decided"):
            return None
        return getattr(self, message.kind)(own, source, message)

    def prepare(self, own, source, message):
        if own.ballot >= message.ballot:
            return None
        promise = Message("prepared", message.ballot, own.accepted)
        return Reaction(replace(own, ballot=message.ballot), ((source, promise),))

    def prepared(self, own, source, message):
        own = replace(own, prepared=own.prepared | {(source, message.content)})
        if len(own.prepared) != self.majority:
            return Reaction(own)
        newest = max((each for _, each in own.prepared if each), default=(own.ballot, own.proposal))
        own = replace(own, proposal=newest[1], accepted=(own.ballot, newest[1]), accepted_by=frozenset({self.name}))
        return Reaction(own, to_each(self.peers, Message("accept", own.ballot, own.proposal)))

    def accept(self, own, source, message):
        own = replace(own, ballot=message.ballot, accepted=(message.ballot, message.content))
        return Reaction(own, ((source, Message("accepted", message.ballot)),))

    def accepted(self, own, source, message):
        own = replace(own, accepted_by=own.accepted_by | {source})
        if len(own.accepted_by) != self.majority:
            return Reaction(own)
        decided = to_each(self.peers, Message("decided", own.ballot, own.proposal))
        return Reaction(replace(own, decided=True), (*decided, (own.proposal[1], PutReply(own.proposal[0]))))

    def decided(self, own, source, message):
        return Reaction(replace(own, ballot=message.ballot, accepted=(message.ballot, message.content), decided=True))


def model(clients: int = 2, network: Network | str = Network()) -> Model:
    network = Network(ordered=network == "ordered") if isinstance(network, str) else network
    names = ["s1", "s2", "s3"]
    servers = [Machine(name, Reaction(Server()), Paxos(name, names).on_message) for name in names]
    return register_model(f"Paxos with {clients} clients", servers, scripted_clients(names, clients), network)
