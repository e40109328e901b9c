"""Dialects, the commands that kill servers, and the tables by release, without a server."""

import json
from pathlib import Path

import pytest

from harness import commands as c
from harness.__main__ import main
from harness.conform.kills.run import ShellCommands
from harness.conform.report import BEGIN, END, CaseRecord, ConformRecord, load, tables, with_tables
from harness.conform.run import CASES, translated
from harness.processes import ServerError

RECORDS = Path(__file__).parents[2] / "golden" / "conform"
PAGE = Path(__file__).parents[4] / "docs" / "how-to-measure-a-server.md"
COLUMNS = ("3.4.14", "3.5.10", "3.6.4", "3.7.2", "3.8.0", "3.8.6", "3.9.5", "zetcd-0.0.5", "our-node")

# --- dialects


def test_only_requests_that_an_older_opcode_can_make_are_translated() -> None:
    script = (
        c.Create(0, "/a", by=c.CREATE2),
        c.Create(0, "/b", by=c.CREATE2, flags=c.CONTAINER),  # create has no such mode
        c.Multi(0, (c.Create(0, "/c", by=c.CREATE2), c.Delete(0, "/a"))),
        c.SetWatches(0, data=("/a",)),
        c.SetWatches(0, persistent=("/a",)),  # setWatches cannot send it
    )
    assert translated(script, frozenset({c.CREATE2, 105})) == (
        c.Create(0, "/a", by=c.CREATE),
        script[1],
        c.Multi(0, (c.Create(0, "/c", by=c.CREATE), c.Delete(0, "/a"))),
        c.SetWatches(0, data=("/a",), by=101),
        script[4],
    )
    assert translated(script, frozenset()) == script


def test_the_cases_about_create2_are_not_translated() -> None:
    assert [case.name for case in CASES if case.verbatim] == ["create2 answers with the stat", "create2 in a multi"]


# --- commands that kill


def test_a_command_gets_the_number_and_the_address_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "said"
    commands = ShellCommands([("a", 1), ("b", 2)], f"echo kill {{server}} {{host}}:{{port}} >> {file}", "true")
    commands.kill(2)
    commands.start(1)
    assert file.read_text() == "kill 2 b:2\n"


def test_a_command_that_fails_is_an_error_that_repeats_it() -> None:
    with pytest.raises(ServerError, match=r"--kill: 'exit 3' ended with 3; run it by hand"):
        ShellCommands([1], "exit 3", "true").kill(1)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["h:1", "--kills", "3"], "--kills needs --kill and --restart"),
        (["h:1", "--kill", "x"], "--kill needs --restart"),
        (["--start", "3.9.5", "--kill", "x", "--restart", "y"], "are for servers that run already"),
        (["h:1", "--wait", "0"], "--wait takes seconds above 0"),
        (["h:1", "--without", "nothing"], "--without nothing: write one of"),
        (["--table", "page.md"], "--table PAGE takes --records FILE"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(
    arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conform", *arguments]) == 2
    assert what in capsys.readouterr().err


# --- tables


def record(name: str, cases: dict[str, CaseRecord], watch: str = "supported") -> ConformRecord:
    return ConformRecord(name, cases, {"106 addWatch": (watch, "")}, (0, 1, 0), 0)


def test_a_cell_is_empty_where_the_server_lacks_the_opcode_of_every_case() -> None:
    cause = (("modes", "ZOOKEEPER-4466", "release"),)
    lacks = record("1", {"a": CaseRecord("not supported")}, watch="unimplemented")
    differs = record("2", {"a": CaseRecord("explained", cause)})
    equal = record("3", {"a": CaseRecord("passed")})
    lines = tables([lacks, differs, equal]).splitlines()
    assert "| modes |  | yes | no | ZOOKEEPER-4466 |" in lines
    assert "| 106 addWatch | no | yes | yes |  |" in lines


def test_a_page_keeps_its_text_around_the_tables(tmp_path: Path) -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_tables(page, [record("1", {})]).startswith(f"before\n{BEGIN}\n| opcode | 1 | source |")
    assert with_tables(page, [record("1", {})]).endswith(f"{END}\nafter\n")
    with pytest.raises(ValueError, match="the page has no place for the tables"):
        with_tables("nothing", [])
    (tmp_path / "x.json").write_text(json.dumps({"name": 1}))
    with pytest.raises(ValueError, match=r"x\.json: not a record of conform --json"):
        load(tmp_path / "x.json")


def test_the_tables_of_the_manual_are_those_of_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m harness conform --table docs/how-to-measure-a-server.md --records ...` writes them."""
    files = [str(RECORDS / f"{name}.json") for name in COLUMNS]
    assert main(["conform", "--table", str(PAGE), "--check", "--records", *files]) == 0
    assert "the tables are right" in capsys.readouterr().out


def test_no_record_has_an_unexplained_difference() -> None:
    assert {name: load(RECORDS / f"{name}.json").unexplained for name in COLUMNS} == dict.fromkeys(COLUMNS, 0)
