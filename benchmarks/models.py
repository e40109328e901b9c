"""The models that speed is measured on, by number of servers."""

from checker.engine import Model
from checker.models import rounds
from checker.models.ensemble import File, Member, Setup, ensemble
from checker.properties import election
from spec.election.channel import ChannelRules
from spec.quorum import majority_view


def small_election(servers: int) -> Model:
    """Rounds, votes and buckets alone, without properties: what the Promela model is."""
    return rounds.election(servers).with_properties([])


def fast_leader_election(servers: int) -> Model:
    """The whole FastLeaderElection from a cold start in one round, held to its invariants."""
    file = File("zoo.cfg", majority_view(range(1, servers + 1)))
    members = tuple(Member(sid, file, late=True) for sid in range(1, servers + 1))
    setup = Setup(members, round_limit=1, channels=ChannelRules(merge_repeats=True))
    properties = [make(setup) for make in (election.one_leader, election.only_voters_counted)]
    return ensemble("cold start", setup, properties)


MODELS = {"rounds": small_election, "election": fast_leader_election}
