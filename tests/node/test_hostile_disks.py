"""Failing disks: the server steps down immediately, acknowledges nothing further, gives the reason in one line, and
exits with code 1.

Acknowledged writes are there when the disk is back, and the other servers continue in the meantime.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from harness.ensemble import Ensemble
from harness.processes import wait_until
from tests.node.hostile import SIGNS_OF_A_DEFECT, WAIT, client, log_of
from tests.node.patience import LONG_LIMITS
from tests.support.programs import need, need_kind

LAUNCHER = Path(__file__).parent / "failing_disk.py"
THREE = ["node", "node", "node"]
MOST_ASKED = 200
"""The limit on concurrent requests through kazoo.

For each request kazoo sends a byte to its own thread, over a socket that holds 278 of them if Linux gives it 212,992
bytes. The next request blocks until three quarters of these are read: for ever, if the server ends before.
"""
FAILURES = [
    pytest.param("pwrite", errno.ENOSPC, id="full"),
    pytest.param("pwrite", errno.EIO, id="cannot be written"),
    pytest.param("fdatasync", errno.EIO, id="cannot be synced"),
]


@contextmanager
def ensemble_of(kinds: list[str], directory: Path, *, standalone: bool = False, **keys: str) -> Iterator[Ensemble]:
    for kind in kinds:
        need_kind(kind)
    with Ensemble(kinds, directory, tick_time=250, extra=LONG_LIMITS | keys, standalone=standalone) as ensemble:
        yield ensemble


class Disk:
    """The disk of one server of an ensemble, which fails on demand."""

    def __init__(self, ensemble: Ensemble, sid: int, function: str, number: int) -> None:
        home = ensemble.directory / f"server-{sid}"
        self._flag = home / "the-disk-fails"
        self._number = number
        command = [sys.executable, LAUNCHER, function, number, self._flag, home / "zoo.cfg"]
        ensemble.process(sid).command = [str(part) for part in command]

    @property
    def said(self) -> str:
        """The operating system's message for the failure."""
        return os.strerror(self._number)

    def fail(self) -> None:
        self._flag.touch()

    def recover(self) -> None:
        self._flag.unlink()


def check_stepped_down(ensemble: Ensemble, sid: int, why: str) -> None:
    """Assert that the server has ended with code 1, and has given the reason in one line."""
    process = ensemble.process(sid)
    wait_until(lambda: not process.alive, WAIT, f"server {sid} ends", process.log)
    said = log_of(ensemble, sid)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert process.exit_code == 1
    assert len(errors) == 1, said
    assert why in errors[0]
    assert not [sign for sign in SIGNS_OF_A_DEFECT if sign in said], said


class Writer:
    """A client that writes without waiting, and remembers the acknowledged writes."""

    def __init__(self, through: KazooClient) -> None:
        self._client = through
        self._asked: list[Any] = []
        self._count = 0

    def ask(self, count: int, data: bytes = b"") -> None:
        for _ in range(count):
            self._count += 1
            self._asked.append(self._client.create_async(f"/written-{self._count:05}", data))

    def settle(self) -> list[str]:
        """Wait until all writes are acknowledged, and return their paths."""
        paths = [asked.get(timeout=WAIT) for asked in self._asked]
        self._asked.clear()
        return paths

    def acknowledged(self, ensemble: Ensemble, sid: int, disk_said: str) -> tuple[list[str], int]:
        """Return the writes that the server acknowledged until it ended, and the number of the others."""
        check_stepped_down(ensemble, sid, disk_said)
        self._client.stop()
        paths = [asked.value for asked in self._asked if asked.successful()]
        return paths, len(self._asked) - len(paths)


def missing(ensemble: Ensemble, sid: int, paths: list[str]) -> set[str]:
    """Return the paths that a server does not have."""
    with client(ensemble, sid) as asking:
        asking.sync("/")
        return set(paths) - {f"/{name}" for name in asking.get_children("/")}


@pytest.mark.parametrize(("function", "number"), FAILURES)
def test_a_server_alone_acknowledges_nothing_that_its_disk_has_not(function: str, number: int, tmp_path: Path) -> None:
    with ensemble_of(["node"], tmp_path, standalone=True) as ensemble:
        disk = Disk(ensemble, 1, function, number)
        ensemble.start_all()
        with client(ensemble) as writing:
            writer = Writer(writing)
            writer.ask(50)
            kept = writer.settle()
            disk.fail()
            writer.ask(50)
            assert writer.acknowledged(ensemble, 1, disk.said) == ([], 50)
        assert len(kept) == 50
        disk.recover()
        ensemble.start(1)
        ensemble.wait_serving()
        assert missing(ensemble, 1, kept) == set()


@pytest.mark.parametrize("role", ["leader", "follower"])
@pytest.mark.parametrize(("function", "number"), [("pwrite", errno.ENOSPC), ("fdatasync", errno.EIO)])
def test_the_others_continue_and_the_server_returns(role: str, function: str, number: int, tmp_path: Path) -> None:
    with ensemble_of(THREE, tmp_path) as ensemble:
        disks = {sid: Disk(ensemble, sid, function, number) for sid in ensemble.sids}
        ensemble.start_all()
        failing = next(sid for sid in ensemble.sids if ensemble.role(sid) == role)
        others = [sid for sid in ensemble.sids if sid != failing]
        with client(ensemble, failing) as writing:
            writer = Writer(writing)
            writer.ask(50)
            disks[failing].fail()
            writer.ask(50)
            acknowledged, _ = writer.acknowledged(ensemble, failing, disks[failing].said)
        ensemble.wait_serving(others)
        with client(ensemble, *others) as going_on:
            going_on.create("/meanwhile", b"")
        disks[failing].recover()
        ensemble.start(failing)
        ensemble.wait_serving()
        for sid in ensemble.sids:
            assert missing(ensemble, sid, [*acknowledged, "/meanwhile"]) == set()


def test_an_epoch_that_cannot_be_written_is_not_promised(tmp_path: Path) -> None:
    # The second server waits for a quorum until initLimit.
    with ensemble_of(THREE, tmp_path, initLimit="8") as ensemble:
        disks = {sid: Disk(ensemble, sid, "replace_file", errno.ENOSPC) for sid in ensemble.sids}
        ensemble.start_all()
        with client(ensemble) as writing:
            writing.create("/before", b"")
        leader = ensemble.leader()
        first, second = (sid for sid in ensemble.sids if sid != leader)
        epochs = epochs_of(ensemble, first)
        disks[first].fail()
        ensemble.kill(leader)
        check_stepped_down(ensemble, first, disks[first].said)
        assert epochs_of(ensemble, first) == epochs
        assert ensemble.role(second) is None
        ensemble.start(leader)
        ensemble.wait_serving([leader, second])
        disks[first].recover()
        ensemble.start(first)
        ensemble.wait_serving()
        assert missing(ensemble, first, ["/before"]) == set()


def epochs_of(ensemble: Ensemble, sid: int) -> list[str]:
    return [(ensemble.data(sid) / "version-2" / name).read_text() for name in ("acceptedEpoch", "currentEpoch")]


@contextmanager
def small_filesystem(at: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A filesystem of this size, and a function that changes the size. Skips where it cannot be mounted."""
    at.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at], capture_output=True, text=True, check=False
    )
    need(f"no filesystem can be mounted here: {mounted.stderr.strip()}" if mounted.returncode else None)
    try:
        yield lambda bigger: subprocess.run(["mount", "-o", f"remount,size={bigger}", at], check=True) and None
    finally:
        subprocess.run(["umount", "-l", at], check=True)


def test_a_filesystem_that_fills_and_gets_more_room(tmp_path: Path) -> None:
    data = tmp_path / "server-1" / "data"
    with small_filesystem(data, "1m") as resize, ensemble_of(["node"], tmp_path, standalone=True) as ensemble:
        ensemble.start_all()
        with client(ensemble) as writing:
            writer = Writer(writing)
            writer.ask(MOST_ASKED, b"x" * 10_000)
            acknowledged, refused = writer.acknowledged(ensemble, 1, os.strerror(errno.ENOSPC))
        assert len(acknowledged) <= (1 << 20) // 10_000
        assert len(acknowledged) + refused == MOST_ASKED
        resize("64m")
        ensemble.start(1)
        ensemble.wait_serving()
        assert missing(ensemble, 1, acknowledged) == set()
        with client(ensemble) as writing:
            writing.create("/room-again", b"x" * 10_000)


def test_a_server_whose_filesystem_is_full_from_the_start_says_so(tmp_path: Path) -> None:
    data = tmp_path / "server-1" / "data"
    with small_filesystem(data, "64k"), ensemble_of(["node"], tmp_path, standalone=True) as ensemble:
        (data / "filler").write_bytes(b"x" * (data_left(data)))
        ensemble.start(1)
        check_stepped_down(ensemble, 1, os.strerror(errno.ENOSPC))


def data_left(at: Path) -> int:
    found = os.statvfs(at)
    return found.f_bavail * found.f_bsize
