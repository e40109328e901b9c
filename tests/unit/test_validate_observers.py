"""Observers between NEWLEADER and their log: what is not judged after they have ended there."""

import pytest
from msgspec.structs import replace

from checker.validate.observers import UnloggedHistories
from spec.quorum import View, majority_view
from spec.server import Server
from spec.txn import Txn
from spec.zab.state import Learner, LearnerPhase

OBSERVED, VOTED = majority_view((1, 2), (3,)), majority_view((1, 2, 3))
TXN = Txn(1 << 32 | 1, "a")


def synced(view: View, *not_logged: Txn) -> Server:
    return Server(3, view, zab=Learner(1, LearnerPhase.SYNCED, epoch=2, not_logged=not_logged))


def test_an_observer_that_leaves_after_newleader_has_lost_the_history() -> None:
    unlogged = UnloggedHistories()
    assert not unlogged.is_lost_after(synced(OBSERVED, TXN))
    assert unlogged.is_lost_after(Server(3, VOTED))
    assert not unlogged.is_lost_after(Server(3, VOTED))


def test_an_observer_that_ends_after_newleader_and_starts_again_has_lost_it_too() -> None:
    unlogged = UnloggedHistories()
    unlogged.is_lost_after(synced(OBSERVED, TXN))
    assert unlogged.is_lost_by(3)
    assert not unlogged.is_lost_by(3)


def test_an_observer_that_serves_has_logged_it() -> None:
    unlogged, before = UnloggedHistories(), synced(OBSERVED, TXN)
    unlogged.is_lost_after(before)
    assert isinstance(before.zab, Learner)
    serving = replace(before, zab=replace(before.zab, phase=LearnerPhase.BROADCAST, not_logged=()))
    assert not unlogged.is_lost_after(serving)
    assert not unlogged.is_lost_after(Server(3, VOTED))


@pytest.mark.parametrize("server", [synced(VOTED, TXN), synced(OBSERVED)], ids=["a follower", "nothing to log"])
def test_others_lose_nothing(server: Server) -> None:
    unlogged = UnloggedHistories()
    unlogged.is_lost_after(server)
    assert not unlogged.is_lost_after(Server(3, VOTED))
