"""Checkpoints of a search: it resumes completely or is refused, and no failure of the folder ends the search."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest

from checker.engine import Exploration, Finding, Kind, Limits, Model, Property, Read, Stop, plain, search
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint import checkpoint_store as storing
from checker.engine.checkpoint.search_checkpoint import ReplayableTables, SearchFolder
from checker.engine.contract import described
from checker.engine.kernels import hash_tables as kernels
from checker.engine.kernels.jit import OPTIONS
from checker.engine.part import Part
from checker.engine.process import Interrupts
from checker.engine.result import SEED, disagreements
from checker.engine.states.visited import Visited
from checker.models.small_election import election
from checker.scenario import bundled, load
from spec.election.vote import ServerState
from tests.support.graphs import graph
from tests.support.sittings import After, CrashError, assert_same, in_sittings, small_blocks

DECIDED = {"LEADING", "FOLLOWING"}
NO_LIMITS = Limits()
ONWARD = [(n, "on", n + 1) for n in range(30)]  # a token that moves straight on: level n is place n


ELECTION = election(3).with_properties([])  # 6,544 states


def lively_election() -> Model:
    """Return the same election with a liveness property, so that the graph is kept."""
    reads = tuple(Read(str(sid), lambda local: local.state) for sid in (1, 2, 3))

    def decided(*states: str) -> Finding | None:
        return Finding("all have decided") if DECIDED.issuperset(states) else None

    kinds = (Kind.RECOVERABLE, Kind.EVENTUALLY, Kind.SOMETIMES)
    return election(3).with_properties([Property(kind.value, reads, decided, kind) for kind in kinds])


def kept(model: Model, folder: Path, depth: int = 5, source: object = None) -> Exploration:
    """Run a search to this depth, and write its checkpoint."""
    found = search.explore(model, Limits(depth=depth), checkpoint=Checkpoint(folder, source))
    assert (found.stop, (folder / storing.HEAD).exists()) == (Stop.DEPTH, True)
    return found


def taken_up(model: Model, folder: Path, limits: Limits = NO_LIMITS, source: object = None, **how) -> Exploration:
    return search.explore(model, limits, checkpoint=Checkpoint(folder, source, resume=True), **how)


def refused(model: Model, folder: Path, limits: Limits = NO_LIMITS, source: object = None) -> str:
    """Return the reason why a search is not resumed; assert that the checkpoint is unchanged."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(CheckpointError) as refusal:
        taken_up(model, folder, limits, source)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert str(folder) in str(refusal.value)
    return str(refusal.value)


# -- results -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_an_election_that_is_put_down_at_every_level_is_what_it_is_without(tmp_path, workers):
    model, depth = ELECTION, 0
    whole = search.explore(model)
    while (part := taken_up(model, tmp_path, Limits(depth=depth), workers=workers)).stop is Stop.DEPTH:
        assert part.levels == whole.levels[: depth + 1]
        depth += 1
    assert depth == whole.depth + 1 == 19
    assert_same(part, whole)
    assert disagreements(plain.explore(model), part) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_election_with_its_graph_is_judged_alike_down_to_the_loops(tmp_path, workers):
    model = lively_election()
    with small_blocks(50):
        broken, sittings = in_sittings(model, tmp_path, [(n, "interrupt") for n in (30, 40, 1, 50)], workers=workers)
        assert sittings == 5
        assert_same(broken, search.explore(model))
    assert disagreements(plain.explore(model), broken) == []


@pytest.mark.parametrize(
    "name", ["half-is-a-quorum", "elects-after-a-crash", "r17-smallest", "r19-no-protection-never-served"]
)
def test_scenarios_of_zab_and_of_recipes_find_the_same_by_the_same_paths(name, tmp_path):
    job = load(next(path for path in bundled() if path.stem == name))
    with small_blocks(64):
        whole = search.explore(job.model)
        broken, sittings = in_sittings(job.model, tmp_path, [(20, "interrupt"), (15, "crash"), (25, "interrupt")])
    assert sittings == 4
    assert_same(broken, whole)
    assert [found.path for found in broken.violations] == [found.path for found in whole.violations]


def test_a_killed_process_is_taken_up_by_another_in_which_strings_hash_otherwise(tmp_path):
    """The only test with a process that is really killed; all others use CrashError."""
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from checker.engine import search\n"
        "from checker.engine.checkpoint import Checkpoint\n"
        "from tests.unit.checker.engine.test_checkpoint import lively_election\n"
        "def progress(found):\n"
        "    if found.depth == 9: os.kill(os.getpid(), signal.SIGKILL)\n"
        "search.explore(lively_election(), progress=progress, checkpoint=Checkpoint(Path(sys.argv[1]), every=0.0))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    again = taken_up(lively_election(), tmp_path)
    assert "taken up" in again.notes[0]
    assert (again.levels, again.evaluations) == ((whole := search.explore(lively_election())).levels, whole.evaluations)


def test_what_an_interrupt_ends_within_a_level_is_kept_and_so_is_what_liveness_is_judged_on(tmp_path, monkeypatch):
    model = lively_election()
    with small_blocks(50):
        found = search.explore(model, progress=After(60, "interrupt"), checkpoint=Checkpoint(tmp_path))
        assert (found.stop, 0 < found.states < 6544) == (Stop.INTERRUPTED, True)
        with monkeypatch.context() as patched:
            patched.setattr(
                search.graph_liveness, "judge", Failing(search.graph_liveness.judge, 1, KeyboardInterrupt())
            )
            again = taken_up(model, tmp_path)
        last, whole = taken_up(model, tmp_path), search.explore(model)
    assert again.notes[0].startswith(f"taken up from {tmp_path}, where {found.states:,} states were kept; kept in ")
    assert again.stop is Stop.INTERRUPTED
    assert last.notes == [f"taken up from {tmp_path}, where 6,544 states were kept"]
    assert_same(last, whole)


def test_what_was_found_before_is_not_found_once_more(tmp_path):
    """At place 20 and later two properties have a finding; one of them had its first at place 3."""
    model = graph(ONWARD)
    read = Read(model.columns[0].name)
    wanted = [Property(f"from {n}", (read,), lambda at, n=n: Finding("there") if at >= n else None, Kind.SOMETIMES)
              for n in (3, 20)]  # fmt: skip
    model = model.with_properties(wanted)
    kept(model, tmp_path)
    again = taken_up(model, tmp_path)
    assert [found.depth for found in again.found.values()] == [3, 20]
    assert_same(again, search.explore(model))


def test_what_is_read_back_in_many_parts_is_the_same(tmp_path, monkeypatch):
    """Millions of states are read back in chunks; a small chunk size makes that happen with a few states."""
    model = lively_election()
    kept(model, tmp_path, depth=12)
    monkeypatch.setattr(storing, "CHUNK", 1000)
    assert_same(taken_up(model, tmp_path), search.explore(model))


def test_seconds_add_up_and_a_limit_of_time_is_one_for_each_sitting(tmp_path, monkeypatch):
    """The clock advances by 2 at each report, and by 100 while a search resumes, which no limit counts."""
    now, load = [0.0], SearchFolder.load

    def slowly(_):
        now[0] += 2

    def loaded_slowly(*arguments, **named):
        now[0] += 100
        return load(*arguments, **named)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(SearchFolder, "load", loaded_slowly)
    monkeypatch.setattr(search, "REPORT_EVERY", 1e9)  # only the reports between levels and at the end remain
    before, sittings = 0.0, 1
    while (part := taken_up(ELECTION, tmp_path, Limits(seconds=5), progress=slowly)).stop is Stop.TIME:
        assert part.seconds - part.seconds_before >= 5
        assert part.seconds_before >= before
        before, sittings = part.seconds_before + 5, sittings + 1
    assert part.seconds > before
    assert 3 < sittings < 20
    assert_same(part, search.explore(ELECTION))


def test_what_came_to_its_end_is_not_kept_and_nothing_else_is_removed(tmp_path):
    (tmp_path / "checkpoint-mine.txt").write_text("mine")
    kept(ELECTION, tmp_path)
    assert taken_up(ELECTION, tmp_path).stop is Stop.EXHAUSTED
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-mine.txt"]
    anew = taken_up(ELECTION, tmp_path)
    assert anew.notes == [f"{tmp_path}: nothing was kept there, so the search began anew"]


def test_a_search_without_a_checkpoint_keeps_no_fingerprints_and_no_questions():
    alone = Part(election(2), SEED)
    assert alone.state.history.record.itemsize == 6
    assert not isinstance(alone.tables, ReplayableTables)


# -- refusals ------------------------------------------------------------------------------------------------


def test_a_folder_in_which_a_search_is_kept_is_not_written_over(tmp_path):
    kept(ELECTION, tmp_path)
    with pytest.raises(CheckpointError, match=r"a search of .* states is kept there already; resume it"):
        search.explore(ELECTION, checkpoint=Checkpoint(tmp_path))
    assert taken_up(ELECTION, tmp_path).stop is Stop.EXHAUSTED


def test_another_source_model_engine_or_format_is_refused(tmp_path, monkeypatch):
    kept(ELECTION, tmp_path, source={"text": "one"})
    assert "as it was made then" in refused(ELECTION, tmp_path, source={"text": "two"})
    assert "'graph'" in refused(graph(ONWARD), tmp_path, source={"text": "one"})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", lambda path: b"changed")
        with pytest.raises(CheckpointError, match="another version of the engine"):
            taken_up(ELECTION, tmp_path, source={"text": "one"})
    monkeypatch.setattr(storing, "FORMAT", 5)
    assert "not in format 5" in refused(ELECTION, tmp_path, source={"text": "one"})


def test_a_search_is_resumed_by_another_number_of_workers_and_with_no_other_seed(tmp_path):
    kept(ELECTION, tmp_path)
    with pytest.raises(CheckpointError, match="this search has the seed 1; use it, or"):
        taken_up(ELECTION, tmp_path, seed=2)
    assert_same(taken_up(ELECTION, tmp_path, workers=3), search.explore(ELECTION))


@pytest.mark.parametrize(("kind", "other"), list(pairwise([*Kind, Kind.ALWAYS])))
def test_a_model_whose_property_is_of_another_kind_is_refused(kind, other, tmp_path):
    """A property of another kind is checked in other states, ends a search differently, and may need the graph."""
    reads = tuple(Read(str(sid), lambda local: local.state) for sid in (1, 2, 3))
    check = lively_election().properties[0].check
    one, another = (election(3).with_properties([Property("P", reads, check, each)]) for each in (kind, other))
    kept(one, tmp_path)
    assert "as it was made then" in refused(another, tmp_path)


@pytest.mark.parametrize("place", [2, 4])
def test_a_model_whose_functions_answer_otherwise_is_refused(place, tmp_path):
    """The model has the same name and source; its graph differs in one visited edge, or only in a value."""
    kept(graph(ONWARD), tmp_path)
    edges = [edge if edge[0] != place else (place, "on", 0) for edge in ONWARD]
    assert "do not answer as they did" in refused(graph(edges), tmp_path)
    renamed = [tuple(str(part) if part == place else part for part in edge) for edge in ONWARD]
    assert "do not answer as they did" in refused(graph(renamed), tmp_path)


def test_what_was_not_asked_yet_may_change(tmp_path):
    """The visited part agrees with the changed model, so the result is the search of the changed model."""
    kept(graph(ONWARD), tmp_path)
    other = graph([*ONWARD[:20], (20, "on", 0)])
    assert_same(taken_up(other, tmp_path), search.explore(other))


def test_each_file_that_is_damaged_cut_short_or_gone_is_refused(tmp_path):
    model = lively_election()
    kept(model, tmp_path)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == [
        *(f"checkpoint-{name}" for name in ("degrees", "labels", "marks", "now-1", "questions", "states", "targets")),
        "checkpoint.json",
    ]
    for path in files:
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        assert "damaged" in refused(model, tmp_path)
        path.write_bytes(whole[:-1])
        assert ("damaged" if path.name == storing.HEAD else "1 bytes are missing") in refused(model, tmp_path)
        path.write_bytes(whole)
    for path in files[:-1]:
        whole = path.read_bytes()
        path.unlink()
        assert "cannot be read" in refused(model, tmp_path)
        path.write_bytes(whole)
    assert_same(taken_up(model, tmp_path), search.explore(model))


def test_rows_that_are_not_those_of_the_states_are_refused_though_every_checksum_is_right(tmp_path):
    kept(ELECTION, tmp_path)
    rows, head = tmp_path / "checkpoint-now-1", tmp_path / storing.HEAD
    for cells in (b"\x03\0\0\0", b"\xff\xff\xff\xff"):
        rows.write_bytes(cells + rows.read_bytes()[4:])
        text = json.loads(head.read_text().partition("\n")[2])
        text["search"]["parts"][0]["files"]["now-1"]["sha256"] = sha256(rows.read_bytes()).hexdigest()
        written = json.dumps(text)
        head.write_text(f"{sha256(written.encode()).hexdigest()}\n{written}")
        assert "row" in refused(ELECTION, tmp_path)


def test_a_bound_that_would_have_ended_the_search_before_is_refused(tmp_path):
    found = kept(ELECTION, tmp_path, depth=5)
    assert "beyond the limit" in refused(ELECTION, tmp_path, Limits(depth=4))
    assert "beyond the limit" in refused(ELECTION, tmp_path, Limits(states=sum(found.levels[:-1])))
    assert taken_up(ELECTION, tmp_path, Limits(depth=5)).levels == found.levels
    assert taken_up(ELECTION, tmp_path, Limits(states=found.states)).levels == found.levels


def test_a_folder_that_cannot_be_or_that_another_search_uses_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="no checkpoint can be kept there"):
        taken_up(election(2), tmp_path / "file")
    store = storing.CheckpointStore(tmp_path)
    store.open()
    with pytest.raises(CheckpointError, match="another search is kept there"):
        taken_up(election(2), tmp_path)
    store.close()
    assert taken_up(election(2), tmp_path).stop is Stop.EXHAUSTED


# -- failures ------------------------------------------------------------------------------------------------


class Failing:
    """A function whose n-th call raises an error; with `ever`, every later call does too."""

    def __init__(self, function, number: int, error: BaseException, *, ever: bool = False) -> None:
        self.function, self.number, self.error, self.ever, self.calls = function, number, error, ever, 0

    def __call__(self, *arguments):
        self.calls += 1
        if self.calls == self.number or (self.ever and self.calls > self.number):
            raise self.error
        return self.function(*arguments)


def test_a_full_disk_ends_no_search_and_what_was_kept_stays(tmp_path, monkeypatch):
    model = lively_election()
    full = Failing(os.fsync, 60, OSError(errno.ENOSPC, "No space left on device"), ever=True)
    with small_blocks(200), monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        found = search.explore(model, checkpoint=Checkpoint(tmp_path, every=0.0))
        assert_same(found, search.explore(model))
    assert full.calls > 61, "it was tried again"


def test_what_could_not_be_kept_is_said_and_what_was_kept_before_is_taken_up(tmp_path, monkeypatch):
    model, full = lively_election(), OSError(errno.ENOSPC, "No space left on device")
    with small_blocks(200), monkeypatch.context() as patched:
        patched.setattr(os, "fsync", Failing(os.fsync, 60, full, ever=True))
        found = search.explore(model, Limits(depth=8), checkpoint=Checkpoint(tmp_path, every=0.0))
    (note,) = found.notes
    states = int(note.rpartition(" has ")[2].split()[0].replace(",", ""))
    assert note.startswith(f"{tmp_path}: the search could not be kept (No space left on device)")
    again = taken_up(model, tmp_path)
    assert 0 < states < found.states
    assert again.notes == [f"taken up from {tmp_path}, where {states:,} states were kept"]
    assert disagreements(again, search.explore(model)) == []


def test_a_folder_that_vanishes_ends_no_search(tmp_path):
    folder = tmp_path / "here"
    found = search.explore(
        ELECTION, Limits(depth=8), checkpoint=Checkpoint(folder), progress=lambda _: shutil.rmtree(folder, True)
    )
    assert found.stop is Stop.DEPTH
    (note,) = found.notes
    assert note.endswith("could not be kept (No such file or directory); nothing is kept there")


@pytest.mark.parametrize("function", ["fsync", "replace", "unlink"])
def test_a_crash_at_any_moment_of_writing_leaves_the_older_or_the_newer_whole(function, tmp_path, monkeypatch):
    """A second checkpoint is interrupted at its n-th fsync, rename or removal, for every n that occurs."""
    model = lively_election()
    whole = search.explore(model)
    for number in range(1, 12):
        folder = tmp_path / str(number)
        kept(model, folder)
        where = os if function == "fsync" else Path
        breaking = Failing(getattr(where, function), number, CrashError())
        with monkeypatch.context() as patched:
            patched.setattr(where, function, lambda *args, broken=breaking, **_: broken(*args))
            try:
                taken_up(model, folder, Limits(depth=8))
                break
            except CrashError:
                pass
        assert taken_up(model, folder, Limits(depth=9)).stop is Stop.DEPTH, "what was broken off is written over"
        assert_same(taken_up(model, folder), whole)
        assert not list(folder.iterdir()), "also what was broken off is removed in the end"
    assert 1 < number < 12


@pytest.fixture
def sigterm_as_ctrl_c() -> Iterator[None]:
    """SIGTERM is handled like Ctrl-C, as in `python -m checker`."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("sigterm_as_ctrl_c")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interrupt_waits_and_the_second_does_not(by):
    interrupts = Interrupts()
    with pytest.raises(KeyboardInterrupt), interrupts:
        signal.raise_signal(by)
        assert interrupts.requested
        signal.raise_signal(by)
        raise AssertionError("the second one interrupts at once")
    interrupts = Interrupts()
    with pytest.raises(KeyboardInterrupt), interrupts:  # a pending interrupt is raised on exit
        signal.raise_signal(by)
        done = True
    assert done
    for each in (signal.SIGINT, signal.SIGTERM):
        assert signal.getsignal(each) is signal.default_int_handler


def test_a_signal_that_is_not_as_ctrl_c_is_left_alone():
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts():
        assert signal.getsignal(signal.SIGTERM) is before is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def test_an_interrupt_at_the_very_moment_of_entering_leaves_the_next_one_as_it_was(monkeypatch):
    """The signal arrives when the handler is installed and nothing else has happened."""
    install = signal.signal

    def hit(number, handler):
        install(number, handler)
        if handler is not signal.default_int_handler:
            signal.raise_signal(number)

    interrupts = Interrupts()
    monkeypatch.setattr(signal, "signal", hit)
    with pytest.raises(KeyboardInterrupt), interrupts:
        assert interrupts.requested
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second one interrupts at once")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_search_in_another_thread_is_kept_too_and_leaves_signals_alone(tmp_path):
    found: list[Exploration] = []
    beside = threading.Thread(target=lambda: found.append(kept(ELECTION, tmp_path)))
    beside.start()
    beside.join()
    assert_same(taken_up(ELECTION, tmp_path), search.explore(ELECTION))


# -- values in words -----------------------------------------------------------------------------------------


def test_values_are_told_apart_by_type_and_content_and_sets_whatever_their_order():
    ours = (ServerState.LEADING, ELECTION.columns[0].initial)
    values = [1, True, "1", b"1", 1.0, None, (), (1,), frozenset({1}), frozenset({"a", "b"}), ((1,),), *ours]
    assert len({described(value) for value in values}) == len(values)
    many = [f"server {n}" for n in range(50)]
    assert described(frozenset(many)) == described(frozenset(reversed(many)))
    assert described((frozenset({(1, "x")}),)) == "tuple(frozenset(tuple(1, 'x')))"


def test_the_kernel_that_refills_the_set_counts_no_references():
    Visited().refill(np.arange(1, 9, dtype=np.uint64), np.arange(8, dtype=np.uint32))
    anew = numba.njit(**OPTIONS)(kernels.refill.py_func)
    anew.compile(kernels.refill.signatures[0])
    code = "".join(anew.inspect_llvm().values())
    assert "refill" in code
    assert "NRT_incref" not in code
