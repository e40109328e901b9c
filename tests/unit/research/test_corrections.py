"""The tables of `research.corrections` and `research.upstream`, from results that are written here by hand."""

from itertools import product
from pathlib import Path

import msgspec
import pytest

from harness.reproduce.ends import Outcome, Reproduction
from research import corrections, upstream
from research.corrections import DEFECTS, End, Line, as_expected, end_of, table_of

A = DEFECTS[0]


def line(end: End, *, corrected: bool, source: str = A.source) -> Line:
    return Line(A.name, corrected, source, "3.9.5", end, "", 1.0)


def test_a_cell_counts_the_runs_that_ended_wrong_and_names_the_open_ones() -> None:
    ends = [line(End.WRONG, corrected=False)] * 3 + [line(End.OPEN, corrected=True), line(End.RIGHT, corrected=True)]
    assert table_of(ends, [A]).rows == (
        ("A, acks-survive-truncation", "an acknowledged write is on no server", "3 of 3", "0 of 1, 1 open"),
    )
    assert table_of([], [A]).rows[0][2:] == ("not tried", "not tried")


@pytest.mark.parametrize(
    ("result", "end"),
    [
        (Reproduction(Outcome.CONFIRMED, acknowledged={"/a": 1}, present={"/a": ()}, servers=3), End.WRONG),
        (Reproduction(Outcome.NOT_CONFIRMED, acknowledged={"/a": 1}, present={"/a": (1,)}, servers=3), End.WRONG),
        (Reproduction(Outcome.CONFIRMED, acknowledged={"/a": 1}, present={"/a": (1, 2, 3)}, servers=3), End.RIGHT),
        (Reproduction(Outcome.NOT_CONFIRMED, "a difference", present={"/a": (1, 2, 3)}, servers=3), End.OPEN),
        (Reproduction(Outcome.HARNESS_FAILED, "no server starts"), End.OPEN),
    ],
)
def test_a_harm_is_a_wrong_end_and_only_a_confirmed_run_is_right(result: Reproduction, end: End) -> None:
    assert end_of(result)[0] is end


def test_only_a_wrong_end_without_and_a_right_one_with_the_correction_are_expected() -> None:
    kinds = [(end, corrected) for end in End for corrected in (False, True)]
    expected = [kind for kind in kinds if as_expected(line(kind[0], corrected=kind[1]))]
    assert expected == [(End.WRONG, False), (End.RIGHT, True)]


def test_results_of_an_earlier_correction_are_not_counted(tmp_path: Path) -> None:
    results = corrections.Results(tmp_path / "results")
    for source, corrected in product(("an earlier one", A.source), (False, True)):
        results.add(line(End.WRONG, corrected=corrected, source=source))
    assert [each.corrected for each in results.lines("3.9.5")] == [False, False, True]
    assert results.lines("3.9.4") == []


def test_an_open_run_is_made_again_and_not_for_ever() -> None:
    ends = [line(End.OPEN, corrected=True), line(End.RIGHT, corrected=True)]
    assert corrections._next_run(ends, A, True, 2) == 3
    assert corrections._next_run(ends, A, True, 1) is None
    assert corrections._next_run([line(End.OPEN, corrected=True)] * 2, A, True, 2) is None


REPORT = """<testsuite>
<testcase name="a()"/><testcase name="b()"><failure/></testcase>
<testcase name="c()"><skipped/></testcase><testcase name="d()"><error/></testcase>
</testsuite>"""


def test_junits_report_has_the_tests_that_ran_and_those_that_failed(tmp_path: Path) -> None:
    (tmp_path / "TEST-junit-jupiter.xml").write_text(REPORT)
    assert upstream._reported(tmp_path) == (3, ("b()", "d()"))
    assert upstream._reported(tmp_path / "missing") == (0, ())


def of_class(failed: tuple[str, ...], *, corrected: bool, finished: bool = True) -> upstream.Line:
    return upstream.Line(upstream.CLASSES[0], corrected, "", "3.9.5", 3, failed, finished, 1.0)


@pytest.mark.parametrize(
    ("without", "with_all", "worse"),
    [
        (of_class((), corrected=False), of_class((), corrected=True), False),
        (of_class(("a()",), corrected=False), of_class(("a()",), corrected=True), False),
        (of_class(("a()",), corrected=False), of_class(("b()",), corrected=True), True),
        (of_class((), corrected=False), of_class((), corrected=True, finished=False), True),
        (of_class((), corrected=False, finished=False), of_class(("a()",), corrected=True), False),
    ],
)
def test_a_class_is_worse_if_a_test_fails_with_the_corrections_alone(
    without: upstream.Line, with_all: upstream.Line, worse: bool
) -> None:
    assert upstream.faults([without, with_all]) == ((upstream.CLASSES[0],) if worse else ())
    assert upstream.faults([with_all]) == (), "nothing to compare with"


def test_another_file_is_no_file_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results").write_bytes(msgspec.json.encode({"defect": 1}))
    with pytest.raises(corrections.ServerError, match=r"it is no file of results .*; name a new one"):
        corrections.Results(tmp_path / "results").lines("3.9.5")
    assert corrections.main(["nothing"]) == 2
    assert "no defect with a correction is called 'nothing'; write acks-" in capsys.readouterr().err
