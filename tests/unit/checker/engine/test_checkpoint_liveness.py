"""Forged checkpoints of searches for liveness: every number in the files of the graph has a bound, which is checked."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from checker.engine import Kind, Limits, Property, Read, search
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.checkpoint_store import AGAIN, decoded
from checker.models.small_election import election
from tests.support.command_line import cli, zoo_cfg

HEAD = "checkpoint.json"
COLUMN = election(3).columns[0].name
MODEL = election(3).with_properties(
    [Property("Ends", (Read(COLUMN),), lambda value: None, Kind.EVENTUALLY, meaning="it never ends")]
)
KINDS = {"targets": np.uint32, "labels": np.uint16, "degrees": np.uint32, "marks": np.uint32}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the checkpoint of an unfinished search for liveness."""
    search.explore(MODEL, Limits(depth=5), checkpoint=Checkpoint(tmp_path))
    return tmp_path


def forge(folder: Path, name: str, numbers: np.ndarray) -> None:
    """Write other numbers into a file of the checkpoint, with the right size and checksum in the head."""
    content = numbers.tobytes()
    (folder / f"checkpoint-{name}").write_bytes(content)
    head = json.loads((folder / HEAD).read_bytes().partition(b"\n")[2])
    head["search"]["parts"][0]["files"][name] = {"size": len(content), "sha256": sha256(content).hexdigest()}
    text = json.dumps(head).encode()
    (folder / HEAD).write_bytes(sha256(text).hexdigest().encode() + b"\n" + text)


def numbers_of(folder: Path, name: str) -> np.ndarray:
    return np.frombuffer((folder / f"checkpoint-{name}").read_bytes(), KINDS[name]).copy()


def refusal(folder: Path) -> str:
    """Return the error of a search that resumes; it is one line."""
    with pytest.raises(CheckpointError) as caught:
        search.explore(MODEL, checkpoint=Checkpoint(folder, resume=True))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_honest_checkpoint_resumes(folder: Path) -> None:
    """The forgeries below differ from a checkpoint that works."""
    resumed = search.explore(MODEL, checkpoint=Checkpoint(folder, resume=True))
    assert resumed.levels == search.explore(MODEL).levels


@pytest.mark.parametrize("name", ["targets", "labels", "marks"])
@pytest.mark.parametrize("place", [0, -1])
def test_a_number_above_its_bound_is_refused(folder: Path, name: str, place: int) -> None:
    """The kernels use targets, labels and marks as indices without a check."""
    numbers = numbers_of(folder, name)
    assert numbers.size > 1
    numbers[place] = np.iinfo(KINDS[name]).max
    forge(folder, name, numbers)
    assert f"a number of the file {name} must be below" in refusal(folder)


@pytest.mark.parametrize(("name", "bound"), [("targets", "states"), ("labels", "labels"), ("marks", "judgements")])
def test_the_bound_is_the_number_of_things_that_can_be_meant(folder: Path, name: str, bound: str) -> None:
    """The first invalid number is refused, and not only the largest one of the type."""
    head = json.loads((folder / HEAD).read_bytes().partition(b"\n")[2])
    running = search.by_threads(search.Request(MODEL))
    running.run()
    tables = running.exchange.part.tables
    limits = {
        "states": head["search"]["parts"][0]["states"],
        "labels": len(tables.labels),
        "judgements": tables.verdicts.judgements.size,
    }
    numbers = numbers_of(folder, name)
    assert int(numbers.max()) < limits[bound]
    numbers[0] = limits[bound]
    forge(folder, name, numbers)
    assert f"a number of the file {name} must be below" in refusal(folder)


@pytest.mark.parametrize("degree", [0, 1, 1 << 31, (1 << 32) - 1])
def test_degrees_that_do_not_add_up_to_the_moves_are_refused(folder: Path, degree: int) -> None:
    """A degree is the length of a slice of the targets."""
    numbers = numbers_of(folder, "degrees")
    numbers[0] = degree if degree != numbers[0] else degree + 1
    forge(folder, "degrees", numbers)
    assert "the numbers of moves contradict each other" in refusal(folder)


def test_degrees_whose_sum_overflows_32_bits_are_refused(folder: Path) -> None:
    """The sum is right modulo 2^32, so it must be added in 64 bits."""
    numbers = numbers_of(folder, "degrees")
    total = int(numbers.sum(dtype=np.uint64))
    numbers[:] = 0
    numbers[0], numbers[1], numbers[2] = (1 << 32) - 1, 1, total
    forge(folder, "degrees", numbers)
    assert "the numbers of moves contradict each other" in refusal(folder)


@pytest.mark.parametrize("name", ["targets", "labels", "degrees", "marks"])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_with_another_number_of_entries_is_refused(folder: Path, name: str, change: int) -> None:
    numbers = numbers_of(folder, name)
    forge(folder, name, numbers[:-1] if change < 0 else np.append(numbers, numbers[:1]))
    refusal(folder)


@pytest.mark.parametrize("name", ["targets", "labels", "degrees", "marks"])
def test_a_file_with_half_an_entry_is_refused(folder: Path, name: str) -> None:
    content = (folder / f"checkpoint-{name}").read_bytes() + b"\0"
    forge(folder, name, np.frombuffer(content, np.uint8))
    refusal(folder)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"{", "it is not JSON"),
        (b"[1]", "it is not an object"),
        (b"{}", "the field format is missing"),
        (b'{"format": "x"}', "the field format is invalid"),
    ],
)
def test_an_error_of_the_head_is_worded_here(text: bytes, fault: str) -> None:
    """`Expected int, got str - at $.format` is the wording of a library."""
    with pytest.raises(CheckpointError) as caught:
        decoded(text, "c.json")
    assert str(caught.value) == f"c.json: it is not the head of a checkpoint: {fault}; {AGAIN}"


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("number", -1, "the field search.number is invalid"),
        ("levels", [], "the field search.levels is invalid"),
        ("found", [[1, 2]], "the field search.found[0][1] is invalid"),
        ("extra", 1, "the field search.extra is unknown"),
        ("parts", None, "the field search.parts is missing"),
    ],
)
def test_an_error_inside_the_head_names_the_field(folder: Path, key: str, value: object, fault: str) -> None:
    head = json.loads((folder / HEAD).read_bytes().partition(b"\n")[2])
    head["search"][key] = value
    if value is None:
        del head["search"][key]
    text = json.dumps(head).encode()
    (folder / HEAD).write_bytes(sha256(text).hexdigest().encode() + b"\n" + text)
    message = refusal(folder)
    assert f": it is not the head of a checkpoint: {fault}; " in message
    assert "Expected" not in message
    assert "`" not in message


def test_a_forged_checkpoint_ends_the_command_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "zoo.cfg").write_text(zoo_cfg(1, 2, 3))
    (tmp_path / "s.yaml").write_text("file: zoo.cfg\nservers: [1, 2, 3]\nsometimes: [AllSettled]\n")
    words = ("run", tmp_path / "s.yaml", "--checkpoint", tmp_path / "kept", "--verdict", "--format", "none")
    cli(*words, "--depth", "4")
    (head,) = (tmp_path / "kept").glob(f"*/{HEAD}")
    text = head.read_bytes().partition(b"\n")[2].replace(b'"now-', b'"../../now-')
    head.write_bytes(sha256(text).hexdigest().encode() + b"\n" + text)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    ended = cli(*words, "--resume")

    assert ended.code == 2
    assert "it is not the head of a checkpoint" in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
