"""Our node in ensembles that are reconfigured, alone and among real 3.9.5 servers, in each role.

The expected outcomes are those of real servers in `docs/reference-reconfig-facts.md`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    MarshallingError,
    NewConfigNoQuorumError,
    NoAuthError,
    ReconfigInProcessError,
    UnimplementedError,
)

from checker.job import Verdict
from checker.validate import validate
from harness.ensemble import Ensemble
from harness.processes import free_ports
from refimpl.__main__ import EXIT_BAD_CONFIG
from tests.node.connecting import WAIT, client_at
from tests.node.reconfigured import (
    OBSERVER,
    PARTICIPANT,
    agreed,
    awaited,
    change_members,
    config_at,
    line_of,
    next_file,
    reconfigurable,
    roles_in,
    version_in,
)
from tests.support.programs import need_kind

SUPER = "DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU="
"""The identity of the user `super` with the password `test`."""
KINDS = [
    pytest.param(["node", "node", "node", "node"], id="nodes"),
    pytest.param(["real", "node", "real", "node"], id="a real leader"),
    pytest.param(["real", "real", "node", "real"], id="a leading node"),
]


def journals_fit(ensemble: Ensemble) -> None:
    """Assert that every step of the nodes is one of the specification, and that its invariants hold."""
    paths = [ensemble.journal(sid) for sid in ensemble.sids if ensemble.journal(sid).exists()]
    found = validate(paths)
    assert found.verdict is Verdict.PASSED, found.mismatches


@pytest.mark.parametrize("kinds", KINDS)
def test_a_server_joins_as_observer_is_promoted_and_the_leader_leaves(kinds: list[str], tmp_path: Path) -> None:
    with reconfigurable(kinds, tmp_path, (1, 2, 3)) as ensemble:
        ensemble.start_led_by(3, (1, 2, 3))
        first = config_at(ensemble, 1)
        assert (roles_in(first), version_in(first)) == (dict.fromkeys((1, 2, 3), PARTICIPANT), 0x100000000)
        ensemble.start(4)
        ensemble.wait_serving()
        with client_at(ensemble, 1) as asking:
            asking.create("/before", b"")
            reply, stat = asking.reconfig(line_of(ensemble, 4, OBSERVER), None, None)
            assert (stat.version, stat.mzxid) == (-1, version_in(reply.decode()))
            observing = {**dict.fromkeys((1, 2, 3), PARTICIPANT), 4: OBSERVER}
            assert agreed(ensemble, (1, 2, 3, 4), observing) == reply.decode()
            assert awaited(lambda: ensemble.role(4), "4 serves") == "observer"

            asking.reconfig(line_of(ensemble, 4), None, None)
            agreed(ensemble, (1, 2, 3, 4), dict.fromkeys((1, 2, 3, 4), PARTICIPANT))
            assert awaited(lambda: ensemble.role(4), "4 serves") == "follower"
            assert ensemble.leader() == 3
        rest = dict.fromkeys((1, 2, 4), PARTICIPANT)
        change_members(ensemble, rest, (1, 2, 4), leaving="3")
        agreed(ensemble, (1, 2, 4), rest)
        with client_at(ensemble, 1, 2, 4) as asking:
            asking.create("/after", b"")
        leader = awaited(lambda: _leader_of(ensemble), "one leads")
        assert leader in (1, 2, 4)
        for sid in (1, 2, 4):
            with client_at(ensemble, sid) as asking:
                asking.sync("/")
                assert asking.exists("/before") and asking.exists("/after")
        ensemble.stop(3)
        journals_fit(ensemble)


def _leader_of(ensemble: Ensemble) -> int | None:
    leaders = [sid for sid in ensemble.running if ensemble.role(sid) == "leader"]
    return leaders[0] if len(leaders) == 1 else None


def test_the_configuration_survives_a_restart_of_all_servers(tmp_path: Path) -> None:
    with reconfigurable(["node"] * 4, tmp_path, (1, 2, 3)) as ensemble:
        ensemble.start_led_by(3, (1, 2, 3))
        ensemble.start(4)
        ensemble.wait_serving()
        with client_at(ensemble, 2) as asking:
            asking.reconfig(line_of(ensemble, 4), "1", None)
        roles = dict.fromkeys((2, 3, 4), PARTICIPANT)
        config = agreed(ensemble, (2, 3, 4), roles)
        for sid in ensemble.sids:
            ensemble.kill(sid)
        for sid in (2, 3, 4):
            ensemble.start(sid)
        ensemble.wait_serving()
        assert agreed(ensemble, (2, 3, 4), roles) == config
        ensemble.start(1)
        log = tmp_path / "server-1" / "log.txt"
        assert awaited(lambda: ensemble.process(1).exit_code, "1 ends") == EXIT_BAD_CONFIG
        assert "server 1 is not in the server list" in log.read_text()


REFUSALS = [
    pytest.param({"from_config": 7}, BadVersionError, id="another version"),
    pytest.param({"joining": "server.4=127.0.0.1:1:2:participant"}, BadArgumentsError, id="no client address"),
    pytest.param({"joining": "server.4"}, BadArgumentsError, id="no equals sign"),
    pytest.param({"leaving": "1,2,3"}, BadArgumentsError, id="all leave"),
    pytest.param({"leaving": "1,2"}, BadArgumentsError, id="one is left"),
    pytest.param({"new_members": "color=red"}, BadArgumentsError, id="an unknown key"),
    pytest.param(
        {"joining": "server.4=127.0.0.1:1:2;3,server.5=127.0.0.1:4:5;6", "leaving": "1,2"},
        NewConfigNoQuorumError,
        id="no quorum runs",
    ),
]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three nodes that are reconfigurable; 1 is a follower."""
    with reconfigurable(["node"] * 3, tmp_path_factory.mktemp("nodes"), (1, 2, 3)) as ensemble:
        ensemble.start_led_by(3, (1, 2, 3))
        yield ensemble


@pytest.mark.parametrize(("asked", "refusal"), REFUSALS)
def test_a_request_is_refused_as_real_servers_refuse_it(
    nodes: Ensemble, asked: dict[str, object], refusal: type[Exception]
) -> None:
    before = config_at(nodes, 1)
    with client_at(nodes, 1) as asking, pytest.raises(refusal):
        asking.reconfig(**{"joining": None, "leaving": None, "new_members": None, **asked})
    assert config_at(nodes, 1) == before


def test_an_unknown_server_may_leave_which_makes_a_new_version(nodes: Ensemble) -> None:
    before = config_at(nodes, 1)
    with client_at(nodes, 1) as asking:
        after = asking.reconfig(None, "9", None, from_config=version_in(before))[0].decode()
    assert roles_in(after) == roles_in(before)
    assert version_in(after) > version_in(before)


def test_a_watch_on_the_configuration_fires(nodes: Ensemble) -> None:
    seen = []
    with client_at(nodes, 2) as asking:
        asking.get("/zookeeper/config", watch=seen.append)
        asking.reconfig(None, "9", None)
        awaited(lambda: seen or None, "the watch fires")
    assert [(event.type, event.path) for event in seen] == [("CHANGED", "/zookeeper/config")]


def test_conf_names_the_members_of_the_active_configuration(nodes: Ensemble) -> None:
    membership = nodes.word(1, "conf").partition("membership: \n")[2]
    assert membership.strip() == config_at(nodes, 1)


def test_a_second_request_waits_until_the_first_is_committed(nodes: Ensemble) -> None:
    """With both followers paused the first has no quorum. The refusal of the second is behind it in the order."""
    with client_at(nodes, 3) as asking:
        for sid in (1, 2):
            nodes.pause(sid)
        try:
            first = asking.reconfig_async(None, "8", None, -1)
            second = asking.reconfig_async(None, "9", None, -1)
            awaited(lambda: "Outstanding: 2" in nodes.word(3, "srvr") or None, "both requests are at the leader")
        finally:
            for sid in (1, 2):
                nodes.resume(sid)
        first.get(timeout=WAIT)
        with pytest.raises(ReconfigInProcessError):
            second.get(timeout=WAIT)


def test_a_configuration_that_no_learner_could_read_is_refused(tmp_path: Path) -> None:
    """Each request has few servers, and together they exceed the limit of a packet between servers."""
    with reconfigurable(["node"] * 3, tmp_path, (1, 2, 3)) as ensemble:
        for sid in ensemble.sids:
            file = tmp_path / f"server-{sid}" / "zoo.cfg"
            file.write_text(f"{file.read_text()}jute.maxbuffer=2048\n")
        ensemble.start_led_by(3, (1, 2, 3))
        with client_at(ensemble, 1) as asking:
            for first in (100, 140):
                asking.reconfig(_observers(first), None, None)
            with pytest.raises(MarshallingError):
                asking.reconfig(_observers(180), None, None)
            asking.create("/after", b"")
        journals_fit(ensemble)


def _observers(first: int) -> str:
    return ",".join(f"server.{sid}=h{sid}.example:1:2:observer;3" for sid in range(first, first + 40))


@pytest.fixture(scope="module", params=["node", "real"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers with ACLs and a superuser, as kazoo's test cluster has them."""
    directory = tmp_path_factory.mktemp("guarded")
    with reconfigurable([request.param] * 3, directory, (1, 2, 3)) as ensemble:
        for sid in ensemble.sids:
            file = directory / f"server-{sid}" / "zoo.cfg"
            file.write_text(file.read_text().replace("skipACL=yes\n", f"{SUPER}\n"))
        ensemble.start_led_by(3, (1, 2, 3))
        yield ensemble


def test_kazoos_tests_of_reconfig_pass_as_at_real_servers(guarded: Ensemble) -> None:
    """The requests of `TestReconfig` in kazoo's test-suite: no permission, an observer, a future version, bad input."""
    joining = "server.100=0.0.0.0:{}:{}:observer;0.0.0.0:{}".format(*free_ports(3))
    with client_at(guarded, 1) as anyone, pytest.raises(NoAuthError):
        anyone.reconfig(joining=joining, leaving=None, new_members=None)
    with client_at(guarded, 1) as owner:
        owner.add_auth("digest", "super:test")
        data, _ = owner.reconfig(joining=joining, leaving=None, new_members=None)
        assert joining.encode() in data
        data, _ = owner.reconfig(joining=None, leaving="100", new_members=None)
        assert joining.encode() not in data
        with pytest.raises(BadVersionError):
            owner.reconfig(joining=joining, leaving=None, new_members=None, from_config=version_in(data.decode()) + 1)
        with pytest.raises(BadArgumentsError):
            owner.reconfig(joining="some thing that is wrong", leaving=None, new_members=None)


def test_a_standalone_node_has_no_configuration_to_change(tmp_path: Path) -> None:
    need_kind("node")
    extra = {"reconfigEnabled": "true"}
    with Ensemble(["node"], tmp_path, standalone=True, extra=extra) as ensemble:
        ensemble.start_all()
        with client_at(ensemble, 1) as asking, pytest.raises(UnimplementedError):
            asking.reconfig(None, "9", None)


def test_a_node_without_reconfigenabled_keeps_the_members_of_its_file(tmp_path: Path) -> None:
    """As a real server with `false`: its config node shows the change, its files and its votes do not."""
    with reconfigurable(["real", "node", "real", "real"], tmp_path, (1, 2, 3)) as ensemble:
        file = tmp_path / "server-2" / "zoo.cfg"
        file.write_text(file.read_text().replace("reconfigEnabled=true\n", ""))
        ensemble.start_led_by(3, (1, 2, 3))
        ensemble.start(4)
        ensemble.wait_serving()
        with client_at(ensemble, 1) as asking:
            asking.reconfig(line_of(ensemble, 4), None, None)
        four = dict.fromkeys((1, 2, 3, 4), PARTICIPANT)
        awaited(lambda: roles_in(config_at(ensemble, 2)) == four or None, "2 has applied it")
        assert "dynamicConfigFile" not in file.read_text()
        assert not next_file(ensemble, 2).exists()
        journals_fit(ensemble)
