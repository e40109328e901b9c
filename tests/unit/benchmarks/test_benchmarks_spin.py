"""SPIN as the reference: its report is parsed exactly, and only a complete search gives a figure."""

from pathlib import Path

import pytest

from benchmarks import spin
from benchmarks.child import run_alone
from benchmarks.outcome import SIZES, Size, ToolFailed, ToolMissing, WrongCount, check_size

REPORT = (Path(__file__).parents[1] / "golden" / "benchmarks" / "spin.txt").read_text(encoding="utf-8")


def test_reads_a_recorded_report() -> None:
    report = spin.parse(REPORT)

    assert report == spin.Report(states=13_822_383, transitions=87_985_030, elapsed_seconds=41.5)
    check_size("SPIN", 4, Size(report.states, report.transitions))


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("errors: 0", "errors: 1"),
        ("errors: 0", "errors: 0\nerror: max search depth too small"),
        ("Full statespace", "Warning: Search not completed\nFull statespace"),
        ("states, stored\n", "\n"),
        # A count in exponent form has lost digits and must not be taken for exact.
        (" 13822383 states", "1.3822383e+07 states"),
        ("pan: elapsed", "pan: lapsed"),
    ],
)
def test_refuses_a_report_that_is_not_of_a_complete_search(there: str, instead: str) -> None:
    broken = REPORT.replace(there, instead)
    assert broken != REPORT

    with pytest.raises(ToolFailed, match="SPIN's"):
        spin.parse(broken)


@pytest.mark.parametrize(
    ("found", "what"), [(Size(6_543, 23_905), "6,543 states"), (Size(6_544, 23_906), "23,906 transitions")]
)
def test_another_count_is_an_error_that_names_both(found: Size, what: str) -> None:
    with pytest.raises(WrongCount, match=f"SPIN found {what} where the model has"):
        check_size("SPIN", 3, found)


def test_a_missing_tool_names_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match=r"^spin is missing \(apt-get install spin\)$"):
        spin.run(3)

    fake = tmp_path / "spin"
    fake.write_text("#!/bin/sh\n", encoding="utf-8")
    fake.chmod(0o755)
    with pytest.raises(ToolMissing, match=r"^gcc is missing \(apt-get install gcc\)$"):
        spin.run(3)


def test_a_tool_that_fails_is_an_error_with_its_own_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("spin", "gcc"):
        fake = tmp_path / name
        fake.write_text("#!/bin/sh\necho no such model\nexit 3\n", encoding="utf-8")
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ToolFailed, match=r"`spin -a -DN=3 election.pml` .* exit code 3:\nno such model"):
        spin.run(3)


def test_a_size_without_known_counts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"known for \[3, 4\] servers, not for 5"):
        spin.run(5)


def test_the_peak_of_a_child_is_its_own(tmp_path: Path) -> None:
    held = bytearray(256 * 2**20)  # the caller is large; the processes that it starts are not
    held[:: 2**12] = b"x" * (len(held) // 2**12)

    usage = run_alone(["/bin/sh", "-c", "echo said; exit 7"], tmp_path / "out", tmp_path)

    assert usage.exit_code == 7
    assert (tmp_path / "out").read_text(encoding="utf-8") == "said\n"
    assert 0 < usage.peak_bytes < 64 * 2**20 < len(held)


def test_a_child_that_cannot_start_is_an_exit_code(tmp_path: Path) -> None:
    assert run_alone([str(tmp_path / "nothing")], tmp_path / "out", tmp_path).exit_code == 127


def test_spin_visits_the_three_server_model() -> None:
    done = spin.run(3)

    assert Size(done.states, done.transitions) == SIZES[3] == Size(6_544, 23_905)
    assert 0 <= done.elapsed_seconds <= done.wall_seconds + 0.01
    assert done.build_seconds > 0
    assert 2**20 < done.peak_bytes < 2**27
    assert "6544 states, stored" in done.tail
