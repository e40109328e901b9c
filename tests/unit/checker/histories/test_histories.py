"""Checks of client histories on small handmade ones: correct histories pass, and each guarantee is violated once."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from checker import histories
from checker.command import ExitCode
from checker.histories import (
    ClientHistory,
    ClientHistoryError,
    FinalZnodes,
    Leaf,
    Operation,
    Pause,
    StaleBound,
    history_of,
    report_of,
)
from checker.histories.linearizable import Linearization, NoAnswer, NoOrder, search
from checker.histories.record import Kind
from checker.job import Verdict

EPOCH_1 = 1 << 32
EPOCH_2 = 2 << 32


def write(
    kind: Kind,
    value: str | None,
    times: tuple[float, float],
    zxid: int,
    version: int = 0,
    *,
    key: str = "/k",
    session: int = 1,
) -> Operation:
    mzxid = 0 if kind == "delete" else zxid
    return Operation(f"c{session}", session, 1, kind, key, *times, "ok", value, zxid=zxid, mzxid=mzxid, version=version)


def lost(kind: Kind, value: str | None, invoked: float, *, key: str = "/k", session: int = 9) -> Operation:
    return Operation(f"c{session}", session, 1, kind, key, invoked, value=value)


def read(
    value: str,
    times: tuple[float, float],
    zxid: int,
    mzxid: int,
    version: int,
    *,
    session: int = 2,
    synced: bool = False,
) -> Operation:
    kind: Kind = "sync+get" if synced else "get"
    return Operation(
        f"c{session}", session, 2, kind, "/k", *times, "ok", value, zxid=zxid, mzxid=mzxid, version=version
    )


def refused(kind: Kind, error: str, times: tuple[float, float], zxid: int, *, session: int = 2) -> Operation:
    value = None if kind in {"get", "sync+get", "delete"} else f"refused-{times[0]}"
    return Operation(f"c{session}", session, 2, kind, "/k", *times, "failed", value, error=error, zxid=zxid)


def clauses(*entries: histories.Entry) -> list[str]:
    return [violation.clause for violation in histories.check(history_of(entries)).violations]


CREATE = write("create", "a", (0, 1), 1)
SET = write("set", "b", (2, 3), 2, 1)


def test_a_plain_read_may_be_old_and_a_synced_one_current() -> None:
    assert clauses(CREATE, SET, read("a", (4, 5), 1, 1, 0), read("b", (6, 7), 2, 2, 1, synced=True)) == []


def test_an_unanswered_write_may_happen_later_or_never() -> None:
    unanswered = lost("set", "x", 2)

    assert clauses(CREATE, unanswered, read("a", (3, 4), 1, 1, 0, synced=True)) == []
    assert (
        clauses(CREATE, unanswered, read("a", (3, 4), 1, 1, 0, synced=True), read("x", (5, 6), 2, 2, 1, synced=True))
        == []
    )


def test_an_unanswered_set_explains_a_version_that_was_skipped() -> None:
    skipped = write("set", "b", (4, 5), 3, 2)

    assert clauses(CREATE, lost("set", "x", 2), skipped) == []
    assert "versions count up by one for each set" in clauses(CREATE, skipped)


def test_a_set_carried_out_twice_is_found() -> None:
    later = write("set", "c", (4, 5), 4, 3)

    found = clauses(CREATE, SET, later)

    assert "writes and synced reads are linearizable" in found
    assert "versions count up by one for each set" in found


def test_the_counterexample_is_the_first_answer_that_no_order_explains() -> None:
    wrong = read("a", (4, 5), 2, 1, 0, synced=True)
    after = write("set", "c", (6, 7), 3, 2)

    violation = histories.check(history_of([CREATE, SET, wrong, after])).violations[0]

    assert violation.clause == "writes and synced reads are linearizable"
    assert wrong in violation.witnesses
    assert after not in violation.witnesses
    assert f"Guilty: {wrong}" in violation.detail


@pytest.mark.parametrize(
    ("answer", "explained"),
    [
        (refused("create", "NodeExists", (4, 5), 2), True),
        (refused("delete", "NoNode", (4, 5), 2), False),
        (refused("sync+get", "NoNode", (4, 5), 2), False),
        (refused("set", "AuthFailed", (4, 5), 2), True),
    ],
)
def test_a_refusal_is_an_observation(answer: Operation, explained: bool) -> None:
    assert isinstance(search([CREATE, SET, answer]), Linearization if explained else NoOrder)


def test_a_conditional_write_finds_the_version_it_asks_for() -> None:
    asked = Operation("c", 3, 1, "set", "/k", 4, 5, "ok", "c", condition=0, zxid=3, mzxid=3, version=2)

    assert isinstance(search([CREATE, SET, asked]), NoOrder)


def test_concurrent_writes_may_stand_in_any_order_and_both_readers_must_agree_on_it() -> None:
    one, two = write("set", "b", (2, 9), 2, 1), write("set", "c", (2, 9), 3, 2, session=3)
    old, new = read("b", (3, 4), 2, 2, 1, synced=True), read("c", (5, 6), 3, 3, 2, synced=True)

    assert isinstance(search([CREATE, one, two, old, new]), Linearization)
    assert isinstance(search([CREATE, one, two, old, new, read("b", (7, 8), 3, 2, 1, synced=True)]), NoOrder)


def test_a_search_that_reaches_its_bound_says_so() -> None:
    creates = [write("create", f"v{n}", (2, 100), n + 2, session=n) for n in range(9)]
    deletes = [write("delete", None, (2, 100), n + 20, session=20 + n) for n in range(9)]
    never = [*creates, *deletes, read("v0", (200, 201), 40, 1, 7, synced=True)]

    assert isinstance(search(never, bound=50), NoAnswer)
    findings = histories.check(history_of(never), bound=50)
    assert findings.undecided == ("/k",)
    assert not findings.passed


def test_two_hundred_unanswered_writes_do_not_slow_the_search_down() -> None:
    unanswered = [lost("set", f"x{n}", 2 + n / 1000, session=100 + n) for n in range(200)]
    seen = read("x7", (5, 6), 3, 3, 5, synced=True)

    found = search([CREATE, *unanswered, seen, write("set", "z", (7, 8), 9, 100)], bound=2_000)

    assert isinstance(found, Linearization)


def test_zxids_of_writes_follow_real_time_across_znodes() -> None:
    early = write("create", "o", (0, 1), 9, key="/other")

    assert clauses(early, write("create", "a", (2, 3), 8, session=2)) == ["zxids of writes respect real time"]


def test_one_zxid_belongs_to_one_write() -> None:
    assert "a zxid belongs to one write" in clauses(CREATE, write("create", "o", (0, 1), 1, key="/other"))


def test_a_session_that_goes_back_is_found_when_it_moves() -> None:
    moved = Operation("c2", 2, 3, "get", "/k", 6, 7, "ok", "a", zxid=1, mzxid=1)

    violation = histories.check(history_of([CREATE, SET, read("b", (4, 5), 2, 2, 1), moved])).violations[0]

    assert violation.clause == "the zxids of a session never go back"
    assert "after the session moved" in violation.detail


def test_a_session_sees_its_own_writes() -> None:
    mine = read("a", (4, 5), 2, 1, 0, session=1)

    assert "a session sees its own writes" in clauses(CREATE, SET, mine)
    assert clauses(CREATE, SET, read("a", (4, 5), 1, 1, 0, session=2)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        read("never", (4, 5), 2, 2, 1),
        read("b", (4, 5), 2, 1, 1),
        read("b", (4, 5), 2, 2, 0),
        read("a", (4, 5), 2, 2, 1),
    ],
    ids=["nobody wrote it", "another mzxid", "another version", "the value of another write"],
)
def test_a_read_returns_what_was_written_with_its_marks(wrong: Operation) -> None:
    assert clauses(CREATE, SET, wrong) == ["a read returns what was written, with its mzxid and version"]


def test_an_unanswered_write_has_the_same_marks_for_every_reader() -> None:
    first = read("x", (4, 5), 7, 3, 2)

    assert clauses(CREATE, SET, lost("set", "x", 3), first, read("x", (6, 7), 8, 3, 2, session=4)) == []
    assert len(clauses(CREATE, SET, lost("set", "x", 3), first, read("x", (6, 7), 8, 4, 3, session=4))) == 1


def test_a_read_tells_the_state_at_its_zxid() -> None:
    assert clauses(CREATE, SET, read("a", (4, 5), 2, 1, 0)) == ["a reply tells the state at its zxid"]
    assert clauses(CREATE, refused("get", "NoNode", (4, 5), 1)) == ["a reply tells the state at its zxid"]


DELETE = write("delete", None, (2, 9), 3)


@pytest.mark.parametrize(
    ("entries", "answer"),
    [
        ((CREATE, refused("set", "NoNode", (0.5, 4), 3)), "existed"),
        ((CREATE, DELETE, refused("create", "NodeExists", (2, 9), 4)), "did not exist"),
        ((CREATE, DELETE, refused("create", "NodeExists", (2, 9), 2)), ""),
        ((CREATE, DELETE, refused("set", "NoNode", (2, 9), 4)), ""),
        ((write("create", "a", (1, 9), 5), refused("create", "NodeExists", (1, 9), 4)), "did not exist"),
        ((lost("create", "a", 1), refused("create", "NodeExists", (1, 9), 4)), ""),
    ],
)
def test_a_refused_write_tells_the_state_at_its_zxid_too(entries: tuple[Operation, ...], answer: str) -> None:
    """Each of them is linearizable: the two writes of the znode are concurrent. A refusal is a transaction."""
    violations = histories.check(history_of(entries)).violations

    assert [v.clause for v in violations] == (["a reply tells the state at its zxid"] if answer else [])
    assert all(f"/k {answer} at zxid" in violation.detail for violation in violations)


def test_a_refused_write_has_a_zxid_of_its_own_in_real_time() -> None:
    assert clauses(CREATE, refused("create", "NodeExists", (2, 3), 1)) == ["a zxid belongs to one write"]
    late = refused("create", "NodeExists", (2, 3), 5)
    assert clauses(CREATE, late, write("set", "b", (4, 5), 4, 1)) == ["zxids of writes respect real time"]
    assert clauses(CREATE, replace(late, error="NotReadOnly"), write("set", "b", (4, 5), 4, 1)) == []


@pytest.mark.parametrize("kind", ["get", "sync+get", "set", "delete", "create"])
@pytest.mark.parametrize("error", ["NoNode", "NodeExists", "BadVersion"])
def test_a_request_is_refused_for_a_reason_that_it_can_have(kind: Kind, error: str) -> None:
    """`PrepRequestProcessor.pRequest2Txn` and `checkAndIncVersion`: without a condition no version is bad."""
    there = error != "NoNode"
    found = clauses(*([CREATE] if there else []), refused(kind, error, (4, 5), 2))

    assert bool(found) is (there and (kind, error) != ("create", "NodeExists"))


@pytest.mark.parametrize("kind", ["set", "delete"])
def test_a_version_is_bad_if_another_one_was_demanded(kind: Kind) -> None:
    wrong, right = (replace(refused(kind, "BadVersion", (4, 5), 2), condition=n) for n in (7, 0))

    assert clauses(CREATE, wrong) == []
    assert clauses(CREATE, right) == ["writes and synced reads are linearizable"]


def test_an_absent_znode_is_explained_by_a_delete_that_may_have_happened() -> None:
    gone = refused("get", "NoNode", (4, 5), 3)

    assert clauses(CREATE, lost("delete", None, 2), gone) == []
    assert clauses(CREATE, write("delete", None, (2, 3), 2), gone) == []


def deposed(completed: float) -> tuple[Operation, ...]:
    created = write("create", "a", (0, 1), EPOCH_1 + 1)
    newer = write("set", "b", (2, 3), EPOCH_2 + 1, 1)
    stale = read("a", (completed - 0.1, completed), EPOCH_1 + 1, EPOCH_1 + 1, 0, synced=True)
    return created, newer, stale


def test_a_stale_synced_read_is_excused_by_the_window_of_a_deposed_leader_and_reported() -> None:
    findings = histories.check(history_of([*deposed(4.5), StaleBound(2.0)]))

    assert findings.passed
    assert [(stale.read.value, stale.seconds) for stale in findings.stale] == [("a", 1.5)]
    assert "1 stale synced reads in windows of deposed leaders, the longest 1.500 s" in str(findings)


def test_the_window_is_bounded() -> None:
    assert clauses(*deposed(6.0), StaleBound(2.0)) == ["the window of a deposed leader is bounded"]


def test_a_stopped_server_could_not_notice_so_its_pause_does_not_count() -> None:
    assert clauses(*deposed(6.0), StaleBound(2.0), Pause(server=2, since=1.0, until=5.0)) == []
    assert clauses(*deposed(6.0), StaleBound(2.0), Pause(server=3, since=1.0, until=5.0)) != []
    twice = [Pause(server=2, since=1.0, until=until) for until in (3.8, 3.7)]
    assert clauses(*deposed(6.0), StaleBound(2.0), *twice) == ["the window of a deposed leader is bounded"]
    assert clauses(*deposed(6.0), StaleBound(2.0), *twice, Pause(server=2, since=3.8, until=5.0)) == []


def test_without_a_newer_epoch_nothing_excuses_a_stale_synced_read() -> None:
    found = clauses(CREATE, SET, read("a", (4, 5), 1, 1, 0, synced=True), StaleBound(9.0))

    assert found == ["writes and synced reads are linearizable", "a synced read sees every earlier write"]


def leaf(value: str, mzxid: int, version: int, **other: int) -> Leaf:
    return Leaf(value, {"mzxid": mzxid, "version": version, **other})


def test_replicas_hold_every_acknowledged_write() -> None:
    assert clauses(CREATE, SET, FinalZnodes(1, {"/k": leaf("b", 2, 1)})) == []
    for held in ({}, {"/k": leaf("a", 1, 0)}, {"/k": leaf("other", 3, 2)}, {"/k": leaf("a", 3, 2)}):
        assert clauses(CREATE, SET, FinalZnodes(1, held)) == ["no acknowledged write is missing at the end"], held


def test_an_unanswered_write_may_be_there_at_the_end() -> None:
    assert clauses(CREATE, lost("set", "x", 2), FinalZnodes(1, {"/k": leaf("x", 2, 1)})) == []
    assert clauses(CREATE, lost("delete", None, 2), FinalZnodes(1, {})) == []


def test_replicas_are_compared_down_to_the_stat_and_the_first_difference_is_named() -> None:
    entries = [
        CREATE,
        FinalZnodes(1, {"/k": leaf("a", 1, 0, ctime=5)}),
        FinalZnodes(2, {"/k": leaf("a", 1, 0, ctime=6)}),
    ]

    violations = histories.check(history_of(entries)).violations

    assert [str(violation) for violation in violations] == [
        "replicas are identical at the end: /k: ctime is 5 on server 1, 6 on server 2"
    ]


def test_what_a_server_says_of_itself_is_not_compared() -> None:
    own = [FinalZnodes(n, {"/zookeeper/config": leaf(f"server.{n}", 0, -1)}) for n in (1, 2)]

    assert clauses(*own) == []


@pytest.mark.parametrize("paths", [[], ["/zookeeper/config"], ["/zookeeper/config", "/"]])
def test_replicas_without_a_znode_to_compare_prove_nothing(paths: list[str]) -> None:
    found = histories.check(history_of([FinalZnodes(n, {path: leaf("", 0, 0) for path in paths}) for n in (1, 2)]))

    assert found.verdict is (Verdict.PASSED if "/" in paths else Verdict.VACUOUS)


def test_a_saved_history_is_read_back_whole(tmp_path: Path) -> None:
    entries = [
        CREATE,
        lost("delete", None, 2),
        *deposed(4),
        Pause(1, 0.5, 1.5),
        StaleBound(2.0),
        FinalZnodes(1, {"/": leaf("", 0, 0)}),
    ]
    file = tmp_path / "history.jsonl"

    histories.save(file, entries[1:])

    assert histories.load(file) == history_of(entries[1:])
    assert isinstance(histories.load(file), ClientHistory)


def test_a_history_with_nothing_wrong_exits_with_zero_and_a_violated_one_with_twelve(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    histories.save(good, [CREATE, SET])
    histories.save(bad, [read("b", (4, 5), 2, 1, 1)])

    assert report_of([good]).exit_code == ExitCode.PASSED
    assert report_of([good, bad]).exit_code == ExitCode.SAFETY
    assert report_of([good]).text.startswith("passed: 2 operations of 1 sessions: 2 acknowledged writes")
    assert json.loads(json.dumps(report_of([good, bad]).data))["violations"][0]["clause"].startswith("a read returns")


def test_a_refusal_that_says_nothing_about_a_znode_leaves_nothing_to_judge() -> None:
    refused = Operation("c1", 1, 1, "set", "/k", 1, 2, "failed", "a", error="AuthFailed")
    assert histories.check(history_of([refused])).verdict is Verdict.VACUOUS


def test_without_zxids_values_are_checked_and_the_order_of_reads_is_vacuous() -> None:
    create = Operation("a", 1, 1, "create", "/x", 1.0, 1.1, "ok", "v1")
    second = Operation("a", 1, 1, "set", "/x", 1.2, 1.3, "ok", "v2")
    known, strange = (Operation("a", 1, 1, "get", "/x", 2.0, 2.1, "ok", value) for value in ("v1", "nobody's"))

    findings = histories.check(history_of([create, second, known]))
    assert (findings.verdict, findings.passed) == (Verdict.VACUOUS, False)
    assert "not judged: the order of 3 operations whose replies have no zxid, such as a (session 0x1" in str(findings)
    assert clauses(create, second, strange) == ["a read returns what was written, with its mzxid and version"]


def test_without_zxids_synced_reads_are_still_linearizable_or_not() -> None:
    create = Operation("a", 1, 1, "create", "/x", 1.0, 1.1, "ok", "v1")
    second = Operation("a", 1, 1, "set", "/x", 1.2, 1.3, "ok", "v2")
    old = Operation("b", 2, 1, "sync+get", "/x", 2.0, 2.1, "ok", "v1")

    assert clauses(create, second, old) == ["writes and synced reads are linearizable"]


def test_a_replica_without_the_zxid_of_a_znode_is_refused_by_name() -> None:
    with pytest.raises(ClientHistoryError, match=r"/k on server 1: its Stat needs mzxid and version"):
        history_of([FinalZnodes(1, {"/k": Leaf("a", {})})])
