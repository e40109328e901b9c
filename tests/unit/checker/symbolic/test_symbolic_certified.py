"""Certificates are made for conditions and statements, are accepted, and are rejected for anything else."""

from collections.abc import Callable
from pathlib import Path

import pytest
import z3

from checker.certificates.proof import HEADER, check
from checker.certificates.terms import RejectedError
from checker.cli.reference_commands import PROOFS
from checker.command import Parser
from checker.symbolic.certified import SUFFIX, ProofPlace, all_places, certify, check_certificates, rejection, scripts
from checker.symbolic.certify import UncertifiedError, certificate
from checker.symbolic.premise import Premise
from checker.symbolic.solvers import Solver, ask, smt_lib
from checker.symbolic.zab.conditions import VerificationCondition, conditions
from checker.symbolic.zab.proof import places, script_name
from checker.user_files import OutputError

SAMPLE = (
    (Premise.VIEWS, "election", "may_promise"),
    (Premise.VIEWS, "first state", "zero_reign"),
    (Premise.USED, "promise", "promised_is_known"),
    (Premise.SERVED, "establish", "dead_is_blocked"),
    (Premise.STAGED, "raise_low", "stages"),
    (Premise.ONE_GO, "enter", "entered_has_initial"),
    (Premise.ONE_GO, "theorems", "total_order"),
)


def condition(premise: Premise, place: str, goal: str) -> VerificationCondition:
    return next(candidate for candidate in conditions(premise, (place,)) if candidate.goal == goal)


@pytest.mark.parametrize(("premise", "place", "goal"), SAMPLE)
def test_a_certificate_of_a_condition_is_accepted_for_this_condition_alone(
    premise: Premise, place: str, goal: str
) -> None:
    asked = condition(premise, place, goal)
    made = certificate(asked.script)
    assert check(asked.script, made)
    with pytest.raises(RejectedError):
        check(asked._replace(formula=z3.BoolVal(False)).script, made)
    shortened = made.splitlines()[:-1]
    with pytest.raises(RejectedError):
        check(asked.script, "\n".join(shortened or [HEADER[:-1]]))


@pytest.mark.parametrize("goal", ["any_leader", "may_promise", "may_establish"])
def test_a_condition_without_a_needed_hypothesis_has_no_certificate(goal: str) -> None:
    whole = condition(Premise.VIEWS, "election", goal)
    weaker = whole._replace(hypotheses=whole.hypotheses[:-1])
    with pytest.raises(UncertifiedError):
        certificate(weaker.script, seconds=4)
    with pytest.raises(RejectedError):
        check(weaker.script, certificate(whole.script))


def test_each_statement_on_quorums_and_votes_is_certified(tmp_path: Path) -> None:
    asked = list(scripts(ProofPlace(None)))
    assert len({name for name, _ in asked}) == len(asked) > 10
    results = certify(tmp_path, [ProofPlace(None)], lambda _done, _all: None)
    assert [(result.name, result.failure) for result in results] == [(name, None) for name, _ in asked]
    assert check_certificates(tmp_path, [ProofPlace(None)], lambda _done, _all: None) == results


def test_every_condition_is_asked_for_by_its_own_name() -> None:
    premise = Premise.USED
    names = [name for place in places(premise) for name, _ in scripts(ProofPlace(premise, place))]
    assert len(set(names)) == len(names)
    assert names == [script_name(premise, asked) for asked in conditions(premise)]


SCRIPT = smt_lib([z3.Int("x") > 1], z3.Int("x") > 0)


def lie(path: Path) -> None:
    path.write_text(f"{HEADER}\nd\n", encoding="ascii")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda _: None, None),
        (Path.unlink, "it has no certificate"),
        (lie, "line 2: unit propagation does not prove this clause"),
        (lambda path: path.write_bytes(b"\xff"), "'ascii' codec can't decode byte 0xff in position 0"),
        (lambda path: path.write_bytes(b" " * (1 << 21)), "it has 2,097,152 bytes, and the limit is 1,048,576"),
        (lambda path: (path.unlink(), path.mkdir()), "it cannot be read"),
    ],
)
def test_a_file_that_is_no_certificate_is_rejected_with_the_reason(
    tmp_path: Path, damage: Callable[[Path], None], reason: str | None
) -> None:
    file = tmp_path / f"a{SUFFIX}"
    file.write_text(certificate(SCRIPT), encoding="ascii")
    damage(file)
    given = rejection(SCRIPT, file)
    assert given == reason if reason is None else str(given).startswith(reason)


def test_the_command_reports_each_condition_without_a_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser()
    PROOFS.options(parser)
    words = ["--only", "votes"]
    assert PROOFS.run(parser.parse_args([*words, "--certify", str(tmp_path)])) == 0
    missing, forged, *_ = sorted(tmp_path.rglob(f"*{SUFFIX}"))
    missing.unlink()
    lie(forged)
    capsys.readouterr()
    assert PROOFS.run(parser.parse_args([*words, "--check-certificates", str(tmp_path)])) == 20
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines[1:] == [
        f"rejected: votes/{missing.stem}: it has no certificate",
        f"rejected: votes/{forged.stem}: line 2: unit propagation does not prove this clause",
    ]
    assert lines[0].endswith(f"conditions have an accepted certificate in {tmp_path}")


def test_a_place_that_is_not_a_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser()
    PROOFS.options(parser)
    file = tmp_path / "a"
    file.touch()
    assert PROOFS.run(parser.parse_args(["--check-certificates", str(file)])) == 2
    assert capsys.readouterr().err == f"error: --check-certificates {file}: it is not a folder\n"
    with pytest.raises(OutputError, match=f"--certify {file}: no folder can be there"):
        PROOFS.run(parser.parse_args(["--only", "votes", "--certify", str(file)]))


@pytest.mark.slow
def test_every_condition_has_an_accepted_certificate(tmp_path: Path) -> None:
    chosen = all_places()
    made = certify(tmp_path, chosen, lambda _done, _all: None)
    assert len(made) == len({result.name for result in made}) > 2_900
    assert [result for result in made if result.failure is not None] == []
    assert check_certificates(tmp_path, chosen, lambda _done, _all: None) == made


def test_a_script_with_its_certificate_is_kept_for_other_programs(tmp_path: Path) -> None:
    chosen = [ProofPlace(Premise.VIEWS, "election")]
    certify(tmp_path, chosen, lambda _done, _all: None)
    kept = sorted(tmp_path.rglob("*.smt2"))
    assert len(kept) == len(list(conditions(Premise.VIEWS, ("election",))))
    for file in kept:
        assert ask(Solver.Z3, file.read_text("utf-8")).finding.value == "proved"
        assert rejection(file.read_text("utf-8"), file.with_suffix(SUFFIX)) is None
