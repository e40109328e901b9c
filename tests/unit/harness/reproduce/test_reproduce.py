"""The parts of `python -m harness reproduce` that need no real server: packets, the disk gate, schedules, errors."""

import errno
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from checker.engine.model import Finding
from checker.engine.semantics import read
from harness.__main__ import main
from harness.corrections.agent import FOLDER, class_of
from harness.corrections.choice import CORRECTIONS
from harness.processes import wait_until
from harness.reproduce import command
from harness.reproduce.disks import logged_zxids, newest_snapshot_paths, password_of, path_of, write_disk
from harness.reproduce.ends import Outcome, Reproduction, WriteFate, is_committed
from harness.reproduce.gates import DiskGate, ServerThread, ThreadGate, compile_shim
from harness.reproduce.proxies import SNAPSHOT_END, split_packet
from harness.reproduce.schedule import (
    Schedule,
    ScheduleError,
    load_schedule,
    with_corrections,
    with_losses,
    without,
)
from refimpl.disk import database
from refimpl.wire.packet import Packet, PacketType, encode_raw
from spec.durable import Durable
from spec.txn import Txn, make_zxid
from spec.zab.state import Leader
from tests.support.schedules import run_of

SCENARIOS = Path(__file__).parents[4] / "spec" / "scenarios"
HEALING = SCENARIOS / "r10-whole-protocol" / "r10-zab-healing.yaml"
TRUNCATION = SCENARIOS / "known-defects" / "acks-survive-truncation.yaml"
RECORD = bytes(8) + (32).to_bytes(4, "big") + bytes(12) + make_zxid(2, 1).to_bytes(8, "big") + bytes(12) + b"B"
"""A record of a log: checksum, length, a header with the zxid 2:1, the end mark."""


class TestPackets:
    def test_a_packet_is_split_at_its_end_with_its_type_and_zxid(self) -> None:
        first, second = (
            Packet(PacketType.COMMIT, make_zxid(2, 1)),
            Packet(PacketType.PROPOSAL, make_zxid(2, 2), b"data"),
        )
        found = split_packet(encode_raw(first) + encode_raw(second))
        assert found is not None
        assert (found[0].name, found[0].zxid, found[0].raw) == ("COMMIT", make_zxid(2, 1), encode_raw(first))
        assert found[1] == encode_raw(second)

    @pytest.mark.parametrize("packet", [Packet(PacketType.PROPOSAL, 1, b"data"), Packet(PacketType.UPTODATE, -1)])
    def test_every_beginning_of_a_packet_is_incomplete(self, packet: Packet) -> None:
        raw = encode_raw(packet)
        assert [split_packet(raw[:size]) for size in range(len(raw))] == [None] * len(raw)

    def test_a_snap_ends_with_its_snapshot(self) -> None:
        snap, after = encode_raw(Packet(PacketType.SNAP, 7)), encode_raw(Packet(PacketType.NEWLEADER, 1 << 32))
        stream = snap + b"the tree" + SNAPSHOT_END + after
        assert split_packet(stream[: len(stream) - len(after) - 1]) is None
        found = split_packet(stream)
        assert found is not None
        assert (found[0].name, found[1]) == ("SNAP", after)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_shim(tmp_path_factory.mktemp("shim"))


class Writer:
    def __init__(self, directory: Path, shim: Path, records: int = 1, *, full: bool = False) -> None:
        self.gate = DiskGate(directory / "gate")
        if full:
            self.gate.fill()
        self.file = directory / "log.200000001"
        script = (
            f"import os; f = os.open({str(self.file)!r}, os.O_WRONLY | os.O_CREAT)\n"
            f"os.write(f, b'H' * 16)\n"
            f"try:\n    for _ in range({records}): os.write(f, {RECORD!r})\n"
            f"except OSError as error: os._exit(error.errno)\n"
        )
        environment = os.environ | {"LD_PRELOAD": str(shim), "DISK_GATE": str(self.gate.directory)}
        self.process = subprocess.Popen([sys.executable, "-c", script], env=environment)

    @property
    def size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0

    def wait_for_write(self) -> None:
        wait_until(lambda: bool(self.gate.waiting()), 20.0, "a write waits")


class TestDiskGate:
    def test_a_record_is_not_in_the_file_before_permission(self, tmp_path: Path, shim: Path) -> None:
        writer = Writer(tmp_path, shim)
        writer.wait_for_write()
        assert writer.gate.waiting() == (make_zxid(2, 1),)
        time.sleep(0.1)
        assert writer.size == 16, "the header of the file passes, the record does not"
        writer.gate.permit()
        assert writer.process.wait(20.0) == 0
        assert writer.size == 16 + len(RECORD)

    def test_a_permission_is_for_one_write(self, tmp_path: Path, shim: Path) -> None:
        writer = Writer(tmp_path, shim, records=2)
        writer.wait_for_write()
        writer.gate.permit()
        wait_until(lambda: writer.size == 16 + len(RECORD), 20.0, "the first record is written")
        writer.wait_for_write()
        assert writer.size == 16 + len(RECORD)
        writer.gate.open()
        assert writer.process.wait(20.0) == 0
        assert writer.size == 16 + 2 * len(RECORD)

    def test_the_end_of_the_process_loses_a_record_that_waits(self, tmp_path: Path, shim: Path) -> None:
        writer = Writer(tmp_path, shim)
        writer.wait_for_write()
        writer.process.kill()
        writer.process.wait(20.0)
        assert writer.size == 16
        writer.gate.reset()
        assert writer.gate.waiting() == ()

    def test_an_open_gate_holds_nothing(self, tmp_path: Path, shim: Path) -> None:
        (tmp_path / "gate").mkdir()
        (tmp_path / "gate" / "open").touch()
        writer = Writer(tmp_path, shim)
        assert writer.process.wait(20.0) == 0
        assert writer.size == 16 + len(RECORD)

    def test_a_full_disk_takes_the_header_of_a_file_and_no_record(self, tmp_path: Path, shim: Path) -> None:
        writer = Writer(tmp_path, shim, full=True)
        assert writer.process.wait(20.0) == errno.ENOSPC
        assert writer.size == 16

    def test_a_write_that_waits_fails_when_the_disk_becomes_full(self, tmp_path: Path, shim: Path) -> None:
        writer = Writer(tmp_path, shim)
        writer.wait_for_write()
        writer.gate.fill()
        assert writer.process.wait(20.0) == errno.ENOSPC
        assert writer.size == 16

    def test_a_disk_with_space_again_is_written(self, tmp_path: Path, shim: Path) -> None:
        (tmp_path / "gate").mkdir()
        (tmp_path / "gate" / "open").touch()
        gate = DiskGate(tmp_path / "gate")
        gate.fill()
        gate.free()
        writer = Writer(tmp_path, shim)
        assert writer.process.wait(20.0) == 0
        assert writer.size == 16 + len(RECORD)


class Threads:
    """A process with two threads: QuorumPeer wakes SyncThread, and SyncThread appends a record to a log."""

    def __init__(self, directory: Path, shim: Path) -> None:
        self.directory, self.gate = directory, ThreadGate(directory / "threads")
        self._shim = shim
        (directory / "gate").mkdir()
        (directory / "gate" / "open").touch()

    def start(self) -> None:
        environment = {"LD_PRELOAD": str(self._shim), "DISK_GATE": str(self.directory / "gate")}
        environment["THREAD_GATE"] = str(self.gate.directory)
        self.process = subprocess.Popen([sys.executable, "-c", TWO_THREADS], env=os.environ | environment,
                                        cwd=self.directory)  # fmt: skip

    def wait_for(self, name: str) -> None:
        wait_until((self.directory / name).exists, 20.0, f"the process has made {name}")

    def has_made(self, name: str) -> bool:
        return (self.directory / name).exists()

    def end(self) -> int:
        return self.process.wait(20.0)


TWO_THREADS = f"""
import ctypes, os, sys, threading, time
sys.setswitchinterval(1000)  # no thread waits for the interpreter's lock with the name of a server's thread
c, keeping_lock = ctypes.CDLL(None), ctypes.PyDLL(None)
mutex, condition, waits = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64), threading.Event()
def sync():
    keeping_lock.pthread_mutex_lock(mutex)
    waits.set()
    keeping_lock.prctl(15, b"SyncThread:1", 0, 0, 0)
    c.pthread_cond_wait(condition, mutex)
    c.pthread_mutex_unlock(mutex)
    log = os.open("log.200000001", os.O_WRONLY | os.O_CREAT)
    os.write(log, {RECORD!r})
    open("written", "w").close()
thread = threading.Thread(target=sync)
thread.start()
waits.wait()
c.pthread_mutex_lock(mutex)  # from here on the other thread waits
c.pthread_mutex_unlock(mutex)
keeping_lock.prctl(15, b"QuorumPeer[myid=1]", 0, 0, 0)
c.pthread_cond_signal(condition)
while c.pthread_mutex_trylock(mutex):
    time.sleep(0.01)
c.pthread_mutex_unlock(mutex)
open("locked", "w").close()
thread.join()
"""


class TestThreadGate:
    def test_a_held_thread_rests_after_it_is_woken_and_keeps_no_lock(self, tmp_path: Path, shim: Path) -> None:
        threads = Threads(tmp_path, shim)
        threads.gate.hold(ServerThread.SYNC)
        threads.start()
        wait_until(lambda: threads.gate.is_held(ServerThread.SYNC), 20.0, "the thread is held")
        threads.wait_for("locked")
        time.sleep(0.1)
        assert not threads.has_made("written")
        threads.gate.release(ServerThread.SYNC)
        assert threads.end() == 0
        assert threads.has_made("written")
        assert not threads.gate.is_held(ServerThread.SYNC)

    def test_a_lingering_thread_rests_after_it_has_woken_the_sync_thread(self, tmp_path: Path, shim: Path) -> None:
        threads = Threads(tmp_path, shim)
        threads.gate.linger(ServerThread.PEER)
        threads.start()
        threads.wait_for("written")
        time.sleep(1.5)
        assert not threads.has_made("locked"), "longer than the second for any other thread"
        threads.gate.release(ServerThread.PEER)
        assert threads.end() == 0
        assert threads.has_made("locked")

    def test_open_gates_hold_no_thread(self, tmp_path: Path, shim: Path) -> None:
        threads = Threads(tmp_path, shim)
        for thread in ServerThread:
            threads.gate.hold(thread)
            threads.gate.linger(thread)
        threads.gate.open()
        threads.start()
        assert threads.end() == 0
        assert threads.has_made("written")
        assert threads.has_made("locked")


def test_an_initial_disk_is_read_by_the_node_with_the_same_transactions(tmp_path: Path) -> None:
    log = (Txn(make_zxid(1, 1), "a"), Txn(make_zxid(1, 2), 7), Txn(make_zxid(2, 1), "b"))
    write_disk(tmp_path, Durable(2, 2, make_zxid(1, 1), log), znodes=3)
    loaded = database.load(tmp_path, tmp_path)
    paths = {path for path, _ in loaded.tree.preorder()}
    assert {path_of(txn.zxid, txn.value) for txn in log} <= paths
    assert {"/base", "/base/000000", "/base/000001", "/base/000002"} <= paths
    assert logged_zxids(tmp_path) == (make_zxid(1, 2), make_zxid(2, 1)), "the first one is in the snapshot"


def test_the_newest_complete_snapshot_is_read_and_a_beginning_is_not(tmp_path: Path) -> None:
    log = (Txn(make_zxid(1, 1), "a"), Txn(make_zxid(1, 2), 7))
    write_disk(tmp_path, Durable(1, 1, make_zxid(1, 2), log))
    assert newest_snapshot_paths(tmp_path) == {path_of(txn.zxid, txn.value) for txn in log}
    newer = tmp_path / "version-2" / f"snapshot.{make_zxid(2, 0):x}"
    newer.write_bytes(b"ZKSN")
    assert newest_snapshot_paths(tmp_path) == {path_of(txn.zxid, txn.value) for txn in log}


def test_the_sessions_of_an_initial_disk_are_open(tmp_path: Path) -> None:
    write_disk(tmp_path, Durable(), sessions=(0x101, 0x102))
    assert set(database.load(tmp_path, tmp_path).tree.sessions) == {0x101, 0x102}


@pytest.mark.parametrize(
    ("session", "password"),
    [
        (0x101, "eb38a650419231d3daf1bf7a6b9f67f1"),
        (0x201, "3872093f227214718cd188b04e1a022f"),
        (0x1234567890ABCDEF, "f7721b383fd583ba74d220ede39f7b43"),
    ],
)
def test_the_password_of_a_session_is_that_of_java_util_random(session: int, password: str) -> None:
    """The values were printed by `new Random(id ^ 0xB3415C00L).nextBytes(bytes)` of OpenJDK 17."""
    assert password_of(session).hex() == password


@cache
def schedule_of_defect(name: str) -> Schedule:
    """The schedule of a known defect; the search for it takes seconds."""
    return load_schedule(SCENARIOS / "known-defects" / f"{name}.yaml")


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    return schedule_of_defect("acks-survive-truncation")


class TestSchedule:
    def test_a_scenario_gives_the_steps_of_its_shortest_violation(self, schedule: Schedule) -> None:
        assert [step.number for step in schedule.steps] == list(range(1, 13))
        assert [step.move.action for step in schedule.steps][4] == "disconnect"
        assert schedule.zxids[1] == make_zxid(2, 1)

    def test_without_the_disconnection_the_server_with_the_write_is_elected(self, schedule: Schedule) -> None:
        control = without(schedule, 5)
        left_out = [number for number, _ in control.omitted]
        assert left_out == [5, 6, 8], "the disconnection, the return of server 1, and its TRUNC"
        last = control.steps[-1].after
        assert isinstance(control.server(last, 1).zab, Leader)
        assert make_zxid(2, 1) in [txn.zxid for txn in control.server(last, 1).durable.txns]

    def test_a_step_that_the_run_does_not_have_is_an_error(self, schedule: Schedule) -> None:
        with pytest.raises(ScheduleError, match="the run has no step 13; write one of 1 to 12"):
            without(schedule, 13)

    def test_a_leader_without_a_quorum_gives_up_at_once(self) -> None:
        """The operator stops server 1 in step 31; leader 3 has no other follower."""
        shortest = load_schedule(HEALING)
        schedule = with_losses(shortest)
        (added,) = [step for step in schedule.steps if step.move.action == "lose quorum"]
        assert len(schedule.steps) == len(shortest.steps) + 1
        assert (added.number, added.caption) == (31, "server.3 has lost its quorum")
        assert isinstance(shortest.server(shortest.steps[-1].after, 3).zab, Leader)
        assert schedule.server(schedule.steps[-1].after, 3).zab is None
        joined = schedule.server(schedule.steps[-1].after, 1)
        assert joined == shortest.server(shortest.steps[-1].after, 1), "server 1 serves with its own transaction"

    def test_a_loss_that_comes_late_in_a_run_comes_at_once(self) -> None:
        """Both followers have crashed by step 3; in this run leader 3 gives up after their return."""
        late = run_of(
            SCENARIOS / "known-defects" / "trunc-after-snap.yaml",
            "a client writes", "server.1 crashes", "server.2 crashes", "server.1 starts", "server.2 starts",
            "server.3 has lost its quorum", "server.1 and server.3 elect server.2", "server.3 receives TRUNC",
            "server.3 receives NEWLEADER",
        )  # fmt: skip
        schedule = with_losses(late)
        numbers = [(step.number, step.move.action == "lose quorum") for step in schedule.steps]
        assert (6, True) in [(step.number, step.move.action == "lose quorum") for step in late.steps]
        assert numbers[2:6] == [(3, False), (3, True), (4, False), (5, False)] and (6, True) not in numbers
        assert schedule.steps[-1].after == late.steps[-1].after

    def test_a_run_whose_leaders_keep_their_quorum_is_not_changed(self, schedule: Schedule) -> None:
        assert with_losses(schedule) == schedule

    def test_the_pairs_that_a_partition_cuts_have_one_server_on_each_side(self, schedule: Schedule) -> None:
        assert schedule.crossing((1, 3)) == [(1, 2), (2, 3)]

    def test_an_election_message_by_message_is_refused(self) -> None:
        with pytest.raises(ScheduleError, match="write protocol: zab and grain: oracle"):
            schedule_of_defect("zookeeper-1514")

    def test_a_scenario_without_a_violation_is_refused(self) -> None:
        with pytest.raises(ScheduleError, match="the exploration finds nothing to reproduce"):
            load_schedule(SCENARIOS / "zab-workloads" / "zab-syncs.yaml")


class TestCorrections:
    """A schedule on the model with its correction. The defects are those of the scenarios, or of an observer's rule."""

    @pytest.mark.parametrize("name", ["acks-survive-truncation", "sync-from-applied", "trunc-after-snap"])
    def test_no_invariant_fails_at_the_end_of_a_corrected_run(self, name: str) -> None:
        schedule = schedule_of_defect(name)
        run = with_corrections(schedule)
        assert run.corrections == (name,)
        assert len(run.steps) == len(schedule.steps) and not run.omitted
        assert (findings(schedule), findings(run)) == (1, 0)

    def test_the_next_packet_is_delivered_if_it_is_another_one(self) -> None:
        """A leader that has committed 2:1 has nothing to truncate at a follower whose log ends with 2:1."""
        schedule = schedule_of_defect("sync-from-applied")
        captions = [
            (step.caption, other.caption)
            for step, other in zip(schedule.steps, with_corrections(schedule).steps, strict=True)
        ]
        changed = [pair for pair in captions if pair[0] != pair[1]]
        assert changed == [
            ("server.1 receives TRUNC 1:1 from server.3", "server.1 receives DIFF 2:1 from server.3"),
            ("server.1 elects server.2", "server.2 elects server.1"),
        ]

    def test_an_observer_that_becomes_a_voter_logs_first(self) -> None:
        schedule = with_corrections(
            load_schedule(SCENARIOS / "r4-observers" / "r4-observer-promoted-loses-a-write.yaml")
        )
        assert schedule.corrections == ("observer-becomes-voter",)
        (acknowledged,) = [step for step in schedule.steps if "server.3 receives NEWLEADER" in step.caption]
        assert make_zxid(2, 1) in [txn.zxid for txn in schedule.server(acknowledged.after, 3).durable.records]

    def test_a_run_without_a_correction_is_refused(self) -> None:
        schedule = schedule_of_defect("zookeeper-4646")
        with pytest.raises(
            ScheduleError, match="no correction belongs to it; name a run with one of the defects acks-"
        ):
            with_corrections(schedule)

    def test_each_correction_has_a_class(self) -> None:
        assert [name for name in CORRECTIONS if not (FOLDER / f"{class_of(name)}.java").is_file()] == []


def findings(schedule: Schedule) -> int:
    """The number of properties that fail in the last state."""
    values = [(prop, read(schedule.model, prop.reads, schedule.steps[-1].after)) for prop in schedule.model.properties]
    return sum(cells is not None and isinstance(prop.check(*cells), Finding) for prop, cells in values)


class TestDelays:
    """The steps whose events the driver delays, from the schedules of three older defects."""

    def test_a_sync_thread_that_outlives_its_server_writes_late(self) -> None:
        schedule = schedule_of_defect("zookeeper-4712")
        assert schedule.written_late == {(1, make_zxid(2, 1))}

    def test_a_follower_that_has_acknowledged_uptodate_commits_late_before_it_serves(self) -> None:
        schedule = schedule_of_defect("zookeeper-3023")
        late = [(step, sid) for step in schedule.steps for sid in schedule.commits_late(step)]
        assert [(step.number, sid) for step, sid in late] == [(12, 1)]
        step, sid = late[0]
        assert "receives UPTODATE" in step.caption
        assert (schedule.serves(step.before, sid), schedule.serves(step.after, sid)) == (False, True)

    def test_a_leader_whose_only_follower_crashes_leads_without_a_quorum(self) -> None:
        schedule = schedule_of_defect("zookeeper-4646")
        crash = schedule.steps[12]
        assert crash.caption == "server.1 crashes"
        assert [schedule.leads_without_quorum(row, 3) for row in (crash.before, crash.after)] == [False, True]


class TestCommitted:
    """A write of an earlier epoch is committed once a leader serves that has it, and not by one that never had it."""

    @pytest.mark.parametrize(
        ("name", "steps"), [("zookeeper-4646", 11), ("zookeeper-4643", 5), ("zookeeper-4712", None)]
    )
    def test_a_write_is_committed_by_a_leader_that_has_it(self, name: str, steps: int | None) -> None:
        schedule = schedule_of_defect(name)
        committed = [n for n in range(len(schedule.steps) + 1) if is_committed(schedule, 1, n)]
        assert committed == ([] if steps is None else list(range(steps, len(schedule.steps) + 1)))


class TestResult:
    def test_only_an_acknowledged_write_is_lost(self) -> None:
        """A committed write without a reply to its client is reversed, and no text about it has the word LOST."""
        result = Reproduction(Outcome.CONFIRMED, acknowledged={"/a": 1, "/b": 1}, committed=("/a", "/c"), servers=3)
        result.present = {"/a": (), "/b": (1, 2), "/c": (), "/d": (), "/e": (1, 2, 3)}
        fates = {path: result.fate(path) for path in result.present}
        assert fates == {
            "/a": WriteFate.LOST,
            "/b": WriteFate.PRESENT,
            "/c": WriteFate.REVERSED,
            "/d": WriteFate.ABSENT,
            "/e": WriteFate.PRESENT,
        }
        assert result.diverged == ("/b",)
        assert [line for line in command._summary(result) if "LOST" in line] == [
            "  /a after all servers have recovered: LOST: acknowledged, and at no server"
        ]

    def test_a_control_fails_with_a_reversed_write(self) -> None:
        result = Reproduction(Outcome.CONFIRMED, committed=("/c",), present={"/c": ()}, servers=3)
        assert command._exit_code([result], control=True) == 1
        assert "an acknowledged write lost 0 of 1, a committed write without an answer reversed 1 of 1" in (
            command._total([result])
        )

    @pytest.mark.parametrize(
        ("outcome", "present", "code"),
        [
            (Outcome.CONFIRMED, (1, 2, 3), 0),
            (Outcome.CONFIRMED, (), 1),
            (Outcome.CONFIRMED, (1,), 1),
            (Outcome.NOT_CONFIRMED, (1, 2, 3), 1),
            (Outcome.HARNESS_FAILED, (1, 2, 3), 3),
        ],
    )
    def test_a_correction_is_right_if_the_run_is_the_models_and_nothing_is_lost(
        self, outcome: Outcome, present: tuple[int, ...], code: int
    ) -> None:
        result = Reproduction(outcome, acknowledged={"/a": 1}, present={"/a": present}, servers=3)
        assert command._exit_code([result], corrected=True) == code
        assert command._correctness(result).startswith("corrected: ") is (code == 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope.yaml"], "nope.yaml: "),
        ([str(TRUNCATION), "--release", "3.9.99"], "3.9.99"),
        ([str(TRUNCATION), "--without", "99"], "the run has no step 99; write one of 1 to 12"),
        ([str(HEALING), "--with-correction"], "no correction belongs to it"),
        ([str(TRUNCATION), "--keep", "."], "--keep .: the folder exists; name a new one"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *words]) == 2
    error = capsys.readouterr().err
    *progress, last = error.splitlines()  # a slow exploration says how far it is
    assert said in last
    assert last.startswith("error: ")
    assert all(" states, " in line for line in progress)
