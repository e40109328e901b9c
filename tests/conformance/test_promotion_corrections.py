"""Two corrections of finding H, an observer that becomes a voter: one ends the defect, and the other one does not.

The first one, which the agent makes, counts the notification of such an observer (`ElectionRules.hears_observers`). The
second one counts only followers for the quorum that a leader needs to go on. With it a leader may give up with a
reconfiguration that no other server has, and then waits for the observer's vote itself.
"""

from dataclasses import replace

import pytest

from checker.engine import Exploration, Move, Read, Rule, Send, Stop
from checker.engine.model import Model
from checker.engine.search import explore
from checker.job import Job
from checker.models.ensemble import Setup, ensemble
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.setup import server_name
from checker.scenario import load
from checker.scenario.ensemble import OracleRefinement
from harness.corrections.choice import PROMOTION_STOPS_SERVICE, corrected, corrections_of
from spec.election.messages import QuorumLost
from spec.quorum import Sid, have_quorums
from spec.server import Server
from spec.zab.state import Leader, forwarding_followers
from tests.support.ruled_scenarios import PATHS

STOPS, KEEPS = "observer-promoted-stops-service", "joiner-added-keeps-service"


def setup_of(job: Job) -> Setup:
    assert isinstance(job.refinement, OracleRefinement)
    return job.refinement.setup


def explored(job: Job, model: Model) -> Exploration:
    return explore(model, job.limits, until_witnessed=job.until_witnessed)


@pytest.mark.parametrize("name", [STOPS, KEEPS])
def test_a_server_that_hears_the_observer_always_finds_a_leader(name: str) -> None:
    job = load(PATHS[name])
    setup = replace(corrected(setup_of(job)), hears_observers=True)
    exploration = explored(job, ensemble(name, setup, job.model.properties))
    assert exploration.violations == []
    assert exploration.stop is Stop.EXHAUSTED


def test_only_a_promotion_by_reconfig_needs_the_correction() -> None:
    names = {name for name in (STOPS, KEEPS) if corrected(setup_of(load(PATHS[name]))).hears_observers}
    assert names == {STOPS}
    assert PROMOTION_STOPS_SERVICE in corrections_of(setup_of(load(PATHS[STOPS])))


def test_a_leader_that_counts_only_followers_may_stay_alone() -> None:
    job = load(PATHS[STOPS])
    setup = setup_of(job)
    model = job.model
    rules = [_of_followers(rule, setup) for rule in model.rules]
    exploration = explored(job, Model(model.name, model.columns, model.actors, tuple(rules), model.properties))
    (violation,) = exploration.violations
    assert violation.prop.name == "Settles"
    captions = [step.move.action for step in violation.path if step.move is not None][: violation.depth]
    assert captions[:3] == ["plan 1: reconfig +4", ServerAction.DISCONNECT, ServerAction.LOSE_QUORUM]


def _of_followers(rule: Rule, setup: Setup) -> Rule:
    """The rule by which a leader gives up, for one that does so as soon as its followers are no quorum."""
    leaders = {f"lose quorum {sid}": sid for sid in setup.sids}
    if rule.name not in leaders:
        return rule
    sid = leaders[rule.name]
    own = Read(server_name(sid), _is_short_of_followers)
    lost = [Move(ServerAction.LOSE_QUORUM, (sid,), (Send(server_name(sid), QuorumLost()),))]
    return replace(rule, reads=(own, *rule.reads), moves=lambda short, *seen: lost if short else rule.moves(*seen))


def _is_short_of_followers(server: Server) -> bool:
    part = server.zab
    if not isinstance(part, Leader) or not part.serves:
        return False
    followers: set[Sid] = {server.sid, *forwarding_followers(part.handlers)}
    return not have_quorums(server.peer.views, followers)
