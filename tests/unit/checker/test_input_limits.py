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


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as stream:
        stream.truncate(size)
    return path


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


def test_a_line_of_a_journal_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checker.validate.journals.LINE", 1000)
    (tmp_path / "j.jsonl").write_bytes(b"{" * 5000)
    with pytest.raises(JournalError, match=r"j\.jsonl:1: the line has more than 1,000 bytes"):
        list(read(tmp_path / "j.jsonl"))


def test_a_history_of_several_files_has_the_limit_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checker.histories.record.HISTORY", 100)
    with pytest.raises(ClientHistoryError, match=r"b: it has 101 bytes, and the limit is 100"):
        load(sparse(tmp_path / "a", 0), sparse(tmp_path / "b", 101))
