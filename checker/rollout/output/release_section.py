"""The section on the releases of a roll-out: what their known defects can do during the steps, and what helps.

Rules of this module: it judges nothing. A defect is named with the first releases without it.
"""

from __future__ import annotations

from checker.printable import escaped
from checker.rollout.answer import Plan
from checker.rollout.output.conditions import conditions
from checker.rollout.output.recommendation import DEFECT_WORDS
from checker.rollout.output.sentences import clause
from checker.rollout.runs import RunResult, SafetyVerdict, worst_verdict
from checker.rollout.software.answers import SoftwareAnswer
from spec.releases import fixed_text, upgrade_conditions
from spec.variants import DESCRIBED, Variant

RARE = (
    "Such a run needs late messages or a slow disk at the wrong moment, too, and the model lets every delay happen. "
    "Real servers of 3.9.5 lost none of 50,598 acknowledged writes in 45 roll-outs with one kill each."
)

UNDECIDED = "Whether the same restarts of {old}, without the upgrade, lose a write in this way is not decided."
STAYING = {
    SafetyVerdict.UNSAFE: "**Staying at {old} is not safer**: the same restarts of {old}, without the upgrade, lose an "
    "acknowledged write in the same way. So the upgrade is not worse than any restart of {old}.",
    SafetyVerdict.SAFE: "**Staying at {old} is safer**: the same restarts of {old} lose no write in this way.",
}


def release_section(plan: Plan) -> list[str]:
    """The section; empty if the request names no release."""
    releases = plan.request.releases
    if releases is None or not plan.direct.stage.remaining:
        return []
    lines = [f"## ZooKeeper {releases}", ""]
    if checks := upgrade_conditions(releases.old, releases.new):
        lines += ["**Before the first step:**", "", *(f"- {each}" for each in checks), ""]
    software = plan.software
    if software is None:
        return [*lines, "The defects of the release were not looked at: the steps are not safe without them."]
    lines += _table(software)
    if software.finding is not None:
        lines += ["", f"{_what_happens(software, software.finding)} {RARE}"]
    if software.staying is not None:
        lines += ["", STAYING.get(software.staying.outcome, UNDECIDED).format(old=releases.old)]
    if software.culprits:
        lines += ["", "One of these defects is enough:", "", *(f"- {_defect(each)}" for each in software.culprits)]
    return lines


def _table(software: SoftwareAnswer) -> list[str]:
    """A row for each way to treat the clients, with a verdict without faults and under them."""
    rows = (
        ("no acknowledged write is lost", "without a fault", "with faults"),
        ("---", "---", "---"),
        ("while clients write", *_cells(software.writing)),
        ("while nothing is written", *_cells(software.quiet)),
    )
    return [f"| {' | '.join(row)} |" for row in rows]


def _cells(results: tuple[RunResult, ...]) -> tuple[str, str]:
    plain = [each for each in results if not each.spec.faults]
    faulty = [each for each in results if each.spec.faults]
    return _verdict(plain), _verdict(faulty) if faulty else "not asked"


def _verdict(results: list[RunResult]) -> str:
    found = next((each for each in results if each.outcome is SafetyVerdict.UNSAFE), None)
    words = DEFECT_WORDS[worst_verdict(each.outcome for each in results)]
    return words if found is None else f"{words}, {found.spec.under or 'without a fault'}"


def _what_happens(software: SoftwareAnswer, finding: RunResult) -> str:
    where = f"With the known defects of ZooKeeper {software.releases}"
    return f"{where}, {escaped(conditions(finding).removesuffix(','))}: {escaped(clause(finding))}."


def _defect(defect: Variant) -> str:
    return f"`{defect.value}`: {DESCRIBED[defect].wrong}. Fixed: {fixed_text(defect)}."
