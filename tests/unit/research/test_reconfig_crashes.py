"""The table of crashes, computed by the model: it equals the table that real 3.9.5 servers gave, cell by cell.

The expected cells are those of docs/reference-reconfig-facts.md, made from real servers by the command
`python -m research.reconfig crashes --write PAGE`. No server runs here. Mutants of the specification show that the
comparison can fail.
"""

from functools import cache
from pathlib import Path

import pytest

from research.reconfig.__main__ import main
from research.reconfig.crash_computed import RELEASE, cell_differences, computed
from research.reconfig.crash_table import CHANGES, COLUMNS, CRASHES, EXITS, POSITIONS, TABLE_NAME, Change
from research.reconfig.facts import FactTable, shown
from spec.releases import defects_of
from spec.variants import Variant

PAGE = Path(__file__).parents[3] / "docs" / "reference-reconfig-facts.md"
KILLED, DISK, THEN, AFTER = (COLUMNS.index(name) for name in ("killed", *COLUMNS[3:6]))


@cache
def model(*more: Variant) -> FactTable:
    return computed((*defects_of(RELEASE), *more)) if more else computed()


def measured() -> FactTable:
    table = shown(PAGE.read_text(encoding="utf-8"), TABLE_NAME)
    assert table is not None
    return table


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.name))
def test_the_model_computes_what_real_servers_gave_in_every_cell(change: Change) -> None:
    wanted = [row for row in measured().rows if row[0] == change.name]
    assert len(wanted) == sum(each is change for each, _ in CRASHES)
    assert [row for row in model().rows if row[0] == change.name] == wanted


def test_the_rows_are_every_position_of_every_change() -> None:
    """A log that waits keeps a learner from the end of its part, so these positions need a leader that stays."""
    everything = {(change.name, position.name) for change in CHANGES for position in POSITIONS}
    without = everything - {row[:2] for row in measured().rows}
    assert {change for change, _ in without} == {"4 replaces leader 3"}
    assert all(position.endswith("has activated, its log write waits") for _, position in without)


def test_a_cell_has_one_outcome_although_every_run_is_explored() -> None:
    assert not [cell for row in model().rows for cell in row if " or " in cell or "no service" in cell]


def test_a_proposal_that_only_the_old_leader_has_is_dropped_and_any_other_is_completed() -> None:
    dropped = {row[1] for row in measured().rows if row[THEN] == "0x100000000: {1, 2, 3}"}
    assert dropped == {
        "leader has `.next`, its log write waits, nothing sent",
        "only the leader has `.next` and the log record",
    }


def test_exactly_the_servers_whose_active_file_lacks_them_cannot_start() -> None:
    members = {"4 joins": "1234", "4 replaces follower 1": "234", "4 replaces leader 3": "124"}
    for row in measured().rows:
        named = members[row[0]] if ".dynamic.100000001" in row[DISK] else "123"
        assert (row[AFTER] == EXITS) is (row[KILLED] not in named), row


def test_a_leader_that_ignores_the_view_seen_last_gives_other_cells() -> None:
    found = cell_differences(model(Variant.LAST_SEEN_IGNORED), measured(), "the page")
    assert any(line.startswith("4 joins, all have both, no ACK has arrived, the others then") for line in found)


def test_one_start_does_not_show_that_it_deletes_the_file() -> None:
    """A real server has read `.next` before it deletes the file: the second start has forgotten it, and here is one."""
    kept = computed([each for each in defects_of(RELEASE) if each is not Variant.LAST_SEEN_FORGOTTEN])
    assert cell_differences(kept, measured(), "the page") == ()


def test_tables_of_different_lengths_differ() -> None:
    fewer = FactTable(TABLE_NAME, COLUMNS, measured().rows[1:])
    assert cell_differences(model(), fewer, "the page") == ("the model has 52 rows, and the page 51",)


def test_the_command_compares_the_model_with_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--model", "--check", str(PAGE)]) == 0
    assert "crashes: the model and the page agree in all 364 cells of 52 rows" in capsys.readouterr().out
    changed = tmp_path / "page.md"
    text = PAGE.read_text(encoding="utf-8")
    changed.write_text(text.replace(f"| {EXITS} | - |", "| serves | - |", 1), encoding="utf-8")
    assert main(["--model", "--check", str(changed)]) == 1
    assert f"it, after its restart: the model has {EXITS}; the page serves" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "packets"], "--model computes the table of crashes alone; leave out the names"),
        (["--model", "--write", str(PAGE)], "--model computes a table, and --write writes measured ones"),
    ],
)
def test_the_model_alone_writes_nothing_and_knows_one_table(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert f"error: {message}" in capsys.readouterr().err
