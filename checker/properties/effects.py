"""Properties that read effects: those of timers, of the tree and of quorum connections fit the states of servers.

The differences are facts of `checker.models.ensemble.effects`. Each property is examined while some server is in a
state that needs such effects.
"""

from __future__ import annotations

from collections.abc import Callable

from checker.engine import TRIVIAL, Finding, Property, Read
from checker.engine.model import Trivial
from checker.models.ensemble.effects import Concern, Misfit
from checker.models.ensemble.history import Part, part
from checker.models.ensemble.names import HISTORY, server_name
from checker.models.ensemble.setup import Setup
from spec.election.vote import ServerState
from spec.server import Server

Answer = Finding | Trivial | None


def timers_run(setup: Setup) -> Property:
    """A LOOKING server waits with a time-out (`FastLeaderElection.lookForLeader`), and no other server does."""

    def looks(server: Server) -> bool:
        return server.election is not None and server.election.state is ServerState.LOOKING

    meaning = "a server that looks for a leader has the timer of its state armed, and no other server has one"
    return _property(setup, "TimersRun", Concern.TIMER, looks, meaning)


def tree_follows_commits(setup: Setup) -> Property:
    """A server that serves has applied what it has committed, once each and in order (`FinalRequestProcessor`)."""

    def serves(server: Server) -> bool:
        return server.zab is not None and server.zab.serves

    meaning = "a server that serves has applied to its tree what its state says, once each and in order"
    return _property(setup, "TreeFollowsCommits", Concern.TREE, serves, meaning)


def connections_follow_roles(setup: Setup) -> Property:
    """A learner connects to its leader; who leads or follows no more closes its connections (`shutdown`)."""

    def has_a_role(server: Server) -> bool:
        return server.zab is not None

    meaning = "a learner connects to its leader, and a server that gives up a role closes the connections of it"
    return _property(setup, "ConnectionsFollowRoles", Concern.CONNECTION, has_a_role, meaning)


def _property(setup: Setup, name: str, concern: Concern, needs: Callable[[Server], bool], meaning: str) -> Property:
    def check(found: tuple[Misfit, ...], *needed: bool) -> Answer:
        for each in found:
            if each.concern is concern:
                values = (("server", each.server), ("difference", each.what))
                return Finding(f"the effects of a step do not fit its state: {concern.value}", values)
        return None if any(needed) else TRIVIAL

    servers = (Read(server_name(sid), needs) for sid in setup.sids)
    return Property(name, (Read(HISTORY, part(Part.MISFITS)), *servers), check, meaning=meaning)
