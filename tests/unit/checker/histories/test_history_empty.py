"""A history without an answered operation proves nothing, and the command reports that."""

from pathlib import Path

from tests.support.command_line import cli


def test_an_empty_history_is_vacuous(tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text("", encoding="utf-8")
    ended = cli("history", file)
    assert ended.code == 21
    assert ended.out.startswith("vacuous")
