"""The census: its rows, and the releases that it names.

Expected values: the code at each tag `release-*` of ZooKeeper's git repository. A line of `CODE` is the range of tags
whose code has the lines of the defect, or lacks those of its correction, found by a search in the class that the row
names; the census derives the same from commits.
"""

import re
from pathlib import Path

import pytest

from spec.census.defect import Basis, Effect, Presence
from spec.census.table import CENSUS, corrected_in, defects_in, newest_releases
from spec.releases import HISTORIES, RELEASES, TAGGED, Release, defects_of, release_named

ROOT = Path(__file__).parents[4]
UNKNOWN = {"ZOOKEEPER-2832", "ZOOKEEPER-3526", "ZOOKEEPER-4352", "ZOOKEEPER-4541", "ZOOKEEPER-5010"}
"""Reports whose cause is not established."""
CODE = {
    "ZOOKEEPER-3701": "3.4.4-3.5.6",  # FileTxnSnapLog.truncateLog closes, and lets an IOException through
    "ZOOKEEPER-2872": "3.4.0-3.5.9",  # Learner.syncWithLeader: no takeSnapshot(true)
    "ZOOKEEPER-1489": "3.4.0-3.4.3",  # FileTxnSnapLog.truncateLog does not close
    "ZOOKEEPER-1319": "3.4.0",  # Leader.lead: lastProposed is a comment
    "ZOOKEEPER-2325": "3.4.0-3.5.2",  # FileTxnSnapLog.restore: no "Something is broken"
    "ZOOKEEPER-1797": "3.4.0-3.4.6",  # PurgeTxnLog: neither retainNRecentSnapshots nor purgeOlderSnapshots
    "ZOOKEEPER-2574": "3.4.7-3.4.9 3.5.0-3.5.2",  # one of the two, without getSnapshotLogs
    "ZOOKEEPER-3231": "3.4.0-3.5.10",  # PurgeTxnLog: no findNValidSnapshots
    "ZOOKEEPER-3082": "3.4.0-3.5.10",  # FileTxnSnapLog.save: no "Deleted empty snapshot file"
    "ZOOKEEPER-3644": "3.5.6",  # snapshot.trust.empty without the end by the log
    "ZOOKEEPER-2959": "3.4.0-3.4.12 3.5.0-3.5.3",  # Leader: no isParticipant
    "ZOOKEEPER-1551": "3.4.0-3.4.5",  # syncWithLeader: INFORM without a look at the snapshot
    "ZOOKEEPER-1367": "3.4.0-3.4.2",  # no ZooKeeperServer.processTxn
    "ZOOKEEPER-3104": "3.4.0-3.5.4",  # LearnerHandler.run: NEWLEADER before the snapshot
    "ZOOKEEPER-3127": "3.4.0-3.5.4",  # DataTree.processTxn: no isSubTxn
    "ZOOKEEPER-3125": "3.4.0-3.5.4",  # DataTree.deleteNode does not compare pzxid
    "ZOOKEEPER-3144": "3.4.0-3.5.10",  # ZooKeeperServer: no processTxnForSessionEvents before the tree
    "ZOOKEEPER-3145": "3.4.0-3.5.10",  # DataTree: no CloseSessionTxn
    "ZOOKEEPER-3249": "3.4.0-3.5.10",  # DataTree.createNode does not compare cversion
    "ZOOKEEPER-3306": "3.4.0-3.5.10",  # DataTree.createNode: convertAcls behind NodeExistsException
    "ZOOKEEPER-2926": "3.5.0-3.5.10",  # local sessions without commitSession
    "ZOOKEEPER-2725": "3.5.0-3.5.3",  # QuorumZooKeeperServer.checkUpgradeSession: no multi
    "ZOOKEEPER-3471": "3.5.0-3.5.10",  # submitRequest: no setLocalSessionFlag
    "ZOOKEEPER-4872": "3.9.0-3.9.3",  # takeSnapshot has fastForwardFromEdits
    "ZOOKEEPER-1277": "3.4.0-3.4.3",  # Leader: no XidRolloverException
    "ZOOKEEPER-4883": "3.4.4-3.9.5",  # Leader: XidRolloverException
    "ZOOKEEPER-3829": "3.5.0-3.5.8 3.6.0-3.6.1",  # ZooKeeperServer: no isReconfigEnabled, and reconfig
    "ZOOKEEPER-3781": "3.5.6-3.5.9 3.6.0-3.6.3 3.7.0",  # trust.empty, no shouldForceWriteInitialSnapshot
    "ZOOKEEPER-4846": "3.8.4 3.9.2-3.9.3",  # DataTree reads ACLs in deleteNode, and has no existingChild
    "ZOOKEEPER-1573": "3.4.2-3.4.5",  # FileTxnSnapLog.processTransaction: "Parent {} missing"
    "ZOOKEEPER-3642": "3.4.10-3.4.14 3.5.3-3.5.9 3.6.0-3.6.2",  # fullyShutDown, no SyncMode.SNAP at the shutdown
    "ZOOKEEPER-2845": "3.4.10-3.4.11 3.5.3",  # fullyShutDown, and no fastForwardDataBase
    "ZOOKEEPER-3911": "3.4.10-3.4.14 3.5.3-3.5.9 3.6.0-3.6.2",  # snapshotNeeded, proposals logged at UPTODATE
    "log-file-missing": "3.4.0-3.9.5",  # FileTxnSnapLog.restore compares no zxid with its predecessor
}


def tags(ranges: str) -> set[Release]:
    pairs = (part.split("-") for part in ranges.split())
    bounds = [(release_named(pair[0], TAGGED), release_named(pair[-1], TAGGED)) for pair in pairs]
    return {tagged for tagged in TAGGED if any(first <= tagged <= last for first, last in bounds)}


@pytest.mark.parametrize("name", CODE)
def test_the_commits_of_a_defect_give_the_releases_whose_code_has_it(name: str) -> None:
    defect = CENSUS[name]
    assert {tagged for tagged in TAGGED if defect.presence(tagged) is Presence.PRESENT} == tags(CODE[name])
    assert all(defect.presence(tagged) is not Presence.UNKNOWN for tagged in TAGGED)


def test_every_release_with_a_tag_is_there() -> None:
    last = {"3.4": 14, "3.5": 10, "3.6": 4, "3.7": 2, "3.8": 6, "3.9": 5}
    assert [str(tagged) for tagged in TAGGED] == [f"{line}.{n}" for line, end in last.items() for n in range(end + 1)]
    assert set(RELEASES) <= set(TAGGED)


def test_the_census_has_at_least_forty_defects_and_every_variant() -> None:
    assert len(CENSUS) >= 40
    assert {defect.variant for defect in CENSUS.values() if defect.variant} == set(HISTORIES)


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_run_like_a_release_has_its_variants(release: Release) -> None:
    assert {defect.variant for defect in defects_in(release) if defect.variant} == set(defects_of(release))


def test_a_report_without_a_known_cause_is_unknown_everywhere() -> None:
    assert {name for name, defect in CENSUS.items() if defect.history is None} == UNKNOWN
    for name in UNKNOWN:
        assert {CENSUS[name].presence(tagged) for tagged in TAGGED} == {Presence.UNKNOWN}
        assert {item.basis for item in CENSUS[name].evidence} == {Basis.REPORTED}


def test_a_release_that_was_not_read_is_unknown() -> None:
    defect = CENSUS["acks-survive-truncation"]
    assert defect.presence(Release(3, 4, 5)) is Presence.UNKNOWN
    assert defect.presence(Release(3, 4, 6)) is Presence.PRESENT


def test_the_most_dangerous_come_first() -> None:
    order = [list(Effect).index(defect.effect) for defect in CENSUS.values()]
    assert order == sorted(order)


def test_each_row_says_when_it_hits_what_to_do_and_why_the_model_lacks_it() -> None:
    for name, defect in CENSUS.items():
        assert defect.condition.endswith("."), name
        assert defect.remedy.endswith("."), name
        assert not defect.wrong.endswith("."), name
        assert defect.evidence, name
        computed = any(item.basis is Basis.COMPUTED for item in defect.evidence)
        assert computed is not bool(defect.unmodelled), name
        seen = any(item.basis is Basis.SEEN for item in defect.evidence)
        assert seen is bool(defect.history and defect.history.reproduced), name


def test_the_commands_name_scenarios_and_modules_that_exist() -> None:
    commands = [item.command for defect in CENSUS.values() for item in defect.evidence if item.command]
    assert commands
    for command in commands:
        if path := re.search(r"\S+\.yaml", command):
            assert (ROOT / path[0]).is_file(), command
        if module := re.search(r"python -m (\S+)", command):
            assert (ROOT / module[1].replace(".", "/")).is_dir() or (
                ROOT / f"{module[1].replace('.', '/')}.py"
            ).is_file(), command


def test_a_seen_defect_is_one_of_that_release() -> None:
    for name, defect in CENSUS.items():
        for release in defect.history.reproduced if defect.history else ():
            assert defect.presence(release) is Presence.PRESENT, (name, release)


def test_the_corrections_are_in_the_line_of_the_release_and_in_the_next_one() -> None:
    history = HISTORIES[next(variant for variant in HISTORIES if variant.value == "ZOOKEEPER-4646")]
    assert corrected_in(history, Release(3, 8, 4)) == (Release(3, 8, 5), Release(3, 9, 2))
    assert corrected_in(history, Release(3, 7, 2)) == (Release(3, 8, 5),)
    assert newest_releases(Release(3, 8, 4)) == (Release(3, 8, 6), Release(3, 9, 5))
    assert newest_releases(Release(3, 9, 5)) == ()
