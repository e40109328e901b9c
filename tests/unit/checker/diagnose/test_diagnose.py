"""The diagnosis of an ensemble: real incidents, captured on released servers, and hostile or missing evidence.

The archives in `incidents` were written by `python -m tests.reality.incidents`, which knows the cause.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from checker.cli.main import main
from checker.diagnose import messages
from checker.diagnose.cause import Cause, CauseKind, NextStep, StepKind
from checker.diagnose.doubt import WriteFate, sides_text
from checker.diagnose.evidence import evidence
from checker.diagnose.explored import explored
from checker.diagnose.messages import LONGEST, LogKind, read_log
from checker.diagnose.report import Diagnosis, also_seen, diagnose, text_lines
from checker.recover.evidence import RecoverError, directories_in, disks_in
from checker.rollout.inputs.live import LiveServer, NoAnswerError, Silence
from refimpl.disk import epochs, snapshot
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.quorum import Sid
from spec.tree.txns import Change, DeleteTxn
from spec.txn import counter_of, make_zxid
from tests.unit.checker.diagnose.test_diagnose_live import NOT_SERVING, listening

INCIDENTS = Path(__file__).parents[2] / "incidents"
DEEDS = {
    "no-quorum": ("no-quorum", (2, 3)),
    "majority-lost": ("majority-lost", (2, 3)),
    "trunc-after-snap": ("trunc-after-snap", (3,)),
    "observer-becomes-voter": ("observer-becomes-voter", (3,)),
    "acks-survive-truncation": ("truncated", (1,)),
    "promotion-stalled": ("promotion-stalled", (3,)),
    "two-leaders": ("two-leaders", (3, 5)),
    "log-gap-3.4": ("log-gap", (3,)),
    "epochs-contradict": ("epochs-contradict", (2,)),
    "tls-mixed": ("tls-mixed", (1, 2, 3)),
    "swapped-ports": ("swapped-ports", (3,)),
    "stale-next": ("stale-next", (2,)),
    "wrong-myid-unknown": ("wrong-myid", (7,)),
}
"""The cause of each incident, and the servers that it concerns."""

Incident = Callable[[str], Path]


@pytest.fixture
def incident(tmp_path: Path) -> Incident:
    def unpack(name: str) -> Path:
        with tarfile.open(INCIDENTS / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path / name

    return unpack


@pytest.fixture(autouse=True)
def unexplored(monkeypatch: pytest.MonkeyPatch) -> None:
    """No exploration of steps: `test_diagnose_explored.py` has it, and each one takes seconds."""
    monkeypatch.setattr("checker.diagnose.report.explored", lambda *_: None)


def diagnosed(*inputs: Path | str) -> Diagnosis:
    return diagnose(map(str, inputs))


def write_server(home: Path, sid: Sid, counters: Iterable[int], later: Iterable[int] = ()) -> None:
    """A member of an ensemble of three with these transactions of epoch 1, and `later` ones of epoch 2."""
    directory = home / "data" / "version-2"
    directory.mkdir(parents=True)
    (home / "zoo.cfg").write_text(
        "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/srv/data\nclientPort=2181\n"
        "server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
    )
    (home / "data" / "myid").write_text(f"{sid}\n")
    snapshot.save(directory, Tree(), 0)
    log = TxnLog(directory, preallocation=0)
    for zxid in (*(make_zxid(1, counter) for counter in counters), *(make_zxid(2, counter) for counter in later)):
        log.append(zxid, encode_txn(zxid, Change(1, 1, 0, DeleteTxn(f"/n{counter_of(zxid)}"))))
    log.close()
    epochs.save_accepted(directory, 1)
    epochs.save_current(directory, 1)


def write_stopped(folder: Path, counters: dict[Sid, tuple[int, ...]]) -> str:
    """Servers with these transactions, on hosts where nobody listens; return their addresses."""
    hosts = {sid: f"127.9.9.{sid}" for sid in counters}
    members = "".join(f"server.{sid}={host}:2888:3888\n" for sid, host in hosts.items())
    for sid, mine in counters.items():
        write_server(folder / str(sid), sid, mine)
        text = f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/d\nclientPort=1\n{members}"
        (folder / str(sid) / "zoo.cfg").write_text(text)
    return ",".join(f"{host}:1" for host in hosts.values())


def flip_last_record(home: Path) -> None:
    """Damage the last record of the log: its end mark."""
    (path,) = (home / "data" / "version-2").glob("log.*")
    content = path.read_bytes().rstrip(b"\0")
    path.write_bytes(content[:-1] + b"X")


@pytest.mark.parametrize("name", DEEDS)
def test_the_cause_of_a_real_incident_is_named_first(incident: Incident, name: str) -> None:
    cause = diagnosed(incident(name)).causes[0]
    assert (cause.kind.value, cause.servers) == DEEDS[name]
    assert cause.evidence


@pytest.mark.parametrize("name", DEEDS)
def test_a_step_names_the_servers_that_it_touches(incident: Incident, name: str) -> None:
    for step in (step for cause in diagnosed(incident(name)).causes for step in cause.steps):
        if step.kind not in (StepKind.LOOK, StepKind.STOP, StepKind.RECOVER):
            assert step.servers, step.sentence


def erased(diagnosis: Diagnosis) -> set[int]:
    """The servers whose disk a step erases."""
    steps = (step for cause in diagnosis.causes for step in cause.steps)
    return {sid for step in steps if step.kind.value == "erase" for sid in step.servers}


def test_a_damaged_disk_may_be_erased_while_the_others_are_a_quorum(incident: Incident) -> None:
    assert erased(diagnosed(incident("epochs-contradict"))) == {2}


def test_no_disk_may_be_erased_while_another_one_is_not_shown(incident: Incident) -> None:
    folder = incident("epochs-contradict")
    answer = diagnosed(folder / "2", folder / "1", folder / "3" / "zoo.cfg")
    assert erased(answer) == set()
    assert any("3 must be shown" in line for line in text_lines(answer))


def test_the_only_full_disk_of_three_is_kept(incident: Incident) -> None:
    answer = diagnosed(incident("majority-lost"))
    assert erased(answer) == set()
    assert any(line.startswith("Do not start the empty servers") for cause in answer.causes for line in cause.never)


def test_an_acknowledged_write_is_lost_where_a_higher_epoch_wins_without_it(incident: Incident) -> None:
    (doubt,) = diagnosed(incident("observer-becomes-voter")).doubts.groups
    assert (doubt.having, doubt.lacking, doubt.fate) == ((1, 2), (3,), WriteFate.LOST)
    assert doubt.changes == ("create /write-1",)


def test_a_write_on_one_disk_of_three_was_never_acknowledged(incident: Incident) -> None:
    (doubt,) = diagnosed(incident("trunc-after-snap")).doubts.groups
    assert (doubt.having, doubt.fate) == ((3,), WriteFate.OPEN)


def test_a_damaged_disk_may_have_had_a_transaction_that_it_lost(tmp_path: Path) -> None:
    for sid, counters in ((1, (1, 2, 3)), (2, (1, 2)), (3, (1, 2, 3))):
        write_server(tmp_path / str(sid), sid, counters)
    flip_last_record(tmp_path / "3")
    answer = diagnosed(tmp_path)
    (doubt,) = answer.doubts.groups
    # Servers 1 and 3 may have acknowledged it, and 2 and 3 may elect a leader without it.
    assert (doubt.having, doubt.lacking, doubt.fate) == ((1,), (2, 3), WriteFate.LOST)
    assert erased(answer) == {3}


def test_what_no_disk_has_is_not_called_kept(incident: Incident) -> None:
    """Servers 2 and 3 have lost their disks, and may have acknowledged any write together."""
    answer = diagnosed(incident("majority-lost"))
    (missing,) = answer.doubts.unseen
    assert (missing.after, missing.before, missing.count) == (0x10000002D, None, None)
    assert any("any number of transactions behind 0x10000002d" in line for line in text_lines(answer))


def test_a_quorum_of_whole_disks_has_every_acknowledged_write(tmp_path: Path) -> None:
    for sid in (1, 2, 3):
        write_server(tmp_path / str(sid), sid, (1, 2))
    assert diagnosed(tmp_path / "1", tmp_path / "2", tmp_path / "3" / "zoo.cfg").doubts.unseen == ()
    assert diagnosed(tmp_path / "1", tmp_path / "2" / "zoo.cfg").doubts.unseen != ()


@pytest.mark.parametrize("given", [(1, 2, 3), (1, 2)])
@pytest.mark.parametrize("holders", [(4,), (1, 4)])
def test_what_an_observer_has_was_committed(tmp_path: Path, given: tuple[Sid, ...], holders: tuple[Sid, ...]) -> None:
    """The voters have lost it, for example by old copies of their disks."""
    write_stopped(tmp_path, {sid: (1, 2, 3) if sid in holders else (1,) for sid in (*given, 4)})
    for sid in (*given, 4):
        config = tmp_path / str(sid) / "zoo.cfg"
        lines = [f"server.{one}=h{one}:2888:3888{':observer' * (one == 4)}" for one in (1, 2, 3, 4)]
        config.write_text("\n".join([*config.read_text().splitlines()[:5], *lines]))
    (doubt,) = diagnosed(tmp_path).doubts.groups
    assert (doubt.having, doubt.fate) == (holders, WriteFate.LOST)


def test_two_directories_with_one_id_decide_nothing(tmp_path: Path) -> None:
    """Nothing says which of them is the server's, so none counts as its disk."""
    for name, sid in (("a", 1), ("b", 2), ("c", 2), ("d", 3)):
        write_server(tmp_path / name, sid, (1, 2))
    flip_last_record(tmp_path / "d")
    answer = diagnosed(tmp_path)
    assert "one id" in answer.doubts.unanswered
    assert erased(answer) == set()


def test_a_folder_that_is_given_twice_is_one_place(tmp_path: Path) -> None:
    for sid in (1, 2, 3):
        write_server(tmp_path / "all" / str(sid), sid, (1, 2))
    (tmp_path / "link").symlink_to("all")
    once = diagnosed(tmp_path / "all")
    for again in ("all", "all/3", "all/3/data", "link"):
        for inputs in ([tmp_path / "all", tmp_path / again], [tmp_path / again, tmp_path / "all"]):
            twice = diagnosed(*inputs)
            assert (twice.causes, twice.doubts) == (once.causes, once.doubts), inputs
            assert twice.situation.views == once.situation.views


HIDDEN: dict[str, Callable[[Path], object]] = {
    "a file": Path.touch,
    "a mount that is missing": lambda path: path.symlink_to("/nonexistent/mount"),
    "a folder of another user": lambda path: path.mkdir(0),
    "a folder without the right to search": lambda path: path.mkdir(0o444),
}


READABLE = {way for way in HIDDEN if "folder" in way and not os.geteuid()}  # root reads every folder


@pytest.mark.parametrize("way", sorted({*HIDDEN} - READABLE))
def test_data_that_cannot_be_read_here_is_not_given(tmp_path: Path, way: str) -> None:
    """Nothing says that it is empty or damaged."""
    for sid in (1, 2, 3):
        write_server(tmp_path / "all" / str(sid), sid, (1, 2))
    for sid in (1, 2):
        folder = tmp_path / "all" / str(sid) / "data" / "version-2"
        folder.rename(tmp_path / f"moved-{sid}")
        HIDDEN[way](folder)
    answer = diagnosed(tmp_path / "all")
    assert (answer.causes, [missing.before for missing in answer.doubts.unseen]) == ((), [None])
    assert "version-2: it" in list(text_lines(answer))[-1]


def test_a_recovery_needs_every_file_of_a_disk(tmp_path: Path) -> None:
    write_server(tmp_path, 3, (1, 2))
    (tmp_path / "data" / "version-2" / "log.100000003").symlink_to("/nonexistent/log")
    with pytest.raises(RecoverError, match=r"log\.100000003: it cannot be read here"):
        disks_in(directories_in([str(tmp_path)]))


@pytest.mark.parametrize("name", ["acceptedEpoch", "currentEpoch"])
@pytest.mark.parametrize("content", [b"", b"x", b"9" * 100, b"\0" * 8])
def test_an_epoch_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    for sid in (1, 2, 3):
        write_server(tmp_path / str(sid), sid, (1, 2))
    (tmp_path / "1" / "data" / "version-2" / name).write_bytes(content)
    (cause,) = diagnosed(tmp_path).causes
    assert (cause.kind, cause.servers) == (CauseKind.EPOCH_MISSING, (1,))


def test_an_empty_disk_starts_when_the_others_serve(tmp_path: Path) -> None:
    """Server 1 runs, and is behind server 3. With the empty server 2 it would elect itself."""
    addresses = write_stopped(tmp_path, {1: (1,), 2: (), 3: (1, 2)}).partition(",")[2]
    empty_disk(tmp_path / "2")
    with listening(lambda _: NOT_SERVING.encode()) as running:
        (cause,) = diagnose([str(tmp_path), f"{running},{addresses}"], {running: 1}).causes
    assert cause.kind is CauseKind.NO_QUORUM
    assert [step.servers for step in cause.steps if step.kind is StepKind.START] == [(3, 1), (2, 3)]


def test_empty_disks_that_are_a_quorum_are_never_started(tmp_path: Path) -> None:
    """Nothing is known of the disk of server 1: it may have all data."""
    addresses = write_stopped(tmp_path, {1: (1,), 2: (), 3: ()})
    shutil.rmtree(tmp_path / "1" / "data")
    for sid in ("2", "3"):
        empty_disk(tmp_path / sid)
    answer = diagnosed(tmp_path, addresses)
    assert answer.causes[0].kind is CauseKind.MAJORITY_LOST
    config = tmp_path / "3" / "zoo.cfg"
    config.write_text(config.read_text().replace("server.3=", "server.4="))
    other = diagnosed(tmp_path, addresses)
    assert other.causes[0].kind is CauseKind.WRONG_MYID
    steps = [step for cause in (*answer.causes, *other.causes) for step in cause.steps]
    assert not [step for step in steps if step.kind is StepKind.START]


def empty_disk(home: Path) -> None:
    shutil.rmtree(home / "data" / "version-2")
    (home / "data" / "version-2").mkdir()


def test_a_server_that_cut_its_log_may_have_acknowledged_what_was_behind(incident: Incident) -> None:
    """Finding A: servers 1 and 3 acknowledged the write, and only 3 has it."""
    answer = diagnosed(incident("acks-survive-truncation"))
    (doubt,) = answer.doubts.groups
    assert (doubt.having, doubt.fate) == ((3,), WriteFate.LOST)
    (step,) = (step for step in answer.causes[0].steps if step.kind is StepKind.RECOVER)
    assert step.command[-2] == "--keep" and step.command[-1].endswith("/3")


def answering(monkeypatch: pytest.MonkeyPatch, zxids: dict[Sid, int], *others: NoAnswerError) -> None:
    """Servers that serve up to these zxids, the last one as the leader, and addresses without an answer."""
    members = tuple(f"server.{sid}={host}:2888:3888:participant" for sid, host in ((1, "a"), (2, "b"), (3, "c")))
    servers = [
        LiveServer(f"{sid}:2181", sid, {}, members, "leader" if sid == max(zxids) else "follower", "3.9.5", zxid)
        for sid, zxid in zxids.items()
    ]
    monkeypatch.setattr("checker.diagnose.evidence.answers_of", lambda _: [*servers, *others])


def test_a_running_server_has_more_than_an_older_copy_of_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sid, counters in ((1, (1,)), (2, (1, 2)), (3, (1, 2, 3))):
        write_server(tmp_path / str(sid), sid, counters)
    assert {doubt.fate for doubt in diagnosed(tmp_path).doubts.groups} == {WriteFate.KEPT, WriteFate.OPEN}
    answering(monkeypatch, {1: make_zxid(1, 3), 2: make_zxid(1, 3), 3: make_zxid(1, 3)})
    assert diagnosed(tmp_path, "a:2181").doubts.groups == ()
    answering(monkeypatch, {1: make_zxid(1, 1), 3: make_zxid(1, 3)})
    assert [doubt.having for doubt in diagnosed(tmp_path, "a:2181").doubts.groups] == [(2, 3), (3,)]


def test_a_server_that_is_asked_and_does_not_serve_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = NoAnswerError(Silence.UNREACHABLE, "b:2181", "it cannot be reached: connection refused", "start it")
    answering(monkeypatch, {1: 5, 3: 5})
    assert diagnosed("a:2181").exit_code == 0
    answering(monkeypatch, {1: 5, 3: 5}, silent)
    answer = diagnosed("a:2181")
    assert (answer.situation.has_quorum, answer.exit_code) == (True, 20)
    assert any("Ask again with a folder of the server in b:2181" in line for line in text_lines(answer))


def test_stopped_servers_are_not_to_start_where_the_next_election_drops_a_write(tmp_path: Path) -> None:
    """Servers 1 and 2 are in epoch 2 without the second write, and 1 may have acknowledged it before it cut its log."""
    addresses = write_stopped(tmp_path, {1: (1,), 2: (1,), 3: (1, 2)})
    for sid in (1, 2):
        epochs.save_accepted(tmp_path / str(sid) / "data" / "version-2", 2)
        epochs.save_current(tmp_path / str(sid) / "data" / "version-2", 2)
    (tmp_path / "1" / "zookeeper.log").write_text(
        "2026-11-29 15:05:51,834 [myid:1] - WARN  [QuorumPeer[myid=1](plain=[0:0]):o.a.z.s.q.Learner@611]"
        " - Truncating log to get in sync with the leader 0x100000001\n"
    )
    answer = diagnosed(tmp_path, addresses)
    assert [cause.kind.value for cause in answer.causes][:2] == ["write-at-risk", "no-quorum"]
    (step,) = answer.causes[0].steps
    assert step.kind is StepKind.RECOVER and step.command[-2:] == ("--keep", str(tmp_path / "3"))


def test_both_sides_are_named_with_the_command_that_compares_them(
    incident: Incident, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = incident("two-leaders")
    answer = diagnosed(folder)
    assert any("servers 1, 3 against servers 2, 4, 5, from 0x200000001 on" in line for line in text_lines(answer))
    (command,) = {step.command for step in answer.causes[0].steps if step.command}
    places = [str(folder / str(sid)) for sid in (1, 2, 3, 4, 5)]
    assert command[3:] == ("recover", *places, "--config", str(folder / "2" / "zoo.cfg"))
    assert main(command[3:]) == 12
    told = capsys.readouterr().out
    assert f"`--keep {folder}/1/data` (the side of server 1, server 3)" in told
    assert "Give every server a file with the voters 1, 2, 3, 4, 5" in told


def test_sides_that_are_no_sides_are_named_in_pairs() -> None:
    assert sides_text({(1, 2): 5, (1, 3): 5}) == "server 1 against servers 2, 3, from 0x5 on"
    assert sides_text({(1, 2): 5, (1, 3): 6, (2, 3): 7}) == "server 1 against server 2 against server 3, from 0x5 on"
    # 2 agrees with 1 and with 3, which differ.
    assert sides_text({(1, 3): 5, (1, 4): 6, (2, 4): 7}) == (
        "servers 1 and 3 from 0x5 on, 1 and 4 from 0x6 on, 2 and 4 from 0x7 on"
    )


def test_what_a_restore_undid_is_not_called_kept(tmp_path: Path) -> None:
    """The servers wrote on into a file that the operator had moved away: no data directory has it (finding I)."""
    for sid in (1, 2, 3):
        write_server(tmp_path / str(sid), sid, (1, 2))
        (tmp_path / str(sid) / "zookeeper.log").write_text(
            f"2026-11-29 15:05:5{sid},834 [myid:{sid}] - INFO  [qtp1-23:o.a.z.s.ZooKeeperServer@616] - Restored to a"
            " new database. lastProcessedZxid=4294967343, nodeCount=46, sessionCount=0\n"
        )
    answer = diagnosed(tmp_path)
    (cause,) = answer.causes
    assert (cause.kind.value, cause.servers) == ("restore-undone", (1, 2, 3))
    lines = list(text_lines(answer))
    assert any("Not known" in line and "log file that was moved away" in line for line in lines)
    assert any("Those after 15:05:53" in line for line in lines)


def test_one_disk_of_three_alone_says_nothing_for_certain(incident: Incident) -> None:
    folder = incident("observer-becomes-voter")
    answer = diagnosed(folder / "3")
    assert answer.doubts.unanswered == "the files of one server alone do not show who votes"
    assert any("zoo.cfg files of all servers" in line for line in text_lines(answer))


def test_the_answer_for_machines_has_the_steps(incident: Incident, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(incident("log-gap-3.4")), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [step["action"] for step in answer["steps"]] == ["start", "erase", "start", "wait"]
    assert answer["causes"][0]["name"] == "log-gap"


def test_a_server_that_does_not_answer_is_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "127.0.0.1:1"]) == 20
    assert "gives no answer" in capsys.readouterr().out


def test_silent_addresses_with_one_port_belong_to_the_servers_on_their_hosts(tmp_path: Path) -> None:
    answer = diagnosed(tmp_path, write_stopped(tmp_path, {1: (1, 2), 2: (1, 2), 3: (1, 2)}))
    assert [server.sid for server in answer.situation.servers] == [1, 2, 3]
    assert [(cause.kind.value, cause.servers) for cause in answer.causes] == [("no-quorum", (1, 2, 3))]


def test_an_input_that_is_nothing_is_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "no/such\x1bfolder"]) == 151
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "\x1b" not in error


def test_no_text_of_a_file_reaches_the_terminal_unescaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = tmp_path / "1\x1b[31m"
    server.mkdir()
    (server / "zoo.cfg").write_text("tickTime=\x1b[2J\nserver.1=\x07a:1:2\n")
    (server / "zookeeper.log").write_bytes(b"java.net.UnknownHostException: evil\x1b[2J\n")
    main(["diagnose", str(tmp_path)])
    assert "\x1b" not in capsys.readouterr().out


def test_lines_of_any_length_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "zookeeper.log"
    path.write_bytes(b"\xff" * (8 * LONGEST) + b"\njava.io.IOException: No space left on device\n")
    log = read_log(path)
    assert log.kinds[LogKind.NO_SPACE].last.number == 2


def test_findings_of_a_log_are_those_after_the_last_start(tmp_path: Path) -> None:
    path = tmp_path / "zookeeper.log"
    path.write_text(
        "java.io.IOException: No space left on device\n"
        "Server environment:zookeeper.version=3.9.5-1, built on\n"
        "Refusing session request for client /10.0.0.9:4 as it has seen zxid 0x500000001 our last zxid is 0x400000009\n"
        "Cannot open channel to 2 at election address /10.0.0.2:3888\n"
    )
    (line,) = also_seen(diagnosed(path))
    assert line.startswith(f"{path}:3: ")
    assert line.endswith("(once; seen 500000001, zxid 400000009)")


def test_a_role_is_read_in_any_layout(tmp_path: Path) -> None:
    path = tmp_path / "zookeeper.log"
    path.write_text(
        "[QuorumPeer[myid=2](plain=[0:0:0:0:0:0:0:0]:2181)(secure=disabled)] INFO org.apache.zookeeper.server.quorum"
        ".QuorumPeer - FOLLOWING\n2026-11-29 07:12:55,825 [myid:2] - WARN  [QuorumPeer[myid=2](plain=0.0.0.0:2181)("
        "secure=disabled):o.a.z.s.q.QuorumPeer@1458] - PeerState set to LOOKING\n"
    )
    assert read_log(path).roles == ("FOLLOWING",)


def test_the_server_of_an_unknown_host_is_started_at_the_end(tmp_path: Path) -> None:
    for sid in (1, 2, 3):
        write_server(tmp_path / str(sid), sid, (1, 2))
    log = "2026-11-29 15:31:21,558 [myid:1] - WARN  [main:o.a.z.s.q.X@1] - java.net.UnknownHostException: c\n"
    (tmp_path / "1" / "zookeeper.log").write_text(log)
    (cause,) = diagnosed(tmp_path).causes
    assert (cause.kind.value, cause.servers) == ("unresolvable-host", (3,))
    assert [(step.kind, step.servers) for step in cause.steps] == [
        (StepKind.EDIT, (1,)), (StepKind.START, (3,)), (StepKind.WAIT, (3,)),
    ]  # fmt: skip


def test_the_name_of_a_thread_is_no_part_of_a_host(tmp_path: Path) -> None:
    path = tmp_path / "zookeeper.log"
    path.write_text(
        "2026-11-29 15:31:21,558 [myid:] - ERROR [ListenerHandler-zk3.example/<unresolved>:3888:o.a.z.s.q."
        "QuorumCnxManager$Listener$ListenerHandler@1102] - Exception while listening to address"
        " zk3.example/<unresolved>:3888\n"
    )
    assert read_log(path).hosts == {"zk3.example"}


def test_the_size_of_a_block_makes_no_difference(incident: Incident, monkeypatch: pytest.MonkeyPatch) -> None:
    path = incident("epochs-contradict") / "2" / "zookeeper.log"
    whole = read_log(path)
    for size in (7, 1000, len(path.read_bytes())):
        monkeypatch.setattr(messages, "BLOCK", size)
        assert read_log(path) == whole
    assert LogKind.EPOCHS_CONTRADICT in whole.kinds


def test_a_compressed_log_is_a_fault_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "zookeeper.log").write_bytes(b"\x1f\x8b\x08")
    assert read_log(tmp_path / "zookeeper.log").fault.endswith("unpack it first")


def test_separate_folders_of_data_and_log_belong_to_one_server(tmp_path: Path) -> None:
    (tmp_path / "zoo.cfg").write_text("dataDir=/x/data\ndataLogDir=/x/txlog\nclientPort=2181\n")
    for name in ("data", "txlog"):
        (tmp_path / name / "version-2").mkdir(parents=True)
    (tmp_path / "data" / "myid").write_text("4\n")
    (server,) = evidence([str(tmp_path)])
    assert server.disk is not None
    assert (server.sid, Path(server.disk.log_dir).name) == (4, "txlog")


def test_a_transaction_log_is_read_for_its_survey_and_its_transactions_alone(
    incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, opened, open_path = incident("observer-becomes-voter"), Counter[str](), Path.open

    def counting(path: Path, *arguments: Any, **named: Any) -> Any:
        opened[path.name.partition(".")[0]] += 1
        return open_path(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", counting)
    assert diagnosed(folder).doubts.groups[0].changes
    assert opened["log"] == 2 * len(list(folder.glob("*/data/version-2/log.*")))
    assert opened["zookeeper"] == 3


def test_a_data_log_dir_is_that_beside_the_snapshots_in_both_commands(tmp_path: Path) -> None:
    write_server(tmp_path, 1, (1, 2))
    logs = tmp_path / "txlog" / "version-2"
    logs.mkdir(parents=True)
    for path in (tmp_path / "data" / "version-2").glob("log.*"):
        path.rename(logs / path.name)
    (server,) = evidence([str(tmp_path)])
    (directory,) = directories_in([str(tmp_path)])
    assert server.disk is not None
    assert (server.disk.data_dir, server.disk.log_dir) == (str(directory.data), str(directory.logs))
    assert len(server.disk.logs) == 1


def test_the_newest_operations_in_doubt_are_listed(tmp_path: Path) -> None:
    for sid, last in ((1, 30), (2, 5), (3, 5)):
        write_server(tmp_path / str(sid), sid, range(1, last + 1))
    (doubt,) = diagnosed(tmp_path).doubts.groups
    assert (doubt.first, doubt.count, doubt.fate) == (make_zxid(1, 6), 25, WriteFate.OPEN)
    assert doubt.changes == tuple(f"delete /n{counter}" for counter in range(21, 31))


def write_log(home: Path, *sids: Sid) -> None:
    """A log of a server that has started with these ids."""
    lines = (f"2026-11-29 07:09:00,017 [myid:{sid}] - INFO  [main:o.a.z.s.q.QuorumPeer@1] - x\n" for sid in sids)
    (home / "zookeeper.log").write_text("".join(lines))


def carry_out(steps: Iterable[NextStep]) -> None:
    """Make the edits of steps, as a program does that refuses a file which has changed."""
    for edit in (edit.data for step in steps for edit in step.edits):
        if "rename" in edit:
            Path(edit["rename"]).rename(edit["to"])
        else:
            assert Path(edit["file"]).read_text() == edit["before"]
            Path(edit["file"]).write_text(edit["after"])


def ends_in_service(cause: Cause) -> bool:
    """Whether the steps of a cause end with the start of servers, and with what to look at."""
    kinds = [step.kind for step in cause.steps]
    return kinds[-2] in (StepKind.START, StepKind.RESTART) and kinds[-1] is StepKind.WAIT


@pytest.mark.parametrize(
    "name", ["swapped-ports", "wrong-myid-unknown", "trunc-after-snap", "log-gap-3.4", "tls-mixed"]
)
def test_the_edits_of_a_real_incident_remove_its_cause(incident: Incident, name: str) -> None:
    folder = incident(name)
    cause = diagnosed(folder).causes[0]
    assert ends_in_service(cause)
    carry_out(cause.steps)
    assert cause.kind not in [other.kind for other in diagnosed(folder).causes]


def test_an_exchange_of_ids_is_taken_back(tmp_path: Path) -> None:
    """The machines of 2 and 3 have exchanged their ids; the file of 1 has the members of before."""
    for place, myid in ((1, 1), (2, 3), (3, 2)):
        home = tmp_path / str(place)
        write_server(home, myid, (1, 2))
        write_log(home, *((place, myid) if place != myid else (myid,)))
        if place != myid:
            text = (home / "zoo.cfg").read_text()
            (home / "zoo.cfg").write_text(text.replace("=b:", "=x:").replace("=c:", "=b:").replace("=x:", "=c:"))
    before = (tmp_path / "1" / "zoo.cfg").read_text()
    answer = diagnosed(tmp_path)
    (cause,) = (cause for cause in answer.causes if cause.kind is CauseKind.IDS_RENAMED)
    assert cause.servers == (2, 3)
    outcome = explored(answer.situation, answer.doubts, cause.steps)
    assert outcome is not None and "the id of a disk has changed" in outcome.missing
    assert ends_in_service(cause)
    carry_out(cause.steps)
    for place in (1, 2, 3):
        assert (tmp_path / str(place) / "data" / "myid").read_text() == f"{place}\n"
        assert sorted((tmp_path / str(place) / "zoo.cfg").read_text().split()) == sorted(before.split())


def test_the_second_server_with_an_id_gets_its_former_one(tmp_path: Path) -> None:
    for place, ids in ((1, (1,)), (2, (2,)), (3, (3, 2))):
        write_server(tmp_path / str(place), ids[-1], (1, 2))
        write_log(tmp_path / str(place), *ids)
    cause = diagnosed(tmp_path).causes[0]
    assert (cause.kind, cause.servers) == (CauseKind.WRONG_MYID, (2,))
    assert ends_in_service(cause)
    carry_out(cause.steps)
    assert [(tmp_path / str(place) / "data" / "myid").read_text() for place in (1, 2, 3)] == ["1\n", "2\n", "3\n"]


def test_an_id_that_no_log_shows_is_left_to_the_operator(tmp_path: Path) -> None:
    for place, myid in ((1, 1), (2, 2), (3, 2)):
        write_server(tmp_path / str(place), myid, (1, 2))
    cause = diagnosed(tmp_path).causes[0]
    assert cause.kind is CauseKind.WRONG_MYID
    assert not any(step.edits for step in cause.steps)


def test_the_smaller_side_gets_the_value_of_the_others(tmp_path: Path) -> None:
    for sid, value in ((1, "false"), (2, "true"), (3, "true")):
        write_server(tmp_path / str(sid), sid, (1, 2))
        with (tmp_path / str(sid) / "zoo.cfg").open("a") as file:
            file.write(f"reconfigEnabled={value}")
    (cause,) = diagnosed(tmp_path).causes
    assert (cause.kind, cause.servers) == (CauseKind.RECONFIG_MIXED, (1,))
    assert ends_in_service(cause)
    carry_out(cause.steps)
    assert not diagnosed(tmp_path).causes
    assert (tmp_path / "1" / "zoo.cfg").read_text() == (tmp_path / "2" / "zoo.cfg").read_text() + "\n"


def test_an_edit_of_an_old_file_has_the_members_of_the_others(tmp_path: Path) -> None:
    for sid in (1, 2, 3):
        write_server(tmp_path / str(sid), sid, (1, 2))
    path = tmp_path / "3" / "zoo.cfg"
    path.write_text(path.read_text().replace("server.2=b:2888:3888\n", "") + "snapCount=7\n")
    (cause,) = diagnosed(tmp_path).causes
    assert cause.kind is CauseKind.OLD_FILE
    carry_out(cause.steps)
    assert not diagnosed(tmp_path).causes
    assert "snapCount=7" in path.read_text()
