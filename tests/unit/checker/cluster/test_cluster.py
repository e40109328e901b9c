"""Searches by several parts in this process: limits, interrupts, saves, and inputs that are refused."""

import os
import signal
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from checker.cluster import Ray, workers_named
from checker.cluster.messages import Pieces, dealt, joined
from checker.engine import (
    Actor,
    Column,
    Finding,
    Kind,
    Limits,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    Stop,
    plain,
)
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.search_checkpoint import ReplayableTables, SearchFolder
from checker.engine.result import SEED, disagreements
from checker.engine.search import Search, explore
from checker.models import small_election
from checker.swarm.search import for_each_seed
from tests.support.parts import search_in_parts, small_rounds

NO_LIMITS = Limits()
ELECTION = small_election.election(3).with_properties([])
VIOLATED = small_election.election(3)


@pytest.fixture(autouse=True)
def _small_rounds():
    with small_rounds(divided=8, rows=100, block=200):
        yield


# -- the text of --workers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("2", 2),
        ("64", 64),
        ("ray", Ray()),
        ("ray:auto", Ray("auto")),
        ("ray:10.0.0.5:6379", Ray("10.0.0.5:6379")),
        ("ray:[::1]:6379", Ray("[::1]:6379")),
    ],
)
def test_workers_are_threads_or_a_cluster(text, meaning):
    assert workers_named(text) == meaning
    assert str(meaning) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0", "'0' is not a whole number from 1 to 64"),
        ("65", "'65' is not a whole number from 1 to 64"),
        ("two", "'two' is not a whole number from 1 to 64, ray or ray:ADDRESS"),
        ("ray:", "'' is not the address of a Ray cluster"),
        ("ray:host", "'host' is not the address of a Ray cluster"),
        ("ray:host:70000", "'host:70000' is not the address of a Ray cluster"),
    ],
)
def test_other_texts_are_refused_with_what_would_be_right(text, why):
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        workers_named(text)


# -- pieces --------------------------------------------------------------------------------------------------


def pieces(*pairs):
    return Pieces(np.array([part for part, _ in pairs], np.uint16), np.array([size for _, size in pairs], np.int64))


def pairs(of):
    return list(zip(of.parts.tolist(), of.sizes.tolist(), strict=True))


def test_a_level_is_dealt_to_the_parts_in_turn():
    assert pairs(dealt(10, 4, 2)) == [(0, 4), (1, 4), (0, 2)]


def test_large_pieces_are_cut_at_their_place():
    assert pairs(pieces((0, 3), (1, 7), (0, 4)).cut(3)) == [(0, 3), (1, 3), (1, 3), (1, 1), (0, 3), (0, 1)]


def test_rounds_are_consecutive_pieces_with_enough_rows():
    whole = pieces((0, 3), (1, 1), (0, 2), (1, 5), (0, 1))
    assert [pairs(each) for each in whole.rounds(4)] == [[(0, 3), (1, 1)], [(0, 2), (1, 5)], [(0, 1)]]
    assert pairs(joined(whole.rounds(4))) == pairs(whole)


def test_the_place_of_a_row_counts_the_rows_of_all_parts_before_it():
    whole = pieces((0, 2), (1, 3), (0, 2))
    assert [whole.place(0, row) for row in range(4)] == [0, 1, 5, 6]
    assert [whole.place(1, row) for row in range(3)] == [2, 3, 4]


def test_empty_pieces_are_left_out():
    assert pairs(pieces((0, 0), (1, 2), (0, 0)).without_empty()) == [(1, 2)]


# -- limits and interrupts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [Limits(depth=4), Limits(states=150)])
def test_a_limit_of_depth_or_states_ends_the_search_where_it_ends_the_plain_engine(limits):
    found, _ = search_in_parts(ELECTION, limits, parts=3)
    assert disagreements(plain.explore(ELECTION, limits), found) == []
    assert found.stop in (Stop.DEPTH, Stop.STATES)


@pytest.mark.parametrize(
    ("limits", "stop"),
    [(Limits(work=20_000), Stop.WORK), (Limits(seconds=1e-9), Stop.TIME), (Limits(memory=0), Stop.MEMORY)],
)
def test_a_limit_inside_a_level_is_the_reason_for_the_end(limits, stop):
    found, _ = search_in_parts(ELECTION, limits, parts=2)
    assert found.stop is stop
    assert 0 < found.states < plain.explore(ELECTION).states


def test_a_limit_that_holds_only_inside_a_level_is_no_interrupt():
    """The visited sets of the next round may be too large, and those of a later one not."""
    inside = patch.object(Search, "_reached_limit", lambda self: Stop.MEMORY if self.exchange.left else None)
    with inside:
        found, _ = search_in_parts(ELECTION, parts=2)
    assert found.stop is Stop.MEMORY


class InterruptAfter:
    """A `progress` callback that sends SIGINT at its n-th call."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self, _) -> None:
        self._left -= 1
        if self._left == 0:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("times", [1, 3, 6, 9])
def test_an_interrupt_ends_the_search_between_two_rounds_with_the_counts_of_all_parts(times):
    found, _ = search_in_parts(ELECTION, parts=2, progress=InterruptAfter(times))
    assert found.stop is Stop.INTERRUPTED
    assert sum(each.new for each in found.coverage.values()) == found.states - 1


def test_the_seed_of_fingerprints_is_that_of_every_part():
    found, _ = search_in_parts(ELECTION, parts=2, seed=SEED)
    assert (found.seed, found.states) == (SEED, plain.explore(ELECTION).states)


# -- losses --------------------------------------------------------------------------------------------------


def test_a_loss_is_named_in_the_result():
    found, transport = search_in_parts(ELECTION, parts=2, losses={60: 1})
    assert transport.lost == 1
    assert "worker lost at depth" in found.workers[1]
    assert "continued from the start" in found.workers[1]


def test_after_a_save_the_search_goes_back_to_it_and_not_to_the_start(tmp_path):
    found, transport = search_in_parts(ELECTION, parts=2, losses={150: 0}, files=tmp_path)
    assert transport.lost == 1
    assert "continued from depth" in found.workers[1]
    assert disagreements(plain.explore(ELECTION), found) == []


def test_losses_without_end_end_the_search_with_an_error():
    with pytest.raises(ModelError, match="workers were lost 10 times at depth"):
        search_in_parts(ELECTION, parts=2, losses=dict.fromkeys(range(40, 100_000), 1))


# -- a folder that outlives the search -----------------------------------------------------------------------


def in_folder(folder: Path, model: Model = ELECTION, limits: Limits = NO_LIMITS, *, parts: int = 2, **options):
    checkpoint = Checkpoint(folder, every=0.0, resume=options.pop("resume", True))
    kept = SearchFolder(checkpoint, model, options.get("seed", SEED))
    return search_in_parts(model, limits, parts=parts, files=folder, folder=kept, **options)[0]


@pytest.mark.parametrize("times", [25, 40, 90])
def test_a_search_that_was_interrupted_resumes_with_the_same_result(tmp_path, times):
    first = in_folder(tmp_path, progress=InterruptAfter(times))
    assert first.stop is Stop.INTERRUPTED
    second = in_folder(tmp_path)
    assert disagreements(plain.explore(ELECTION), second) == []
    assert any(note.startswith("taken up from") for note in second.notes)
    assert not (tmp_path / "checkpoint.json").exists()


def test_a_violation_after_a_resumption_has_the_path_of_the_plain_engine(tmp_path):
    assert in_folder(tmp_path, VIOLATED, progress=InterruptAfter(25)).stop is Stop.INTERRUPTED
    found, by_sets = in_folder(tmp_path, VIOLATED), plain.explore(VIOLATED)
    assert disagreements(by_sets, found) == []
    assert [each.path for each in found.violations] == [each.path for each in by_sets.violations] != []


def test_a_depth_may_be_raised(tmp_path):
    assert in_folder(tmp_path, limits=Limits(depth=9)).stop is Stop.DEPTH
    found = in_folder(tmp_path, limits=Limits(depth=12))
    assert disagreements(plain.explore(ELECTION, Limits(depth=12)), found) == []


def interrupted(folder: Path) -> None:
    assert in_folder(folder, progress=InterruptAfter(20)).stop is Stop.INTERRUPTED
    assert (folder / "checkpoint.json").exists()


def test_a_folder_with_a_search_is_not_overwritten(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(CheckpointError, match=r"a search of .* states is kept there already"):
        in_folder(tmp_path, resume=False)
    assert (tmp_path / "checkpoint.json").exists()


def test_another_number_of_workers_cannot_resume(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(CheckpointError, match="2 workers kept this search, and 3 workers would resume it"):
        in_folder(tmp_path, parts=3)
    assert disagreements(plain.explore(ELECTION), in_folder(tmp_path)) == []


def test_another_model_cannot_resume(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(CheckpointError, match=r"this is not .* as it is now, but"):
        in_folder(tmp_path, small_election.election(2))


def test_a_smaller_limit_cannot_resume(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(CheckpointError, match="beyond the limit of depth or states"):
        in_folder(tmp_path, limits=Limits(depth=1))


@pytest.mark.parametrize("how", ["cluster", "threads"])
def test_an_interrupt_while_a_search_resumes_ends_it_at_once_and_what_is_kept_stays(how, tmp_path):
    def resume(**options):
        if how == "cluster":
            return in_folder(tmp_path, **options)
        return explore(ELECTION, checkpoint=Checkpoint(tmp_path, resume=True), **options)

    interrupted(tmp_path) if how == "cluster" else explore(ELECTION, Limits(depth=7), checkpoint=Checkpoint(tmp_path))
    with (
        patch.object(ReplayableTables, "replay", lambda *_: signal.raise_signal(signal.SIGINT)),
        pytest.raises(KeyboardInterrupt),
    ):
        resume()
    assert disagreements(plain.explore(ELECTION), resume()) == []


def test_a_damaged_head_is_refused(tmp_path):
    interrupted(tmp_path)
    head = tmp_path / "checkpoint.json"
    head.write_bytes(head.read_bytes().replace(b'"levels":', b'"levels": '))
    with pytest.raises(CheckpointError, match="its checksum is wrong"):
        in_folder(tmp_path)


@pytest.mark.parametrize("name", ["seen", "states", "questions", "now-*"])
def test_a_damaged_file_of_a_part_is_an_error_and_not_a_wrong_result(tmp_path, name):
    interrupted(tmp_path)
    for file in (tmp_path / "part-1").glob(name):
        file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(CheckpointError, match="it is damaged"):
        in_folder(tmp_path)


def test_a_folder_of_a_search_by_threads_is_refused(tmp_path):
    explore(ELECTION, Limits(depth=5), checkpoint=Checkpoint(tmp_path))
    with pytest.raises(CheckpointError, match="threads of one machine kept this search, and 2 workers would resume it"):
        in_folder(tmp_path)


def test_threads_do_not_resume_a_search_of_a_cluster(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(CheckpointError, match="2 workers kept this search, and threads of one machine would resume it"):
        explore(ELECTION, checkpoint=Checkpoint(tmp_path, resume=True))


# -- models that are refused ---------------------------------------------------------------------------------


def test_liveness_is_refused_before_ray_starts():
    goal = Property("Decides", (Read("1"),), lambda _: Finding("decided"), Kind.RECOVERABLE)
    with pytest.raises(ModelError, match=r"'Decides' is a property of liveness.*use --workers N"):
        explore(ELECTION.with_properties([goal]), workers=Ray())


class Handle:
    """An object that is not data: all have the same text."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other) -> bool:
        return isinstance(other, Handle) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


def test_values_that_other_processes_cannot_tell_apart_are_refused():
    model = Model(
        "handles",
        (Column("c", Handle(0)),),
        (Actor("a", ("c",), lambda values, n: Outcome((Handle(n),))),),
        (Rule("r", (Read("c"),), lambda _: [Move("r", (n,), (Send("a", n),)) for n in (1, 2)]),),
    )
    with pytest.raises(ModelError, match="the column 'c' has values that their texts do not tell apart"):
        search_in_parts(model, parts=2)


def test_without_ray_the_error_names_the_package():
    with patch.dict("sys.modules", {"ray": None}), pytest.raises(ModelError, match="pip install 'ray>="):
        explore(ELECTION, workers=Ray())


def test_the_error_for_an_address_without_a_cluster_says_how_to_start_one():
    with pytest.raises(ModelError, match=r"there is no Ray cluster at 127.0.0.1:9 .*ray start --head"):
        explore(ELECTION, workers=Ray("127.0.0.1:9"))


# -- seeds ---------------------------------------------------------------------------------------------------


def power(exponent: int, seed: int) -> int:
    return seed**exponent


@pytest.mark.parametrize("processes", [1, 2])
def test_a_function_is_called_for_each_seed(processes):
    found = dict(for_each_seed(partial(power, 3), range(10), processes))
    assert found == {seed: seed * seed * seed for seed in range(10)}


def vanish(_: int) -> None:
    os._exit(1)


def blocks_interrupts(_: int) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_lost_process_is_one_error():
    with pytest.raises(ModelError, match=r"ended from outside; is there enough memory\?"):
        dict(for_each_seed(vanish, range(3), 2))


def test_the_ctrl_c_of_a_terminal_reaches_no_other_process():
    assert dict(for_each_seed(blocks_interrupts, range(4), 2)) == dict.fromkeys(range(4), True)
    assert not blocks_interrupts(0)
