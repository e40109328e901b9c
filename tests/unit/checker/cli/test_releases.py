"""The table of releases and known defects: its structure, its cells, the command that prints it, and its page.

Expected values come from ZooKeeper's git repository: `git tag --contains COMMIT` for each commit of the table, and the
code of `Learner.syncWithLeader`, `LearnerZooKeeperServer.shutdown`, `SyncedLearnerTracker.addAck` and
`LearnerHandler.syncFollower` at the tags. REWRITE_GOLDEN=1 writes docs/reference-releases.md.
"""

import itertools
import json
import os
import re
from pathlib import Path

import pytest

from checker.cli.defect_command import evidence_text, releases_text
from checker.printable import capital
from spec.census.defect import Effect, KnownDefect, Presence
from spec.census.table import CENSUS
from spec.releases import (
    HISTORIES,
    MASTER,
    RELEASES,
    DefectHistory,
    Release,
    ReleaseError,
    SourceChange,
    affected,
    defects_of,
    fixed_text,
    is_affected,
    is_defect,
    release_named,
    upgrade_conditions,
)
from spec.variants import DESCRIBED, Area, Variant
from tests.support.command_line import cli

PAGE = Path(__file__).parents[4] / "docs" / "reference-releases.md"
OPEN = {
    "acks-survive-truncation", "sync-from-applied", "trunc-after-snap", "fuzzy-snapshot",
    "ZOOKEEPER-1549", "ZOOKEEPER-4837", "ZOOKEEPER-4882", "ZOOKEEPER-5094",
    "pending-view-activated", "epoch-of-active-view", "last-seen-forgotten",
}  # fmt: skip
"""`FileTxnLog.truncate`, `FileTxnSnapLog.truncateLog`, `Learner.shutdown` are the same at all these tags; so are
`Leader.getQuorumVerifierBytes`, `Leader.getEpochToPropose` and the order of calls in `QuorumPeerMain.runFromConfig`."""
SINCE_4785 = OPEN | {"ZOOKEEPER-3023", "ZOOKEEPER-4394", "ZOOKEEPER-4712", "ZOOKEEPER-4925"}
BEFORE_4785 = SINCE_4785 | {"ZOOKEEPER-4643", "ZOOKEEPER-4646", "ZOOKEEPER-4685"}
"""Defects by the code of the tags: NEWLEADER of 3.8.5, 3.8.6 and 3.9.2 syncs the log first, and still forgets."""
TAGS = {
    # FollowerZooKeeperServer.shutdown ends the sync thread, Leader.lead takes no snapshot, and there is no reconfig.
    "3.4.14": OPEN - {"ZOOKEEPER-1549", "pending-view-activated", "epoch-of-active-view", "last-seen-forgotten"}
    | {"ZOOKEEPER-3023", "ZOOKEEPER-3642", "ZOOKEEPER-3911", "ZOOKEEPER-4643", "ZOOKEEPER-4925"},
    **dict.fromkeys(("3.5.10", "3.6.4", "3.7.2"), BEFORE_4785),
    **dict.fromkeys(("3.8.0", "3.8.1", "3.8.2", "3.8.3", "3.8.4"), BEFORE_4785),
    **dict.fromkeys(("3.8.5", "3.8.6"), SINCE_4785),
    # The AdminServer has `restore`.
    **dict.fromkeys(("3.9.0", "3.9.1"), BEFORE_4785 | {"restore-undone"}),
    "3.9.2": SINCE_4785 | {"restore-undone"},
    "3.9.3": OPEN | {"ZOOKEEPER-4925", "restore-undone"},
    # enforceContinuousProposal is there, and not called at INFORMANDACTIVATE.
    **dict.fromkeys(("3.9.4", "3.9.5"), OPEN | {"restore-undone", "activation-not-counted"}),
}


def at(text: str) -> Release:
    return Release(*map(int, text.split(".")))


# The table.


def test_releases_are_ordered_by_their_numbers() -> None:
    assert list(RELEASES) == sorted(RELEASES)
    assert Release(3, 4, 9) < Release(3, 4, 12) < Release(3, 5, 0)
    assert [str(each) for each in RELEASES] == list(TAGS)


@pytest.mark.parametrize("release", TAGS)
def test_a_release_has_the_defects_that_its_tag_has(release: str) -> None:
    assert {each.value for each in defects_of(release_named(release))} == TAGS[release]


def test_a_defect_is_of_the_ensemble_and_has_a_history() -> None:
    assert {DESCRIBED[each].area for each in HISTORIES} == {Area.ELECTION, Area.ZAB, Area.RECONFIGURATION}
    assert {each for each in Variant if each.value.startswith("ZOOKEEPER-")} <= set(HISTORIES)
    assert not is_defect(Variant.NO_TRUNCATION)


def test_each_line_has_one_fix_and_commits_are_written_in_one_way() -> None:
    for variant, history in HISTORIES.items():
        for changes in (history.fixed, history.introduced):
            lines = [each.release.line if each.release else None for each in changes]
            assert len(set(lines)) == len(lines), variant
            released = [each.release for each in changes if each.release]
            assert released == sorted(released), variant
            assert all(re.fullmatch("[0-9a-f]{9}", each.commit) for each in changes), variant


def test_a_defect_shown_by_a_real_server_is_one_of_that_release() -> None:
    for variant, history in HISTORIES.items():
        assert all(is_affected(history, release) for release in history.reproduced), variant


# The derivation.


@pytest.mark.parametrize(
    ("fixed", "introduced", "has_it"),
    [
        ((), (), "3.4.14 to 3.9.5"),
        (("3.9.3",), (), "3.4.14 to 3.9.2"),
        (("3.8.5", "3.9.2"), (), "3.4.14 to 3.8.4, 3.9.0 to 3.9.1"),
        (("3.7.0",), (), "3.4.14 to 3.6.4"),  # on master before the branches of 3.8 and 3.9
        (("3.7.1",), (), "3.4.14 to 3.6.4, 3.8.0 to 3.9.5"),  # on the branch of 3.7 alone
        (("3.4.6",), (), "3.5.10 to 3.9.5"),
        ((), ("3.5.10", "3.6.3", "3.7.0"), "3.5.10 to 3.9.5"),
        (("3.9.4",), ("3.9.3",), "3.9.3 to 3.9.3"),
        ((), ("3.9.0",), "3.9.0 to 3.9.5"),
        ((), ("3.5.0",), "3.5.10 to 3.9.5"),
        ((), ("3.8.5", "3.9.2"), "3.8.5 to 3.8.6, 3.9.2 to 3.9.5"),
    ],
)
def test_the_affected_releases_follow_from_the_commits(
    fixed: tuple[str, ...], introduced: tuple[str, ...], has_it: str
) -> None:
    history = DefectHistory(*(tuple(SourceChange("0" * 9, at(each)) for each in some) for some in (fixed, introduced)))
    ranges = [each.split(" to ") for each in has_it.split(", ") if each]
    expected = [each for each in RELEASES if any(at(first) <= each <= at(last) for first, last in ranges)]
    assert list(affected(history)) == expected


def test_a_commit_on_master_alone_is_in_no_release() -> None:
    assert affected(DefectHistory((SourceChange("0" * 9, None),))) == RELEASES


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (Variant.VOTE_ORDER_CYCLES, "3.4.4, 3.5.0"),
        (Variant.NEWLEADER_ACK_BEFORE_SYNC, "3.8.5, 3.9.2; not in 3.5.10, 3.6.4, 3.7.2; introduced in 3.5.10, 3.6.3, "
         "3.7.0; by ZOOKEEPER-4785; reproduced on real servers of 3.8.0"),
        (Variant.QUEUE_SURVIVES_SHUTDOWN, "3.9.3; not in the 3.8 line up to 3.8.6; not in 3.5.10, 3.6.4, 3.7.2; "
         "introduced in 3.5.10, 3.6.3, 3.7.0; reproduced on real servers of 3.8.0"),
        (Variant.SNAPSHOT_OF_UNCOMMITTED, "3.4.6; not in the 3.8 line up to 3.8.6; not in the 3.9 line up to 3.9.5; "
         "not in 3.5.10, 3.6.4, 3.7.2; by ZOOKEEPER-1558"),
        (Variant.SYNC_FROM_APPLIED, "in no release up to 3.8.6 and 3.9.5; found by the checker of this project; "
         "reproduced on real servers of 3.8.0, 3.9.4, 3.9.5"),
        (Variant.EPOCH_OF_ACTIVE_VIEW, "in no release up to 3.8.6 and 3.9.5; introduced in 3.5.0; "
         "reproduced on real servers of 3.8.6, 3.9.5"),
    ],
)  # fmt: skip
def test_the_text_names_the_fixes_and_the_lines_without_one(variant: Variant, said: str) -> None:
    assert fixed_text(variant) == said


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("3.8.9", "the nearest known: 3.8.6 and 3.9.0"),
        ("3.6.3", "the nearest known: 3.5.10 and 3.6.4"),
        ("3.3.6", "the nearest known: 3.4.14"),
        ("3.10.0", "the nearest known: 3.9.5"),
        ("newest", "write one from 3.4.14 to 3.9.5, like 3.9.5"),
    ],
)
def test_an_unknown_release_is_an_error_with_the_nearest_ones(text: str, right: str) -> None:
    with pytest.raises(ReleaseError, match=f"the release '{text}' is not in the table; {right}"):
        release_named(text)


# The command, and the page.


def test_the_command_prints_a_row_for_each_defect() -> None:
    ended = cli("list", "releases")
    header, *rows = ended.out.splitlines()[: len(CENSUS) + 1]
    assert ended.code == 0
    assert header.split() == list(TAGS)
    cells = {name: dict(zip(TAGS, marks, strict=True)) for name, *marks in map(str.split, rows)}
    assert list(cells) == list(CENSUS)
    for variant in HISTORIES:
        name = variant.value
        assert cells[name] == {release: "x" if name in found else "." for release, found in TAGS.items()}
    assert set(cells["ZOOKEEPER-4541"].values()) == {"?"}


def test_the_command_prints_data_too() -> None:
    data = json.loads(cli("list", "releases", "--json").out)
    variants = {variant.value for variant in HISTORIES}
    found = {release: {row["name"] for row in data["defects"] if release in row["affected"]} for release in TAGS}
    assert {release: names & variants for release, names in found.items()} == TAGS
    (late,) = (each for each in data["defects"] if each["name"] == "ZOOKEEPER-4712")
    assert late["fixed"] == [{"release": "3.9.3", "commit": "4d3723581"}, {"release": None, "commit": "bc9afbf8e"}]
    (unknown,) = (each for each in data["defects"] if each["name"] == "ZOOKEEPER-5010")
    assert (unknown["affected"], unknown["not_established"]) == ([], list(TAGS))


def test_json_is_refused_without_the_table() -> None:
    ended = cli("list", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert "write list releases --json" in ended.err


def test_the_page_is_what_the_table_says() -> None:
    written = PAGE.read_text(encoding="utf-8")
    introduction = "".join(itertools.takewhile(lambda line: not line.startswith("## "), written.splitlines(True)))
    page = page_of(introduction)
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


CELLS = {Presence.PRESENT: "yes", Presence.ABSENT: "", Presence.UNKNOWN: "?"}


def page_of(introduction: str) -> str:
    """The page of the manual: its introduction, the two tables, and each defect."""
    lines = [introduction.rstrip(), "", "## Defects by release", "", *head(["defect", *map(str, RELEASES)])]
    for defect in CENSUS.values():
        lines.append(row([link(defect), *(CELLS[defect.presence(each)] for each in RELEASES)]))
    for effect in Effect:
        lines += ["", f"## {capital(effect.value)}"]
        for defect in CENSUS.values():
            lines += ["", *section(defect)] if defect.effect is effect else []
    lines += ["", "## Commits", "", *head(["defect", "fixed in", "introduced in", "shown by real servers"])]
    for defect in CENSUS.values():
        lines.append(row([link(defect), *commits(defect)]))
    return "\n".join(lines) + "\n"


def section(defect: KnownDefect) -> list[str]:
    """One defect: what is wrong, when it hits, the remedy, the releases, the source, and what shows it."""
    variant = f" It is [a variant](reference-variants.md#{defect.name.lower()})." if defect.variant else ""
    lines = [f"### {defect.name}", "", f"{capital(defect.wrong)}.{variant}", ""]
    lines += [f"- When: {defect.condition}", f"- Remedy: {defect.remedy}"]
    lines += [
        f"- Releases: {releases_text(defect)}.",
        f"- Source: {defect.cause}.",
        f"- Shown: {evidence_text(defect)}.",
    ]
    lines += [f"- Model: {defect.unmodelled}"] if defect.unmodelled else []
    commands = [f"    {item.command}" for item in defect.evidence if item.command]
    return lines + (["", *commands] if commands else [])


def commits(defect: KnownDefect) -> list[str]:
    """The cells of a history."""
    history = defect.history
    if history is None:
        return ["not established", "not established", ""]
    fixed = ", ".join(map(change_text, history.fixed)) or "no release"
    by = f" ({history.fixed_by})" if history.fixed_by else ""
    introduced = ", ".join(map(change_text, history.introduced)) or f"before {defect.read_from}"
    return [fixed + by, introduced, ", ".join(map(str, history.reproduced))]


def link(defect: KnownDefect) -> str:
    return f"[{defect.name}](#{defect.name.lower()})"


def change_text(change: SourceChange) -> str:
    return f"{change.release or MASTER} (`{change.commit}`)"


def head(names: list[str]) -> list[str]:
    return [row(names), row(["---"] * len(names))]


def row(cells: list[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


# Upgrades.


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("3.4.14", "3.5.10", ("ZOOKEEPER-3056", "4lw.commands.whitelist")),
        (
            "3.4.14",
            "3.9.5",
            ("ZOOKEEPER-3056", "4lw.commands.whitelist", "Clients of 3.4", "by way of 3.5 and 3.6 and 3.7"),
        ),
        ("3.5.10", "3.6.4", ()),
        ("3.5.10", "3.9.5", ("Clients of 3.4", "by way of 3.6 and 3.7")),
        ("3.6.4", "3.8.6", ("Clients of 3.4",)),
        ("3.6.4", "3.9.5", ("Clients of 3.4", "by way of 3.7")),
        ("3.7.2", "3.9.5", ()),
        ("3.8.4", "3.9.5", ()),
        ("3.9.5", "3.6.4", ()),
    ],
)
def test_the_conditions_of_an_upgrade_are_those_of_the_announcements(old: str, new: str, said: tuple[str, ...]) -> None:
    """`releases.md` of ZooKeeper's site; ZOOKEEPER-3056; the guide of 3.5.3 on the four-letter words."""
    conditions = upgrade_conditions(release_named(old), release_named(new))
    assert len(conditions) == len(said)
    assert all(words in text for words, text in zip(said, conditions, strict=True))
