"""The gate's mypy finds each conversion of a text to a number, and nothing else (`tests/support/mypy_numbers.py`)."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGIN = "tests/support/mypy_numbers.py"
SOURCE = """
import argparse, enum, re
class Number(enum.IntEnum):
    ONE = 1
def convert(text: str, data: bytes, match: re.Match[str], count: float, parser: argparse.ArgumentParser) -> None:
    int(text)  # bad
    int(text, 16)  # bad
    int(data)  # bad
    float(text)  # bad
    int(match[1] or "0")  # bad
    int(text if text else 0)  # bad
    tuple(map(int, text.split(",")))  # bad
    parser.add_argument("--a", type=int)  # bad
    parser.add_argument("--b", type=float)  # bad
    text.isdigit()  # bad
    data.isdigit()  # bad
    text.isdecimal()  # bad
    int(count)
    int(Number.ONE)
    int(count > 1)
    float(1)
    tuple(map(int, Number))
    tuple(map(int, (1.0, 2.0)))
    parser.add_argument("--c", type=str)
"""


def test_mypy_finds_each_conversion_of_a_text_and_nothing_else(tmp_path: Path) -> None:
    source, config = tmp_path / "source.py", tmp_path / "mypy.ini"
    source.write_text(SOURCE)
    config.write_text(f"[mypy]\nplugins = {ROOT / PLUGIN}\n")
    words = ["--config-file", str(config), "--cache-dir", str(tmp_path / "cache"), str(source)]
    command = [sys.executable, "-m", "mypy", *words]  # a process of its own, since mypy changes the recursion limit
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    lines = {int(line.split(":")[1]) for line in found.splitlines() if line.endswith("[foreign-number]")}
    assert lines == {number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith("# bad")}, found


def test_the_gate_has_the_plugin() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["plugins"] == [PLUGIN]
    assert set(settings["packages"]) == {
        "spec",
        "checker",
        "refimpl",
        "simulation",
        "harness",
        "benchmarks",
        "research",
    }
