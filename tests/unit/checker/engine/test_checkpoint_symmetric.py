"""A symmetric search that is saved and resumed has the result of one that is not."""

from pathlib import Path

import pytest

from checker.engine import Limits, Model, Renaming, Stop, Symmetry, search
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.result import Exploration, disagreements
from checker.engine.symmetric_search import SYMMETRIC
from checker.kit import interchangeable
from checker.scenario import load
from tests.unit.checker.kit.test_kit_register import example

MANAGERS = ["rm1", "rm2"]


def committed() -> Model:
    return interchangeable(example("two_phase_commit").model(2), MANAGERS)


def resumed(model: Model, folder: Path, depth: int | None = None, workers: int = 1) -> Exploration:
    saved = Checkpoint(folder, resume=True)
    return search.explore(model, Limits(depth=depth), frontier=SYMMETRIC, workers=workers, checkpoint=saved)


def in_two_parts(model: Model, folder: Path, whole: Exploration, workers: int = 1) -> Exploration:
    """Save a search in the middle, and resume it."""
    depth = whole.depth // 2
    part = resumed(model, folder, depth, workers)
    assert (part.stop, part.levels) == (Stop.DEPTH, whole.levels[: depth + 1])
    return resumed(model, folder, workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_that_is_saved_in_the_middle_is_the_same(tmp_path: Path, workers: int) -> None:
    model = committed()
    whole = search.explore(model, frontier=SYMMETRIC)
    result = in_two_parts(model, tmp_path, whole, workers)
    assert disagreements(whole, result) == []
    assert result.reduction == whole.reduction
    assert not list(tmp_path.iterdir())


def test_the_runs_to_premises_of_an_over_approximation_are_kept(tmp_path: Path) -> None:
    """Without them the model would be searched in full for each premise."""
    (tmp_path / "zoo.cfg").write_text("".join(f"server.{n}=zk{n}:2888:3888\n" for n in (1, 2, 3)))
    path = tmp_path / "alike.yaml"
    path.write_text(
        "name: alike\nfile: zoo.cfg\nservers: [1, 2, 3]\ngrain: oracle\nprotocol: zab\nalways: [OnlyVotersAck]\n"
    )
    model = load(path).model
    assert model.symmetry is not None
    assert model.symmetry.wider is not None
    whole = search.explore(model, frontier=SYMMETRIC)
    result = in_two_parts(model, tmp_path / "saved", whole)
    assert disagreements(whole, result) == []
    assert result.reduction == whole.reduction
    assert "in full" not in result.reduction


def test_a_search_in_full_is_not_resumed_with_symmetry(tmp_path: Path) -> None:
    model = committed()
    search.explore(model, Limits(depth=3), checkpoint=Checkpoint(tmp_path))
    with pytest.raises(CheckpointError, match="this search was one with --reduce none; use it"):
        resumed(model, tmp_path)


def test_another_renaming_of_values_is_refused(tmp_path: Path) -> None:
    model = committed()
    resumed(model, tmp_path, 5)
    assert model.symmetry is not None
    (renaming,) = model.symmetry.renamings
    other = Symmetry((Renaming(renaming.columns, lambda value: value),))
    with pytest.raises(CheckpointError, match="the model's functions do not answer as they did"):
        search.by_threads(
            search.Request(model.with_symmetry(other), checkpoint=Checkpoint(tmp_path, resume=True)), symmetric=True
        ).run()


def test_the_time_before_a_resumption_is_a_part_of_the_whole(tmp_path: Path) -> None:
    model = committed()
    before = resumed(model, tmp_path, 5)
    result = resumed(model, tmp_path)
    assert result.seconds > result.seconds_before > 0
    assert result.exhausted
    assert f"kept in {tmp_path}" in before.notes[0]
