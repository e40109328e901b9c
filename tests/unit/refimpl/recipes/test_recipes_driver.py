"""The driver of the recipes over a client without a network: the order of events, and one answer for each request."""

import threading
from collections.abc import Iterator

import pytest
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.protocol.states import KazooState, KeeperState, WatchedEvent

from refimpl.recipes import driver
from spec.effects import Observe
from spec.recipes.events import (
    Answered,
    Ask,
    Connected,
    Event,
    Expired,
    Join,
    Notified,
    Suspended,
    Unanswered,
    Withdrawn,
)
from spec.tree.apply import EventType
from spec.tree.replies import ChildrenReply, Code
from spec.tree.requests import Sync
from tests.support.recipes_stage import CREATE, FLUSH, LOOK, NEXT_SESSION, WATCH, FakeResult, Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.told = lambda facts: True
    made.driver.tell(FLUSH)


def test_an_answer_is_told_once_however_often_kazoo_brings_it(stage: Stage) -> None:
    stage.begin()
    stage.client.last.set(["a", "b"])
    stage.client.last.set(["a", "b"])
    assert stage.now() == [Answered(Code.OK, ChildrenReply(("a", "b")))]


def test_an_error_is_an_answer(stage: Stage) -> None:
    stage.begin(CREATE)
    stage.client.last.set_exception(NodeExistsError())
    assert stage.now() == [Answered(Code.NODE_EXISTS)]


def test_a_lost_connection_settles_what_was_asked_and_the_session_is_known_again(stage: Stage) -> None:
    stage.begin()
    stage.client.becomes(KazooState.SUSPENDED)
    stage.client.becomes(KazooState.CONNECTED)
    assert stage.now() == [Suspended(), Unanswered(), Connected(resumed=True, id="id-0")]


def test_nothing_is_settled_where_nothing_was_asked(stage: Stage) -> None:
    stage.begin()
    stage.client.last.set([])
    stage.client.becomes(KazooState.SUSPENDED)
    assert stage.now()[1:] == [Suspended()]


def test_a_lost_session_is_told_after_the_lost_connection(stage: Stage) -> None:
    stage.begin()
    stage.client.becomes(KazooState.LOST)
    stage.client.becomes(KazooState.CONNECTED, NEXT_SESSION)
    assert stage.now() == [Suspended(), Unanswered(), Expired(), Connected(resumed=False, id="id-0")]


def test_each_connection_has_a_fresh_id(stage: Stage) -> None:
    stage.begin()
    for _ in range(2):
        stage.client.becomes(KazooState.SUSPENDED)
        stage.client.becomes(KazooState.CONNECTED)
    assert [event.id for event in stage.now() if isinstance(event, Connected)] == ["id-0", "id-1"]


def test_a_result_that_comes_after_the_loss_of_its_connection_is_dropped(stage: Stage) -> None:
    stage.begin()
    stage.does[Connected] = [Ask(Sync("/queue"))]
    stage.client.becomes(KazooState.SUSPENDED)
    stage.client.becomes(KazooState.CONNECTED)
    stage.now()
    stage.client.sent[0][2].set(["late"])
    assert stage.now() == [Suspended(), Unanswered(), Connected(resumed=True, id="id-0")]
    stage.client.sent[1][2].set("/queue")
    assert isinstance(stage.now()[-1], Answered)


@pytest.mark.parametrize("error", [ConnectionLoss, SessionExpiredError, ConnectionClosedError])
def test_a_failed_request_of_a_lost_connection_waits_for_the_news_of_it(stage: Stage, error: type[Exception]) -> None:
    stage.begin()
    stage.client.state = KazooState.SUSPENDED
    stage.client.last.set_exception(error())
    assert stage.now() == []
    stage.client.becomes(KazooState.SUSPENDED)
    assert stage.now() == [Suspended(), Unanswered()]


def test_a_request_may_be_unanswered_though_there_is_a_connection(stage: Stage) -> None:
    stage.begin()
    stage.client.last.set_exception(ConnectionLoss())
    assert stage.now() == [Unanswered()]


def test_nothing_is_sent_while_news_of_the_connection_wait(stage: Stage) -> None:
    stage.begin()
    stage.does[Answered] = [Ask(CREATE)]

    def lose(_: object) -> bool:
        stage.told = lambda facts: False
        stage.client.becomes(KazooState.LOST)
        stage.client.becomes(KazooState.CONNECTED, NEXT_SESSION)
        return False

    stage.told = lose
    stage.client.last.set([])
    heard = stage.now()
    assert stage.client.asked == ["children"]
    assert heard[1:] == [Suspended(), Unanswered(), Expired(), Connected(resumed=False, id="id-0")]


def test_kazoos_thread_waits_until_a_call_is_in_kazoos_queue(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "PATIENCE", 60.0)  # a busy machine may not run the calling thread for a second
    in_call, go_on, order = threading.Event(), threading.Event(), []
    stage.driver.open()

    def slow(path: str) -> FakeResult:
        in_call.set()
        go_on.wait(10)
        order.append("called")
        return FakeResult()

    stage.client.sync_async = slow  # type: ignore[method-assign]
    stage.does[Join] = [Ask(Sync("/queue"))]
    asking = threading.Thread(target=stage.driver.tell, args=(Join("first"),))
    asking.start()
    assert in_call.wait(10)
    hearing = threading.Thread(target=lambda: (stage.client.becomes(KazooState.LOST), order.append("heard")))
    hearing.start()
    go_on.set()
    hearing.join(10)
    asking.join(10)
    assert order == ["called", "heard"]


def test_a_missing_parent_is_made_and_the_request_sent_again(stage: Stage) -> None:
    stage.begin(CREATE)
    stage.client.last.set_exception(NoNodeError())
    assert stage.now() == []
    assert stage.client.sent[-1][:2] == ("ensure", "/queue")
    stage.client.last.set(True)
    assert stage.now() == []
    assert stage.client.sent[-1][:2] == ("create", "/queue/n_")


def test_a_parent_that_may_not_be_made_is_the_answer(stage: Stage) -> None:
    stage.begin(CREATE)
    stage.client.last.set_exception(NoNodeError())
    stage.now()
    stage.client.last.set_exception(NoAuthError())
    assert stage.now() == [Answered(Code.NO_AUTH)]


def test_a_connection_that_is_lost_while_the_parent_is_made_settles_the_request(stage: Stage) -> None:
    stage.begin(CREATE)
    stage.client.last.set_exception(NoNodeError())
    stage.now()
    stage.client.becomes(KazooState.SUSPENDED)
    stage.client.last.set_exception(ConnectionLoss())
    assert stage.now() == [Suspended(), Unanswered()]


def test_a_missing_znode_that_is_no_parent_is_an_answer(stage: Stage) -> None:
    stage.begin(WATCH)
    stage.client.last.set_exception(NoNodeError())
    assert stage.now() == [Answered(Code.NO_NODE)]


def test_what_kazoo_finds_impossible_is_refused(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.client.refuses = ValueError("no such path")
    stage.does[Join] = [Ask(LOOK)]
    stage.driver.open()
    stage.driver.tell(Join("first"))
    assert stage.now() == [Join("first"), Answered(Code.BAD_ARGUMENTS)]
    assert "impossible" in caplog.text


def test_a_watch_is_told_and_may_overtake_its_answer(stage: Stage) -> None:
    stage.begin(WATCH)
    assert stage.client.watcher is not None
    stage.client.watcher(WatchedEvent(KazooEventType.DELETED, KeeperState.CONNECTED, "/queue/first"))
    stage.client.last.set_exception(NoNodeError())
    assert stage.now() == [Notified(EventType.NODE_DELETED, "/queue/first"), Answered(Code.NO_NODE)]


def test_the_end_of_a_watch_with_its_connection_is_no_notice(stage: Stage) -> None:
    stage.begin(WATCH)
    assert stage.client.watcher is not None
    stage.client.watcher(WatchedEvent(KazooEventType.NONE, KeeperState.CONNECTING, None))
    assert stage.now() == []


@pytest.mark.parametrize(
    ("state", "first"),
    [
        (KazooState.CONNECTED, []),
        (KazooState.SUSPENDED, [Suspended()]),
        (KazooState.LOST, [Suspended(), Expired()]),
    ],
)
def test_the_first_thing_told_is_that_there_is_no_connection(state: str, first: list[Event]) -> None:
    stage = Stage(state)
    stage.driver.open()
    assert stage.now() == first


def test_a_state_that_was_told_is_not_told_again(stage: Stage) -> None:
    stage.begin()
    stage.client.becomes(KazooState.CONNECTED)
    stage.client.becomes(KazooState.SUSPENDED)
    stage.client.becomes(KazooState.SUSPENDED)
    assert stage.now() == [Suspended(), Unanswered()]


def test_belief_is_told_before_the_request_of_the_same_step_is_sent(stage: Stage) -> None:
    sent_by_then: list[int] = []
    stage.driver.open()
    stage.does[Join] = [Ask(LOOK)]
    stage.told = lambda facts: bool(sent_by_then.append(len(stage.client.sent)))
    stage.driver.tell(Join("first"))
    assert sent_by_then == [0]
    assert stage.client.asked == ["children"]


def test_an_event_that_does_not_stand_any_more_is_left_out(stage: Stage) -> None:
    stage.begin()
    assert not stage.driver.tell(Join("again"), lambda: False)
    assert stage.now() == []


def test_a_step_that_fails_is_logged_and_the_driver_goes_on(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.begin()
    stage.does[Join] = [RuntimeError("broken")]
    assert not stage.driver.tell(Join("again"))
    assert "broken" in caplog.text
    stage.client.last.set([])
    assert isinstance(stage.now()[-1], Answered)


def test_a_recipe_that_is_over_hears_nothing_more(stage: Stage) -> None:
    stage.begin()
    stage.does[Answered] = [Observe(Withdrawn())]
    stage.told = lambda facts: Withdrawn() in facts
    stage.client.last.set([])
    stage.now()
    stage.client.becomes(KazooState.SUSPENDED)
    assert stage.client.listeners == set()
    assert not stage.driver.tell(Join("again"))
    assert len(stage.heard) == 1
