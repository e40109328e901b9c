"""From a scenario's text to a job: the meaning of each key."""

from pathlib import Path

import pytest

from checker.engine import Kind
from checker.job import Job, Verdict
from checker.models.ensemble.actions import Faults
from checker.scenario import bundled, from_source, from_text, load
from spec.server import Server

THREE = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
FIVE = THREE + "server.4=d:2888:3888\nserver.5=e:2888:3888\n"
FILES = {"zoo-3.cfg": THREE, "zoo-5.cfg": FIVE}


def job(text: str) -> Job:
    return from_text(text, FILES.get, "growing.yaml")


def server(made: Job, sid: int) -> Server:
    found = made.model.initial()[made.model.index[f"server.{sid}"]]
    assert isinstance(found, Server)
    return found


def states(made: Job) -> dict[str, object]:
    return {lane: fields["state"] for lane, fields in made.presenter.lanes(made.model.initial()).items()}


def test_the_shortest_scenario_is_a_file_and_the_ids_of_its_servers() -> None:
    made = job("file: zoo-3.cfg\nservers: [1, 2, 3]\n")
    assert (made.name, made.grain, made.expected) == ("growing", "fine", None)
    assert server(made, 2).view.voters == {1, 2, 3}
    assert states(made) == {"server.1": "LOOKING", "server.2": "LOOKING", "server.3": "LOOKING"}


def test_each_server_may_have_its_own_file_and_its_own_data() -> None:
    made = job(
        """
        file: zoo-3.cfg
        servers:
          1: {zxid: 0x100000003, epoch: 2}
          2: {zxid: 1:3}
          3: {file: zoo-5.cfg, zxid: 8}
        """
    )
    assert server(made, 1).durable.last_zxid == server(made, 2).durable.last_zxid == (1 << 32) + 3
    assert (server(made, 1).durable.current_epoch, server(made, 3).durable.last_zxid) == (2, 8)
    assert server(made, 3).view.voters == {1, 2, 3, 4, 5}


def test_history_starts_servers_one_group_after_the_other() -> None:
    """Observed on ZooKeeper 3.8.0: start 1, 2, then 3: 2 leads and stays."""
    made = job("file: zoo-3.cfg\nservers: [1, 2, 3]\nhistory: [{start: [1, 2]}, {start: [3]}]\n")
    assert states(made) == {"server.1": "FOLLOWING", "server.2": "LEADING", "server.3": "FOLLOWING"}


def test_a_late_server_does_not_run_at_first() -> None:
    made = job("file: zoo-3.cfg\nservers: {1: {}, 2: {}, 3: {late: true}}\n")
    assert states(made)["server.3"] == "down"
    assert "start" in made.model.actions


def test_a_restart_is_a_stop_and_a_start_and_the_next_action_may_wait() -> None:
    made = job(
        """
        file: zoo-3.cfg
        servers: [1, 2, 3]
        plan:
          - {restart: 1, file: zoo-5.cfg, wait: rejoined}
          - {stop: 2}
        """
    )
    assert [rule.name for rule in made.model.rules if rule.name.startswith("plan")] == [
        "plan 1: stop 1",
        "plan 2: start 1",
        "plan 3: stop 2",
    ]
    assert "the operator's 3 actions in their order" in made.bounds


def test_a_server_that_the_plan_starts_does_not_run_before() -> None:
    made = job("file: zoo-3.cfg\nservers: [1, 2, 3]\nplan: [{start: 3}]\n")
    assert states(made)["server.3"] == "down"
    assert "start" not in made.model.actions


def test_faults_are_budgets_and_are_said_to_bound_the_run() -> None:
    made = job("file: zoo-3.cfg\nservers: [1, 2, 3]\nfaults: {crashes: 2, restarts: 1}\n")
    faults = made.model.initial()[made.model.index["faults"]]
    assert isinstance(faults, Faults)
    assert (faults.left.crashes, faults.left.restarts, faults.left.cuts) == (2, 1, 0)
    assert "at most 2 crashes, 1 restart after a crash" in made.bounds
    assert {"crash", "restart"} <= made.model.actions
    assert not {"cut", "heal", "give up"} & made.model.actions


@pytest.mark.parametrize(
    ("written", "memory"), [("2GB", 2 * 10**9), ("512 MB", 512 * 10**6), ("1.5kb", 1500), ("4096", 4096)]
)
def test_limits(written: str, memory: int) -> None:
    limits = f"{{depth: 30, states: 1000, seconds: 2.5, memory: {written}}}"
    made = job(f"file: zoo-3.cfg\nservers: [1, 2, 3]\nlimits: {limits}\n").limits
    assert (made.depth, made.states, made.seconds, made.memory) == (30, 1000, 2.5, memory)


def test_properties_stand_in_a_list_for_each_kind() -> None:
    made = job(
        """
        file: zoo-3.cfg
        servers: [1, 2, 3]
        always: [OneLeader, {NeverLeads: 1}]
        sometimes:
          - Leads: 3
          - Stands: {1: FOLLOWING 3, 2: [LOOKING, down], 3: {state: LEADING, file: zoo-3.cfg}}
          - Buckets: {name: first round, 1: {state: LOOKING, votes: {1: 1, 3: [0, 3]}}}
        final: [Serves]
        """
    )
    assert [(prop.name, prop.kind) for prop in made.model.properties] == [
        ("OneLeader", Kind.ALWAYS),
        ("NeverLeads(1)", Kind.ALWAYS),
        ("Leads(3)", Kind.SOMETIMES),
        ("Stands(1 FOLLOWING 3, 2 LOOKING or down, 3 LEADING with zoo-3.cfg)", Kind.SOMETIMES),
        ("Buckets(first round)", Kind.SOMETIMES),
        ("Serves", Kind.FINAL),
    ]
    assert made.model.columns[-1].name == "votes"


def test_without_a_list_an_ensemble_is_held_to_what_every_ensemble_is() -> None:
    fine = job("file: zoo-3.cfg\nservers: [1, 2, 3]\n").model.properties
    coarse = job("file: zoo-3.cfg\nservers: [1, 2, 3]\ngrain: oracle\n").model.properties
    assert [prop.name for prop in fine] == ["OneLeader", "LeaderIsAVoter", "OnlyVotersCounted"]
    assert [prop.name for prop in coarse] == ["OneLeader", "LeaderIsAVoter"]


def test_an_opening_is_the_first_steps_in_one_order_and_no_others() -> None:
    """R10: 2 is stopped, and 1 and 3 elect 3 before anything else happens."""
    made = job(
        """
        file: zoo-3.cfg
        servers: [1, 2, 3]
        history: [{start: [1, 2]}, {start: [3]}]
        plan: [{restart: 2}]
        opening: [{planned: 1}, {settle: [1, 3]}]
        """
    )
    row, captions = made.model.initial(), []
    while len(steps := _successors(made, row)) == 1:
        captions.append(made.presenter.caption(steps[0][0]))
        row = steps[0][1]
    assert captions[0] == "the operator stops server.2"
    assert "server.3 decides: LEADING" in captions
    lanes = made.presenter.lanes(row)
    assert {lane: fields["state"] for lane, fields in lanes.items()} == {
        "server.1": "FOLLOWING",
        "server.2": "LOOKING",
        "server.3": "LEADING",
    }


def _successors(made: Job, row: tuple[object, ...]) -> list[tuple[object, tuple[object, ...]]]:
    from checker.engine.semantics import successors

    return list(successors(made.model, row))


def test_on_a_fast_network_nobody_decides_while_a_notification_is_in_flight() -> None:
    text = "file: zoo-3.cfg\nservers: [1, 2, 3]\n"
    assert _deciding_too_early(job(text))
    assert not _deciding_too_early(job(text + "network: fast\n"))


def _deciding_too_early(made: Job) -> bool:
    """Whether a server decides within a few steps although a message is in flight."""
    channels = [place for name, place in made.model.index.items() if ">" in name]
    level, seen = {made.model.initial()}, False
    for _ in range(4):
        steps = [(row, move, after) for row in level for move, after in _successors(made, row)]
        seen |= any(move.action == "decide" and any(row[c].in_flight for c in channels) for row, move, _ in steps)
        level = {after for _, _, after in steps}
    return seen


def test_the_verdict_that_is_expected_and_what_need_not_fire() -> None:
    made = job("file: zoo-3.cfg\nservers: [1, 2, 3]\nexpect: violated\nmay_not_fire: [decide]\n")
    assert made.expected is Verdict.VIOLATED
    assert made.allowed_silent == {"decide", "lose leader", "lose quorum"}


def test_a_job_can_be_made_again_from_its_source_alone() -> None:
    made = job(
        """
        name: growing
        servers: {1: {file: zoo-3.cfg}, 2: {file: zoo-3.cfg}, 3: {file: zoo-3.cfg}}
        plan: [{restart: 2, file: zoo-5.cfg}]
        """
    )
    assert made.source["kind"] == "scenario"
    assert made.source["files"] == FILES
    again = from_source(made.source)
    assert (again.name, again.source, again.bounds) == (made.name, made.source, made.bounds)
    assert again.model.initial() == made.model.initial()


def test_dynamic_files_are_part_of_the_source(tmp_path: Path) -> None:
    members = "server.1=a:2888:3888:participant;2181\nserver.2=b:2888:3888:participant;2181\n"
    (tmp_path / "zoo.cfg.dynamic.100000000").write_text(members)
    static = "reconfigEnabled=true\ninitLimit=5\nsyncLimit=2\ndynamicConfigFile=zoo.cfg.dynamic.100000000\n"
    (tmp_path / "zoo.cfg").write_text(static)
    (tmp_path / "two.yaml").write_text("file: zoo.cfg\nservers: [1, 2]\n")
    made = load(tmp_path / "two.yaml")
    assert server(made, 1).view.version == 0x100000000
    assert set(made.source["files"]) == {"zoo.cfg", "zoo.cfg.dynamic.100000000"}
    assert server(from_source(made.source), 1).view.version == 0x100000000


def test_the_shipped_scenarios_are_found_and_say_why_they_are_there() -> None:
    paths = bundled()
    assert {path.stem for path in paths} >= {"r7-worked-example", "r10-wrong-order", "r10-leader-last-partition"}
    for path in paths:
        assert path.read_text(encoding="utf-8").startswith("name: ")
        assert "about: " in path.read_text(encoding="utf-8")
