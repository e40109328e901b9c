"""Summaries of servers, as other servers and invariants see them: the projections that rules and properties read.

Projections are deliberately small. The values that a rule reads from five servers are cached for every combination, so
a rule reads the leader that each server follows, not whole servers.
"""

from collections.abc import Mapping
from typing import NamedTuple

from spec.election.vote import ServerState
from spec.quorum import Port, Sid, View, reaches
from spec.server import Server

LOOKING, FOLLOWING, LEADING, OBSERVING = ServerState


class ElectionStatus(NamedTuple):
    """The summary of a running server: its state, its leader (itself, if it leads), and the view it counts by.

    `serves`: it answers clients, which without Zab is the same as having decided. A standalone server is LEADING itself
    alone, and `is_standalone`.
    """

    state: ServerState
    leader: Sid | None
    view: View
    serves: bool = True

    @property
    def is_standalone(self) -> bool:
        """Whether it runs standalone, so that no other server can follow it."""
        return self.view.standalone


class StatusInRound(NamedTuple):
    """The summary of a server, and its round."""

    status: ElectionStatus
    round: int


def is_running(server: Server) -> bool:
    """Whether the process runs."""
    return server.runs


def has_peer_ports(server: Server) -> bool:
    """Whether the process runs and listens to other servers, which a standalone server does not."""
    return server.election is not None


def election_status(server: Server) -> ElectionStatus | str:
    """The summary of a server; "down" if it does not run (None would mean "never" to a rule)."""
    election = server.election
    if server.runs_standalone:
        return ElectionStatus(LEADING, server.sid, server.view)
    if election is None:
        return "down"
    leader = None if election.state is LOOKING else election.vote.leader
    return ElectionStatus(election.state, leader, server.view, server.zab is None or is_serving(server))


def is_serving(server: Server) -> bool:
    """Whether a server leads or follows, and has reached BROADCAST."""
    return server.zab is not None and server.zab.serves


def in_round(server: Server) -> StatusInRound | str:
    """The summary of a server, with its round."""
    status = election_status(server)
    if isinstance(status, str):
        return status
    return StatusInRound(status, 0 if server.election is None else server.election.round)


def followers(standings: Mapping[Sid, ElectionStatus | str], leader: Sid) -> frozenset[Sid]:
    """The servers that follow a leader, and the leader itself; observers are not included.

    A server that cannot connect to the quorum port of its leader does not follow it.
    """
    own = standings.get(leader)
    return frozenset(
        sid
        for sid, standing in standings.items()
        if isinstance(standing, ElectionStatus)
        and standing.leader == leader
        and standing.state in (FOLLOWING, LEADING)
        and connects(sid, standing, own, leader)
    )


def is_established(standings: Mapping[Sid, ElectionStatus | str], leader: Sid | None) -> bool:
    """Whether a server leads and a quorum of the leader's view follows it."""
    if leader is None:
        return False
    standing = standings.get(leader)
    return (
        isinstance(standing, ElectionStatus)
        and standing.state is LEADING
        and standing.view.contains_quorum(followers(standings, leader))
    )


def has_rejoined(standings: Mapping[Sid, ElectionStatus | str], sid: Sid) -> bool:
    """Whether a server serves, and a quorum of its leader's view follows that leader."""
    role = standings[sid]
    if not isinstance(role, ElectionStatus) or not role.serves or role.leader is None:
        return False
    return is_established(standings, role.leader) and connects(sid, role, standings[role.leader], role.leader)


def connects(sid: Sid, learner: ElectionStatus, leading: ElectionStatus | str | None, leader: Sid) -> bool:
    """Whether the addresses of the two files allow a learner to connect to its leader (`Learner.connectToLeader`).

    A standalone server has no quorum port.
    """
    if sid == leader or not isinstance(leading, ElectionStatus):
        return True
    if leading.is_standalone:
        return False
    return reaches(learner.view.addresses, leading.view.addresses, leader, Port.QUORUM)
