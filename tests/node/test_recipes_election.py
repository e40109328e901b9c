"""Elections at live servers, ours and real ones: fair with an announcement, and unfair on one znode."""

import queue
from collections.abc import Callable

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.serialization import Create2
from kazoo.security import make_acl

from refimpl.recipes import ClientClosed, Election, Leadership, Participant, Refused
from tests.node.recipes import WAIT, Running, World, drop, eventually, lose_answer

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")


@pytest.fixture(params=[True, False], ids=["fair", "unfair"])
def candidate(request: pytest.FixtureRequest) -> Callable[..., Election]:
    """`candidate(client, id)` returns an election."""

    def make(client: KazooClient, id: str) -> Election:
        return Election(client, f"/election-{request.param}", id, fair=request.param)

    return make


Candidate = Callable[[KazooClient, str], Election]


class Term:
    """A function that leads until it is interrupted or `returns` has an entry."""

    def __init__(self) -> None:
        self.led: queue.Queue[Leadership] = queue.Queue()
        self.returns: queue.Queue[bool] = queue.Queue()

    def __call__(self, leadership: Leadership) -> int:
        self.led.put(leadership)
        while not leadership.interrupted.is_set() and self.returns.empty():
            leadership.wait(0.02)
        return leadership.token


def test_it_gives_what_the_function_returns_and_resigns(at: World, candidate: Candidate) -> None:
    election = candidate(at.client(1), "host")
    seen: list[Participant | None] = []
    token = election.run(lambda leadership: (seen.append(election.leader()), leadership.token)[1])
    assert seen[0] is not None
    assert seen[0].id == "host"
    assert seen[0].token == token
    eventually(lambda: election.leader() is None)


def test_one_leads_after_the_other_with_greater_tokens(at: World, candidate: Candidate) -> None:
    terms = [Term() for _ in range(3)]
    elections = [candidate(at.client(1), f"host-{number}") for number in range(3)]
    runs = [Running(election.run, term) for election, term in zip(elections, terms, strict=True)]
    tokens = []
    while runs:
        eventually(lambda: any(not term.led.empty() for term in terms))
        (leading,) = [number for number, term in enumerate(terms) if not term.led.empty()]
        terms[leading].led.get()
        leader = elections[0].leader()
        assert leader is not None
        assert leader.id == elections[leading].id
        terms[leading].returns.put(True)
        tokens.append(runs[leading].result())
        for each in (runs, terms, elections):
            del each[leading]  # type: ignore[attr-defined]
    assert tokens == sorted(set(tokens))


def test_what_the_function_raises_comes_out_and_it_resigns(at: World, candidate: Candidate) -> None:
    failing, other = candidate(at.client(1), "failing"), candidate(at.client(2), "other")
    with pytest.raises(ZeroDivisionError):
        failing.run(lambda _: 1 // 0)
    assert other.run(lambda _: "led") == "led"


def test_who_is_cancelled_while_it_waits_never_leads(at: World, candidate: Candidate) -> None:
    leads, waits, term = candidate(at.client(1), "leads"), candidate(at.client(2), "waits"), Term()
    leading = Running(leads.run, term)
    term.led.get(timeout=WAIT)
    waiting = Running(waits.run, pytest.fail)
    eventually(
        lambda: waits._participation is not None
    )  # otherwise this thread's run could be the first, and wait for ever
    assert waiting.runs()
    with pytest.raises(RuntimeError, match="runs already"):
        waits.run(pytest.fail)
    waits.cancel()
    assert waiting.result() is None
    term.returns.put(True)
    leading.result()


def test_who_is_cancelled_while_it_leads_is_interrupted(at: World, candidate: Candidate) -> None:
    election, term = candidate(at.client(), "host"), Term()
    run = Running(election.run, term)
    led = term.led.get(timeout=WAIT)
    election.cancel()
    assert run.result() == led.token
    assert led.interrupted.is_set()
    assert election.run(lambda _: "again") == "again"


def test_a_lost_connection_interrupts(at: World, candidate: Candidate) -> None:
    client = at.client()
    election, term = candidate(client, "host"), Term()
    run = Running(election.run, term)
    led = term.led.get(timeout=WAIT)
    drop(client)
    assert run.result() == led.token
    assert led.interrupted.is_set()


def test_the_end_of_a_session_passes_leadership_on(at: World, candidate: Candidate) -> None:
    client = at.client(1)
    loses, gains = candidate(client, "loses"), candidate(at.client(2), "gains")
    first, second = Term(), Term()
    losing = Running(loses.run, first)
    token = first.led.get(timeout=WAIT).token
    gaining = Running(gains.run, second)
    at.expire(client)
    assert second.led.get(timeout=WAIT).token > token
    leader = gains.leader()
    assert leader is not None
    assert leader.id == "gains"
    second.returns.put(True)
    losing.result()
    gaining.result()


def test_a_creation_whose_answer_was_lost_is_its_own(at: World, candidate: Candidate) -> None:
    client = at.client(1)
    lost = lose_answer(client, Create2)
    assert candidate(client, "host").run(lambda _: "led") == "led"
    assert lost.is_set()


def test_an_announcement_whose_answer_was_lost_is_its_own(at: World) -> None:
    client = at.client(1)
    leads, waits = Election(at.client(2), "/election", "leads"), Election(client, "/election", "waits")
    term = Term()
    leading = Running(leads.run, term)
    term.led.get(timeout=WAIT)
    waiting = Running(waits.run, lambda _: waits.leader())
    eventually(lambda: len(client.get_children("/election")) == 2)
    lost = lose_answer(client, Create2)
    term.returns.put(True)
    leader = waiting.result()
    assert lost.is_set()
    assert leader is not None
    assert leader.id == "waits"
    leading.result()


def test_the_end_of_its_client_ends_the_wait(at: World, candidate: Candidate) -> None:
    client, term = at.client(1), Term()
    leading = Running(candidate(at.client(2), "leads").run, term)
    term.led.get(timeout=WAIT)
    waiting = Running(candidate(client, "waits").run, pytest.fail)
    assert waiting.runs()
    client.stop()
    with pytest.raises(ClientClosed):
        waiting.result()
    term.returns.put(True)
    leading.result()


def test_what_the_servers_refuse_is_said(at: World) -> None:
    client = at.client()
    client.create("/election", acl=[make_acl("world", "anyone", read=True)])
    with pytest.raises(Refused, match="NO_AUTH"):
        Election(client, "/election").run(pytest.fail)
