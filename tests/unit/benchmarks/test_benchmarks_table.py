"""The benchmark command: three forms of one table, ratios within one run, and no pass with a missed figure."""

import io
import json
import re

import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks.outcome import Missed, Row, ToolMissing
from benchmarks.table import HEADINGS, as_json, as_text, show

YARDSTICK = Row("SPIN", "election, 4 servers", 1_000_000, 6_000_000, 4.0, 1.5, 200 * 2**20)
OURS = Row("Quorate", "election, 4 servers", 1_000_000, 6_000_000, 0.5, 2.0, 50 * 2**20)
OTHER = Row("Quorate", "zab, 3 servers", 2_000, 3_000, 1.0, 0.0, 2**20)
MISSED = Missed("tlc", "java is missing (apt-get install default-jre-headless)")


def measured(servers: int) -> list[Row]:
    assert servers == 3
    return [YARDSTICK, OURS]


def missing(servers: int) -> list[Row]:
    assert servers == 3
    raise ToolMissing("spin", "spin")


def test_plain_text_is_aligned_and_states_ratios() -> None:
    lines = as_text([YARDSTICK, OURS, OTHER], [MISSED]).splitlines()

    assert lines[0].split()[:2] == ["workload", "tool"]
    assert re.split(r"  +", lines[1]) == [
        *("election, 4 servers", "SPIN", "1,000,000", "6,000,000", "4.00", "1.50"),
        *("1.5", "-", "-", "200", "209.7", "1.00", "1.00"),
    ]
    assert lines[2].split()[-2:] == ["8.00", "0.25"]
    assert lines[3].split()[-2:] == ["-", "-"], "another workload has no row of SPIN to refer to"
    assert len({len(line) for line in lines[:4]}) == 1
    assert lines[4:] == ["tlc: not measured: java is missing (apt-get install default-jre-headless)"]


def test_text_without_a_row_is_the_reason_alone() -> None:
    assert as_text([], [MISSED]) == f"tlc: {MISSED}"


@pytest.mark.parametrize("width", [80, 200])
def test_terminal_table_loses_no_figure(width: int) -> None:
    drawn = io.StringIO()
    rows = [
        Row("SPIN", "election, 4 servers", 13_822_383, 87_985_030, 40.0, 2.0, 1400 * 2**20),
        Row("Quorate", "election, 4 servers", 13_822_383, 87_985_030, 5.0, 12.0, 350 * 2**20),
    ]
    show(Console(width=width, file=drawn), rows, [MISSED])
    words = drawn.getvalue().split()

    assert " ".join(words).startswith("election, 4 servers")
    shown = [heading for heading in HEADINGS[1:] if heading not in {"warm", "steps per 1000"}]
    assert set(words) >= {word for heading in shown for word in heading.split()}
    assert set(words) >= {"13,822,383", "87,985,030", "2.2", "17.6", "8.00", "0.25"}
    assert " ".join(words).endswith(f"tlc: {MISSED}")


def test_what_python_does_is_shown_where_it_is_known() -> None:
    """Ten seconds, two of them in Python: 80 million transitions in the other eight, and a step for 2,000 of them."""
    drawn = io.StringIO()
    row = Row("Quorate", "Zab", 20_000_000, 80_000_000, 10.0, 1.0, 2**20, python_steps=40_000, python_seconds=2.0)
    show(Console(width=80, file=drawn), [row], [])

    assert {"warm", "10.0", "8.0", "0.50"} <= set(drawn.getvalue().split())
    assert "SPIN" not in drawn.getvalue()


def test_json_holds_figures_and_reasons() -> None:
    read = json.loads(as_json(4, [YARDSTICK, OURS, OTHER], [MISSED]))

    assert read["servers"] == 4
    assert read["rows"][1]["speed_ratio_to_spin"] == 8.0
    assert read["rows"][1]["memory_ratio_to_spin"] == 0.25
    assert read["rows"][1]["states_per_second"] == 2_000_000
    assert read["rows"][2]["speed_ratio_to_spin"] is None
    assert read["missed"] == [{"name": "tlc", "reason": MISSED.reason}]


def test_the_command_succeeds_only_if_every_figure_was_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "MEASUREMENTS", (("absent", missing), ("ours", measured)))

    assert command.main(["--servers", "3", "--only", "ours"]) == 0
    assert "Quorate" in capsys.readouterr().out

    assert command.main(["--servers", "3"]) == 1
    told = capsys.readouterr().out
    assert "absent: not measured: spin is missing (apt-get install spin)" in told
    assert "Quorate" in told, "one missing tool does not keep the others from being measured"

    assert command.main(["--servers", "3", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["missed"][0]["name"] == "absent"


@pytest.mark.parametrize("argv", [["--only", "nothing"], ["--servers", "9"], ["--no-such-option"]])
def test_a_bad_command_line_exits_with_two(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(argv)
    assert end.value.code == 2


def test_help_names_the_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["--help"])
    assert end.value.code == 0
    assert "measure only spin" in capsys.readouterr().out
