"""The diagnosis of running servers: canned answers, silence, and hostile answers on the loopback interface.

The answers have the form of `MonitorCommand`, `NopCommand` and the AdminServer's commands of released 3.9.5 servers.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checker.cli.main import main
from checker.diagnose.report import Diagnosis, also_seen, data, diagnose, state
from checker.rollout.inputs import live
from checker.rollout.inputs.sources import read_input
from spec.config import ConfigError

Answer = Callable[[bytes], bytes]
FILE = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/srv/data\nclientPort=2181\n"
WHITELIST = b"conf is not executed because it is not in the whitelist.\n"
NOT_SERVING = "This ZooKeeper instance is not currently serving requests"


@contextmanager
def listening(answer: Answer) -> Iterator[str]:
    """A port whose server gives the answer to a request, in parts until the client leaves; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(answer(connection.recv(1024)))
                except OSError:
                    if listener.fileno() < 0:
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join(5)


def words(**answers: bytes) -> Answer:
    return lambda request: answers.get(request.decode(), b"")


def admin(sid: int, mode: str, leader: int, client_port: int = 2181, **monitor: int) -> Answer:
    voters = {str(one): {"learner_type": "participant"} for one in (1, 2, 3)}
    commands = {
        "configuration": {"client_port": client_port, "server_id": sid},
        "server_stats": {
            "version": "3.9.5-293c, built",
            "server_stats": {"server_state": mode, "last_processed_zxid": 4},
        },
        "voting_view": {"current_config": voters},
        "leader": {"leader_id": leader},
        "monitor": monitor,
    }

    def answer(request: bytes) -> bytes:
        command = request.split(b" ")[1].decode().removeprefix("/commands/")
        body = json.dumps({**commands[command], "command": command, "error": None})
        return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{body}".encode()

    return answer


def conf(sid: int, voters: int) -> bytes:
    lines = "".join(f"server.{one}=zk{one}:2888:3888:participant\n" for one in range(1, voters + 1))
    return f"clientPort=2181\nserverId={sid}\nmembership: \n{lines}version=0".encode()


def srvr(mode: str) -> bytes:
    return f"Zookeeper version: 3.9.5-293c, built on 2026\nZxid: 0x4\nMode: {mode}\n".encode()


def diagnosed(*inputs: Path | str) -> Diagnosis:
    return diagnose(map(str, inputs))


def test_admin_servers_say_who_leads_whom() -> None:
    with (
        listening(admin(1, "follower", 2)) as one,
        listening(admin(2, "leader", 2, synced_followers=2)) as two,
        listening(admin(3, "follower", 2, digest_mismatches_count=5)) as three,
    ):
        answer = diagnosed(f"http://{one},http://{two},http://{three}")
        alone = diagnosed(f"http://{one}")
    assert answer.situation.has_quorum is True
    assert list(state(answer)) == ["Server 2 leads with 2 synchronised followers, 1, 3 follow. There is a quorum."]
    assert [line.rpartition("(")[2] for line in also_seen(answer)] == ["5)"]
    assert alone.situation.has_quorum is None
    assert "server 1 names 2 as its leader" in next(state(alone))


@pytest.mark.parametrize("is_listed", [True, False])
def test_the_two_ports_of_a_server_are_one_server(is_listed: bool, tmp_path: Path) -> None:
    """Its client port may state the role alone; its AdminServer then says which server it is."""
    answer = conf(2, 3) if is_listed else WHITELIST
    with (
        listening(words(conf=answer, mntr=WHITELIST, srvr=srvr("leader"))) as client,
        listening(admin(2, "leader", 2, client_port=int(client.partition(":")[2]))) as at_admin,
        listening(admin(1, "follower", 2)) as other,
    ):
        for sid in (1, 2, 3):
            (tmp_path / str(sid)).mkdir()
            lines = "".join(f"server.{one}=10.0.0.{one}:2888:3888\n" for one in (1, 2, 3))
            (tmp_path / str(sid) / "zoo.cfg").write_text(FILE + lines)
        situation = diagnosed(tmp_path, f"{client},http://{at_admin},http://{other}").situation
    assert [server.sid for server in situation.servers] == [1, 2, 3]
    assert (situation.leaders, situation.serving, situation.has_quorum) == ((2,), (1, 2), True)
    assert situation.followed == {1: 2, 2: 2}


def test_an_admin_server_is_no_input_of_a_roll_out() -> None:
    with listening(admin(1, "leader", 1)) as address, pytest.raises(ConfigError, match="does not state the observers"):
        read_input(f"http://{address}")


def test_the_role_counts_where_the_whitelist_has_srvr_alone(tmp_path: Path) -> None:
    """The default of 3.5 and later. The address is that of the only folder with its client port."""
    with listening(words(conf=WHITELIST, mntr=WHITELIST, srvr=srvr("follower"))) as address:
        port = address.partition(":")[2]
        for sid in (1, 2):
            (tmp_path / str(sid)).mkdir()
            text = FILE.replace("2181", port if sid == 2 else "1")
            (tmp_path / str(sid) / "zoo.cfg").write_text(f"{text}server.1=a:1:2\nserver.2=b:1:2\n")
        answer = diagnosed(tmp_path, address)
    assert (answer.situation.serving, answer.situation.leaders) == ((2,), ())


def test_a_silent_admin_server_is_that_of_the_server_at_its_host(tmp_path: Path) -> None:
    lines = "server.1=localhost:2888:3888\nserver.2=10.0.0.2:2888:3888\n"
    for sid in (1, 2):
        (tmp_path / str(sid)).mkdir()
        (tmp_path / str(sid) / "zoo.cfg").write_text(FILE + lines)
    (silent,) = diagnosed(tmp_path, "http://localhost:1").situation.silent
    assert silent.sid == 1


def test_the_monitor_of_a_client_port_is_read() -> None:
    answers = words(conf=conf(1, 3), srvr=srvr("leader"), mntr=b"zk_synced_followers\t1\nzk_snapshot_error_count\t2\n")
    with listening(answers) as address:
        answer = diagnosed(address)
    assert "with 1 synchronised follower." in next(state(answer))
    assert len(list(also_seen(answer))) == 1


def test_followers_count_for_a_leader_that_they_can_follow() -> None:
    """Server 4 does not vote in the configuration of the others, or they name another leader."""
    with (
        listening(words(conf=conf(1, 3), srvr=srvr("follower"))) as one,
        listening(words(conf=conf(2, 3), srvr=srvr("follower"))) as two,
        listening(words(conf=conf(4, 4), srvr=srvr("leader"))) as four,
    ):
        assert diagnosed(f"{one},{two},{four}").situation.has_quorum is not True
    with (
        listening(admin(1, "follower", 3)) as one,
        listening(admin(2, "leader", 2)) as two,
        listening(admin(3, "follower", 1)) as three,
    ):
        assert diagnosed(f"http://{one},http://{two},http://{three}").situation.has_quorum is not True


def test_two_leaders_have_no_certain_quorum_in_text_and_data() -> None:
    with (
        listening(words(conf=conf(1, 3), srvr=srvr("follower"))) as one,
        listening(words(conf=conf(2, 3), srvr=srvr("leader"))) as two,
        listening(words(conf=conf(3, 3), srvr=srvr("leader"))) as three,
    ):
        answer = diagnosed(f"{one},{two},{three}")
    assert (answer.situation.leaders, answer.situation.has_quorum) == ((2, 3), True)
    assert next(state(answer)).endswith("More than one leader may have a quorum.")
    assert data(answer)["quorum"] is None


def test_a_server_runs_with_the_members_of_its_answer_until_its_restart(tmp_path: Path) -> None:
    """Three of five have the new file on their disks, and run with the old one: the common view is the running one."""
    new = "".join(f"server.{sid}=zk{sid}:2888:3888\n" for sid in range(1, 6))
    servers = []
    for sid in (1, 2, 3):
        (tmp_path / str(sid)).mkdir()
        (tmp_path / str(sid) / "zoo.cfg").write_text(FILE + new)
        servers.append(words(conf=conf(sid, 3), srvr=srvr("leader" if sid == 3 else "follower")))
    with listening(servers[0]) as one, listening(servers[1]) as two, listening(servers[2]) as three:
        answer = diagnosed(tmp_path, f"{one},{two},{three}")
    view = answer.situation.common_view
    assert view is not None
    assert (view.voters, answer.situation.has_quorum) == ({1, 2, 3}, True)
    assert "Server 2 runs with the voters 1, 2, 3, and its file has 1, 2, 3, 4, 5." in list(state(answer))


JSON = b"HTTP/1.1 200 OK\r\n\r\n"
HOSTILE = {
    "an escape sequence": b"\x1b]0;owned\x07\x1b[2J",
    "nested JSON": JSON + b"[" * 200_000,
    "a map for a number": JSON + b'{"command":"configuration","server_id":{"a":[]},"error":null}',
    "an error with escapes": JSON + b'{"command":"\x1b[2J","error":"\x1b[2J"}',
    "a long number": JSON + b'{"command":"configuration","server_id":' + b"9" * 100_000 + b"}",
    "an endless line": b"\xff" * (1 << 20),
    "a long mode": b"clientPort=1\nserverId=1\nmembership:\n\nMode: " + b"\x1b[31m" * 10_000,
    "a bad member": b"serverId=1\nMode: leader\nmembership:\nserver.1=\x1b[2J\n",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_hostile_answer_is_one_plain_line(scheme: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(lambda _: HOSTILE[name]) as address:
        code = main(["diagnose", f"{scheme}{address}"])
    out, err = capsys.readouterr()
    assert code in (1, 20)
    assert not err
    assert "\x1b" not in out and "\x07" not in out
    assert f"{scheme}{address}: " in out
    assert max(map(len, out.splitlines())) < 400


def test_an_answer_without_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts, and never answers
        answer = diagnosed(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert len(answer.situation.silent) == 1


def test_a_server_that_looks_for_a_leader_runs(capsys: pytest.CaptureFixture[str]) -> None:
    body = json.dumps({"command": "configuration", "error": NOT_SERVING}).encode()
    with listening(lambda _: JSON + body) as address:
        assert main(["diagnose", f"http://{address}"]) == 20
    assert "runs and does not serve" in capsys.readouterr().out


MEMBER = conf(3, 3)
OTHER_ANSWERS = {
    "a stranger": words(conf=b"HTTP/1.1 400 Bad Request", srvr=b"x"),
    "a standalone server": words(conf=b"clientPort=2181\nserverId=0\n", srvr=srvr("standalone")),
    "a server that only reads": words(conf=MEMBER, srvr=srvr("read-only")),
    "a role of a later release": words(conf=MEMBER, srvr=srvr("witness")),
    "a server without these words": words(conf=WHITELIST, srvr=WHITELIST),
    "a second leader with the id of a follower": words(conf=conf(2, 3), srvr=srvr("leader")),
    "a server that looks for a leader": words(conf=NOT_SERVING.encode(), srvr=NOT_SERVING.encode()),
}


@pytest.mark.parametrize("name", OTHER_ANSWERS)
def test_an_address_that_does_not_answer_that_it_serves_is_never_passed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        listening(words(conf=conf(1, 3), srvr=srvr("leader"))) as one,
        listening(words(conf=conf(2, 3), srvr=srvr("follower"))) as two,
        listening(OTHER_ANSWERS[name]) as three,
    ):
        assert main(["diagnose", f"{one},{two}", two]) == 0
        assert main(["diagnose", f"{one},{two},{three}"]) == 20
    out = capsys.readouterr().out
    assert three in out


@pytest.mark.parametrize("host", ["a..b", ".", f"{'a' * 64}.example"])
def test_a_host_that_no_name_can_be_is_unknown(host: str) -> None:
    (silent,) = diagnosed(f"{host}:2181").situation.silent
    assert isinstance(silent.live, live.NoAnswerError)
    assert silent.live.silence is live.Silence.UNKNOWN_HOST
