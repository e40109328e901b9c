"""Silence between a leader and its learners, the reasons to give up leading, and introductions that are refused.

Expected values: `LearnerCnxAcceptor` and `LearnerHandler.run` (initLimit, then syncLimit), `Learner.connectToLeader`,
`syncWithLeader`; the loop of `Leader.lead`; the timeouts of `getEpochToPropose`, `waitForEpochAck` and
`waitForNewLeaderAck`; `FastLeaderElection.lookForLeader`.
"""

import pytest

from spec.durable import Durable
from spec.election import Peer
from spec.election.state import FIRST_NOTIFICATION_TIMEOUT, LAST_NOTIFICATION_TIMEOUT, next_notification_timeout
from spec.quorum import majority_view
from spec.zab.registration import MAX_JUMP, Refusal, refusal
from spec.zab.state import Handler, Leader, LeaderPhase, Learner, LearnerPhase, Stage
from spec.zab.timeouts import Resignation, TimeLimits, is_late, is_leader_silent, resignation, silent_learners

LIMITS = TimeLimits(init=10, sync=4)
VIEW = majority_view([1, 2, 3])
PEER = Peer(1, VIEW, Durable(5, 5))


@pytest.mark.parametrize(
    ("stage", "silence", "silent"),
    [(stage, silence, silence > 10) for stage in list(Stage)[:-1] for silence in (4, 5, 10, 11)]
    + [(Stage.SERVING, 4, False), (Stage.SERVING, 5, True)],
)
def test_a_learner_may_be_silent_for_init_limit_until_it_serves_and_for_sync_limit_then(
    stage: Stage, silence: float, silent: bool
) -> None:
    leader = Leader(LeaderPhase.BROADCAST, 6, (), (Handler(2, stage),))
    assert silent_learners(leader, {2: silence}, LIMITS) == ((2,) if silent else ())


def test_only_learners_that_are_connected_can_be_silent() -> None:
    leader = Leader(LeaderPhase.BROADCAST, 6, (), (Handler(2, Stage.SERVING), Handler(3, Stage.SERVING)))
    assert silent_learners(leader, {3: 100, 4: 100}, LIMITS) == (3,)


@pytest.mark.parametrize("phase", LearnerPhase)
def test_a_leader_may_be_silent_for_init_limit_until_the_learner_serves(phase: LearnerPhase) -> None:
    limit = 4 if phase is LearnerPhase.BROADCAST else 10
    learner = Learner(2, phase)
    assert [is_leader_silent(learner, silence, LIMITS) for silence in (limit, limit + 1)] == [False, True]


def test_a_connection_without_an_introduction_is_late_after_init_limit() -> None:
    assert [is_late(waited, LIMITS) for waited in (10, 11)] == [False, True]


@pytest.mark.parametrize("phase", list(LeaderPhase)[:-1])
def test_a_phase_before_broadcast_lasts_for_init_limit(phase: LeaderPhase) -> None:
    leader = Leader(phase, 6, (1,))
    assert [resignation(PEER, leader, time, LIMITS) for time in (10, 11)] == [None, Resignation.PHASE_TIMEOUT]


@pytest.mark.parametrize("stage", Stage)
def test_a_leader_that_serves_needs_a_quorum_of_synchronised_learners_at_any_time(stage: Stage) -> None:
    leader = Leader(LeaderPhase.BROADCAST, 6, (), (Handler(2, stage),))
    expected = None if stage >= Stage.SYNCED else Resignation.NO_QUORUM
    assert [resignation(PEER, leader, time, LIMITS) for time in (0, 1000)] == [expected, expected]


@pytest.mark.parametrize(
    ("learner", "accepted", "version", "expected"),
    [
        (2, 5, 0, None),
        (9, 0, 0, None),
        (2, 5 + MAX_JUMP, 0, None),
        (2, 6 + MAX_JUMP, 0, Refusal.INCREDIBLE_EPOCH),
        (2, -1, 0, Refusal.INCREDIBLE_EPOCH),
        (1, 5, 0, Refusal.SAME_ID),
        (2, 5, 1, Refusal.LATER_CONFIGURATION),
        (1, -1, 1, Refusal.LATER_CONFIGURATION),
    ],
)
def test_an_introduction_is_believed_unless_it_cannot_be_true(
    learner: int, accepted: int, version: int, expected: Refusal | None
) -> None:
    assert refusal(PEER, learner, accepted, version) is expected


def test_the_notification_timeout_doubles_up_to_a_minute() -> None:
    timeouts = [FIRST_NOTIFICATION_TIMEOUT]
    while timeouts[-1] < LAST_NOTIFICATION_TIMEOUT:
        timeouts.append(next_notification_timeout(timeouts[-1]))
    assert timeouts[:3] == [0.2, 0.4, 0.8]
    assert timeouts[-2:] == [pytest.approx(51.2), 60.0]
    assert next_notification_timeout(60.0) == 60.0
