"""The comparison of servers, without a server: minimisation, known causes, and the values that are not compared."""

import hashlib
from base64 import b64encode

import pytest

from harness import commands as c
from harness.conform import opcodes, report
from harness.conform.cases.case import ANNA, SECRET
from harness.conform.comparison import differences
from harness.conform.known_causes import CAUSES, cause_of
from harness.conform.mismatch import CauseKind, Mismatch
from harness.conform.opcodes import PROBES, Support, row, support
from harness.conform.protocol import NO_ANSWER, OPCODES
from harness.conform.random_scripts import ScriptGenerator
from harness.conform.run import AREAS, CASES, Bench, Status, measure, minimised
from harness.conform.servers import Side
from harness.interpreter import Seen
from harness.layouts import Stat
from harness.session import Answer, Event
from research import zetcd

STAT = Stat(8, 8, 1, 1, 0, 0, 0, 0, 0, 0, 8)
QUIET = ((), (), ())


def seen(command: c.Command, outcome: object, events: tuple[object, ...] = QUIET) -> Seen:
    return Seen(command, outcome, events)


def ok(*values: object, zxid: int = 0) -> Answer:
    return Answer(0, zxid, values)


def error(code: int) -> Answer:
    return Answer(code, 0, ())


# --- minimisation


def test_only_the_commands_that_are_needed_stay() -> None:
    script = tuple(c.Delete(0, f"/{number}") for number in range(17))
    needed = {script[3], script[11]}
    assert minimised(script, lambda candidate: needed <= set(candidate)) == (script[3], script[11])


def test_operations_of_a_multi_are_dropped_too() -> None:
    wrong = c.Set(0, "/wrong")
    script = (c.Sync(0, ""), c.Multi(0, (c.Delete(0, "/a"), wrong, c.Delete(0, "/b"))))

    def differs(candidate: c.Script) -> bool:
        return any(isinstance(each, c.Multi) and wrong in each.parts for each in candidate)

    assert minimised(script, differs) == (c.Multi(0, (wrong,)),)


def test_the_number_of_attempts_is_bounded() -> None:
    script = tuple(c.Delete(0, f"/{number}") for number in range(40))
    tried: list[c.Script] = []

    def never(candidate: c.Script) -> bool:
        tried.append(candidate)
        return False

    assert minimised(script, never, attempts=7) == script
    assert len(tried) == 7


def test_a_seed_and_a_number_give_one_script() -> None:
    scripts = [ScriptGenerator(7).script(number) for number in range(30)]
    assert [ScriptGenerator(7).script(number) for number in reversed(range(30))] == scripts[::-1]
    assert ScriptGenerator(8).script(0) != scripts[0]


def test_no_random_script_has_a_request_that_stops_a_server() -> None:
    for number in range(500):
        for command in ScriptGenerator(1).script(number):
            assert not isinstance(command, c.Check)
            if isinstance(command, c.Create) and command.by == c.CREATE_TTL:
                assert command.flags in {c.TTL, c.TTL_SEQUENTIAL}
                assert command.ttl >= 0


# --- comparison


def test_zxids_of_other_clients_are_no_difference_and_their_order_is_one() -> None:
    get, other = c.Exists(0, "/a"), STAT._replace(mzxid=9, pzxid=9)
    early = [seen(get, ok(STAT, zxid=8)), seen(get, ok(other, zxid=9))]
    late = [
        seen(get, ok(STAT._replace(czxid=20, mzxid=20, pzxid=20), zxid=30)),
        seen(get, ok(other._replace(czxid=20, mzxid=31, pzxid=31), zxid=31)),
    ]
    assert differences(late, early, False, None) == []
    assert len(differences(late, early, True, None)) == 1
    same = [late[0], late[0]]
    assert [each.number for each in differences(same, early, False, None)] == [1]


def test_a_difference_is_reported_at_its_command_and_not_at_an_earlier_stat() -> None:
    script = (c.Exists(0, "/b"), c.Exists(0, "/a"))
    late = STAT._replace(czxid=9, mzxid=9, pzxid=9)
    tested = [seen(script[0], ok(late)), seen(script[1], ok(STAT))]
    expected = [seen(script[0], ok(late)), seen(script[1], error(-102))]
    assert [each.number for each in differences(tested, expected, False, None)] == [1]


def test_the_address_of_a_client_and_the_granted_timeout_are_no_difference() -> None:
    script = (c.WhoAmI(0), c.Connect(0))
    one = [seen(script[0], ok([("ip", "10.0.0.7")])), seen(script[1], ("attached", 4000))]
    other = [seen(script[0], ok([("ip", "127.0.0.1")])), seen(script[1], ("attached", 60_000))]
    assert differences(one, other, False, None) == []


def test_an_event_that_is_missing_is_a_difference() -> None:
    command = c.Set(1, "/a")
    event = Event(3, 3, "/a")
    (found,) = differences([seen(command, ok())], [seen(command, ok(), ((event,), (), ()))], False, "3.9.5")
    assert found.cause is None


def test_the_comparison_goes_on_after_a_harmless_cause_and_ends_after_another() -> None:
    check, delete = c.CheckWatches(0, "/a"), c.Delete(0, "/a")
    expected = [seen(check, error(-121)), seen(delete, ok())]
    tested = [seen(check, ok()), seen(delete, error(-101))]
    assert [each.number for each in differences(tested, expected, False, "3.8.6")] == [0, 1]
    assert [each.number for each in differences(tested, expected, False, "3.9.5")] == [0]


# --- known causes


@pytest.mark.parametrize(
    ("release", "named"),
    [("3.8.3", True), ("3.8.4", False), ("3.9.1", True), ("3.9.2", False), ("3.5.10", True), ("3.10.0", False)],
)
def test_a_cause_of_releases_ends_in_each_line_with_its_correction(release: str, named: bool) -> None:
    # git tag --contains, of the two commits of ZOOKEEPER-2590: 3.8.4 and 3.9.2 are the first releases.
    cause = cause_of(Mismatch(c.Exists(0, "/a"), ok(STAT), error(-102), QUIET, QUIET), release)
    assert cause is not None
    assert (cause.kind is CauseKind.RELEASE) == named


@pytest.mark.parametrize(
    ("release", "known"),
    [
        ("3.5.10", False), ("3.6.0", True), ("3.6.3", True), ("3.6.4", False), ("3.7.1", True), ("3.7.2", False),
        ("3.8.0", True), ("3.8.1", False), ("3.9.0", False), (None, False), (zetcd.NAME, False),
    ],
)  # fmt: skip
def test_a_late_answer_is_named_and_explained_by_zookeeper_4537_alone(release: str | None, known: bool) -> None:
    # git show TAG:.../CommitProcessor.java: these releases look at their queues before they lock.
    command = c.SetAcl(0, "/a", ())
    (found,) = differences([seen(command, ok())._replace(late=True)], [seen(command, ok())], True, release)
    assert found.cause is not None
    assert (found.explained, found.cause.kind) == (known, CauseKind.RELEASE if known else CauseKind.SILENCE)


def test_a_late_answer_that_is_wrong_is_unexplained_and_zxids_after_one_are_not_compared() -> None:
    read, write = c.Get(0, "/a"), c.Set(0, "/a")
    (found,) = differences([seen(read, error(-102))._replace(late=True)], [seen(read, ok())], False, "3.8.0")
    assert found.cause is None
    late = [seen(read, ok())._replace(late=True), seen(write, ok(zxid=6))]
    expected = [seen(read, ok()), seen(write, ok(zxid=4))]
    assert [each.number for each in differences(late, expected, True, "3.8.0")] == [0]


def test_without_a_release_no_cause_of_a_release_is_named() -> None:
    mismatch = Mismatch(c.CheckWatches(0, "/a"), ok(), error(-121), QUIET, QUIET)
    assert cause_of(mismatch, None) is None


def test_an_opcode_that_came_later_is_named_with_its_release() -> None:
    cause = cause_of(Mismatch(c.WhoAmI(0), error(-6), ok([]), QUIET, QUIET), "3.6.4")
    assert cause is not None
    assert cause.name == "whoAmI came with 3.7.0"
    assert cause_of(Mismatch(c.WhoAmI(0), error(-6), ok([]), QUIET, QUIET), "3.7.2") is None


def test_an_unchecked_permission_in_a_multi_names_skip_acl() -> None:
    multi = c.Multi(0, (c.Set(0, "/a"),))
    refused = Answer(0, 0, ((-1, -102, (-102,)),))
    cause = cause_of(Mismatch(multi, Answer(0, 0, ((5, 0, (STAT,)),)), refused, QUIET, QUIET), "3.9.5")
    assert cause is not None
    assert cause.kind is CauseKind.SETTING
    assert not cause.explains


def test_every_cause_of_a_release_says_when_it_was_corrected() -> None:
    assert [each.name for each in CAUSES if each.kind is CauseKind.RELEASE and not each.fixed] == []


def test_the_identity_of_the_cleaner_is_the_digest_of_its_password() -> None:
    digest = b64encode(hashlib.sha1(SECRET).digest()).decode()
    assert f"anna:{digest}" == ANNA


# --- opcodes


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (ok(), Support.SUPPORTED),
        (error(-101), Support.SUPPORTED),
        ((-6, 0), Support.UNIMPLEMENTED),
        ("disconnected", Support.CLOSES),
        (NO_ANSWER, Support.SILENT),
    ],
)
def test_support_follows_from_the_outcome(outcome: object, expected: Support) -> None:
    assert support([seen(c.Raw(0, 55), outcome)]) is expected


def test_an_opcode_without_a_known_cause_is_a_finding() -> None:
    assert row(107, "whoAmI", Support.UNIMPLEMENTED, Support.SUPPORTED, "3.9.5").is_finding
    assert not row(107, "whoAmI", Support.UNIMPLEMENTED, Support.SUPPORTED, "3.6.4").is_finding


def test_names_of_cases_are_unique_and_every_opcode_has_a_probe() -> None:
    names = [(case.area, case.name) for case in CASES]
    assert len(set(names)) == len(names)
    assert set(PROBES) == set(OPCODES)


# --- a whole run


class ScriptedSide(Side):
    """A side without a server: its answer to a command depends on the commands before."""

    def __init__(self, defective: bool) -> None:
        super().__init__([1], "/root", 1.0)
        self._defective = defective
        self.count = 0

    def run(self, script: c.Script) -> list[Seen]:
        self.count += 1
        return [seen(each, self._answer(script[:at], each)) for at, each in enumerate(script)]

    def _answer(self, before: c.Script, command: c.Command) -> object:
        deleted = any(isinstance(each, c.Delete) and each.path == "/a" for each in before)
        wrong = self._defective and isinstance(command, c.Set) and command.path == "/a" and deleted
        return error(-103) if wrong else ok()


def test_a_random_script_is_minimised_to_the_two_commands_of_the_defect() -> None:
    bench = Bench(ScriptedSide(False), ScriptedSide(True), "3.9.5", lambda _text: None)
    result = measure(bench, (), 200, seed=3)
    assert len(result.random) == 1
    script = result.random[0].result.case.script
    assert [(type(each), getattr(each, "path", None)) for each in script] == [(c.Delete, "/a"), (c.Set, "/a")]
    assert result.random[0].times > 1
    assert not result.is_equal


class SilentOnceSide(ScriptedSide):
    """A side that lets its fourth script wait: for the request of another session, or in vain."""

    def __init__(self, outcome: object) -> None:
        super().__init__(False)
        self._outcome = outcome

    def run(self, script: c.Script) -> list[Seen]:
        first, *rest = super().run(script)
        if self.count != 4:
            return [first, *rest]
        return [first._replace(outcome=self._outcome, late=self._outcome == ok()), *rest]


@pytest.mark.parametrize("count", [0, 5], ids=["in a case", "in a random script"])
@pytest.mark.parametrize(
    ("outcome", "release", "equal", "named"),
    [
        (ok(), "3.8.0", True, "release: an answer waits until the server has another request ("),
        (ok(), "3.9.5", False, "no answer in time: the server did not answer once ("),
        (NO_ANSWER, "3.8.0", False, "no answer in time: the server did not answer once ("),
    ],
)
def test_a_missing_answer_that_comes_after_all_is_an_outcome_of_its_own(
    monkeypatch: pytest.MonkeyPatch, count: int, outcome: object, release: str, equal: bool, named: str
) -> None:
    monkeypatch.setattr(opcodes, "rows", tuple)
    bench = Bench(ScriptedSide(False), SilentOnceSide(outcome), release, lambda _text: None)
    result = measure(bench, () if count else ("create",), count, seed=1)
    assert result.is_equal == equal
    text = report.text(result)
    assert named in text and "(gone when repeated)" in text and "unexplained:" not in text
    assert (len(result.random), Status.PASSED in {each.status for each in result.cases}) == (bool(count), not count)
    assert sum(each.status is not Status.PASSED for each in result.cases) == (not count)


def test_equal_sides_pass_every_case() -> None:
    bench = Bench(ScriptedSide(False), ScriptedSide(False), None, lambda _text: None)
    result = measure(bench, AREAS, 5, seed=1)
    assert {each.status for each in result.cases} == {Status.PASSED}
    assert result.is_equal


# --- causes of older releases and of other servers


@pytest.mark.parametrize(
    ("mismatch", "release", "name"),
    [
        (
            Mismatch(c.Create(0, "/a", acl=((31, "ip", "0.0.0.0/0"),)), error(-114), ok("/a"), QUIET, QUIET),
            "3.4.14",
            "an address with a number of bits is no id of the scheme ip",
        ),
        (Mismatch(c.Create(0, "/a\x1f"), ok("/a\x1f"), error(-8), QUIET, QUIET), "3.4.14", "U+001F is valid in a path"),
        (
            Mismatch(c.Multi(0, (c.Create(0, "/a", by=c.CREATE2),)), error(-5), ok(), QUIET, QUIET),
            "3.4.14",
            "create2 came with 3.5.0",
        ),
        (
            Mismatch(
                c.Set(1, "/a"), ok(STAT), ok(STAT), ((Event(3, 3, "/a"),), (), ()), QUIET, (c.SetAcl(1, "/a", ()),)
            ),
            "3.8.3",
            "a watch tells a session without READ",
        ),
        (
            Mismatch(c.SetWatches(0), ok(), ok(), ((Event(1, 3, "/a"),), (), ()), QUIET, (c.SetAcl(1, "/a", ()),)),
            "3.9.5",
            "setWatches tells a session without READ what it missed",
        ),
        (Mismatch(c.Get(0, "/a"), ok(None, STAT), ok(b"", STAT), QUIET, QUIET), zetcd.NAME, "empty data is null"),
    ],
)
def test_a_difference_of_an_older_release_or_another_server_has_its_cause(
    mismatch: Mismatch, release: str, name: str
) -> None:
    found = cause_of(mismatch, release)
    assert found is not None
    assert (found.name, found.explains) == (name, True)


@pytest.mark.parametrize(
    ("mismatch", "release"),
    [
        (Mismatch(c.Create(0, "/a", acl=((31, "ip", "0.0.0.0/0"),)), error(-114), ok("/a"), QUIET, QUIET), "3.5.0"),
        (Mismatch(c.Create(0, "/a\x1f"), ok("/a\x1f"), error(-8), QUIET, QUIET), "3.5.0"),
        # An event too few, and one that no ACL explains, have no such cause.
        (Mismatch(c.Set(1, "/a"), ok(STAT), ok(STAT), QUIET, ((Event(3, 3, "/a"),), (), ())), "3.8.3"),
        (Mismatch(c.Set(1, "/a"), ok(STAT), ok(STAT), ((Event(3, 3, "/a"),), (), ()), QUIET), "3.8.3"),
        (Mismatch(c.Get(0, "/a"), ok(b"x", STAT), ok(b"", STAT), QUIET, QUIET), zetcd.NAME),
    ],
)
def test_a_later_release_or_another_answer_has_no_cause(mismatch: Mismatch, release: str) -> None:
    assert cause_of(mismatch, release) is None
