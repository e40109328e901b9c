"""A whole server: its files, its configuration, and the parts of the protocol that run in it.

Rules this module keeps:

- A server is what is on its disk (`view`, `durable`) and what runs (`election`, None when it does not). A
  crash keeps the first and drops the second, completely.
- Parts do not know each other. An effect that concerns the server itself, as `Configure` does, is carried
  out here, and is passed on too, since a node has a file to write.
- The view is a file like any other: a configuration learned from another server survives a crash.

Source: `QuorumPeer`. The part that follows a leader's log joins later, beside `election`.
"""

import msgspec
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Configure, Step
from spec.election import fast_leader_election
from spec.election.messages import ElectionEvent, Start
from spec.election.state import Election, Peer, Rules
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, View

__all__ = ["Durable", "Server", "Summary", "crash", "start", "step", "summary"]


class Server(msgspec.Struct, frozen=True):
    """One server; `view` is its own configuration, `election` is None while it does not run."""

    sid: Sid
    view: View
    durable: Durable = Durable()
    election: Election | None = None

    @property
    def peer(self) -> Peer:
        """What its election reads of it."""
        return Peer(self.sid, self.view, self.durable)


class Summary(msgspec.Struct, frozen=True):
    """What the election oracle, and an invariant about elections, may know about a server.

    - `state` and `round` are None and 0 while the server does not run.
    - `leader` is whom a decided server follows, observes or is itself; None otherwise.
    - `vote` is the decided vote, and for a LOOKING server the vote it **entered** its election with. How far
      its proposal has moved since is left out: that is what an oracle abstracts from.
    - `told` is what a LOOKING server tells a server from outside its view; None otherwise.
    """

    sid: Sid
    running: bool
    state: ServerState | None
    leader: Sid | None
    round: int
    vote: Vote
    told: Vote | None
    view: View


def step(
    server: Server, event: ElectionEvent, rules: Rules = fast_leader_election.DEFAULT_RULES
) -> Step[Server] | None:
    """One event of one server; None when it is impossible in this state (see `fast_leader_election.step`)."""
    done = fast_leader_election.step(server.peer, server.election, event, rules)
    if done is None:
        return None
    view = event.view if isinstance(event, Start) else server.view
    for effect in done.effects:
        if isinstance(effect, Configure):
            view = effect.view
    return Step(replace(server, view=view, election=done.state), done.effects)


def start(
    server: Server, view: View | None = None, rules: Rules = fast_leader_election.DEFAULT_RULES
) -> Step[Server] | None:
    """Boots with another file, or with the one it has; None if it runs already or the file leaves it out."""
    return step(server, Start(server.view if view is None else view), rules)


def crash(server: Server) -> Server | None:
    """The server after a crash: its disk as it was, and nothing running. None if it does not run."""
    return None if server.election is None else replace(server, election=None)


def summary(server: Server) -> Summary:
    """The projection of a server that the election oracle reads."""
    election = server.election
    entered = server.peer.initial_vote
    if election is None:
        return Summary(server.sid, False, None, None, 0, entered, None, server.view)
    looking = election.state is ServerState.LOOKING
    return Summary(
        sid=server.sid,
        running=True,
        state=election.state,
        leader=None if looking else election.vote.leader,
        round=election.round,
        vote=entered if looking else election.vote,
        told=election.told,
        view=server.view,
    )
