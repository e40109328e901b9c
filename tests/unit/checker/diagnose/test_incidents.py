"""The harness of incidents without real servers: folders, the judgement of an answer, the steps, and the page.

The expected values are the files that the tests write themselves, and the table of the harness.
"""

import re
from pathlib import Path
from typing import Any, cast

import pytest

from tests.reality.incidents import capture as capturing
from tests.reality.incidents.capture import HOME, SERIOUS, copy_server
from tests.reality.incidents.execution import AdviceError, Execution, RestoredServers
from tests.reality.incidents.judge import ANY, Judgement, blame, bound_of, compare, erasures, starts
from tests.reality.incidents.scene import Truth
from tests.reality.incidents.table import INCIDENTS

PAGE = Path(__file__).parents[4] / "docs" / "reference-incidents.md"
LINE = "2026-11-29 06:51:40,484 [myid:] - {} [main:o.a.z.s.q.QuorumPeerConfig@177] - {}\n"
ENVIRONMENT = "Server environment:host.name=here"


def written(home: Path) -> Path:
    """A server's home with a file, a log and a disk."""
    (home / "data" / "version-2").mkdir(parents=True)
    (home / "data" / "myid").write_text("2\n")
    (home / "data" / "version-2" / "log.100000001").write_bytes(b"ZKLG")
    text = f"dataDir={home}/data\nclientPort=2181\nclientPortAddress=127.9.9.2\nserver.2=127.0.0.1:5000:5001\n"
    (home / "zoo.cfg").write_text(text)
    log = LINE.format("INFO ", f"Reading configuration from: {home}/zoo.cfg") + LINE.format("INFO ", ENVIRONMENT)
    (home / "log.txt").write_text(log + LINE.format("ERROR", "Unable to load database on disk"))
    return home


def test_a_captured_server_does_not_name_this_machine(tmp_path: Path) -> None:
    home = written(tmp_path / "server-2")
    copy_server(home, tmp_path / "2", {"127.0.0.1:5000:5001": "127.9.9.2:2888:3888"})
    config = (tmp_path / "2" / "zoo.cfg").read_text()
    log = (tmp_path / "2" / "zookeeper.log").read_text()
    assert config.splitlines()[0] == f"dataDir={HOME}/data"
    assert config.splitlines()[-1] == "server.2=127.9.9.2:2888:3888"
    assert (tmp_path / "2" / "data" / "version-2" / "log.100000001").read_bytes() == b"ZKLG"
    assert str(tmp_path) not in log and "host.name" not in log
    assert [line for line in log.splitlines() if SERIOUS.search(line)] == log.splitlines()[1:]


def restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RestoredServers:
    copy_server(written(tmp_path / "server-2"), tmp_path / "folder" / "2", {})
    monkeypatch.setattr("harness.real.command", lambda *_: ["true"])
    return RestoredServers(tmp_path / "folder", tmp_path / "again", "3.9.5")


def test_a_captured_server_is_restored_with_its_paths_and_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = restored(tmp_path, monkeypatch)
    assert servers.sids == (2,)
    assert servers.client_port(2) == ("127.9.9.2", 2181)
    assert (servers.home(2) / "zoo.cfg").read_text().startswith(f"dataDir={servers.home(2)}/data\n")
    assert (servers.disk(2) / "log.100000001").exists()


FILES = {"machines": {"2": [2]}, "repairs": {"2": {"myid": "4\n"}}}


def test_an_edit_by_hand_corrects_what_was_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = restored(tmp_path, monkeypatch)
    Execution(servers, FILES, tmp_path).do({"action": "edit", "servers": [2]})
    assert (servers.data(2) / "myid").read_text() == "4\n"


def test_an_id_leads_to_the_machines_that_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = restored(tmp_path, monkeypatch)
    execution = Execution(servers, FILES | {"machines": {"7": [2]}}, tmp_path)
    execution.do({"action": "erase", "servers": [7]})
    assert execution.names == ["erase 2"] and not servers.disk(2).exists()


def test_steps_change_the_files_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = restored(tmp_path, monkeypatch)
    execution = Execution(servers, FILES, tmp_path / "folder")
    config = tmp_path / "folder" / "2" / "zoo.cfg"
    text = config.read_text()
    edits = [
        {"file": str(config), "before": text, "after": f"{text}tickTime=9\n"},
        {"file": str(config.parent / "data" / "myid"), "before": "2\n", "after": "3\n"},
    ]
    execution.do({"action": "edit", "servers": [2], "edits": edits})
    execution.do({"action": "erase", "servers": [2]})
    lines = (servers.home(2) / "zoo.cfg").read_text().splitlines()
    assert (lines[0], lines[-1]) == (f"dataDir={servers.home(2)}/data", "tickTime=9")
    assert (servers.data(2) / "myid").read_text() == "3\n"
    assert config.read_text() == text
    assert not servers.disk(2).exists()
    assert (servers.data(2) / "away-1" / "log.100000001").read_bytes() == b"ZKLG"
    assert execution.names == ["edit 2", "erase 2"]


@pytest.mark.parametrize(
    "step",
    [
        {"action": "erase", "servers": [5]},
        {"action": "explode", "servers": [2]},
        {"action": "edit", "servers": [2], "edits": [{"file": "../../other", "before": "", "after": "b"}]},
        {"action": "edit", "servers": [2], "edits": [{"file": "{folder}/2/zoo.cfg", "before": "x", "after": "y"}]},
    ],
)
def test_a_step_that_cannot_be_taken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: dict[str, Any]
) -> None:
    for edit in step.get("edits", ()):
        edit["file"] = edit["file"].replace("{folder}", f"{tmp_path}/folder")
    with pytest.raises(AdviceError):
        Execution(restored(tmp_path, monkeypatch), FILES, tmp_path / "folder").do(step)


TRUTH = {
    "cause": {"name": "old-file", "also": ["histories-differ"], "servers": [2]},
    "machines": {"1": [1], "7": [2]},
}


@pytest.mark.parametrize(
    ("causes", "named"),
    [
        ([{"name": "old-file", "servers": [2]}], True),
        ([{"name": "histories-differ", "servers": [1, 2]}], True),
        ([{"name": "old-file", "servers": [7]}], True),
        ([{"name": "old-file", "servers": [1]}, {"name": "old-file", "servers": [2]}], True),
        ([{"name": "old-file", "servers": [1]}], False),
        ([{"name": "no-quorum", "servers": [2]}, {"name": "old-file", "servers": [2]}], False),
        ([], False),
    ],
)
def test_only_the_first_cause_counts(causes: list[dict[str, Any]], named: bool) -> None:
    judgement = Judgement("incident", "old-file")
    compare({"causes": causes}, TRUTH, judgement)
    assert judgement.named is named


def test_the_bound_has_what_is_lost_and_what_is_open() -> None:
    doubts = [{"fate": fate, "count": count} for fate, count in (("lost", 3), ("kept", 20), ("open", 4))]
    assert bound_of({"doubt": doubts}) == 7
    assert bound_of({"doubt": doubts, "unseen": [{"count": 5}]}) == 12
    assert bound_of({"unseen": [{"count": None}, {"count": 5}]}) == ANY
    assert bound_of({}) == 0


@pytest.mark.parametrize(("before", "unsafe"), [({}, 1), ({2: frozenset("ab")}, 0), ({2: frozenset("a")}, 1)])
def test_what_a_server_lacked_before_is_not_lost_by_advice(before: dict[int, frozenset[str]], unsafe: int) -> None:
    """`before` is set where the answer says that it cannot know the loss."""
    judgement = Judgement("incident", "restore-undone", before=before)
    blame({1: frozenset(), 2: frozenset("ab")}, judgement, "after the steps")
    assert len(judgement.unsafe) == unsafe


def test_a_server_is_erased_by_the_steps_of_the_cause_that_permits_it() -> None:
    steps = [{"action": "wait", "servers": [1]}, {"action": "erase", "servers": [3]}]
    others = [{"action": "recover", "servers": [1, 2]}]
    assert erasures({"causes": [{"steps": others}, {"steps": steps}], "steps": others}) == {3: steps}


def test_a_server_that_did_not_serve_starts_after_those_that_did() -> None:
    """A foreign disk of a later epoch would lead otherwise, as it did not in the incident."""
    roles = {"1": "follower", "2": "leader", "3": None, "4": None}
    assert starts({"running": [1, 2, 3], "roles": roles}) == [[1, 2], [3]]
    assert starts({"running": [3], "roles": roles}) == [[3]]


def test_a_printed_command_reads_the_disks_in_place_of_their_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = restored(tmp_path, monkeypatch)
    execution = Execution(servers, FILES, tmp_path / "folder")
    words = ("recover", f"{tmp_path}/folder/2", f"{tmp_path}/folder/20", "--config", f"{tmp_path}/folder/2/zoo.cfg")
    command = execution.here(("python", "-m", "checker", *words))
    home = str(servers.home(2))
    assert command[3:] == ["recover", home, f"{tmp_path}/folder/20", "--config", f"{home}/zoo.cfg"]


def test_a_recovery_without_a_command_is_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AdviceError, match="no command"):
        Execution(restored(tmp_path, monkeypatch), FILES, tmp_path).do({"action": "recover", "servers": [2]})


def test_a_paused_server_continues_with_the_first_step_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = restored(tmp_path, monkeypatch)
    calls: list[str] = []
    monkeypatch.setattr(servers, "alive", lambda _: True)
    monkeypatch.setattr(servers, "resume", lambda sid: calls.append(f"resume {sid}"))
    monkeypatch.setattr(servers, "wait_serving", lambda sids, _: calls.append(f"wait {sids[0]}"))
    execution = Execution(servers, FILES | {"paused": [2]}, tmp_path)
    execution.do({"action": "edit", "servers": [2]})
    execution.do({"action": "start", "servers": [2]})
    assert calls == ["resume 2", "wait 2"]


class _Copied:
    """The parts of a scene that a capture reads, with a client that writes while the disks are copied."""

    def __init__(self, servers: RestoredServers) -> None:
        self.servers, self.acknowledged = servers, {"/load/1": "0x1"}


def test_a_write_behind_the_copy_is_not_expected_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _Copied(restored(tmp_path, monkeypatch))

    def copy(_: Path, place: Path, __: object) -> None:
        place.mkdir(parents=True)
        scene.acknowledged = {**scene.acknowledged, "/load/2": "0x2"}

    def describe(*arguments: Any) -> dict[str, Any]:
        return {"acknowledged": arguments[3]}

    monkeypatch.setattr(capturing, "copy_server", copy)
    monkeypatch.setattr(capturing, "describe", describe)
    record = capturing.capture(cast(Any, scene), Truth("", (), ""), "x", tmp_path / "new", {})
    assert record["acknowledged"] == {"/load/1": "0x1"}


def test_the_page_has_every_incident_with_its_release() -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([\d.]+) \|", PAGE.read_text(), re.MULTILINE))
    assert rows == {incident.name: incident.release for incident in INCIDENTS}
