"""`harness conform` on live servers: our node equals itself, settings are named, real releases are explained."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from harness import commands as c
from harness import interpreter
from harness.__main__ import main
from harness.conform import opcodes, servers
from harness.conform.servers import ORACLE_KEYS, TICK
from harness.ensemble import Ensemble
from harness.processes import ServerError
from harness.releases import DEBIAN, OLDER
from harness.session import Session
from tests.node.conftest import NEWEST
from tests.node.holding import holding
from tests.support.programs import need_kind

Launch = Callable[..., Ensemble]
EXISTS = bytes.fromhex("0000000e 00000001 00000003 00000001 2f 00")
"""The first request of a session: `exists` for the root, without a watch."""


def node(launch: Launch, **keys: str) -> Ensemble:
    return launch(["node"], tick_time=TICK, extra=ORACLE_KEYS | keys)


def children_of_the_top(ensemble: Ensemble) -> list[str]:
    session = Session(10_000)
    session.connect(ensemble.client_port(1))
    names = session.ask(8, "/", False).values[0]
    session.close()
    return sorted(names)


def test_our_node_equals_itself_and_nothing_is_left_behind(launch: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    ensemble = node(launch)
    assert main(["conform", ensemble.connect_string, "--random", "20"]) == 0
    said = capsys.readouterr().out
    assert "0 differ; no unexplained difference" in said
    assert " passed; 20 random scripts" in said
    assert children_of_the_top(ensemble) == ["zookeeper"]


@pytest.fixture(scope="module")
def three(launch: Launch) -> Ensemble:
    return launch(["node"] * 3, tick_time=TICK, extra=ORACLE_KEYS)


def test_three_servers_are_compared_as_one(three: Ensemble) -> None:
    chosen = ["--area", "sessions", "--area", "setWatches", "--random", "5"]
    assert main(["conform", three.connect_string, *chosen]) == 0


def test_servers_that_do_not_answer_srvr_are_compared(
    three: Ensemble, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "srvr", lambda _place: {})
    monkeypatch.setattr(servers, "srvr", lambda _place: {})
    areas = ["--area", "sessions", "--area", "watches", "--area", "setWatches"]
    assert main(["conform", three.connect_string, *areas, "--random", "5"]) == 0
    assert "release not known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("keys", "area", "named"),
    [
        ({"extendedTypesEnabled": "false"}, "containers and TTL", "setting: TTL znodes need extendedTypesEnabled=true"),
        ({"skipACL": "yes"}, "ACLs and schemes", "setting: permissions are not checked: skipACL=yes"),
    ],
)
def test_a_server_with_another_setting_differs_and_the_setting_is_named(
    launch: Launch, capsys: pytest.CaptureFixture[str], keys: dict[str, str], area: str, named: str
) -> None:
    ensemble = node(launch, **keys)
    assert main(["conform", ensemble.connect_string, "--area", area]) == 1
    said = capsys.readouterr().out
    assert named in said
    assert "unexplained:" not in said


def test_a_setting_can_be_given_to_the_oracle(launch: Launch) -> None:
    ensemble = node(launch, extendedTypesEnabled="false")
    arguments = ["--area", "containers and TTL", "--oracle", "extendedTypesEnabled=false"]
    assert main(["conform", ensemble.connect_string, *arguments]) == 0


@pytest.fixture(scope="module")
def one(launch: Launch) -> Ensemble:
    return node(launch)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_session_that_wakes_has_every_answer_and_says_that_one_was_late(one: Ensemble, number: int) -> None:
    """The answers: to the session's begin, to a create, and to its end."""
    answers = count(1)
    with holding(one.client_port(1), lambda _: next(answers) == number) as server:
        session = Session(10_000, 1.0, wakes=True)
        assert session.connect(server.port) == 10_000
        assert session.ask(c.CREATE, f"/answer-{number}", b"", c.OPEN, c.EPHEMERAL).err == 0
        session.close()
        assert (session.late, server.held) == (True, 1)


def test_no_answer_is_late_at_a_server_that_holds_none(one: Ensemble) -> None:
    session = Session(10_000, wakes=True)
    session.connect(one.client_port(1))
    session.close()
    assert not session.late


def test_a_silent_server_is_an_error(one: Ensemble) -> None:
    with holding(one.client_port(1), EXISTS.__eq__) as server:
        patient = Session(10_000, 1.0)
        patient.connect(server.port)
        with pytest.raises(ServerError, match="no answer from the server within 1 s"):
            patient.ask(c.Exists.opcode, "/", False)
        patient.drop()
    with holding(one.client_port(1), EXISTS.__eq__) as server:
        wakes = Session(10_000, 1.0, wakes=True)
        wakes.connect(server.port)
        one.pause(1)
        try:
            with pytest.raises(ServerError, match="no answer from the server within 2 s"):
                wakes.ask(c.Exists.opcode, "/", False)
        finally:
            one.resume(1)
            wakes.drop()


@pytest.mark.parametrize(
    ("release", "code", "named"),
    [
        (DEBIAN, 0, "release: an answer waits until the server has another request (since ZOOKEEPER-2024"),
        (NEWEST, 1, "no answer in time: the server did not answer once ("),
    ],
    ids=[DEBIAN, NEWEST],
)
def test_a_server_that_holds_answers_is_named_and_explained_by_its_release_alone(
    launch: Launch,
    release: str,
    code: int,
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 3.8.0 this is ZOOKEEPER-4537. No session of another test ends meanwhile: that would take a zxid."""
    monkeypatch.setattr(opcodes, "rows", tuple)
    answers = count(1)  # to requests about znodes of a script
    with holding(node(launch).client_port(1), lambda request: b"/s/" in request and not next(answers) % 11) as server:
        options = ["--release", release, "--area", "create", "--area", "zxids", "--seconds", "1"]
        assert main(["conform", f"127.0.0.1:{server.port}", *options]) == code
        assert server.held > 2
    said = capsys.readouterr().out
    assert named in said
    assert "unexplained:" not in said


@pytest.mark.parametrize("release", [DEBIAN, NEWEST])
def test_a_real_server_has_only_explained_differences(
    release: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    need_kind("real", release)
    files = ["--markdown", str(tmp_path / "report.md"), "--junit", str(tmp_path / "report.xml")]
    assert main(["conform", "--start", release, "--random", "20", *files]) == 0
    said = capsys.readouterr().out
    assert f"release {release};" in said
    assert "no unexplained difference" in said
    assert (tmp_path / "report.md").read_text().count("| 107 | whoAmI | supported | supported |") == 1
    assert "<failure" not in (tmp_path / "report.xml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("release", OLDER)
def test_an_older_release_has_only_explained_differences(release: str) -> None:
    need_kind("real", release)
    assert main(["conform", "--start", release, "--random", "20"]) == 0
