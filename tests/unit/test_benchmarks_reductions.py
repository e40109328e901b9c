"""The benchmark of reductions: each case names a model and reductions that exist, and verdicts are compared."""

import json
from pathlib import Path

import pytest

from benchmarks import reductions
from benchmarks.models import MODELS
from benchmarks.outcome import ToolFailed


def test_each_case_is_a_model_and_every_second_one_is_quick() -> None:
    assert {model for model, _, _ in reductions.CASES.values()} <= MODELS.keys()
    assert len(reductions.QUICK) == len(reductions.CASES) / 2


def test_states_and_ratios_of_a_quick_case(tmp_path: Path) -> None:
    """The counts of the small election with three servers are those of the page about reduction."""
    output = tmp_path / "figures.json"
    assert reductions.main(["--quick", "--only", "small", "--output", str(output)]) == 0
    full, safe, stubborn = json.loads(output.read_bytes())
    assert (full["states"], full["fewer"], full["faster"]) == (6544, 1.0, 1.0)
    assert safe["fewer"] == full["states"] / safe["states"]
    assert stubborn["states"] < safe["states"] < full["states"]


def test_a_reduced_search_with_another_verdict_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def figures(_: str, command: list[str]) -> tuple[None, dict[str, float]]:
        return None, {"states": 5, "transitions": 5, "processor": 1.0, "violations": int(command[-1] != "none")}

    monkeypatch.setattr(reductions, "run_for_figures", figures)
    with pytest.raises(ToolFailed, match="1 violations with symmetric, 0 in full"):
        reductions.measure("Zab, a quick look")
    assert reductions.main(["--only", "quick look"]) == 1


def test_a_text_that_no_case_has_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        reductions.main(["--only", "raft"])
    assert "no case has 'raft' in its name; the cases are: small election, 3 servers;" in capsys.readouterr().err
