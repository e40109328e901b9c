"""Our recipes and Curator's at the same paths: one queue, one holder, and each sees the other."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from harness.ensemble import Ensemble
from refimpl.recipes import LeaderLatch, LeaderSelector, Leadership, Lock
from tests.node.patience import PATIENT
from tests.node.recipes import BRIEF, WAIT, World, eventually, world
from tests.node.test_clients_curator import compiled

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")


class Partner:
    """The running Java program."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words: object) -> str:
        """Send a line, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        """Close its input, and wait until it exits."""
        try:
            self._process.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the compiled program; the clients' servers follow."""
    return compiled("Partner", tmp_path_factory, "-Xmx64m")


@pytest.fixture(scope="module", params=["node", "real"])
def ensemble(request: pytest.FixtureRequest, launch: Callable[..., Ensemble]) -> Ensemble:
    return launch([request.param], standalone=True, **PATIENT)


@pytest.fixture(scope="module")
def curator(ensemble: Ensemble, program: list[str]) -> Iterator[Partner]:
    partner = Partner([*program, ensemble.address(1)])
    yield partner
    partner.end()


@pytest.fixture
def at(ensemble: Ensemble) -> Iterator[World]:
    with world(ensemble, "") as made:
        yield made


def test_an_inter_process_mutex_and_a_lock_exclude_each_other(at: World, curator: Partner) -> None:
    lock = Lock(at.client(), "/lock")
    with lock:
        assert curator("acquire", 300) == "false"
    assert curator("acquire", 20000) == "true"
    assert not lock.acquire(BRIEF)
    curator("release")
    assert lock.acquire(WAIT)
    lock.release()
    assert curator("acquire", 20000) == "true"
    curator("release")


def test_latches_of_both_stand_in_one_queue(at: World, curator: Partner) -> None:
    first, last = LeaderLatch(at.client(), "/latch", "first"), LeaderLatch(at.client(), "/latch", "last")
    first.start()
    assert first.wait(WAIT)
    curator("start")
    eventually(lambda: len(first.participants()) == 2)
    last.start()
    eventually(lambda: [each.id for each in first.participants()] == ["first", "curator", "last"])
    assert curator("participants") == "first,curator,last"
    assert curator("await", 300) == "false"
    first.close()
    assert curator("await", 20000) == "true"
    leader = last.leader()
    assert leader is not None
    assert leader.id == "curator"
    assert not last.has_leadership
    curator("close")
    assert last.wait(WAIT)
    assert curator("leader") == "last"
    last.close()


def test_selectors_of_both_lead_one_after_the_other(at: World, curator: Partner) -> None:
    def lead(leadership: Leadership) -> None:
        leadership.wait()

    with LeaderSelector(at.client(), "/selector", lead, id="ours", auto_requeue=True) as ours:
        eventually(lambda: ours.has_leadership)
        curator("select")
        # Curator's selector enters the queue in the background; ours would lead again if it were alone.
        eventually(lambda: [each.id for each in ours.participants()] == ["ours", "curator"])
        assert curator("leads", 300) == "false"
        ours.interrupt_leadership()
        assert curator("leads", 20000) == "true"
        eventually(lambda: [each.id for each in ours.participants()] == ["curator", "ours"])
        assert not ours.has_leadership
        curator("return")
        eventually(lambda: ours.has_leadership)
