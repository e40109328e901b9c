"""TLS between servers in the planner. What each pair of settings can do is that of real servers, by ZooKeeper's source.

`QuorumCnxManager` and `Learner` connect by TLS if `sslQuorum`; `UnifiedServerSocket` accepts both with
`portUnification`, and TLS alone with `sslQuorum` alone. tests/node/test_tls_between_servers.py shows it on
real servers.
"""

from pathlib import Path

import pytest

from checker.cli.main import main
from checker.rollout.files.keys import Handshake

PLAIN, UNIFIED = Handshake(False, False), Handshake(False, True)
BOTH, TLS = Handshake(True, True), Handshake(True, False)
SASL = Handshake(knows_sasl=True, proves_itself=True, demands_proof=True)
FILE = "tickTime=2000\ninitLimit=5\nsyncLimit=2\ndataDir=/d\nclientPort=2181\n" + "".join(
    f"server.{sid}=zoo{sid}:2888:3888\n" for sid in (1, 2, 3)
)
KEYS = {
    PLAIN: "",
    UNIFIED: "portUnification=true\n",
    BOTH: "portUnification=true\nsslQuorum=true\n",
    TLS: "sslQuorum=true\n",
}


@pytest.mark.parametrize(
    ("one", "other", "talk"),
    [
        (PLAIN, PLAIN, True),
        (PLAIN, UNIFIED, True),
        (PLAIN, BOTH, False),  # the plain server accepts no TLS
        (PLAIN, TLS, False),
        (UNIFIED, BOTH, True),
        (UNIFIED, TLS, False),  # the one that connects plainly is refused
        (BOTH, TLS, True),
        (TLS, TLS, True),
    ],
)
def test_two_servers_talk_if_each_can_connect_to_the_other(one: Handshake, other: Handshake, talk: bool) -> None:
    assert (one.talks_with(other), other.talks_with(one)) == (talk, talk)


def _folder(path: Path, handshake: Handshake) -> Path:
    path.mkdir()
    (path / "zoo.cfg").write_text(FILE + KEYS[handshake])
    return path


@pytest.mark.parametrize(
    ("one", "other", "talk"),
    [
        (PLAIN, Handshake(knows_sasl=True), True),
        (PLAIN, Handshake(knows_sasl=True, proves_itself=True), False),  # the plain one reads no proof
        (Handshake(knows_sasl=True), Handshake(knows_sasl=True, proves_itself=True), True),
        (Handshake(knows_sasl=True), SASL, False),  # the one that proves nothing is refused
        (Handshake(knows_sasl=True, proves_itself=True), SASL, True),
    ],
)
def test_sasl_needs_its_three_steps(one: Handshake, other: Handshake, talk: bool) -> None:
    assert (one.talks_with(other), other.talks_with(one)) == (talk, talk)


def _answer(tmp_path: Path, old: Handshake, new: Handshake, code: int, capsys: pytest.CaptureFixture[str]) -> str:
    folders = [_folder(tmp_path / name, handshake) for name, handshake in (("old", old), ("new", new))]
    assert main(["rollout", "--from", str(folders[0]), "--to", str(folders[1]), "--no-cache"]) == code
    return capsys.readouterr().out


def test_a_change_in_one_step_comes_to_a_stop_and_names_the_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(tmp_path, PLAIN, TLS, 13, capsys)
    assert "servers 1 and 2 refuse each other while one of them has its new file" in answer
    assert "`portUnification=true` at all servers" in answer


@pytest.mark.parametrize(("old", "new"), [(PLAIN, UNIFIED), (UNIFIED, BOTH), (BOTH, TLS)])
def test_each_documented_step_is_safe_if_the_certificates_are_good(
    tmp_path: Path, old: Handshake, new: Handshake, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(tmp_path, old, new, 0, capsys)
    assert "do not talk" not in answer
    assert "Certificates and credentials are not read here" in answer


def test_servers_that_are_stopped_together_mix_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [_folder(tmp_path / name, handshake) for name, handshake in (("old", PLAIN), ("new", TLS))]
    words = ["--how", "stop-all", "--faults", "0", "--no-cache"]
    assert main(["rollout", "--from", str(folders[0]), "--to", str(folders[1]), *words]) != 13
    assert "comes to a stop" not in capsys.readouterr().out
