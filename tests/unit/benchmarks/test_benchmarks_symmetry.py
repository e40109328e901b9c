"""The benchmark of symmetry: figures of both searches, and none where the verdicts differ."""

import pytest

from benchmarks import symmetry


def test_the_rows_of_a_quick_case_have_fewer_states_with_symmetry(capsys: pytest.CaptureFixture[str]) -> None:
    """The counts are those of the page about symmetry."""
    assert symmetry.main(["--quick"]) == 0
    shown = capsys.readouterr().out
    assert "398,258" in shown
    assert "107,891" in shown
    assert "3.7x" in shown


def test_a_symmetric_search_with_another_verdict_is_no_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def figures(_: str, command: list[str]) -> tuple[None, dict[str, float]]:
        return None, {"states": 5, "transitions": 5, "processor": 1.0, "violations": int(command[-1] == "symmetric")}

    monkeypatch.setattr(symmetry, "run_for_figures", figures)
    assert symmetry.main(["--quick"]) == 1
    assert "Zab, a quick look: 1 violations with symmetry, 0 in full" in capsys.readouterr().err
