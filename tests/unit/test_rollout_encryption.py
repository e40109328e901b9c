"""TLS between servers in the planner. What each pair of settings can do is that of real servers, by ZooKeeper's source.

`QuorumCnxManager` and `Learner` connect by TLS if `sslQuorum`; `UnifiedServerSocket` accepts both with
`portUnification`, and TLS alone with `sslQuorum` alone. tests/node/test_tls_between_servers.py shows it on
real servers.
"""

from pathlib import Path

import pytest

from checker.cli.main import main
from checker.rollout.ways.encryption import Encryption

PLAIN, UNIFIED = Encryption(False, False), Encryption(False, True)
BOTH, TLS = Encryption(True, True), Encryption(True, False)
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
def test_two_servers_talk_if_each_can_connect_to_the_other(one: Encryption, other: Encryption, talk: bool) -> None:
    assert (one.talks_with(other), other.talks_with(one)) == (talk, talk)


def _folder(path: Path, encryption: Encryption) -> Path:
    path.mkdir()
    (path / "zoo.cfg").write_text(FILE + KEYS[encryption])
    return path


def _said(tmp_path: Path, old: Encryption, new: Encryption, capsys: pytest.CaptureFixture[str]) -> str:
    folders = [_folder(tmp_path / name, each) for name, each in (("old", old), ("new", new))]
    assert main(["rollout", "--from", str(folders[0]), "--to", str(folders[1]), "--no-cache"]) == 20
    return capsys.readouterr().out


def test_a_change_in_one_step_names_servers_that_do_not_talk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = _said(tmp_path, PLAIN, TLS, capsys)
    assert "**Servers 1 and 2, and 2 more pairs do not talk**" in said
    assert "`portUnification=true` at all servers first" in said


def test_a_documented_step_names_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _said(tmp_path, UNIFIED, BOTH, capsys)
    assert "do not talk" not in said
    assert "**Not modelled**: `sslQuorum`" in said
