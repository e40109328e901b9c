"""Properties of elections in single states, which no shipped scenario reaches."""

import pytest
from msgspec.structs import replace

from checker.engine import Finding
from checker.models.ensemble import File, Member, Setup
from checker.properties import ENSEMBLE_PROPERTIES
from spec.durable import Durable
from spec.election.state import Election, ServerState, Vote
from spec.quorum import View, majority_view
from spec.server import Server

VIEW = majority_view((1, 2, 3), observers=[4], version=1)
PROMOTED = majority_view((1, 2, 3, 4), version=2)


@pytest.mark.parametrize(("seen", "is_counted_rightly"), [(PROMOTED, True), (None, False)])
def test_a_vote_counts_in_the_active_view_and_in_the_one_seen_last(seen: View | None, is_counted_rightly: bool) -> None:
    """`QuorumPeer.getCurrentAndNextConfigVoters`: the voters of both configurations."""
    vote = Vote(4, 0, 0)
    election = replace(Election(ServerState.LOOKING, 1, vote), recvset=((4, vote),))
    server = Server(1, VIEW, Durable(), election, last_seen=seen)
    setup = Setup((Member(1, File("zoo.cfg", VIEW)),))
    prop = ENSEMBLE_PROPERTIES.build(setup, "OnlyVotersCounted")
    (read,) = prop.reads
    assert read.projection is not None
    assert isinstance(prop.check(read.projection(server)), Finding) is not is_counted_rightly
