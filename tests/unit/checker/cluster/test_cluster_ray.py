"""Searches on a real Ray, which runs on the loopback interface of this machine and ends with the tests."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from checker.cluster import Ray, exchange, ray_transport
from checker.cluster.ray_transport import RayTransport
from checker.engine import search
from checker.engine.model import ModelError
from checker.engine.result import Exploration, disagreements
from checker.models import small_election
from checker.swarm.search import for_each_seed

pytestmark = pytest.mark.xdist_group("ray")

TWO = Ray(processes=2)
MODEL = small_election.election(3)
SMALL = {"DIVIDED": 64, "DEALT": 4, "ROUND": 200}
"""Rounds so small that even a small search is divided and has many rounds."""


@pytest.fixture(scope="module")
def cluster():
    """A Ray with two processors that all tests of this module use."""
    with ray_transport.connected(TWO) as ray:
        yield Ray(ray.get_runtime_context().gcs_address, processes=2)


def paths(found: Exploration) -> dict:
    return {name: each.path for name, each in found.found.items()}


def test_two_processes_agree_with_threads_down_to_the_paths(cluster):
    with patch.multiple(exchange, **SMALL):
        found = search.explore(MODEL, workers=cluster)
    by_threads = search.explore(MODEL)
    assert disagreements(by_threads, found) == []
    assert paths(found) == paths(by_threads)
    assert found.workers[0].startswith("2 on one machine, with Ray")


def test_a_killed_process_is_replaced_and_changes_no_result(cluster):
    model, killed = MODEL.with_properties([]), []

    class Killing(RayTransport):
        def __init__(self, *arguments, **named) -> None:
            super().__init__(*arguments, **named)
            self._left = 40

        def call(self, part, method, *arguments, returns=1):
            if method == "expand":
                self._left -= 1
                if not self._left:
                    killed.append(self.processes()[1])
                    os.kill(killed[0], signal.SIGKILL)
            return super().call(part, method, *arguments, returns=returns)

    with (
        patch.multiple(exchange, **SMALL),
        patch.object(exchange, "SAVE_EVERY", 0.0),
        patch.object(exchange, "RayTransport", Killing),
    ):
        found = search.explore(model, workers=cluster)
    assert len(killed) == 1
    assert disagreements(search.explore(model), found) == []
    assert "worker lost at depth" in found.workers[1]
    assert "continued from depth" in found.workers[1]
    assert list(Path(tempfile.gettempdir()).glob("quorate-parts-*")) == []


def test_a_function_is_called_for_each_seed_on_the_cluster(cluster):
    assert dict(for_each_seed(lambda seed: seed * seed, range(5), cluster)) == {n: n * n for n in range(5)}


def test_ray_listens_on_the_loopback_interface_only(cluster):
    with ray_transport.connected(cluster) as ray:
        own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
        assert ray.is_initialized()
    listening = [each for each in psutil.net_connections("inet") if each.status == "LISTEN" and each.pid in own]
    assert listening
    assert {each.laddr.ip for each in listening} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def test_the_command_line_prints_the_report_alone_and_leaves_no_file(tmp_path):
    """The model is in a file that other processes cannot import, and it needs a module beside it."""
    (tmp_path / "beside.py").write_text("LIMIT = 40\n\ndef next_of(n):\n    return (n + 1) % LIMIT\n")
    (tmp_path / "counter.py").write_text(
        "from beside import LIMIT, next_of\n"
        "from checker.engine import Actor, Column, Finding, Model, Move, Outcome, Property, Read, Rule, Send\n\n"
        "counter = Model(\n"
        "    'counter', (Column('n', 0),), (Actor('a', ('n',), lambda values, op: Outcome((next_of(values[0]),))),),\n"
        "    (Rule('step', (Read('n'),), lambda n: [Move('step', (), (Send('a', None),))]),),\n"
        "    (Property('Bounded', (Read('n'),), lambda n: Finding('it grows') if n >= LIMIT else None),),\n"
        ")\n"
    )
    temporary = Path(tempfile.mkdtemp(prefix="q-"))  # short, as a socket's name must be
    model = f"{tmp_path}/counter.py:counter"  # twice: each run starts a Ray and stops it
    words = [sys.executable, "-m", "checker", "run", model, model, "--workers", "ray", "--json"]
    environment = {**os.environ, "TMPDIR": str(temporary), "HOME": os.environ.get("HOME", "/root")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    searches = [run["search"] for run in json.loads(done.stdout)["runs"]]
    assert [(found["states"], found["stop"]) for found in searches] == 2 * [(40, "exhausted")]
    assert ["with Ray" in found["workers"][0] for found in searches] == [True, True]
    temporary.rmdir()  # which fails if a file was left


def test_any_callable_object_is_called_for_each_seed(cluster):
    assert dict(for_each_seed(partial(pow, 2), range(5), cluster)) == {0: 1, 1: 2, 2: 4, 3: 8, 4: 16}


def test_the_errors_of_a_function_and_lost_processes_on_the_cluster_are_one_line(cluster):
    def fail(_):
        raise ModelError("no answer")

    with pytest.raises(ModelError, match=r"^no answer$"):
        dict(for_each_seed(fail, range(1), cluster))
    with pytest.raises(ModelError, match=r"ended from outside; is there enough memory\?"):
        dict(for_each_seed(lambda _: os._exit(1), range(1), cluster))
