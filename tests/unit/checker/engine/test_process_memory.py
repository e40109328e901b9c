"""The memory that a process may use: the machine, its cgroups in both versions, and its ulimit."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from weakref import ref

import numpy as np
import psutil
import pytest

from checker.engine import process
from checker.engine.arrays import ReservedArray
from checker.engine.search import Request, by_threads
from checker.models import small_election

GIB = 1 << 30
OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_second_version_of_cgroups_counts_file_pages_that_can_be_reclaimed_as_free(tmp_path):
    write(
        tmp_path,
        memory__max=f"{4 * GIB}\n",
        memory__current=f"{3 * GIB}\n",
        memory__stat=f"anon 5\ninactive_file {GIB}\n",
    )
    assert process.free_in(tmp_path, 2) == 2 * GIB


def test_the_first_version_of_cgroups_has_other_names(tmp_path):
    write(
        tmp_path, memory__limit_in_bytes=str(4 * GIB), memory__usage_in_bytes=str(3 * GIB),
        memory__stat=f"inactive_file 7\ntotal_inactive_file {GIB}\n",
    )  # fmt: skip
    assert process.free_in(tmp_path, 1) == 2 * GIB


def test_a_cgroup_without_a_limit_is_unlimited(tmp_path):
    write(tmp_path, memory__max="max\n", memory__current="1\n", memory__stat="")
    assert process.free_in(tmp_path, 2) == process.UNLIMITED
    assert process.free_in(tmp_path / "missing", 2) == process.UNLIMITED


def test_the_cgroup_that_leaves_least_counts_also_if_it_contains_the_others(tmp_path):
    write(tmp_path / "a", memory__max=str(GIB), memory__current="0", memory__stat="")
    write(tmp_path / "a" / "b", memory__max=str(2 * GIB), memory__current="0", memory__stat="")
    found = [process.free_in(*each) for each in process.cgroups(["0::/a/b"], tmp_path)]
    assert sorted(found) == [GIB, 2 * GIB, process.UNLIMITED]


def test_controllers_other_than_memory_are_ignored(tmp_path):
    lines = ["4:memory:/a", "3:cpuset:/b", "1:name=systemd:/c"]
    assert [*process.cgroups(lines, tmp_path)] == [(tmp_path / "memory/a", 1), (tmp_path / "memory", 1)]


def test_a_search_gives_its_address_space_back_when_it_ends():
    finished = by_threads(Request(small_election.election(2)))
    shard = ref(finished.exchange.part.state.visited.parts[0])
    gc.disable()
    try:
        finished.run()
        del finished
        assert shard() is None, "a reference cycle keeps it until the collector runs"
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is not enforced elsewhere")
def test_a_search_under_ulimit_ends_without_an_error():
    limit = 1_700_000_000
    script = (
        "from checker.engine import Limits, search; from checker.engine.process import free_memory\n"
        "from checker.models import small_election\n"
        "print(search.explore(small_election.election(4).with_properties([]), Limits(memory=free_memory(0.1))).stop)"
    )
    shell = f'ulimit -v {limit >> 10}; exec "$0" -c "$1"'
    done = subprocess.run(["sh", "-c", shell, sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("Stop.MEMORY", 0), done.stderr


@pytest.mark.skipif(
    not OVERCOMMIT.exists() or OVERCOMMIT.read_text().strip() == "2", reason="every reservation counts there"
)
def test_a_process_with_more_reserved_than_the_machine_has_can_fork():
    """Ray forks so. Each reservation alone is smaller than the memory, and the kernel joins neighbours to one area."""
    part = psutil.virtual_memory().total * 3 // 4
    reserved = [ReservedArray(np.uint8, part) for _ in range(3)]
    assert [len(each.array) for each in reserved] == 3 * [part]
    child = os.fork()
    if not child:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
