"""The keys that differ between two folders: each is listed by server, and a proof decides where no key is modelled."""

import shutil
from pathlib import Path

import pytest

from checker.rollout import Engine
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.disks import DiskHazard
from checker.rollout.files.differences import differences
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.folders import read_folder
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.planner import plan
from checker.rollout.runs import SafetyVerdict
from checker.scenario import bundled
from tests.support.rollout_runs import OPERATOR, never

THREE = bundled()[0].parent.parent / "rollouts" / "three"
TEXT = (THREE / "zoo.cfg").read_text(encoding="utf-8")


def changed(folder: Path, *replacements: tuple[str, str], extra: str = "") -> Path:
    """Return a copy of the folder of three servers with other text."""
    text = TEXT
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    (folder / "zoo.cfg").write_text(text + extra, encoding="utf-8")
    return folder


def planned(folder: Path, **requests: object) -> Plan:
    """Return the plan from three servers to a folder, without any run."""
    return plan(PlanRequest(read_folder(THREE), read_folder(folder), **requests), never)  # type: ignore[arg-type]


def listed(made: Plan) -> list[tuple[int, str, str | None, str | None, str]]:
    names = ("server", "key", "before", "after", "effect")
    return [tuple(each[name] for name in names) for each in data(made)["differences"]]


def test_another_length_of_a_tick_is_safe_by_proof_and_is_listed_for_each_server(tmp_path: Path) -> None:
    made = planned(changed(tmp_path, ("tickTime=2000", "tickTime=3000")))
    assert (made.outcome, made.exit_code, made.runs) == (SafetyVerdict.SAFE, 0, [])
    effect = Effect.LOCAL.value
    assert listed(made) == [(sid, "tickTime", "2000", "3000", effect) for sid in (1, 2, 3)]
    assert f"| 1, 2, 3 | tickTime | 2000 | 3000 | {effect} |" in markdown(made)
    assert {order.leader: [step.sid for step in order.steps] for order in made.direct.orders} == {
        3: [1, 2, 3],
        2: [1, 3, 2],
        1: [2, 3, 1],
    }


def test_only_servers_whose_files_differ_are_restarted(tmp_path: Path) -> None:
    for sid in (1, 2, 3):
        (tmp_path / str(sid)).mkdir()
        text = TEXT.replace("tickTime=2000", "tickTime=3000") if sid == 2 else TEXT
        (tmp_path / str(sid) / "zoo.cfg").write_text(text, encoding="utf-8")
    made = planned(tmp_path)
    assert {tuple(step.sid for step in order.steps) for order in made.direct.orders} == {(2,)}


def test_reconfig_that_is_turned_off_comes_to_a_stop(tmp_path: Path) -> None:
    """Measured on 3.9.5: each restarted server has no service until the last one has its new file."""
    old = changed(tmp_path, extra="reconfigEnabled=true\n")
    made = plan(PlanRequest(read_folder(old), read_folder(THREE)), Engine().run)
    assert (made.outcome, made.exit_code) == (SafetyVerdict.STALLS, 13)
    assert "does not follow servers that have it" in markdown(made)


def test_an_observer_with_the_disk_of_another_cluster_is_never_safe(tmp_path: Path) -> None:
    """Measured on 3.9.5: with a higher epoch it never serves, with a lower one it serves the znodes of that cluster."""
    folder = read_folder(changed(tmp_path, extra="server.4=zoo4.example.org:2888:3888:observer\n"))
    made = plan(PlanRequest(folder, folder, disks={4: DiskHazard.FOREIGN}), Engine().run)
    assert (made.outcome, made.exit_code) == (SafetyVerdict.UNSAFE, 12)
    assert "never serves, or serves the data of that cluster" in markdown(made)


def test_a_new_server_at_a_port_of_its_own_is_none(tmp_path: Path) -> None:
    changed(
        tmp_path, ("server.3=zoo3.example.org:2888:3888", "server.4=zoo3.example.org:2889:3889"), ("=2181", "=2182")
    )
    with pytest.raises(AssertionError, match="was run"):
        planned(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ("zoo3.example.org:2888:3888", "zoo3.example.org:2888:3888;2181", Effect.LOCAL),
        ("zoo3.example.org:2888:3888", "zoo3.example.org:2889:3888", Effect.MODELLED),
        ("zoo3.example.org:2888:3888", "zoo3.example.org:2888:3888:observer", Effect.MODELLED),
        ("zoo3.example.org:2888:3888", "new3.example.org:2888:3888", Effect.MODELLED),
        ("clientPort=2181", "clientPort=2182", Effect.CLIENTS),
        ("clientPort=2181\n", "", Effect.CLIENTS),
        ("clientPort=2181", "clientPort=2181\nclientPortAddress=0.0.0.0", Effect.LOCAL),
        ("clientPort=2181", "clientPort=2181\nclientPortAddress=127.0.0.1", Effect.CLIENTS),
        ("clientPort=2181", "clientPort=2181\nsecureClientPort=2281", Effect.CLIENTS),
        ("tickTime=2000", "tickTime=2000\nstandaloneEnabled=false", Effect.MODELLED),
        ("tickTime=2000", "tickTime=2000\ngroup.1=1:2:3", Effect.MODELLED),
    ],
)
def test_a_server_line_is_modelled_but_for_its_client_port(tmp_path: Path, old: str, new: str, effect: Effect) -> None:
    found = differences(read_folder(THREE).servers, read_folder(changed(tmp_path, (old, new))).servers)
    assert {each.effect for each in found} == {effect}


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("port", ["2181", "2191"])
def test_a_client_port_counts_by_the_address_at_which_the_server_listens(tmp_path: Path, port: str, back: bool) -> None:
    """`QuorumPeerConfig.setupClientPort`: the server's own line, or else clientPort. Server 1 may get another port."""
    for name in ("dyna", "dynb"):
        shutil.copytree(OPERATOR / name, tmp_path / name)
    file = tmp_path / "dynb" / "1" / "zoo.cfg"
    file.write_text(file.read_text(encoding="utf-8").replace("2181", port), encoding="utf-8")
    sides = [read_folder(tmp_path / name).servers for name in ("dyna", "dynb")]
    listed_keys = differences(*(reversed(sides) if back else sides))
    effects = {
        (given.sid, given.key): given.effect for given in listed_keys if "server." in given.key or "Port" in given.key
    }
    of_clients = {(1, "clientPort"), (1, "server.1"), (2, "server.1"), (3, "server.1")} if port == "2191" else set()
    keys = ("clientPort", "server.1", "server.2", "server.3")
    assert effects == {
        (sid, key): Effect.CLIENTS if (sid, key) in of_clients else Effect.LOCAL for sid in (1, 2, 3) for key in keys
    }


def test_excerpts_are_compared_as_they_are(tmp_path: Path) -> None:
    """Incomplete files, before and after, are accepted."""
    (tmp_path / "zoo.cfg").write_text("server.1=a:2888:3888\nserver.2=b:2888:3888\n", encoding="utf-8")
    folder = read_folder(tmp_path)
    assert plan(PlanRequest(folder, folder), never).outcome is SafetyVerdict.SAFE


def test_a_wildcard_host_in_the_own_file_agrees_with_a_name(tmp_path: Path) -> None:
    """Containers usually listen on 0.0.0.0 by their own files, and have names in the files of the others."""
    for folder, tick in (("old", "2000"), ("new", "3000")):
        (tmp_path / folder).mkdir()
        for sid in (1, 2, 3):
            text = TEXT.replace(f"zoo{sid}.example.org", "0.0.0.0").replace("2000", tick)
            (tmp_path / folder / f"zoo-{sid}.cfg").write_text(text, encoding="utf-8")
    made = plan(PlanRequest(read_folder(tmp_path / "old"), read_folder(tmp_path / "new")), never)
    assert made.outcome is SafetyVerdict.SAFE


def test_files_that_disagree_about_an_address_are_explored(tmp_path: Path) -> None:
    for sid in (1, 2, 3):
        (tmp_path / str(sid)).mkdir()
        text = TEXT.replace("zoo3.example.org:2888", "zoo3.example.org:2999") if sid == 1 else TEXT
        (tmp_path / str(sid) / "zoo.cfg").write_text(text, encoding="utf-8")
    folder = read_folder(tmp_path)
    with pytest.raises(AssertionError, match="was run"):
        plan(PlanRequest(folder, folder), never)


@pytest.mark.parametrize(
    "requests", [{"order": (1, 2, 3)}, {"leader": 2}, {"explored": True}, {"down": frozenset({1})}]
)
def test_an_explicit_question_is_explored(requests: dict[str, object]) -> None:
    with pytest.raises(AssertionError, match="was run"):
        planned(THREE, **requests)
