"""LeaderSelector at live servers, ours and real ones: the behaviour of Curator's selector, and faults."""

import queue
import threading
from collections import Counter

import pytest
from kazoo.protocol.states import KazooState

from refimpl.recipes import LeaderSelector, Leadership
from tests.node.recipes import BRIEF, WAIT, World, becomes, drop, eventually

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")


class Procedure:
    """A `take_leadership` that runs until it is interrupted or `returns` has an entry; `led` are the leaderships."""

    def __init__(self, *, stubborn: bool = False, raises: Exception | None = None) -> None:
        self.led: queue.Queue[Leadership] = queue.Queue()
        self.returns: queue.Queue[bool] = queue.Queue()
        self.running: list[int] = []
        self._stubborn = stubborn
        self._raises = raises

    def __call__(self, leadership: Leadership) -> None:
        assert self.running == [], "called while an earlier call runs"
        self.running.append(leadership.token)
        self.led.put(leadership)
        if self._stubborn:
            assert self.returns.get(timeout=WAIT)
        while not leadership.interrupted.is_set() and self.returns.empty():
            leadership.wait(0.02)
        self.running.pop()
        if self._raises is not None:
            raise self._raises


def test_leadership_is_given_up_when_the_procedure_returns(at: World) -> None:
    first, second = Procedure(), Procedure()
    with LeaderSelector(at.client(1), "/selector", first, id="first") as one:
        led = first.led.get(timeout=WAIT)
        assert (one.has_leadership, one.token) == (True, led.token)
        with LeaderSelector(at.client(1), "/selector", second, id="second") as other:
            eventually(lambda: [each.id for each in other.participants()] == ["first", "second"])
            assert second.led.empty()
            first.returns.put(True)
            assert second.led.get(timeout=WAIT).token > led.token
            eventually(lambda: not one.has_leadership)
            assert other.has_leadership


def test_it_leads_once_and_again_when_it_is_queued_anew(at: World) -> None:
    procedure = Procedure()
    selector = LeaderSelector(at.client(), "/selector", procedure)
    with pytest.raises(RuntimeError, match="not started"):
        selector.requeue()
    with selector:
        procedure.led.get(timeout=WAIT)
        assert not selector.requeue()
        procedure.returns.put(True)
        eventually(lambda: procedure.running == [])
        procedure.returns.get()  # before the next call, which would return immediately
        eventually(selector.requeue)
        assert procedure.led.get(timeout=WAIT).token == selector.token
    with pytest.raises(RuntimeError, match="closed"):
        selector.requeue()
    with pytest.raises(RuntimeError, match="started once"):
        selector.start()


def test_with_auto_requeue_leadership_goes_round(at: World) -> None:
    leaders: queue.Queue[int] = queue.Queue()
    selectors = [
        LeaderSelector(at.client(sid), "/selector", lambda _, sid=sid: leaders.put(sid), auto_requeue=True)  # type: ignore[misc]
        for sid in (1, 2, 3)
    ]
    for selector in selectors:
        selector.start()
    led: Counter[int] = Counter()

    def went_round() -> bool:
        while not leaders.empty():
            led[leaders.get()] += 1
        return all(led[sid] >= 4 for sid in (1, 2, 3))

    # The number of turns of one selector before another one is queued depends on timing.
    eventually(went_round)
    for selector in selectors:
        assert selector.close(WAIT)


def test_a_procedure_that_fails_is_logged_and_gives_up_leadership(at: World, caplog: pytest.LogCaptureFixture) -> None:
    failing, next_one = Procedure(raises=ValueError("broken")), Procedure()
    with LeaderSelector(at.client(1), "/selector", failing):
        failing.led.get(timeout=WAIT)
        with LeaderSelector(at.client(2), "/selector", next_one):
            failing.returns.put(True)
            next_one.led.get(timeout=WAIT)
    assert "ValueError: broken" in caplog.text


def test_an_interruption_ends_the_procedure_and_not_the_candidacy(at: World) -> None:
    procedure = Procedure()
    with LeaderSelector(at.client(), "/selector", procedure, auto_requeue=True) as selector:
        first = procedure.led.get(timeout=WAIT)
        selector.interrupt_leadership()
        second = procedure.led.get(timeout=WAIT)
        assert first.interrupted.is_set()
        assert second.token > first.token


def test_an_interruption_without_leadership_does_nothing(at: World) -> None:
    leads, waits = Procedure(), Procedure()
    with LeaderSelector(at.client(1), "/selector", leads):
        leads.led.get(timeout=WAIT)
        with LeaderSelector(at.client(1), "/selector", waits) as selector:
            selector.interrupt_leadership()
            leads.returns.put(True)
            assert not waits.led.get(timeout=WAIT).interrupted.is_set()


def test_a_close_interrupts_and_waits(at: World) -> None:
    procedure = Procedure()
    selector = LeaderSelector(at.client(), "/selector", procedure)
    selector.start()
    led = procedure.led.get(timeout=WAIT)
    assert selector.close()
    assert led.interrupted.is_set()
    assert procedure.running == []
    assert not selector.has_leadership


def test_a_close_does_not_wait_for_ever(at: World) -> None:
    procedure = Procedure(stubborn=True)
    selector = LeaderSelector(at.client(), "/selector", procedure)
    selector.start()
    procedure.led.get(timeout=WAIT)
    assert not selector.close(timeout=0.1)
    procedure.returns.put(True)
    assert selector.close(WAIT)


def test_a_procedure_may_close_its_selector(at: World) -> None:
    closed: queue.Queue[bool] = queue.Queue()
    selector = LeaderSelector(at.client(1), "/selector", lambda _: closed.put(selector.close()), auto_requeue=True)
    selector.start()
    assert closed.get(timeout=WAIT) is False
    assert selector.close(WAIT)


def test_a_lost_connection_interrupts_and_then_it_leads_again(at: World) -> None:
    client, procedure = at.client(), Procedure()
    with LeaderSelector(client, "/selector", procedure, auto_requeue=True):
        first = procedure.led.get(timeout=WAIT)
        drop(client)
        assert first.interrupted.wait(WAIT)
        assert procedure.led.get(timeout=WAIT).token > first.token


def test_no_second_call_while_the_first_still_runs(at: World) -> None:
    client, procedure = at.client(), Procedure(stubborn=True)
    with LeaderSelector(client, "/selector", procedure, auto_requeue=True):
        first = procedure.led.get(timeout=WAIT)
        drop(client)
        assert first.interrupted.wait(WAIT)
        with pytest.raises(queue.Empty):
            procedure.led.get(timeout=BRIEF)
        procedure.returns.put(True)
        assert procedure.led.get(timeout=WAIT).token > first.token
        procedure.returns.put(True)


def test_the_end_of_a_session_passes_leadership_on(at: World) -> None:
    client, loses, gains = at.client(1), Procedure(stubborn=True), Procedure()
    with LeaderSelector(client, "/selector", loses, auto_requeue=True):
        first = loses.led.get(timeout=WAIT)
        with LeaderSelector(at.client(2), "/selector", gains):
            at.expire(client)
            assert gains.led.get(timeout=WAIT).token > first.token
            assert first.interrupted.wait(WAIT)
            assert loses.running == [first.token]
        loses.returns.put(True)
        loses.led.get(timeout=WAIT)
        loses.returns.put(True)


def test_the_end_of_its_client_interrupts(at: World) -> None:
    client, procedure = at.client(), Procedure()
    selector = LeaderSelector(client, "/selector", procedure)
    selector.start()
    led = procedure.led.get(timeout=WAIT)
    lost = becomes(client, KazooState.LOST)
    client.stop()
    assert lost.wait(WAIT)
    assert led.interrupted.wait(WAIT)
    assert selector.close(WAIT)


def test_leadership_that_is_checked_ends_without_an_error_in_the_log(
    at: World, caplog: pytest.LogCaptureFixture
) -> None:
    running = threading.Event()

    def lead(leadership: Leadership) -> None:
        leadership.check()
        running.set()
        leadership.wait(WAIT)
        leadership.check()

    selector = LeaderSelector(at.client(), "/selector", lead)
    selector.start()
    assert running.wait(WAIT)
    assert selector.close(WAIT)
    assert "ERROR" not in caplog.text


def test_nobody_else_leads_while_an_interrupted_procedure_still_runs(at: World) -> None:
    client, stubborn, other = at.client(), Procedure(stubborn=True), Procedure()
    with LeaderSelector(client, "/selector", stubborn) as selector:
        first = stubborn.led.get(timeout=WAIT)
        with LeaderSelector(at.client(), "/selector", other):
            drop(client)
            assert first.interrupted.wait(WAIT)
            with pytest.raises(queue.Empty):
                other.led.get(timeout=BRIEF)
            assert not selector.close(timeout=BRIEF)
            assert other.led.empty()
            stubborn.returns.put(True)
            assert other.led.get(timeout=WAIT).token > first.token
