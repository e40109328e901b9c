"""The refinement on journals: correct servers keep the conditions of abstract Zab, and a variant is refused by one.

The journals come from random schedules of the step functions (`test_validate`). The conditions are those that the page
docs/reference-refinement.md has for the same variants in models.
"""

from pathlib import Path

import pytest

from checker.job import Verdict
from checker.models.ensemble import Budgets
from checker.properties.refinement import REFINEMENT
from checker.refinement.abstract_steps import Disk
from checker.refinement.reigns import ReignHistory
from checker.validate import Validation, journals, validate
from checker.validate.global_history import GlobalHistory
from checker.validate.journals import StepRecord, read
from checker.validate.refinement import WINDOW, JournalRefinement
from checker.validate.replay import Mismatch
from spec.variants import Variant
from spec.zab.state import ZabRules
from tests.unit.test_validate import CALM, OBSERVED, THREE, ran

CONDITIONS = {
    Variant.COMMIT_BEFORE_QUORUM: {"commit: the set is a quorum", "commit: all its servers have acknowledged it"},
    Variant.ACK_BEFORE_LOG: {"ack: the transaction is on disk"},
    Variant.LOG_OUT_OF_ORDER: {"the disk: the log is that of the abstract state"},
    Variant.SYNC_WITHOUT_TAIL: {"enter: all initial transactions are on disk"},
}
"""The condition that each variant removes; which one fails first may depend on the schedule."""
FAULTY = Budgets(crashes=2, restarts=2, disconnects=1, writes=30)


def of_the_refinement(found: Validation) -> list[Mismatch]:
    """Return the findings of the refinement."""
    return [misfit for misfit in found.mismatches if misfit.invariant == REFINEMENT]


@pytest.mark.parametrize("seed", range(4))
def test_each_step_of_correct_servers_is_judged_and_keeps_the_conditions(tmp_path: Path, seed: int) -> None:
    found = validate(ran(tmp_path, seed, OBSERVED if seed % 2 else THREE))

    assert found.verdict is Verdict.PASSED
    assert found.counts[REFINEMENT].evaluated == found.steps - found.lives
    assert 0 < found.counts[REFINEMENT].premise < found.counts[REFINEMENT].evaluated


@pytest.mark.parametrize("variant", CONDITIONS, ids=lambda variant: variant.value)
def test_the_journals_of_servers_with_a_variant_are_refused_with_the_condition_that_it_removes(
    tmp_path: Path, variant: Variant
) -> None:
    """The journals name their variant; the finding names a line that a server of that journal has written."""
    broken = []
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        paths = ran(folder, seed, zab=ZabRules(variants=frozenset({variant})), budgets=FAULTY, most=800)
        broken += of_the_refinement(validate(paths))

    assert {misfit.clause for misfit in broken} & CONDITIONS[variant]
    for misfit in broken:
        assert misfit.path.stem == str(misfit.sid) == str(dict(misfit.values)["server"])
        assert any(isinstance(each, StepRecord) and each.line == misfit.line for each in read(misfit.path))


def test_a_condition_is_broken_at_the_same_line_if_nothing_is_taken_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay has the variant too, so that the refinement is what refuses the journals."""
    zab = ZabRules(variants=frozenset({Variant.ACK_BEFORE_LOG}))
    paths = ran(tmp_path, 0, zab=zab, budgets=FAULTY, most=800)
    monkeypatch.setattr(journals, "zab_rules_of", lambda _: (zab, ()))
    short = validate(paths)
    monkeypatch.setattr(GlobalHistory, "settle", lambda _: None)
    monkeypatch.setattr("checker.validate.refinement.WINDOW", 10**9)

    assert of_the_refinement(short)
    assert validate(paths).mismatches == short.mismatches


def test_no_step_is_judged_if_a_voter_has_no_journal(tmp_path: Path) -> None:
    """The reigns of that voter are unknown."""
    found = validate(ran(tmp_path, 1, budgets=CALM)[:2])

    assert found.counts[REFINEMENT].evaluated == 0
    assert any(note.startswith(f"{REFINEMENT}: not evaluated where a voter has no journal") for note in found.notes)


def test_a_long_log_is_compared_in_its_last_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GlobalHistory, "settle", lambda _: None)
    longest, original = 0, JournalRefinement._disk

    def seen(refinement: JournalRefinement, disk: Disk) -> Disk:
        nonlocal longest
        longest = max(longest, len(original(refinement, disk).txns))
        return original(refinement, disk)

    monkeypatch.setattr(JournalRefinement, "_disk", seen)
    found = validate(ran(tmp_path, 1, budgets=Budgets(writes=WINDOW + 20), most=2500, writes=4.0))

    assert found.verdict is Verdict.PASSED
    assert found.transactions > WINDOW
    assert longest == WINDOW


@pytest.mark.parametrize("variant", [None, Variant.SYNC_WITHOUT_TAIL], ids=["correct", "sync-without-tail"])
def test_what_the_history_variables_forget_changes_no_judgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant | None
) -> None:
    """`needed` removes what no later condition reads."""
    zab = ZabRules(variants=frozenset({variant} if variant else ()))
    monkeypatch.setattr(journals, "zab_rules_of", lambda _: (zab, ()))
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        paths = ran(folder, seed, zab=zab, budgets=FAULTY, most=600)
        forgetting = of_the_refinement(validate(paths))
        with monkeypatch.context() as whole:
            whole.setattr(ReignHistory, "needed", lambda reigns: reigns)
            assert of_the_refinement(validate(paths)) == forgetting
