"""The herd effect in the model and measured: the cost of a leader's death by the watched znodes, and its display."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.outcome import Missed
from research.herd import __main__ as herd_command
from research.herd import plot
from research.herd.client_group import Death
from research.herd.live import Report, Row
from research.herd.model import STRATEGIES, Count, count
from research.herd.table import as_json, as_text, differences

SIZES = range(2, 7)
HERDS = ("one ephemeral", "smallest znode", "all children")
AS_COUNTED = Death(4, 7, 4, 7, 0.004)
ROW = Row(STRATEGIES["one ephemeral"], 5, Count(4, 7), {"node": [AS_COUNTED, Death(4, 7, 4, 7, 0.006)]})
REPORT = Report([ROW], ("node",), 2, [])


@pytest.mark.parametrize("clients", SIZES)
@pytest.mark.parametrize("name", HERDS)
def test_all_who_wait_are_notified_in_the_model_by_the_ways_of_the_herd(name: str, clients: int) -> None:
    assert count(STRATEGIES[name], clients).notifications == clients - 1


@pytest.mark.parametrize("clients", SIZES)
@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in HERDS])
def test_one_is_notified_in_the_model_where_each_watches_its_predecessor(name: str, clients: int) -> None:
    assert count(STRATEGIES[name], clients).notifications == 1


@pytest.mark.parametrize("clients", SIZES)
@pytest.mark.parametrize("name", STRATEGIES)
def test_each_way_notifies_as_many_as_the_requirements_say(name: str, clients: int) -> None:
    assert count(STRATEGIES[name], clients).notifications == STRATEGIES[name].expected(clients)


@pytest.mark.parametrize("clients", SIZES)
def test_requests_in_the_model_are_those_of_each_way(clients: int) -> None:
    requests = {name: count(strategy, clients).requests for name, strategy in STRATEGIES.items()}

    assert requests == {
        "one ephemeral": (clients - 1) + (clients - 2),  # all create; all but one read the owner
        "smallest znode": (clients - 1) + (clients - 2),  # all list the children; all but one watch the next
        "all children": clients - 1,  # the listing sets the watch
        "predecessor": 1,
        "predecessor, announced": 2,  # the listing and the announcement
    }


def test_the_text_shows_the_model_beside_the_measurement() -> None:
    lines = as_text(REPORT).splitlines()

    assert re.split(r"  +", lines[0])[:2] == ["watched", "clients"]
    assert lines[1].split() == ["one", "ephemeral", "5", "4", "4", "7", "7", "5.0", "6.0"]


def test_bars_are_as_long_as_the_figures() -> None:
    row = Row(STRATEGIES["predecessor"], 5, Count(1, 1), {"node": [Death(1, 1, 1, 1, 0.004)]})
    lines = as_text(Report([ROW, row], ("node",), 1, [])).splitlines()
    bars = [line.count("█") for line in lines if "█" in line]

    assert bars == [48, 12]


@pytest.mark.parametrize(
    "death", [Death(5, 7, 5, 7, 0.004), Death(4, 7, 4, 8, 0.004)], ids=["at the clients", "at the servers"]
)
def test_a_death_that_cost_more_than_the_model_counts_is_named(death: Death) -> None:
    row = Row(ROW.strategy, 5, ROW.counted, {"node": [AS_COUNTED, death]})

    (line,) = differences(Report([row], ("node",), 2, []))

    assert line.startswith("node: one ephemeral, 5 clients: 1 of 2 deaths cost other than 4 notifications and 7")
    assert f"{death.server_notifications} and {death.server_requests} at the servers" in line


def test_json_has_every_death_and_what_was_missed() -> None:
    missed = Report(REPORT.rows, ("real", "node"), 2, [Missed("real", "no java on the PATH")])
    whole = json.loads(as_json(missed))

    assert whole["missed"] == [{"name": "real", "reason": "no java on the PATH"}]
    (row,) = whole["rows"]
    assert row["model"] == {"notifications": 4, "requests": 7}
    assert [death["seconds"] for death in row["kinds"]["node"]["deaths"]] == [0.004, 0.006]
    assert row["kinds"]["node"]["agrees"] is True


def test_the_plot_shows_every_figure_and_is_the_same_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    plot.draw(REPORT, first)
    plot.draw(REPORT, second)

    drawn = first.read_text(encoding="utf-8")
    assert drawn == second.read_text(encoding="utf-8")
    assert set(re.findall(r">([^<>]+)</text>", drawn)) >= {"one ephemeral", "5 clients", "4", "7", "5.0"}


def test_the_command_counts_in_the_model_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert herd_command.main(["--kind", "none", "--clients", "3", "--json"]) == 0

    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["watched"]: row["model"]["notifications"] for row in rows} == {
        strategy.name: strategy.expected(3) for strategy in STRATEGIES.values()
    }
    assert not any(row["kinds"] for row in rows)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--clients", "1,5"], "2 or more"),
        (["--deaths", "0"], "'0' is not a whole number from 1 to"),
        (["--plot", "herd.png"], "ends in .svg"),
        (["--directory", "/nowhere/at/all"], "the directory does not exist"),
    ],
)
def test_a_bad_command_line_says_what_would_be_right(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        herd_command.main(argv)

    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_figure_that_differs_from_the_model_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(ROW.strategy, 5, ROW.counted, {"node": [Death(5, 7, 5, 7, 0.004)]})
    monkeypatch.setattr(herd_command, "measure", lambda *_: Report([row], ("node",), 1, []))

    assert herd_command.main(["--kind", "node"]) == 1
