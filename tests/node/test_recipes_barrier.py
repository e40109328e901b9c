"""The double barrier: explored, broken by mutations, and run over kazoo at live servers."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from kazoo.client import KazooClient
from kazoo.protocol import serialization

from checker.engine import Exploration, Stop
from checker.engine.search import explore
from checker.models.recipes import RecipeSetup, recipe_model
from checker.models.service import FaultBudgets
from checker.properties.recipes import RECIPE_PROPERTIES
from refimpl.recipes import DoubleBarrier, Refused, SessionLost
from spec.recipes import barrier
from spec.recipes.barrier import READY, BarrierMember, BarrierPhase, BarrierRules
from spec.recipes.events import Answered, Event, Failed, Join, Leave, Notified
from spec.tree.apply import EventType
from spec.tree.replies import Code
from spec.tree.requests import Create2, Delete, Exists, GetChildren, GetData
from tests.node.recipes import BRIEF, WAIT, World, drop, eventually, lose_answer
from tests.support.recipes import Told

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")

WITH_FAULTS = RecipeSetup("double-barrier", budgets=FaultBudgets(disconnects=2, expiries=1, crashes=1))
THREE = RecipeSetup("double-barrier", clients=3)
WATCH = Exists("/r/ready", True)


# -- the step function ---------------------------------------------------------------------------------------


def participant(size: int = 2) -> Told[BarrierMember]:
    return Told(barrier.step, BarrierRules("/r", size), BarrierMember())


def registered(size: int = 2) -> Told[BarrierMember]:
    """Return a participant whose znode exists, and that counts."""
    one = participant(size)
    assert one.hear(Join("b")) == WATCH
    created = one.done(Code.NO_NODE)
    assert isinstance(created, Create2)
    assert created.path == "/r/b"
    assert one.created("/r/b", 1) == GetChildren("/r", False)
    return one


def inside() -> Told[BarrierMember]:
    one = registered()
    one.children("b")
    one.hear(Notified(EventType.NODE_CREATED, "/r/ready"))
    assert one.state.inside
    return one


def test_the_last_one_opens_the_barrier() -> None:
    one = registered()
    opened = one.children("a", "b")
    assert isinstance(opened, Create2)
    assert (opened.path, opened.flags) == ("/r/ready", 0)
    one.done(Code.NODE_EXISTS)
    assert one.state.inside


def test_a_lost_creation_is_repeated_behind_a_new_watch() -> None:
    one = participant()
    one.hear(Join("b"))
    one.done(Code.NO_NODE)
    one.cut_off()
    assert one.back() == WATCH
    assert isinstance(one.done(Code.NO_NODE), Create2)
    assert one.done(Code.NODE_EXISTS) == GetChildren("/r", False)


def test_who_comes_back_to_an_open_barrier_enters_only_with_its_znode() -> None:
    for children, is_inside in ((("a", "b", READY), True), (("a", READY), False)):
        one = registered()
        one.children("b")
        one.cut_off()
        assert one.back() == WATCH
        assert one.found(3) == GetChildren("/r", False)
        one.children(*children)
        assert one.state.inside is is_inside
        assert is_inside or one.facts[0] == Failed(Code.NODE_EXISTS)


def test_the_lowest_waits_for_the_highest_and_all_others_for_the_lowest() -> None:
    one = inside()
    assert one.hear(Leave()) == GetChildren("/r", False)
    assert one.children("b", "c", "d", READY) == GetData("/r/d", True)
    one.data()
    assert one.deleted("/r/d") == GetChildren("/r", False)
    other = inside()
    other.hear(Leave())
    assert other.children("a", "b", "c", READY) == Delete("/r/b", -1)
    assert other.done() == GetChildren("/r", False)
    assert other.children("a", "c", READY) == GetData("/r/a", True)
    assert other.done(Code.NO_NODE) == GetChildren("/r", False)
    other.children(READY)
    assert other.state.phase is BarrierPhase.LEFT


def test_a_notification_may_overtake_the_reply_that_follows_its_watch() -> None:
    one = registered()
    one.hear(Notified(EventType.NODE_CREATED, "/r/ready"))
    one.children("b")
    assert one.state.inside


@pytest.mark.parametrize("events", [[Join("b")], [Join("b"), Answered(Code.NO_NODE)]], ids=["check", "create"])
def test_a_refusal_ends_it(events: list[Event]) -> None:
    one = participant()
    one.hear(*events)
    one.done(Code.NO_AUTH)
    assert one.facts[0] == Failed(Code.NO_AUTH)
    assert one.state == BarrierMember()


# -- the exploration -----------------------------------------------------------------------------------------


def explored(setup: RecipeSetup, *names: str) -> Exploration:
    return explore(recipe_model("barrier", setup, [RECIPE_PROPERTIES.build(setup, name) for name in names]))


def test_no_fault_breaks_it() -> None:
    exploration = explored(WITH_FAULTS, "NobodyInsideAlone", "NobodyOutAlone", "NobodyIsStuck")
    assert (exploration.stop, exploration.states) == (Stop.EXHAUSTED, 59_827)


def opens_early(rules: BarrierRules, registered: list[str]) -> bool:
    return len(registered) >= rules.size - 1


def awaits_nobody(_registered: list[str], _id: str) -> None:
    return None


def keeps_its_znode(registered: list[str], id: str) -> str | None:
    """Every participant waits for the lowest, or the lowest for the highest, and nobody is the first to go."""
    others = [name for name in registered if name != id]
    return others[0] if others else None


@pytest.mark.parametrize(
    ("function", "mutation", "broken"),
    [
        ("is_full", opens_early, "NobodyInsideAlone"),
        ("whom_to_await", awaits_nobody, "NobodyOutAlone"),
        ("whom_to_await", keeps_its_znode, "NobodyIsStuck"),
    ],
)
def test_each_property_is_broken_by_a_mutation(
    function: str, mutation: Callable[..., object], broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explored(THREE, broken).stop is Stop.EXHAUSTED
    monkeypatch.setattr(barrier, function, mutation)
    assert broken in explored(THREE, broken).found


# -- live servers --------------------------------------------------------------------------------------------


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


def entering(pool: ThreadPoolExecutor, *clients: KazooClient) -> list[tuple[DoubleBarrier, Future[bool]]]:
    """Return the participants, each of which enters in a thread."""
    made = [DoubleBarrier(client, "/barrier", len(clients)) for client in clients]
    return [(each, pool.submit(each.enter, WAIT)) for each in made]


def test_all_start_together_and_leave_together(at: World, pool: ThreadPoolExecutor) -> None:
    one, other = (DoubleBarrier(at.client(sid), "/barrier", 2) for sid in (1, 2))
    assert not one.enter(BRIEF)
    assert not one.inside
    assert other.enter(WAIT)
    assert one.enter(WAIT)
    leaving = pool.submit(one.leave, WAIT)
    assert not threading.Event().wait(BRIEF)
    assert not leaving.done()
    assert other.leave(WAIT)
    assert leaving.result(WAIT)
    with pytest.raises(RuntimeError):
        one.enter()


def test_three_leave_in_any_order(at: World, pool: ThreadPoolExecutor) -> None:
    made = entering(pool, *(at.client(sid) for sid in (1, 2, 3)))
    assert all(entered.result(WAIT) for _, entered in made)
    assert all(left.result(WAIT) for left in [pool.submit(each.leave, WAIT) for each, _ in made])


def test_the_end_of_a_session_lets_the_others_leave(at: World, pool: ThreadPoolExecutor) -> None:
    dies, lives = at.client(1), at.client(2)
    (dead, first), (live, second) = entering(pool, dies, lives)
    assert first.result(WAIT) and second.result(WAIT), "both know that they are inside"
    leaving = pool.submit(live.leave, WAIT)
    at.expire(dies)
    assert leaving.result(WAIT)
    with pytest.raises(SessionLost):
        dead.leave(WAIT)


def test_a_lost_connection_and_a_lost_answer_do_no_harm(at: World, pool: ThreadPoolExecutor) -> None:
    clients = [at.client(sid) for sid in (1, 2)]
    clients[0].ensure_path("/barrier")
    lost = lose_answer(clients[0], serialization.Create2)
    one, other = (DoubleBarrier(client, "/barrier", 2) for client in clients)
    waiting = pool.submit(one.enter, WAIT)
    assert lost.wait(WAIT)
    eventually(lambda: len(clients[1].get_children("/barrier")) == 1)
    assert other.enter(WAIT)
    assert waiting.result(WAIT)
    drop(clients[0])
    eventually(lambda: one.inside)
    leaving = pool.submit(other.leave, WAIT)
    assert one.leave(WAIT)
    assert leaving.result(WAIT)


def test_a_used_barrier_refuses_who_comes_late(at: World) -> None:
    first = DoubleBarrier(at.client(1), "/barrier", 1)
    assert first.enter(WAIT)
    with pytest.raises(Refused):
        DoubleBarrier(at.client(2), "/barrier", 1).enter(WAIT)
    assert first.leave(WAIT)


def test_who_is_not_inside_cannot_leave(at: World) -> None:
    with pytest.raises(RuntimeError):
        DoubleBarrier(at.client(1), "/barrier", 2).leave()
