"""Every shipped scenario has the verdict of the real system, and both engines agree on its state space.

Each scenario states its expected verdict and the source: a measured fact or a requirement. The leaders and followers in
the counterexamples are checked here, against the requirements. Every scenario has a page of the gallery, with the size
of its space in `sizes.txt`; the pages in `docs/gallery` are compared. `REWRITE_GOLDEN=1` writes both, in one process.
"""

import os
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from checker.engine import Exploration, Limits, Stop, plain
from checker.engine.result import disagreements, verdict_disagreements
from checker.engine.search import explore
from checker.engine.symmetric_search import SYMMETRIC
from checker.gallery import index_of, page_name, page_of, pictures_of
from checker.job import Job, Verdict
from checker.report.verdict import judge
from checker.scenario import bundled, from_source, load
from tests.support.scenario_verdicts import SIZES, recorded_sizes

PLAIN_UP_TO = {False: 6_000, True: 1_000}  # states; only slow tests explore larger spaces with the plain engine
PLAIN_IN_SLOW_TESTS = 16  # the factor for slow tests
FIRST_LEVELS = {False: 6_000, True: 1_000}  # True: costly models, whose steps take twenty times as long
SLOW = {  # from two seconds to some minutes each
    "r10-wrong-order-tables", "r11-6-servers", "r11-5-servers", "r10-zab-both-commit", "r10-zab-leader-last",
    "r10-zab-leader-last-partition", "r10-zab-three-to-four-partition", "r10-zab-four-to-five-partition",
    "zab-3-servers", "zab-3-servers-fine", "zab-three-writes-and-a-crash", "r16-three-clients",
    "r20-fenced-three-clients", "three-to-four-and-back", "designated-leader-truncated",
    "two-observers-promoted-lose-a-transaction", "zxid-rollover-twice",
    "wide-counter-rolling", "rollover-in-place-ack", "rollover-in-place-stays", "rollover-in-place-from-1",
}  # fmt: skip
WITH_SYMMETRY = [
    "acks-survive-truncation", "fuzzy-snapshot", "sync-from-applied", "trunc-after-snap", "restore-undone",
    "zookeeper-1549", "zookeeper-2845", "zookeeper-3023", "zookeeper-3911", "zookeeper-4394", "zookeeper-4685",
    "zookeeper-4712", "ack-before-log", "commit-before-quorum", "half-is-a-quorum", "log-out-of-order", "no-truncation",
    "torn-record",
    *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "zookeeper-4643", "zookeeper-4646", "zookeeper-4837", "zookeeper-4882", "zookeeper-4925", "zookeeper-5094",
        "refinement-3-servers", "observer-counted", "sync-without-tail", "zab-full-disks",
    )),
]  # fmt: skip
"""The scenarios that a symmetric search reduces, without the huge ones and those without an end."""
HUGE = {"zab-3-servers-packets"}  # run by hand on a machine with much memory
GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
REWRITE = bool(os.environ.get("REWRITE_GOLDEN"))
PATHS = {path.stem: path for path in bundled()}
QUICK = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PATHS if name not in HUGE]


@cache
def loaded(name: str) -> Job:
    return load(PATHS[name])


@cache
def ran(name: str) -> tuple[Job, Exploration]:
    job = loaded(name)
    return job, explore(job.model, job.limits, until_witnessed=job.until_witnessed)


def is_costly(job: Job) -> bool:
    """Return whether a step does more than count votes: it runs Zab, or clients with recipes."""
    return not any("only the election is explored" in each for each in job.bounds)


@pytest.mark.parametrize("name", QUICK)
def test_a_scenario_comes_to_its_verdict(name: str) -> None:
    job, exploration = ran(name)
    judged = judge(job, exploration, job.actions)
    assert job.expected is not None, "a shipped scenario states its verdict"
    assert judged.as_expected, f"{judged.sentence} ({judged.remark})"
    if judged.verdict is Verdict.PASSED:
        assert exploration.stop in (Stop.EXHAUSTED, Stop.WITNESSED)


@pytest.mark.parametrize("name", QUICK)
def test_both_engines_agree_level_by_level(name: str) -> None:
    """The engines agree on the whole space if it is small, otherwise on its first levels."""
    compare_engines(name, 1)


@pytest.mark.parametrize("name", WITH_SYMMETRY)
def test_a_symmetric_search_gives_the_same_answers_at_the_same_depth(name: str) -> None:
    job, full = ran(name)
    reduced = explore(job.model, job.limits, until_witnessed=job.until_witnessed, frontier=SYMMETRIC)
    assert reduced.reduction.startswith("states that differ in names")
    assert verdict_disagreements(reduced, full) == []
    assert reduced.states < full.states


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_both_engines_agree_on_larger_spaces(name: str) -> None:
    compare_engines(name, PLAIN_IN_SLOW_TESTS)


def compare_engines(name: str, factor: int) -> None:
    job, exploration = ran(name)
    limits, costly = job.limits, is_costly(job)
    if exploration.states > PLAIN_UP_TO[costly] * factor:
        limits = Limits(states=FIRST_LEVELS[costly])
        exploration = explore(job.model, limits, until_witnessed=job.until_witnessed)
    oracle = plain.explore(job.model, limits, until_witnessed=job.until_witnessed)
    assert disagreements(exploration, oracle) == []


@pytest.mark.parametrize("name", QUICK)
def test_its_page_in_the_gallery_is_what_was_found(name: str) -> None:
    job, exploration = ran(name)
    page = page_of(PATHS[name], job, exploration, judge(job, exploration, job.actions), GALLERY)
    (size,) = re.findall(r"^(.* states and .* transitions, to depth .*)\. The bounds:$", page.text, re.MULTILINE)
    written = GALLERY / f"{page.name}.md"
    if REWRITE:
        lines = {**recorded_sizes(), page.name: size}
        SIZES.write_text("".join(f"{name}: {lines[name]}\n" for name in sorted(lines)), encoding="utf-8")
        if written.exists():
            page.write(GALLERY)
    assert size == recorded_sizes()[page.name]
    assert re.findall(r"\]\((.*\.svg)\)", page.text) == list(page.pictures)
    assert all(ElementTree.fromstring(picture).tag.endswith("}svg") for picture in page.pictures.values())
    if written.exists():
        assert written.read_text(encoding="utf-8") == page.text
        pictures = {each.name: each.read_text(encoding="utf-8") for each in pictures_of(written)}
        assert pictures == page.pictures


def test_the_gallery_lists_every_scenario_and_has_pages_of_scenarios_alone() -> None:
    index = index_of({path: loaded(name) for name, path in PATHS.items()}, GALLERY)
    if REWRITE:
        (GALLERY / "README.md").write_text(index, encoding="utf-8")
    assert (GALLERY / "README.md").read_text(encoding="utf-8") == index
    names = {page_name(path) for name, path in PATHS.items() if name not in HUGE}
    assert {page.relative_to(GALLERY).with_suffix("").as_posix() for page in GALLERY.glob("*/*.md")} <= names
    assert recorded_sizes().keys() == names


@pytest.mark.parametrize("name", list(PATHS))
def test_a_scenario_can_be_made_again_from_its_source(name: str) -> None:
    job = loaded(name)
    again = from_source(job.source)
    assert again.model.initial() == job.model.initial()
    assert [prop.name for prop in again.model.properties] == [prop.name for prop in job.model.properties]


LEADERS = {
    # R10, the wrong order: 1 and 3 elect 3; 2 restarts with the new file and joins 4 and 5 behind 5.
    "r10-wrong-order": {3: [1, 3], 5: [2, 4, 5]},
    "r10-wrong-order-fine": {3: [1, 3], 5: [2, 4, 5]},
    # R10', leader last with a partition: leader 2 keeps two of three voters, 5 gets three of five.
    "r10-leader-last-partition": {2: [2, 3], 5: [1, 4, 5]},
    # Server 2 has newer data, and messages may be slow.
    "r10-lagging-four-and-five-slow-messages": {2: [2, 4, 5], 3: [1, 3]},
}


@pytest.mark.parametrize("name", list(LEADERS))
def test_the_two_leaders_and_their_followers_are_those_of_the_requirement(name: str) -> None:
    (found,) = ran(name)[1].violations
    assert found.prop.name == "OneLeader"
    assert [who for who, _ in found.finding.values] == [f"behind server.{leader}" for leader in LEADERS[name]]
    for (_, told), followers in zip(found.finding.values, LEADERS[name].values(), strict=True):
        assert told.startswith(f"{followers} of the voters")


@pytest.mark.parametrize("name", [name for name in LEADERS if name != "r10-wrong-order-fine"])
def test_a_counterexample_of_the_oracle_is_a_run_message_by_message(name: str) -> None:
    job, exploration = ran(name)
    (found,) = exploration.violations
    assert job.refinement is not None
    finer, told = job.refinement.found(found)
    assert (told.prop.name, finer.grain) == ("OneLeader", "fine, along a run by the oracle")
    assert told.depth > found.depth


def test_the_bounds_of_every_scenario_are_said() -> None:
    for name in PATHS:
        said = loaded(name).bounds
        elections = ("only the election", "election of a leader", "elections of a leader", "election beyond")
        assert any(words in each for each in said for words in (*elections, "clients", "requests")), name
        assert any("fault" in each or "at most" in each for each in said)


def test_a_scenario_that_expects_a_violation_names_it_with_its_depth() -> None:
    """Another violation must not satisfy the expectation. No run of the huge scenario is recorded."""
    for name in PATHS:
        job = loaded(name)
        expects = job.expected in (Verdict.VIOLATED, Verdict.DEADLOCK)
        assert (job.violations is not None) == (expects and name not in HUGE), name


def test_scenarios_are_named_after_the_requirements_they_show() -> None:
    rows = {Path(name).stem.split("-")[0] for name in PATHS}
    assert {"r2", "r3", "r4", "r7", "r8", "r10", "r11"} <= rows
