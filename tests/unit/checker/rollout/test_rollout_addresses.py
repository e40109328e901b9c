"""Roll-outs that change peer addresses or hosts: verdicts, stages and steps.

The expected behaviour of each order was observed on three servers of ZooKeeper 3.8.0 on one machine, with 20 s of
waiting for each server: it either followed within 2 s, or stayed LOOKING. The lost write follows from the protocol: an
empty disk under an old id is in a quorum with a server that has not received the write.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from checker.command import ExitCode
from checker.engine import Limits, plain
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.orders import Way, quorum_without, steps_of
from checker.rollout.output.markdown import markdown
from checker.rollout.output.recommendation import headline
from checker.rollout.planner import plan
from checker.rollout.route_verdict import QUESTIONS, Reason
from checker.rollout.runs import RunResult, SafetyVerdict, job_of, run_within
from checker.rollout.scenarios import Question, RunSpec
from checker.rollout.stages import one_at_a_time, whole
from spec.quorum import Sid
from tests.support.rollout_runs import made_up

OLD = {1: "a:2888:3888", 2: "b:2888:3888", 3: "c:2888:3888"}
PORTS = {sid: line.replace(":2888:3888", ":2889:3889") for sid, line in OLD.items()}


def folder(
    tmp_path: Path, name: str, lines: dict[Sid, str], own: dict[Sid, str] | None = None, more: str = ""
) -> Folder:
    """Write a file for all servers; with `own` a file for each, with another line for its own server."""
    path = tmp_path / name
    path.mkdir()
    for sid in own or (0,):
        members = lines | ({sid: own[sid]} if own else {})
        text = "tickTime=2000\n" + "".join(f"server.{each}={line}\n" for each, line in members.items())
        (path / (f"zoo-{sid}.cfg" if own else "zoo.cfg")).write_text(text, encoding="utf-8")
    return read_folder(path)


def small(spec: RunSpec, seconds: float) -> RunResult:
    """A run with the same number of states on every machine. Few are enough for commits, which a proof covers."""
    return run_within(spec, Limits(states=500 if spec.question is Question.COMMITS else 30_000))


def exhausted(spec: RunSpec, seconds: float) -> RunResult:
    """A run without an engine that has explored everything, and has taken an hour."""
    return made_up(spec, SafetyVerdict.SAFE, seconds=3600.0)


def planned(old: Folder, new: Folder, *order: Sid, leader: Sid | None = None, in_one_go: bool = False) -> Plan:
    return plan(PlanRequest(old, new, order or None, leader, in_one_go=in_one_go, how=Way.ONE_BY_ONE), small)


@cache
def with_1_on_another_host() -> Plan:
    """The plan for a move of server 1, while 3 leads; several tests read it."""
    with TemporaryDirectory() as name:
        old, new = (folder(Path(name), each, OLD | more) for each, more in (("old", {}), ("new", {1: "d:2888:3888"})))
        return planned(old, new, leader=3)


def vain(made: Plan) -> list[Sid | None]:
    """Return the servers for which the operator waits in vain, in the first order."""
    return [ran.stuck for ran in made.direct.orders[0].vain]


def test_new_ports_everywhere_leave_the_first_restarted_server_looking(tmp_path: Path) -> None:
    """Observed: 2 leads, 1 is restarted and stays LOOKING; when 3 is restarted the two elect 3; then 2 follows."""
    made = planned(folder(tmp_path, "old", OLD), folder(tmp_path, "new", PORTS), 1, 3, 2, leader=2)
    assert (made.outcome, made.exit_code, vain(made)) == (SafetyVerdict.STALLS, ExitCode.LIVENESS, [1])
    assert headline(made).endswith("(changes the peer addresses of 1, 2, 3) in the order 1, 3, 2: STALLS")
    assert "after step 1, restart 1, server 1 stays LOOKING" in markdown(made)
    answer = made.direct.answer(Question.HEALING, faulty=False)
    assert answer.finding is not None and answer.finding.trace is not None
    actions = [step.action for step in answer.finding.trace.steps if (step.action or "").startswith("plan")]
    assert actions == ["plan 1: stop 1", "plan 2: start 1"]


def test_a_server_cannot_follow_where_its_file_knows_the_new_ports_too_early(tmp_path: Path) -> None:
    """Observed: 3 leads and the ports of 1 change; 2 is restarted first and stays LOOKING; then 1 and 3 follow."""
    moved = OLD | {1: PORTS[1]}
    made = planned(folder(tmp_path, "old", OLD), folder(tmp_path, "new", moved), 2, 1, 3, leader=3)
    assert (made.outcome, vain(made)) == (SafetyVerdict.STALLS, [2])


@pytest.mark.parametrize("order", [(1, 3, 2), (3, 1, 2)], ids=str)
def test_a_server_with_new_ports_follows_if_it_is_restarted_first(tmp_path: Path, order: tuple[Sid, ...]) -> None:
    """Observed with the lowest and the highest id: it connects to the others, and they answer on its connection."""
    moved = OLD | {order[0]: PORTS[order[0]]}
    made = planned(folder(tmp_path, "old", OLD), folder(tmp_path, "new", moved), *order, leader=2)
    assert (made.outcome, vain(made)) == (SafetyVerdict.SAFE, [])


def test_new_ports_everywhere_are_planned_one_server_at_a_time(tmp_path: Path) -> None:
    made = planned(folder(tmp_path, "old", OLD), folder(tmp_path, "new", PORTS))
    assert made.direct.outcome is SafetyVerdict.STALLS
    assert [part.outcome for part in made.stages] == [SafetyVerdict.SAFE] * 3
    assert [part.stage.readdressed for part in made.stages] == [(1,), (2,), (3,)]
    for sid, part in enumerate(made.stages, start=1):
        assert {order.steps[0].sid for order in part.orders} == {sid}
        assert {order.leader for order in part.orders if order.explored} == {1, 2, 3}
    assert made.exit_code is ExitCode.ONLY_IN_STAGES
    assert "STALLS in one go (6 of 6 orders tried), SAFE in 3 stages, one server at a time" in headline(made)


def test_a_leader_that_was_not_explored_leaves_the_question_open(tmp_path: Path) -> None:
    """A proof about quorums says nothing about addresses."""
    old, new = folder(tmp_path, "old", OLD), folder(tmp_path, "new", OLD | {1: PORTS[1]})
    request = PlanRequest(old, new, None, in_one_go=True, how=Way.ONE_BY_ONE)
    made = plan(request, exhausted)
    assert [order.decided for order in made.direct.orders] == [True, False, False]
    assert made.direct.answer(Question.HEALING, faulty=False).outcome is SafetyVerdict.OPEN
    assert made.outcome is SafetyVerdict.OPEN


def test_an_id_on_another_host_has_two_verdicts_in_the_first_line() -> None:
    made = with_1_on_another_host()
    assert made.direct.stage.moved == (1,)
    assert headline(made).endswith("(moves 1 to another host): SAFE with its disk, UNSAFE with an empty disk")
    assert (made.outcome_with_disks, made.outcome, made.exit_code) == (
        SafetyVerdict.SAFE,
        SafetyVerdict.UNSAFE,
        ExitCode.SAFETY,
    )
    assert all(
        made.direct.answer(q, faulty=faulty).outcome is SafetyVerdict.SAFE
        for q in QUESTIONS
        for faulty in (False, True)
    )
    assert "**Stop server 1, move its disk (`dataDir` and `dataLogDir`) to `d`, then start it there**" in markdown(made)


def test_with_an_empty_disk_one_crash_loses_a_write() -> None:
    """3 commits with 1 and without 2; 1 loses its disk; one crash later 1 and 2 are a quorum without the write."""
    answer = with_1_on_another_host().direct.answer(Question.EMPTY_DISK, faulty=True)
    assert answer.outcome is SafetyVerdict.UNSAFE and answer.finding is not None and answer.finding.trace is not None
    assert answer.finding.spec.faults == {"crashes": 1} and answer.finding.prop == "LeaderLogCompleteness"
    captions = [step.caption for step in answer.finding.trace.steps]
    assert "the operator starts server.1 with after.cfg and an empty disk" in captions
    assert sum(caption.endswith("crashes") for caption in captions) == 1
    assert captions[-1] in ("server.1 elects server.2", "server.2 elects server.1")
    shortest = plain.explore(job_of(answer.finding.spec).model).found["LeaderLogCompleteness"]
    assert len(captions) == len(shortest.path)


def test_without_an_empty_disk_the_same_crash_loses_nothing() -> None:
    ran = with_1_on_another_host().direct.answer(Question.EMPTY_DISK, faulty=True).finding
    assert ran is not None
    kept = run_within(replace(ran.spec, question=Question.COMMITS), Limits(depth=ran.depth + 2))
    assert kept.found is None and kept.depth == ran.depth + 2


def test_a_moved_leader_may_lose_a_write_without_any_crash(tmp_path: Path) -> None:
    """The leader is one of the two servers with the write. It returns without it, and elects the third."""
    made = planned(folder(tmp_path, "old", OLD), folder(tmp_path, "new", OLD | {3: "d:2888:3888"}), leader=3)
    assert made.direct.answer(Question.EMPTY_DISK, faulty=False).outcome is SafetyVerdict.UNSAFE
    assert made.direct.answer(Question.EMPTY_DISK, faulty=True).reason is Reason.FOUND_WITHOUT_FAULTS


def test_a_host_behind_a_wildcard_leaves_healing_undecided(tmp_path: Path) -> None:
    """The servers listen on every address, so their files do not tell which servers reach that host."""
    own = dict.fromkeys(OLD, "0.0.0.0:2888:3888")
    old, new = folder(tmp_path, "old", OLD, own), folder(tmp_path, "new", OLD | {3: "d:2888:3888"}, own)
    made = planned(old, new, leader=2, in_one_go=True)
    assert (made.direct.stage.moved, made.direct.stage.uncertain) == ((3,), (3,))
    answer = made.direct.answer(Question.HEALING, faulty=False)
    assert (answer.outcome, made.outcome_with_disks) == (SafetyVerdict.OPEN, SafetyVerdict.OPEN)
    assert (answer.reason, answer.subjects) == (Reason.ANY_ADDRESS, (3,))


def test_a_wildcard_in_the_own_line_is_no_change_of_addresses(tmp_path: Path) -> None:
    own = dict.fromkeys(OLD, "0.0.0.0:2888:3888")
    stage = whole(folder(tmp_path, "old", OLD, own), folder(tmp_path, "new", OLD))
    assert (stage.readdressed, stage.moved, stage.uncertain) == ((), (), ())


def test_a_second_address_on_the_same_host_moves_nothing(tmp_path: Path) -> None:
    """One common address is enough for a connection, so the change has nothing to explore but its restarts."""
    both = {sid: f"{line}|{PORTS[sid]}" for sid, line in OLD.items()}
    stage = whole(folder(tmp_path, "old", OLD), folder(tmp_path, "new", both))
    assert (stage.readdressed, stage.moved) == ((1, 2, 3), ())
    assert all(quorum_without(stage, steps_of(stage, (1, 2, 3)), step) for step in steps_of(stage, (1, 2, 3)))


def test_servers_that_cannot_connect_are_no_quorum(tmp_path: Path) -> None:
    """With new ports everywhere, 1 with the new file and 3 with the old one cannot serve while 2 is restarted."""
    stage = whole(folder(tmp_path, "old", OLD), folder(tmp_path, "new", PORTS))
    steps = steps_of(stage, (1, 2, 3))
    assert [quorum_without(stage, steps, step) for step in steps] == [True, False, True]


def test_files_between_keep_the_wildcard_of_the_own_line(tmp_path: Path) -> None:
    own, later = (dict.fromkeys(OLD, f"0.0.0.0:{ports}") for ports in ("2888:3888", "2889:3889"))
    stages, _ = one_at_a_time(folder(tmp_path, "old", OLD, own), folder(tmp_path, "new", PORTS, later))
    assert len(stages) == 3
    first = stages[0].new.servers
    assert [str(first[1].config.servers[sid - 1].addresses[0]) for sid in (1, 2, 3)] == [
        "0.0.0.0:2889:3889",
        "b:2888:3888",
        "c:2888:3888",
    ]
    assert [str(first[2].config.servers[sid - 1].addresses[0]) for sid in (1, 2, 3)] == [
        "a:2889:3889",
        "0.0.0.0:2888:3888",
        "c:2888:3888",
    ]


def test_a_new_server_does_not_wait_for_a_leader_to_which_it_cannot_connect(tmp_path: Path) -> None:
    """The file of server 5 has the new port of leader 3, which listens at the old one; it elects 3 again and again.

    On real servers of 3.9.5 server 5 did not serve in 45 s, with 3 leading and 1 following.
    """
    old = folder(tmp_path, "old", {1: "a:2888:3888", 3: "c:2888:3888", 4: "d:2888:3888:observer"})
    new = folder(tmp_path, "new", {1: "a:2888:3888", 3: "c:2889:3888", 5: "e:2888:3888"})
    made = planned(old, new, 5, 3, 1, 4, leader=3)
    (order,) = made.direct.orders
    assert [result.stuck for result in order.vain] == [5] and not order.steps[0].wait
    assert made.direct.outcome is SafetyVerdict.STALLS
