"""The outcomes of kazoo's tests at a node beside those at a real server, as a table.

Rules of this module:

- A difference is a test that passes at the real servers and not at ours. Only differences decide about the exit code.
- A test that one of the two runs did not report counts as not run there, which is not a pass.

Source: the outcomes are those of `harness.kazoo_suite.run`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from harness.kazoo_suite.run import SuiteOutcome

NOT_RUN = "not run"


class TestOutcomes(msgspec.Struct, frozen=True):
    """One test with its outcomes at real servers and at ours; None where it was not run."""

    __test__ = False

    name: str
    real: SuiteOutcome | None
    ours: SuiteOutcome | None

    @property
    def is_difference(self) -> bool:
        """Whether the test passes at the real servers only."""
        return self.real is SuiteOutcome.PASSED and self.ours is not SuiteOutcome.PASSED


class SuiteComparison(msgspec.Struct, frozen=True):
    """Both runs against ensembles of one size; `real` is None if only our nodes were tested."""

    size: int
    real: Mapping[str, SuiteOutcome] | None
    ours: Mapping[str, SuiteOutcome]

    def rows(self) -> list[TestOutcomes]:
        """Each test of either run, by name."""
        real = self.real or {}
        return [TestOutcomes(name, real.get(name), self.ours.get(name)) for name in sorted({*real, *self.ours})]

    @property
    def differences(self) -> list[TestOutcomes]:
        """The tests that pass at the real servers only; without a run there, those that fail at ours."""
        if self.real is None:
            return [row for row in self.rows() if row.ours is SuiteOutcome.FAILED]
        return [row for row in self.rows() if row.is_difference]

    def lines(self, *, every: bool) -> Iterator[str]:
        """The table as Markdown: every test, or those that do not pass in both runs; then the totals."""
        yield f"## {self.size} server{'s' if self.size > 1 else ''}"
        yield ""
        yield "| test | real | ours |"
        yield "| --- | --- | --- |"
        for row in self.rows():
            if every or row.ours is not SuiteOutcome.PASSED or row.real not in (None, SuiteOutcome.PASSED):
                yield f"| `{row.name}` | {row.real or NOT_RUN} | {row.ours or NOT_RUN} |"
        yield f"| all | {_total(self.real)} | {_total(self.ours)} |"
        yield ""


def _total(outcomes: Mapping[str, SuiteOutcome] | None) -> str:
    if outcomes is None:
        return NOT_RUN
    found = Counter(outcomes.values())
    return ", ".join(f"{found[outcome]} {outcome}" for outcome in SuiteOutcome)
