"""Blocks that wait: the same rows after a rest, in memory or in a file, and the same search."""

import numpy as np
import pytest

from checker.engine import Actor, Column, Limits, Model, Move, Outcome, Read, Rule, Send, Stop, plain, search
from checker.engine.checkpoint import Checkpoint
from checker.engine.part import Part
from checker.engine.result import disagreements
from checker.engine.states import waiting
from checker.engine.states.frontier import Pool
from checker.engine.states.waiting import StoredBlock, WaitingBlocks
from checker.engine.tables import Tables
from checker.models import small_election

VALUES = 70_000  # more than two bytes can tell apart


def counters() -> Model:
    """Two columns of numbers; only their tables are used."""
    actors = tuple(Actor(name, (name,), lambda values, _: Outcome(values)) for name in ("a", "b"))
    rules = [Rule("none", (Read("a"),), lambda _: [Move("none", (Send("a", 0),))])]
    return Model("counters", (Column("a", 0), Column("b", 0)), actors, rules)


@pytest.mark.parametrize("in_memory", [0, 1 << 30])
def test_a_block_has_the_same_rows_after_a_rest(in_memory):
    tables = Tables(counters())
    wide = [tables.cell(0, value, "a test") for value in range(VALUES)]
    narrow = [tables.cell(1, value, "a test") for value in range(9)]
    pool = Pool(2)
    blocks = WaitingBlocks(tables, pool, in_memory)
    random = np.random.default_rng(3)
    stored, expected = [], []
    for size in (1, 1000, 20_000):
        block = pool.take()
        block.rows[:size, 0], block.rows[:size, 1] = random.choice(wide, size), random.choice(narrow, size)
        block.fingerprints[:size] = random.integers(0, 1 << 62, size)
        block.judgements[:size] = random.integers(0, 1 << 30, size)
        block.size = size
        expected.append([part[:size].copy() for part in (block.rows, block.fingerprints, block.judgements)])
        stored.append(blocks.store(block))
    assert [block.wide for block in stored[1:]] == [(0,), (0,)]
    assert (blocks.spilled > 0) is (in_memory == 0)
    for block, (rows, fingerprints, judgements) in zip(stored, expected, strict=True):
        awake = blocks.wake(block)
        assert np.array_equal(awake.rows[: block.size], rows)
        assert np.array_equal(awake.fingerprints[: block.size], fingerprints)
        assert np.array_equal(awake.judgements[: block.size], judgements)
    blocks.close()


@pytest.fixture
def small_blocks(monkeypatch):
    """All blocks but one wait at rest, and half of them in a file."""
    monkeypatch.setattr(waiting, "AWAKE", 1)
    monkeypatch.setattr("checker.engine.states.frontier.BLOCK", 64)
    monkeypatch.setattr("checker.engine.rounds.IN_MEMORY", 4000)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("workers", [1, 3])
def test_a_search_whose_rows_rest_is_that_of_the_plain_engine(workers):
    model = small_election.election(3).with_properties([])
    result = search.explore(model, workers=workers)
    assert result.exhausted
    assert disagreements(result, plain.explore(model)) == []
    assert result.spilled_bytes > 10_000


@pytest.mark.usefixtures("small_blocks")
def test_a_search_whose_rows_rest_is_saved_and_resumed(tmp_path):
    model = small_election.election(3).with_properties([])
    for depth in (6, 8, 10):
        part = search.explore(model, Limits(depth=depth), checkpoint=Checkpoint(tmp_path, resume=depth > 6))
        assert (part.stop, part.depth) == (Stop.DEPTH, depth)
    resumed = search.explore(model, checkpoint=Checkpoint(tmp_path, resume=True))
    assert (resumed.stop, resumed.levels) == (Stop.EXHAUSTED, plain.explore(model).levels)
    assert resumed.transitions == 23_905
    assert resumed.spilled_bytes > 0


def test_a_level_that_is_finished_leaves_no_bytes_in_the_file():
    tables = Tables(counters())
    cell = [tables.cell(column, 0, "a test") for column in (0, 1)]
    pool = Pool(2)
    blocks = WaitingBlocks(tables, pool, 0)

    def stored() -> StoredBlock:
        block = pool.take()
        block.rows[0, :2], block.size = cell, 1
        return blocks.store(block)

    first = stored()
    blocks.begin_level()
    second = stored()
    assert blocks.wake(first).rows[0, :2].tolist() == cell
    blocks.begin_level()
    with pytest.raises(OSError, match="shorter than what was written"):
        blocks.wake(first)
    assert blocks.wake(second).rows[0, :2].tolist() == cell
    blocks.close()


def test_a_search_ends_before_the_visited_set_exceeds_the_memory(monkeypatch):
    # Only the visited set is counted: what else a process holds, such as its kernels, differs from machine to machine.
    limit = 40 << 20
    monkeypatch.setattr(Part, "growth", property(lambda self: self.state.visited.nbytes))
    result = search.explore(small_election.election(4).with_properties([]), Limits(memory=limit))
    assert result.stop is Stop.MEMORY
    assert limit // 3 < result.peak_bytes <= limit
    assert limit < waiting.IN_MEMORY
