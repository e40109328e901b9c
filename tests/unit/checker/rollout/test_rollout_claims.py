"""The table of claims: every verdict and exit code is made from it."""

from itertools import product

import pytest

from checker.command import ExitCode
from checker.rollout import PlanRequest, SafetyVerdict, plan
from checker.rollout.answer import Plan
from checker.rollout.claims import Claim, Evidence, EvidenceKind, Reason, evidence_of, verdict_of
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.runs import RunResult, not_begun
from checker.rollout.scenarios import CRASHES, Question, RunSpec
from tests.support.rollout_runs import change_of, made_up, plan_of, shipped

SAFE, OPEN, UNSAFE, STALLS = SafetyVerdict.SAFE, SafetyVerdict.OPEN, SafetyVerdict.UNSAFE, SafetyVerdict.STALLS
CODES = {SAFE: ExitCode.PASSED, OPEN: ExitCode.INCOMPLETE, UNSAFE: ExitCode.SAFETY, STALLS: ExitCode.LIVENESS}
STAGE = change_of("three", "four")


def run_of(outcome: SafetyVerdict, faults: int = 0) -> RunResult:
    spec = RunSpec(STAGE, (), 3, Question.COMMITS, {CRASHES: faults} if faults else {})
    return made_up(spec, outcome)


def claim(outcome: SafetyVerdict, *, counts: bool = True) -> Claim:
    return Claim(Question.COMMITS, 0, Evidence(outcome, Reason.EXPLORED), counts)


@pytest.mark.parametrize("outcomes", list(product(SafetyVerdict, repeat=3)))
def test_one_claim_without_evidence_leaves_a_route_undecided(outcomes: tuple[SafetyVerdict, ...]) -> None:
    verdict = verdict_of(map(claim, outcomes))
    assert (verdict is SAFE) == (set(outcomes) == {SAFE})
    assert (verdict is UNSAFE) == (UNSAFE in outcomes)
    assert OPEN not in outcomes or verdict in (OPEN, UNSAFE)


def test_no_claim_is_no_verdict() -> None:
    assert verdict_of(()) is OPEN
    assert verdict_of([claim(SAFE, counts=False)]) is OPEN


def test_the_evidence_of_runs_is_the_worst_of_them() -> None:
    assert evidence_of([]).reason is Reason.NO_WORK_LEFT
    assert evidence_of([not_begun(run_of(SAFE).spec)]).kind is EvidenceKind.MISSING
    assert evidence_of([run_of(SAFE), run_of(SAFE, 1)]).kind is EvidenceKind.EXHAUSTED
    assert evidence_of([run_of(SAFE), run_of(OPEN)]).kind is EvidenceKind.MISSING
    assert evidence_of([run_of(SAFE)], whole=False).kind is EvidenceKind.MISSING
    shown = evidence_of([run_of(UNSAFE, 2), run_of(OPEN), run_of(UNSAFE, 1)])
    assert (
        shown.kind is EvidenceKind.COUNTEREXAMPLE
        and shown.finding is not None
        and shown.finding.spec.faults == {CRASHES: 1}
    )


def made(outcome: SafetyVerdict, **request: object) -> Plan:
    """Plan three to five servers, with an engine that gives every run this outcome."""
    folders = shipped("three"), shipped("five")
    return plan(PlanRequest(*folders, (4, 5, 1, 3, 2), 2, **request), lambda spec, _: made_up(spec, outcome))  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [SAFE, OPEN, UNSAFE])
def test_the_verdict_and_the_exit_code_are_those_of_the_recommended_claims(outcome: SafetyVerdict) -> None:
    answer = made(outcome)
    assert answer.verdict is outcome and answer.exit_code is CODES[outcome]
    assert answer.verdict is verdict_of(each for claims in answer.recommended.values() for each in claims)
    told = [each for each in data(answer)["claims"] if each["route"] == "direct" and each["counts"]]
    ranks = [each.value for each in SafetyVerdict]
    assert min((each["verdict"] for each in told), key=ranks.index) == data(answer)["verdict"]


@pytest.mark.parametrize("of_leaders", [SAFE, OPEN, UNSAFE])
def test_the_table_of_the_answer_has_the_verdict_of_each_claim(of_leaders: SafetyVerdict) -> None:
    """A column without faults and one under them; only the runs about leaders differ."""

    def run(spec: RunSpec, seconds: float) -> RunResult:
        return made_up(spec, of_leaders if spec.question is Question.ELECTION else SAFE)

    answer = plan_of("three", "five", run, (4, 5, 1, 3, 2), 2)
    rows = [line.strip("| ").split(" | ") for line in markdown(answer).splitlines() if line.startswith("| in one go: ")]
    for question in (Question.ELECTION, Question.COMMITS, Question.HEALING):
        (cells,) = (cells for _, questions, *cells in rows if question.value in questions.split("; "))
        words = [cell.partition(":")[0].strip("*").lower() for cell in cells]
        claims = {each.faults: each.evidence.outcome for each in answer.direct.claims if each.question is question}
        assert words == [claims[0].value, claims[1].value]


def test_no_claim_is_safe_without_evidence() -> None:
    for claims in made(SAFE).table.values():
        for each in claims:
            evidence = each.evidence
            assert (
                evidence.outcome is not SAFE
                or evidence.kind is EvidenceKind.PROOF
                or (all(result.outcome is SAFE for result in evidence.runs) and evidence.runs)
            )
