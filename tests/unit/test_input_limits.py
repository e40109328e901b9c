"""Limits of size for input files: large files end in an error with the size and the limit, and soon."""

import time
from pathlib import Path

import pytest

from checker import user_files
from checker.histories import ClientHistoryError
from checker.histories.record import load
from checker.validate.journals import JournalError, read
from spec.config import ConfigError, parse_zoo_cfg
from spec.config.zoo_cfg import LONGEST
from tests.support.command_line import cli


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as stream:
        stream.truncate(size)
    return path


@pytest.mark.parametrize(
    ("command", "name", "size", "limit", "code"),
    [
        ("run", "s.yaml", 50_000_000, "262,144", 150),
        ("quorums", "zoo.cfg", 50_000_000, "262,144", 151),
        ("history", "h.jsonl", 300_000_000, "268,435,456", 150),
        ("validate", "j.jsonl", 1_100_000_000, "1,073,741,824", 150),
    ],
)
def test_a_file_above_the_limit_is_refused_unread(
    tmp_path: Path, command: str, name: str, size: int, limit: str, code: int
) -> None:
    ended = cli(command, sparse(tmp_path / name, size))
    assert ended.code == code
    assert f"{name}: it has {size:,} bytes, and the limit is {limit}" in ended.err


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        ("run", 150, "no regular file"),
        ("quorums", 151, "the file cannot be read; name a readable zoo.cfg"),
        ("history", 150, "no regular file"),
    ],
)
def test_an_endless_device_is_refused(command: str, code: int, why: str) -> None:
    ended = cli(command, "/dev/zero")
    assert ended.code == code
    assert why in ended.err


def test_the_zoo_cfg_of_a_scenario_has_the_limit_too(tmp_path: Path) -> None:
    sparse(tmp_path / "zoo.cfg", 1_000_000)
    (tmp_path / "s.yaml").write_text("servers: [1, 2, 3]\nfile: zoo.cfg\n")
    ended = cli("run", tmp_path / "s.yaml")
    assert ended.code == 150
    assert "s.yaml:2: file: 'zoo.cfg': it has 1,000,000 bytes, and the limit is 262,144" in ended.err


def test_a_dynamic_file_has_the_limit_too() -> None:
    """100,000 keys took 27 s."""
    text = "".join(f"server.{sid}=h{sid}:2888:3888\n" for sid in range(1, 100_001))
    with pytest.raises(ConfigError, match=f"d: the file has {len(text):,} characters; the limit is {LONGEST:,}"):
        parse_zoo_cfg("dynamicConfigFile=d\n", read={"d": text}.get, complete=False)
    with pytest.raises(ConfigError, match=f"zoo.cfg: the file has {len(text):,} characters"):
        parse_zoo_cfg(text, complete=False)
    assert user_files.CONFIGURATION == LONGEST


def seconds_for(count: int) -> float:
    """Return the processor time for a zoo.cfg with weights for voters without groups, the minimum of three."""
    text = "".join(f"server.{sid}=h:{sid}:{sid + 30000}\nweight.{sid}=1\n" for sid in range(1, count + 1))
    assert len(text) < LONGEST
    times = []
    for _ in range(3):
        began = time.process_time()
        with pytest.raises(ConfigError) as caught:
            parse_zoo_cfg(text, complete=False)
        times.append(time.process_time() - began)
        assert len(caught.value.problems) == count
    return min(times)


def test_the_time_for_a_zoo_cfg_grows_with_its_size_only() -> None:
    """Eight times the lines took 64 times as long: each error searched all lines for its server."""
    assert seconds_for(4800) < 24 * seconds_for(600)


def test_an_empty_journal_never_passes(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    ended = cli("validate", tmp_path / "empty.jsonl")
    assert (ended.code, ended.out) == (150, "")
    assert "empty.jsonl: it has no records" in ended.err


def test_a_line_of_a_journal_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checker.validate.journals.LINE", 1000)
    (tmp_path / "j.jsonl").write_bytes(b"{" * 5000)
    with pytest.raises(JournalError, match=r"j\.jsonl:1: the line has more than 1,000 bytes"):
        list(read(tmp_path / "j.jsonl"))


def test_a_history_of_several_files_has_the_limit_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checker.histories.record.HISTORY", 100)
    with pytest.raises(ClientHistoryError, match=r"b: it has 101 bytes, and the limit is 100"):
        load(sparse(tmp_path / "a", 0), sparse(tmp_path / "b", 101))
