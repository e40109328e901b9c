"""The report of a comparison as text, Markdown and JUnit XML, and the command line of `harness conform`."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness import commands as c
from harness.__main__ import main
from harness.conform import report
from harness.conform.cases.case import Case, node
from harness.conform.comparison import differences
from harness.conform.opcodes import Support, row
from harness.conform.run import CaseResult, ConformResult, RandomFinding, Status
from harness.conform.servers import parse_places
from harness.interpreter import Seen
from harness.layouts import Stat
from harness.session import Answer

STAT = Stat(8, 8, 1, 1, 0, 0, 0, 0, 0, 0, 8)
QUIET = ((), (), ())


def seen(command: c.Command, outcome: object) -> Seen:
    return Seen(command, outcome, QUIET)


def ok(*values: object) -> Answer:
    return Answer(0, 0, values)


def error(code: int) -> Answer:
    return Answer(code, 0, ())


@pytest.fixture
def result() -> ConformResult:
    exists, create = (node("/a"), c.Exists(0, "/a")), (node("/<&>"),)

    def case(area: str, script: c.Script, tested: object, expected: object) -> CaseResult:
        records = [
            [*map(seen, script[:-1], [ok()] * (len(script) - 1)), seen(script[-1], end)] for end in (tested, expected)
        ]
        return CaseResult(Case(area, "a case", script), tuple(differences(records[0], records[1], False, "3.8.0")))

    cases = (
        case("create", create, ok(), ok()),
        case("ACLs", exists, ok(STAT), error(-102)),
        case("paths", create, ok(), error(-8)),
        case("multi", create, error(-6), ok()),
    )
    opcodes = (row(107, "whoAmI", Support.UNIMPLEMENTED, Support.SUPPORTED, "3.8.0"),)
    found = RandomFinding(case("random scripts", exists, error(-5), ok()), 4)
    return ConformResult("3.8.0", cases, opcodes, 20, 1, (found,))


def test_each_case_is_counted_with_its_status(result: ConformResult) -> None:
    assert [each.status for each in result.cases] == [
        Status.PASSED,
        Status.EXPLAINED,
        Status.DIFFERS,
        Status.NOT_SUPPORTED,
    ]
    assert report.area_rows(result.cases)[1] == ("ACLs", (0, 1, 0, 0))
    assert report.summary(result).endswith("(seed 1), 4 differ; differences to look at: 4")


def test_the_text_shows_the_script_and_both_answers(result: ConformResult) -> None:
    text = report.text(result)
    assert "> Exists(who=0, path='/a', watch=False)" in text
    assert "server error -6" in text
    assert "107 whoAmI: unimplemented; oracle: supported" in text


def test_markdown_has_the_table_of_opcodes(result: ConformResult) -> None:
    assert "| 107 | whoAmI | unimplemented | supported |  |" in report.markdown(result, "h:1")


def test_junit_is_xml_with_a_failure_for_each_finding(result: ConformResult) -> None:
    root = ElementTree.fromstring(report.junit(result, "h:1").encode())
    assert {suite.get("name"): suite.get("failures") for suite in root} == {
        "create": "0",
        "ACLs": "0",
        "paths": "1",
        "multi": "1",
        "random scripts": "1",
        "opcodes": "1",
    }
    assert [case.tag for case in root.iter("skipped")] == ["skipped"]


# --- the command line


@pytest.mark.parametrize(
    ("text", "places"),
    [("a.b:2181", (("a.b", 2181),)), ("h:1,[::1]:2", (("h", 1), ("::1", 2)))],
)
def test_addresses_are_read(text: str, places: object) -> None:
    assert parse_places(text) == places


@pytest.mark.parametrize("text", ["", "h", "h:0", "h:65536", "h:1,,", "::1:2", "h:1/chroot"])
def test_a_wrong_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="write HOST:PORT"):
        parse_places(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "write the servers to test"),
        (["h:1", "--start", "3.9.5"], "write the servers to test"),
        (["nonsense"], "'nonsense' is no address"),
        (["h:1", "--root", "relative"], "--root relative"),
        (["h:1", "--root", "/zookeeper/x"], "--root /zookeeper/x"),
        (["h:1", "--area", "nothing"], "--area nothing"),
        (["h:1", "--oracle", "key"], "--oracle key"),
        (["h:1", "--release", "new"], "--release new"),
        (["127.0.0.1:1"], "127.0.0.1:1 does not serve"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["conform", *arguments]) == 2
    error_text = capsys.readouterr().err
    assert said in error_text
    assert error_text.startswith("error: ")
    assert error_text.count("\n") == 1
