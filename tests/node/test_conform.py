"""`harness conform` on live servers: our node equals itself, settings are named, real releases are explained."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Ensemble, interpreter
from harness.__main__ import main
from harness.conform import servers
from harness.conform.servers import ORACLE_KEYS, TICK
from harness.releases import DEBIAN, OLDER
from harness.session import Session
from tests.node.conftest import NEWEST
from tests.support.programs import need_kind

MOST_STARTS = 3
Launch = Callable[..., Ensemble]


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


@pytest.mark.parametrize("release", [DEBIAN, NEWEST])
def test_a_real_server_has_only_explained_differences(
    release: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    need_kind("real", release)
    files = ["--markdown", str(tmp_path / "report.md"), "--junit", str(tmp_path / "report.xml")]
    # Sometimes a real 3.8.0 server stops answering, without a message in its log (tests/node/test_differential.py).
    codes = (main(["conform", "--start", release, "--random", "20", *files]) for _ in range(MOST_STARTS))
    assert next((code for code in codes if code != 2), 2) == 0
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
