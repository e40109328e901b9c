"""A server as a whole: the state that survives a crash, and the state that the oracle may read."""

import pytest

from spec.durable import Durable
from spec.election import Deliver, Notification, ServerState, Vote
from spec.election.state import Summary
from spec.quorum import majority_view
from spec.server import Server, crash, start, step, summary

THREE = majority_view({1, 2, 3})
FIVE = majority_view({1, 2, 3, 4, 5})
DISK = Durable(accepted_epoch=2, current_epoch=1, snapshot=7)
OFF = Server(1, THREE, DISK)


def started(server: Server) -> Server:
    done = start(server)
    assert done is not None
    return done.state


def test_a_crash_keeps_the_disk_and_the_file_and_nothing_else() -> None:
    assert crash(started(OFF)) == OFF


def test_what_does_not_run_cannot_crash() -> None:
    assert crash(OFF) is None


def test_a_restart_with_another_file_changes_the_view() -> None:
    done = start(OFF, FIVE)

    assert done is not None
    assert done.state.view == FIVE


def test_a_gossiped_configuration_is_a_file_and_survives_a_crash() -> None:
    newer = majority_view({1, 2, 3, 4, 5}, version=3)
    heard = Deliver(2, Notification(ServerState.LOOKING, Vote(2, 0, 0), 1, newer))
    done = step(started(OFF), heard)

    assert done is not None
    after = crash(done.state)
    assert after is not None
    assert after.view == newer


def test_the_summary_of_a_looking_server_shows_the_vote_it_entered_with() -> None:
    heard = Deliver(3, Notification(ServerState.LOOKING, Vote(3, 9, 1), 1))
    done = step(started(OFF), heard)

    assert done is not None
    own = Vote(1, 7, 1)
    assert summary(done.state) == Summary(1, True, ServerState.LOOKING, None, 1, own, own, THREE)


def test_an_accepted_epoch_behind_the_current_one_is_refused() -> None:
    with pytest.raises(ValueError, match="acceptedEpoch 1 is less than currentEpoch 2"):
        Durable(accepted_epoch=1, current_epoch=2)
