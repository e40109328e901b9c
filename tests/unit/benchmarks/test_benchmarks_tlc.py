"""The comparison with TLC: its report is parsed exactly, only a complete search counts, and a ratio needs equal counts.

The report is one of TLC 2026.11 on `benchmarks/tlc/TwoPhase.tla`. Java is replaced by a script here; `python -m
benchmarks tlc --jar FILE` runs the real one.
"""

import json
import os
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.comparison import SearchFigures
from benchmarks.outcome import ToolFailed
from benchmarks.tlc import command
from benchmarks.tlc.official import Instance, official

REPORT = (Path(__file__).parents[1] / "golden" / "benchmarks" / "tlc.txt").read_text(encoding="utf-8")
START = REPORT.replace("58146 states generated, 8832 distinct", "4 states generated, 3 distinct")


def test_reads_a_recorded_report() -> None:
    """TLC counts the initial state as generated, so there is one transition less."""
    assert command.parse(REPORT) == command.TlcReport(states=8_832, transitions=58_145, version="2026.11.24.193300")


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("Model checking completed. No error has been found.", "Error: Invariant Consistent is violated."),
        ("0 states left on queue.\nThe depth", "5 states left on queue.\nThe depth"),
        ("58146 states generated", "58146 states produced"),
        ("TLC2 Version", "A version"),
    ],
)
def test_refuses_a_report_that_is_not_of_a_complete_search(there: str, instead: str) -> None:
    broken = REPORT.replace(there, instead)
    assert broken != REPORT

    with pytest.raises(ToolFailed, match="TLC's search was not completed"):
        command.parse(broken)


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file like the jar, and a `java` that prints the report of five managers after a fifth of a second."""
    fake_java(tmp_path, REPORT)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    jar = tmp_path / "tla2tools.jar"
    jar.touch()
    return jar


def fake_java(folder: Path, report: str, status: int = 0) -> None:
    (folder / "report").write_text(report, encoding="utf-8")
    (folder / "start").write_text(START, encoding="utf-8")
    script = (
        f"#!/bin/sh\nif grep -q 'N = 0' *.cfg; then cat {folder}/start; exit 0; fi\n"
        f"test -f TwoPhase.tla || exit 9\nsleep 0.2\ncat {folder}/report\nexit {status}\n"
    )
    (folder / "java").write_text(script, encoding="utf-8")
    (folder / "java").chmod(0o755)


def test_both_are_searched_and_the_start_is_not_counted(jar: Path) -> None:
    comparison = command.compare(jar, command.start(jar), "two_phase_commit", 5, 1, 1)

    assert (comparison.theirs.states, comparison.ours.states) == (8_832, 8_832)
    assert comparison.theirs.transitions == comparison.ours.transitions == 58_145
    assert 0.1 < comparison.theirs.seconds < 1.0
    assert comparison.ratio == pytest.approx(comparison.theirs.seconds / comparison.ours.seconds)


def test_another_count_gives_no_ratio_and_an_error(jar: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_java(jar.parent, REPORT.replace("8832 distinct", "8831 distinct"))

    assert command.main(["--jar", str(jar), "--servers", "3", "--managers", "5", "--json"]) == 1

    captured = capsys.readouterr()
    assert json.loads(captured.out)["comparisons"] == []
    assert "not measured: TLC found 8,831 states where the model has 8,832\n" in captured.err


def test_a_program_that_fails_is_shown(jar: Path) -> None:
    fake_java(jar.parent, "Error: unknown operator", status=75)

    with pytest.raises(ToolFailed, match=r"TLC ended with exit code 75:\nError: unknown operator"):
        command.search(jar, command.start(jar), command.bundled("two_phase_commit", 5))


def test_a_missing_java_is_named(
    jar: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(jar.parent / "nothing"))

    assert benchmarks.main(["tlc", "--jar", str(jar)]) == 1
    assert capsys.readouterr().err == "not measured: java is missing (apt-get install default-jre-headless)\n"


@pytest.fixture
def zab(jar: Path) -> Path:
    """A file of TLA+, and a `java` that checks the files of an instance and prints a report of its start or search."""
    first, found = (REPORT.replace("58146 states generated, 8832 distinct", text) for text in ZAB_COUNTS)
    (jar.parent / "start").write_text(first, encoding="utf-8")
    (jar.parent / "report").write_text(found, encoding="utf-8")
    script = (
        "#!/bin/sh\ngrep -q 'EXTENDS Zab' Instance.tla && test -f Zab.tla || exit 9\n"
        f"if grep -q 'Server = {{s1}}' Instance.cfg; then cat {jar.parent}/start; exit 0; fi\n"
        f"grep -q SYMMETRY Instance.cfg || exit 8\nsleep 0.2\ncat {jar.parent}/report\n"
    )
    (jar.parent / "java").write_text(script, encoding="utf-8")
    file = jar.parent / "Zab.tla"
    file.write_text("---- MODULE Zab ----\n====\n", encoding="utf-8")
    return file


ZAB_COUNTS = ("3 states generated, 2 distinct", "9019 states generated, 3656 distinct")


@pytest.mark.parametrize(("transitions", "missed"), [(9_018, 0), (9_017, 1)])
def test_zab_needs_equal_counts_of_generated_states_too(
    transitions: int,
    missed: int,
    jar: Path,
    zab: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def search_ours(*asked: object) -> SearchFigures:
        assert asked == ("zab_tla", "3,0,2,-,0", 1, "symmetric")
        return SearchFigures("Quorate", 3_656, transitions, 0.1, 1 << 20)

    monkeypatch.setattr(command, "search_ours", search_ours)

    assert command.main(["--jar", str(jar), "--zab", str(zab), "--instances", "3,0,2"]) == missed

    printed = capsys.readouterr()
    assert ("Zab.tla, 3,0,2,-,0 symmetric" in printed.out) is (not missed)
    if missed:
        assert printed.err == "not measured: Quorate found 9,017 transitions where the model has 9,018\n"


def test_an_instance_becomes_a_module_and_a_configuration(zab: Path) -> None:
    files = official(zab, Instance.of("2,1,3,-,4"), symmetric=True).files

    assert "Limits == [MaxTimeoutFailures |-> 1, MaxTransactionNum |-> 3, MaxRestarts |-> 4]" in files["Instance.tla"]
    assert "Server = {s1, s2}\nParameters <- Limits\n" in files["Instance.cfg"]
    assert files["Instance.cfg"].count("\nSYMMETRY Names\n") == 1
    assert "SYMMETRY" not in official(zab, Instance.of("2,1,3,2,4"), symmetric=False).files["Instance.cfg"]


@pytest.mark.parametrize(("text", "whole"), [("2", "2,1,1,-,0"), ("3,0,2", "3,0,2,-,0"), ("3,1,4,2,1", "3,1,4,2,1")])
def test_an_instance_is_read_from_its_text(text: str, whole: str) -> None:
    assert str(Instance.of(text)) == whole


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--instances", "3,1,-"], "'-' is not a whole number from 0 to 99"),
        (["--instances", "3,1,1,-,0,0"], "'3,1,1,-,0,0' has 6 numbers, and an instance 5, as in 3,1,1,-,0"),
        (["--zab", "/nowhere/Zab.tla"], "this is no file of TLA+; the path of Zab.tla would be right"),
        ([], "--jar"),
        (["--servers", "5"], "'5' is not a whole number from 3 to 4"),
        (["--jar", "/nowhere/tla2tools.jar"], "this is no jar file; the path of tla2tools.jar would be right"),
        (["--jar", __file__], "this is no jar file"),
    ],
)
def test_a_bad_command_line_says_what_would_be_right(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(argv)

    assert ended.value.code == 2
    assert says in capsys.readouterr().err
