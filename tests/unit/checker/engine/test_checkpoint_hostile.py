"""A forged checkpoint folder is refused with one line; no file outside the folder is read, written or deleted."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from checker.engine import Limits, search
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.models.small_election import election

MODEL = election(3).with_properties([])
HEAD = "checkpoint.json"
Change = Callable[[dict[str, Any]], None]


def put(*keys: Any, value: Any) -> Change:
    """Return a forgery that sets the field at this path of keys."""

    def change(head: dict[str, Any]) -> None:
        for key in keys[:-1]:
            head = head[key]
        head[keys[-1]] = value

    return change


def drop(*keys: Any) -> Change:
    def change(head: dict[str, Any]) -> None:
        for key in keys[:-1]:
            head = head[key]
        del head[keys[-1]]

    return change


def rename(old: str, new: str) -> Change:
    def change(head: dict[str, Any]) -> None:
        files = head["search"]["parts"][0]["files"]
        files[new] = files.pop(old)

    return change


PART = ("search", "parts", 0)


HEADS: dict[str, Change] = {
    "now with a parent folder": rename("now-1", "now-1/../../victim"),
    "an absolute name": rename("now-1", "/victim"),
    "a file with a parent folder": rename("states", "x/../../victim"),
    "a further file with a parent folder": put(*PART, "files", "x/../../victim", value={"size": 0, "sha256": "0" * 64}),
    "a name of another file": put(*PART, "files", "mine.txt", value={"size": 0, "sha256": "0" * 64}),
    "a name with a line break": rename("now-1", "now-1\n"),
    "a name with a NUL": rename("now-1", "now-\0"),
    "an empty name": rename("now-1", ""),
    "no file of the save": drop(*PART, "files", "now-1"),
    "no files": drop(*PART, "files"),
    "files as a list": put(*PART, "files", value=[]),
    "no states file": drop(*PART, "files", "states"),
    "no questions file": drop(*PART, "files", "questions"),
    "a file of liveness": put(*PART, "files", "marks", value={"size": 0, "sha256": sha256().hexdigest()}),
    "a negative size": put(*PART, "files", "states", "size", value=-1),
    "a huge size": put(*PART, "files", "states", "size", value=10**30),
    "a size of more than the file": put(*PART, "files", "states", "size", value=1 << 40),
    "a size as text": put(*PART, "files", "states", "size", value="8"),
    "a checksum that is no hash": put(*PART, "files", "states", "sha256", value=""),
    "no number": drop("search", "number"),
    "a number as text": put("search", "number", value="1"),
    "a negative number": put("search", "number", value=-3),
    "no format": drop("format"),
    "another format": put("format", value=99),
    "no search": drop("search"),
    "search null": put("search", value=None),
    "no identity": drop("identity"),
    "identity as text": put("identity", value="election"),
    "another model": put("identity", "model", value="other"),
    "another engine": put("identity", "engine", value="0" * 64),
    "no levels": drop("search", "levels"),
    "empty levels": put("search", "levels", value=[]),
    "negative levels": put("search", "levels", value=[-5]),
    "levels as text": put("search", "levels", value="many"),
    "huge counts": put(*PART, "states", value=10**40),
    "other counts": put(*PART, "states", value=7),
    "more rows left than the level": put(*PART, "left", value=1 << 40),
    "huge labels": put(*PART, "labels", value=1 << 47),
    "verdicts as a list": put(*PART, "verdicts", value=[]),
    "seconds as text": put("search", "seconds", value="long"),
    "negative seconds": put("search", "seconds", value=-1.0),
    "a finding of no property": put(*PART, "found", value=[[9, [1, 2], 3]]),
    "a path to a finding of no property": put("search", "found", value=[[9, [0]]]),
    "a path that is not of the model": put("search", "found", value=[[0, [60000]]]),
    "no parts": put("search", "parts", value=[]),
    "a division of one part": put("search", "division", value={"piece_parts": [], "piece_sizes": [], "firsts": []}),
    "a finding of two parts": put(*PART, "found", value=[[1, 2]]),
    "an unknown field": put("search", "extra", value=1),
}

TEXTS = {
    "a list": b"[]",
    "null": b"null",
    "no JSON": b"{",
    "no UTF-8": b'{"format": "\xff"}',
    "deep nesting": b'{"format":' + b"[" * 100_000,
    "nothing": b"",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a checkpoint, next to a file that a forged name could reach."""
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "checkpoint-x").mkdir()
    (tmp_path / "here" / "checkpoint-now-1x").write_text("mine")
    search.explore(MODEL, Limits(depth=5), checkpoint=Checkpoint(tmp_path / "here"))
    return tmp_path / "here"


def forge(folder: Path, text: bytes) -> None:
    (folder / HEAD).write_bytes(sha256(text).hexdigest().encode() + b"\n" + text)


def refusal(folder: Path) -> str:
    """Return the one line that refuses a search; assert that every other file is unchanged."""
    around = folder.resolve().parent
    before = {path: path.read_bytes() for path in around.rglob("*") if path.is_file()}
    with pytest.raises(CheckpointError) as error:
        search.explore(MODEL, checkpoint=Checkpoint(folder, resume=True))
    assert {path: path.read_bytes() for path in around.rglob("*") if path.is_file()} == before
    assert (around / "victim").read_text() == "precious"
    message = str(error.value)
    assert str(folder) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", HEADS)
def test_a_forged_head_is_refused(name: str, folder: Path) -> None:
    head = json.loads((folder / HEAD).read_bytes().partition(b"\n")[2])
    HEADS[name](head)
    forge(folder, json.dumps(head).encode())
    refusal(folder)


@pytest.mark.parametrize("name", TEXTS)
def test_a_head_that_is_no_head_is_refused(name: str, folder: Path) -> None:
    forge(folder, TEXTS[name])
    refusal(folder)


@pytest.mark.parametrize("name", [HEAD, "checkpoint-states", "checkpoint-questions", "checkpoint-now-1"])
@pytest.mark.parametrize("how", ["symlink", "dangling", "hard link", "directory", "fifo"])
def test_only_regular_files_of_the_folder_are_opened(how: str, name: str, folder: Path) -> None:
    path, elsewhere = folder / name, folder.parent / "elsewhere"
    path.rename(elsewhere)
    if how == "symlink":
        path.symlink_to(elsewhere)
    elif how == "dangling":
        path.symlink_to(folder.parent / "nowhere")
    elif how == "hard link":
        path.hardlink_to(elsewhere)
    elif how == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert name in refusal(folder)
    assert not (folder.parent / "nowhere").exists()


def test_two_files_that_are_swapped_are_refused(folder: Path) -> None:
    states, questions = folder / "checkpoint-states", folder / "checkpoint-questions"
    one, other = states.read_bytes(), questions.read_bytes()
    states.write_bytes(other)
    questions.write_bytes(one)
    refusal(folder)


def test_a_folder_that_is_a_symbolic_link_is_refused(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert "symbolic link" in refusal(link)


@pytest.mark.parametrize("name", ["checkpoint.new", "checkpoint-now-1", "checkpoint-states", "checkpoint-questions"])
def test_a_new_checkpoint_writes_through_no_link(name: str, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "here"
    victim.write_text("precious")
    folder.mkdir()
    (folder / name).symlink_to(victim)
    found = search.explore(MODEL, Limits(depth=5), checkpoint=Checkpoint(folder))
    assert victim.read_text() == "precious"
    assert "kept in" in found.notes[0]
    assert search.explore(MODEL, checkpoint=Checkpoint(folder, resume=True)).states == 6544


def test_a_parent_that_is_a_later_state_is_refused(folder: Path) -> None:
    """A cycle of parents would make rebuilding a path endless."""
    path = folder / "checkpoint-states"
    records = bytearray(path.read_bytes())
    records[14:18] = (200).to_bytes(4, "little")
    path.write_bytes(records)
    head = json.loads((folder / HEAD).read_bytes().partition(b"\n")[2])
    head["search"]["parts"][0]["files"]["states"]["sha256"] = sha256(records).hexdigest()
    forge(folder, json.dumps(head).encode())
    assert "earlier state" in refusal(folder)
