"""Mutants of the kernel of random walks: each must differ from the plain engine on some random model."""

import importlib.util
import sys
from pathlib import Path

import pytest

from checker.engine import ModelError
from checker.engine.kernels import walk_kernels
from checker.swarm import walker
from checker.swarm.walker import WalkRunner
from tests.properties.test_engines_agree import random_model
from tests.support.walks import counted, paths_of, recounted

WALKS, DEPTH, SEED = range(24), 40, 1
SHAPES = [(seed, 1 + seed % 5, 1 + seed % 4, 2 + seed % 6, 2 + seed % 4) for seed in range(30)]
MUTANTS = {
    "an impossible move counts as taken": (
        "        if outcome != DONE:\n            restore(row, rows, w, changed)\n            moves[chosen] = MISSING",
        "        if outcome == NOT_POSSIBLE:\n            outcome = DONE",
    ),
    "an impossible move leaves its changes in the row": (
        "            restore(row, rows, w, changed)\n            moves[chosen] = MISSING",
        "            moves[chosen] = MISSING",
    ),
    "an impossible move counts in ordinals": ("ordinal += U64(outcome == DONE)", "ordinal += ONE"),
    "a row keeps the judgement of its parent": (
        "row, U64(row_judgements[w]), affected, judging",
        "row, U64(row_judgements[w]), ZERO, judging",
    ),
    "the fingerprint is not updated": ("fingerprints[w] = fingerprint\n", "fingerprints[w] = fingerprints[w]\n"),
    "one move too few is tried before a deadlock": (
        "if total == ZERO:\n            break",
        "if total <= ONE:\n            break",
    ),
}

JIT = "from checker.engine.kernels import jit\nimport numpy"


def differs(shape: tuple[int, int, int, int, int]) -> bool:
    """Return whether the walks of a random model differ from the plain engine."""
    model = random_model(*shape)
    try:
        runner = WalkRunner(model, SEED, DEPTH)
        found = counted(runner, WALKS)
        states = runner.run(0, len(WALKS)).states
        paths = paths_of(runner, WALKS)
    except ModelError:
        return True
    rows = {step.row for path in paths.values() for step in path}
    exact = abs(states - len(rows)) <= 3 + len(rows) // 20
    return not exact or found != recounted(model, paths)


def test_the_kernel_itself_differs_on_none_of_the_models():
    assert not any(map(differs, SHAPES))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_kernel_is_detected(name, tmp_path, monkeypatch):
    source = Path(walk_kernels.__file__).read_text(encoding="utf-8")
    # A kernel is cached on disk, and a mutant is needed only once.
    source = source.replace("@kernel", "@jit._njit(**jit.OPTIONS)").replace("import numpy", JIT)
    old, new = MUTANTS[name]
    assert source.count(old) == 1
    file = tmp_path / "mutant_of_walk_kernels.py"
    file.write_text(source.replace(old, new), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    mutant = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, mutant)
    spec.loader.exec_module(mutant)
    monkeypatch.setattr(walker, "walk_kernels", mutant)
    assert any(map(differs, SHAPES))
