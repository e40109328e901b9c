"""The reports of the findings A to I, which are ready to file, have one form, and agree with the census.

The affected releases are those of `spec/census`, in the words of `quorate defects`. The steps of a schedule made by
hand are those that `quorate reproduce` prints. A report has at most one page.
"""

import re
from pathlib import Path

import pytest

from checker.cli.defect_command import releases_text
from checker.command import command_parser
from checker.command_table import ENTRIES
from checker.scenario import bundled
from harness.releases import RELEASES
from harness.reproduce.by_hand.catalogue import RUNS
from harness.reproduce.by_hand.servers import Bench
from spec.census.table import CENSUS

FINDINGS = Path(__file__).parents[3] / "docs" / "findings"
REPORTS = sorted((FINDINGS / "reports").glob("*.md"))
EACH = pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.stem)
SECTIONS = ["Steps", "Run it", "Expected", "Seen", "Correction"]
MOST_LINES, MOST_STEPS = 60, 10
SHOWN = {
    "acks-survive-truncation": "A",
    "sync-from-applied": "B",
    "trunc-after-snap": "C",
    "observer-becomes-voter": "D",
    "pending-view-activated": "E",
    "last-seen-forgotten": "F",
    "epoch-of-active-view": "G",
    "promotion-stops-service": "H",
    "restore-undone": "I",
}


def sections(report: Path) -> dict[str, str]:
    _, *parts = re.split(r"^## (.*)\n", report.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def steps(report: Path) -> list[str]:
    return [line.partition(". ")[2] for line in sections(report)["Steps"].splitlines() if re.match(r"\d+\. ", line)]


def scenario(report: Path) -> str:
    (name,) = re.findall(r"^    quorate reproduce (\S+) --release", sections(report)["Run it"], re.MULTILINE)
    return str(name)


def test_each_of_the_nine_findings_has_a_report() -> None:
    assert {report.stem for report in REPORTS} == set(SHOWN) <= set(CENSUS)


@EACH
def test_a_report_has_its_sections_on_one_page(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert list(sections(report)) == SECTIONS
    assert all(part.strip() for part in sections(report).values())
    assert len(text.splitlines()) <= MOST_LINES
    assert 0 < len(steps(report)) <= MOST_STEPS


@EACH
def test_the_releases_are_those_of_the_census(report: Path) -> None:
    defect = CENSUS[report.stem]
    assert defect.history is not None
    reproduced = ", ".join(map(str, defect.history.reproduced))
    line = f"**Affects:** {releases_text(defect)}. **Reproduced:** {reproduced}, unmodified servers."
    assert line in report.read_text(encoding="utf-8").splitlines()


@EACH
def test_the_commands_need_no_checkout(report: Path) -> None:
    lines = re.findall(r"^    (.*)$", sections(report)["Run it"], re.MULTILINE)
    install, fetch, reproduce = lines
    assert install == "pip install 'zk-quorate[kernels]'"
    for line in (fetch, reproduce):
        program, name, *words = line.split()
        options = command_parser(ENTRIES[name]).parse_args(words)
        assert program == "quorate"
        assert {options.release} <= set(RELEASES) if name == "reproduce" else set(options.release) <= set(RELEASES)
    assert scenario(report) in {path.stem for path in bundled()}


@EACH
def test_the_page_of_the_finding_leads_to_its_report(report: Path) -> None:
    page = (FINDINGS / report.name).read_text(encoding="utf-8")
    assert page.startswith(f"# {SHOWN[report.stem]}: ")
    assert page.count(f"](reports/{report.name})") == 1
    assert "**Summary:**" not in page, "a report lives in one place"


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.scenario)
def test_the_steps_are_those_of_the_schedule_made_by_hand(run: type) -> None:
    (report,) = (report for report in REPORTS if scenario(report) == run.scenario)
    captions = [step.caption for step in run(Bench(Path(), "")).steps()]
    assert steps(report) == [f"{caption[0].upper()}{caption[1:]}." for caption in captions]
