"""`python -m checker gallery`: the pages that it writes; an interrupt or a reader that disconnects does no harm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from checker.engine import Exploration, Limits, Model, Stop, search
from checker.gallery import page_name
from checker.scenario import bundled
from tests.support.command_line import cli

FILES = sorted(path for path in bundled() if path.stem in ("r7-worked-example", "r8-last-vote-only"))


def pages(gallery: Path) -> list[str]:
    return sorted(path.stem for path in gallery.glob("*/*.md"))


def test_pages_of_the_scenarios_that_are_named_are_written_also_if_nobody_reads_what_is_said(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "checker", "gallery", str(tmp_path), str(FILES[0])]
    ended = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writer)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert pages(tmp_path) == [FILES[0].stem]
    index = (tmp_path / "README.md").read_text("utf-8")
    assert f"]({page_name(FILES[0])}.md)" in index and f"/spec/scenarios/{page_name(FILES[1])}.yaml)" in index


def test_an_interrupt_ends_it_and_not_one_scenario_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def interrupted(model: Model, limits: Limits, **_: object) -> Exploration:
        begun.append(model.name)
        return Exploration(model, "tables", limits, levels=[1], stop=Stop.INTERRUPTED)

    monkeypatch.setattr(search, "explore", interrupted)
    ended = cli("gallery", tmp_path, *FILES)

    assert (ended.code, len(begun), pages(tmp_path)) == (20, 1, [])


def test_a_scenario_that_is_not_shipped_has_no_page(tmp_path: Path) -> None:
    ended = cli("gallery", tmp_path, "other.yaml")

    assert (ended.code, pages(tmp_path)) == (150, [])
    assert "the package has no such scenario" in ended.err


def test_a_symlink_loop_is_refused_with_one_error(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    ended = cli("gallery", tmp_path / "pages", tmp_path / "loop.yaml")

    assert (ended.code, ended.err.count("\n")) == (150, 1)
    assert "the package has no such scenario" in ended.err
