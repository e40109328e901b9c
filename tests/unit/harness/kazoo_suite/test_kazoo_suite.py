"""The comparison of two runs of kazoo's test-suite: reports as pytest writes them, and the tests that differ."""

from pathlib import Path

import pytest

from harness.__main__ import main
from harness.kazoo_suite.command import SuiteComparison
from harness.kazoo_suite.run import SuiteOutcome, read_report

PASSED, FAILED, SKIPPED = SuiteOutcome.PASSED, SuiteOutcome.FAILED, SuiteOutcome.SKIPPED
REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="4">
<testcase classname="kazoo.tests.test_lock.KazooLockTests" name="test_lock" time="0.1"/>
<testcase classname="kazoo.tests.test_lock.KazooLockTests" name="test_unlock"><failure message="no"/></testcase>
<testcase classname="kazoo.tests.test_sasl.TestGss" name="test_it"><skipped type="pytest.skip" message="no"/></testcase>
<testcase classname="kazoo.tests.test_party.PartyTests" name="test_party"/>
<testcase classname="kazoo.tests.test_party.PartyTests" name="test_party"><error message="at the end"/></testcase>
</testsuite></testsuites>
"""


def test_a_report_has_one_outcome_for_each_test(tmp_path: Path) -> None:
    """pytest reports an error after a test as a second test case of the same name."""
    (tmp_path / "report.xml").write_text(REPORT, encoding="utf-8")
    assert read_report(tmp_path / "report.xml") == {
        "test_lock::KazooLockTests::test_lock": PASSED,
        "test_lock::KazooLockTests::test_unlock": FAILED,
        "test_sasl::TestGss::test_it": SKIPPED,
        "test_party::PartyTests::test_party": FAILED,
    }


def test_a_difference_is_a_test_that_passes_at_the_real_servers_only() -> None:
    real = {"a": PASSED, "b": PASSED, "c": FAILED, "d": SKIPPED, "e": PASSED, "f": PASSED}
    ours = {"a": PASSED, "b": FAILED, "c": FAILED, "d": SKIPPED, "e": SKIPPED}
    compared = SuiteComparison(3, real, ours)
    assert [row.name for row in compared.differences] == ["b", "e", "f"]


def test_without_real_servers_no_test_may_fail() -> None:
    """A test that is skipped needs something that is missing here, such as Kerberos."""
    outcomes = {"a": PASSED, "b": SKIPPED, "c": FAILED}
    assert [row.name for row in SuiteComparison(1, None, outcomes).differences] == ["c"]


def test_the_table_has_the_tests_that_do_not_pass_and_the_totals() -> None:
    compared = SuiteComparison(3, {"a": PASSED, "b": PASSED, "c": FAILED}, {"a": PASSED, "b": FAILED, "c": PASSED})
    assert list(compared.lines(every=False)) == [
        "## 3 servers",
        "",
        "| test | real | ours |",
        "| --- | --- | --- |",
        "| `b` | passed | failed |",
        "| `c` | failed | passed |",
        "| all | 2 passed, 1 failed, 0 skipped | 2 passed, 1 failed, 0 skipped |",
        "",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--servers", "9"], "argument --servers: '9' is not a whole number from 1 to 5"),
        (["--again", "-1"], "argument --again: '-1' is not a whole number from 0 to"),
        (["--again", "1_0"], "argument --again: '1_0' is not a whole number from 0 to"),
    ],
)
def test_a_wrong_number_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["kazoo", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unknown_release_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kazoo", "--release", "1.0.0"]) == 2
    assert "no known release of ZooKeeper is called '1.0.0'" in capsys.readouterr().err
