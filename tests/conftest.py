"""Set-up that all tests share.

- Hypothesis sets no deadline for an example: its duration depends on the load of the machine. In CI, Hypothesis itself
  chooses the same examples in every run.
- Processes of pytest-xdist draw ports from disjoint ranges, so that no server finds its port in use.
- Tests have a home of their own, and a test that opens the user's files or changes files elsewhere fails.
- A test whose program is missing is skipped, or fails if CI is true.
- SIGINT interrupts, even if the shell started this process with SIGINT ignored (`nohup`, or a background job of a
  script). A child inherits an ignored signal, so its tests of interrupts would wait for ever.
- pytest-xdist runs the tests of one file in one process, since they share caches. There are two exceptions. All tests
  with live servers form one group: their time-outs are protocol time-outs, and two ensembles on two cores slow each
  other down. The tests of each shipped scenario form a group: they share its exploration and nothing else.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from harness import processes
from refimpl import demo
from tests.support import isolation, programs, two_runs
from tests.support.tiers import is_quick, is_wide

HERE = Path(__file__).parent
LIVE = HERE / "node"
SCENARIOS = HERE / "conformance" / "test_scenarios.py"
TRANSCRIPTS = HERE / "transcripts" / "test_transcripts.py"

USERS_HOME = Path.home()

isolation.isolate()
programs.install()
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt here and ends child processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def watch() -> isolation.Watch:
    """What this process opens and changes, from the first test to the last."""
    watch = isolation.Watch(USERS_HOME)
    watch.start()
    return watch


@pytest.fixture(autouse=True)
def own_files(watch: isolation.Watch) -> Iterator[None]:
    """Fail a test that opens the user's files, changes files outside its folders, or leaves this process changed."""
    before = isolation.ProcessState.current()
    yield
    after = isolation.ProcessState.current()
    before.restore()
    assert watch.taken() == [], "use tmp_path"
    assert after == before, "restore what the test changed"


def pytest_unconfigure() -> None:
    """Remove the folder of all tests, in the first process only."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        isolation.clean_up()


@pytest.fixture(scope="session", autouse=True)
def disjoint_ports() -> None:
    """The ports of this process: one of as many slices as there are processes."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    for module in (processes, demo):
        size = len(module.PORTS) // count
        module.PORTS = module.PORTS[int(worker) * size :][:size]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the other files for `-m quick`: the checker alone takes seconds."""
    others = config.option.markexpr == "quick" and collection_path.suffix == ".py"
    return True if others and not is_quick(collection_path) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the gate, and the one that writes transcripts."""
    two_runs.add_options(parser)
    parser.addoption("--rewrite-transcripts", action="store_true", help="write what would be compared; read the diff")


def pytest_configure(config: pytest.Config) -> None:
    """Tell this process and its children that they write; modules of tests ask when they are imported."""
    if config.getoption("--rewrite-transcripts"):
        os.environ[isolation.REWRITE] = "1"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write which tests passed, if the gate asks for it."""
    two_runs.write_passed(config, terminalreporter.stats.get("passed", []))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Assign each test to its group of pytest-xdist, and to the quick tier."""
    two_runs.leave_out_passed(config, items)
    for item in items:
        if is_quick(item.path):
            item.add_marker(pytest.mark.quick)
        if is_wide(item.nodeid):
            item.add_marker(pytest.mark.wide)
        item.add_marker(pytest.mark.xdist_group(_group_of(item)))


def _group_of(item: pytest.Item) -> str:
    if LIVE in item.path.parents:
        return "live"
    if item.path == SCENARIOS and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        return f"scenario {item.callspec.params['name']}"
    if item.path == TRANSCRIPTS and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        return f"transcript {item.callspec.id}"
    return str(item.path.relative_to(HERE))


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores for `--numprocesses auto`: the process with the live servers mostly waits."""
    return (os.cpu_count() or 1) + 1
