"""The environment of the servers: connections, processes and the operator's plan only take possible steps."""

import itertools

import pytest

from checker.engine import Finding, Limits, Property, Read, Stop
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.kit.environment import LINKS
from checker.models.ensemble import Budgets, File, Grain, Member, PlannedAction, Prologue, Setup, ensemble
from checker.models.ensemble.environment import boot
from checker.models.ensemble.rules import pairs
from checker.models.ensemble.setup import channel_name, server_name
from checker.models.ensemble.status import election_status, has_rejoined, is_running
from checker.report.verdict import Verdict, judge
from checker.scenario import from_text
from spec.election.channel import ChannelRules, Status
from spec.quorum import majority_view

THREE = File("zoo.cfg", majority_view([1, 2, 3]))
WITH_FOUR = File("four.cfg", majority_view((1, 2, 3, 4)))
NEWER = File("newer.cfg", majority_view([1, 2], [3], version=2))
OLDER = File("older.cfg", majority_view([1, 2, 3], version=1))
FAULTS = Budgets(crashes=1, restarts=1, cuts=1, heals=1)


def setup_of(files, budgets, grain=Grain.FINE, **more):
    members = tuple(Member(sid, file, late=True) for sid, file in enumerate(files, 1))
    return Setup(members, grain, budgets=budgets, channels=ChannelRules(merge_repeats=True), **more)


def sockets_are_possible(setup):
    """Both directions of a connection have the same status; it needs two running servers and an intact link."""

    def check(cut, *seen):
        running = dict(zip(setup.sids, seen, strict=False))
        status = dict(zip(pairs(setup), seen[len(setup.sids) :], strict=True))
        for one, other in itertools.combinations(setup.sids, 2):
            here, there = status[one, other], status[other, one]
            possible = running[one] and running[other] and (one, other) not in cut
            if here is not there or (here is not Status.DEAD) is not possible:
                return Finding("a connection stands as it cannot", (("between", (one, other)), ("is", here.value)))
        return None

    servers = [Read(server_name(sid), is_running) for sid in setup.sids]
    channels = [Read(channel_name(*pair), lambda channel: channel.status) for pair in pairs(setup)]
    return Property("SocketsArePossible", (Read(LINKS), *servers, *channels), check)


@pytest.mark.parametrize(
    "files",
    [(THREE, THREE, THREE), (OLDER, OLDER, NEWER), (NEWER, OLDER, OLDER)],
    ids=["one file", "3 is told to observe", "1 tells 3 to observe"],
)
def test_a_socket_joins_running_servers_on_a_whole_link_and_nothing_else(files):
    setup = setup_of(files, FAULTS)
    result = explore(ensemble("sockets", setup, [sockets_are_possible(setup)]), Limits(states=150_000))
    assert result.stop is Stop.STATES
    assert not result.found


@pytest.mark.parametrize("cut", [frozenset(), frozenset({(1, 3)})], ids=["in reach", "behind a cut link"])
def test_nobody_boots_while_a_server_follows_its_former_life(cut):
    """Otherwise the follower of a process that has ended would be counted as a follower of the next one."""
    setup = setup_of((THREE, THREE, THREE), FAULTS)
    assert boot(setup, 3, THREE, {1: 3, 2: "nobody"}, cut) is None
    assert boot(setup, 3, THREE, {1: "nobody", 2: "nobody"}, cut) is not None


def test_a_plan_that_gets_stuck_is_vacuous_and_says_which_action_never_came():
    """The new file of server 1 does not contain the leader that it must rejoin, so the next restart never happens."""
    files = {
        "z3.cfg": "".join(f"server.{sid}=host{sid}:2888:3888\n" for sid in (1, 2, 3)),
        "odd.cfg": "".join(f"server.{sid}=host{sid}:2888:3888\n" for sid in (1, 4, 5)),
    }
    text = """
        file: z3.cfg
        servers: [1, 2, 3]
        history: [{start: [1, 2, 3]}]
        plan:
          - {restart: 1, file: odd.cfg, wait: rejoined}
          - {restart: 2, file: z3.cfg}
        grain: oracle
    """
    job = from_text(text, files.get)
    judged = judge(job, explore(job.model), job.model.actions)
    assert judged.verdict is Verdict.VACUOUS
    assert any("plan 3: stop 2 never fired" in reason for reason in judged.reasons)


def test_a_plan_waits_until_a_server_has_rejoined():
    plan = (PlannedAction("stop", 1), PlannedAction("start", 1, THREE), PlannedAction("stop", 2, after=(1,)))
    setup = Setup(tuple(Member(sid, THREE) for sid in (1, 2, 3)), Grain.ORACLE, (Prologue((1, 2, 3)),), plan)
    model = ensemble("plan", setup)
    seen, waiting, stopped = {model.initial()}, [model.initial()], 0
    while waiting:
        row = waiting.pop()
        for move, after in successors(model, row):
            if move.action == "plan 3: stop 2":
                stopped += 1
                assert has_rejoined({sid: election_status(row[model.index[server_name(sid)]]) for sid in setup.sids}, 1)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    assert stopped


@pytest.mark.parametrize("grain", list(Grain))
@pytest.mark.parametrize("others", [(), (THREE,)], ids=["no other file", "the old file too"])
def test_a_restart_after_a_crash_loads_the_file_that_the_server_last_ran_with(grain, others):
    """The operator has restarted 1 with the new file; then it crashes."""
    members = (Member(1, THREE, other_files=others), Member(2, THREE), Member(3, THREE))
    setup = Setup(
        members,
        grain,
        (Prologue((1, 2, 3)),),
        (PlannedAction("stop", 1), PlannedAction("start", 1, WITH_FOUR)),
        Budgets(crashes=1, restarts=1),
    )
    model, row = ensemble("restarted", setup, []), None
    for wanted in ("plan 1: stop 1", "plan 2: start 1", "crash", "restart"):
        moves = [(move, after) for move, after in successors(model, row or model.initial()) if move.action == wanted]
        moves = [(move, after) for move, after in moves if move.arguments[0] == 1]
        row = moves[0][1]
    assert [move.arguments[1] for move, _ in moves] == ["four.cfg", *(file.name for file in others)]
