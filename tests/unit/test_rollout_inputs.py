"""Inputs of the planner beyond folders: Helm values, manifests and resources of operators give the same value.

The samples in `tests/fixtures/rollout_inputs` are written by hand, with the keys that the charts and operators
document. Expected members, addresses and settings are those that the templates and scripts named in the modules
produce.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checker.rollout.files.differences import differences, settings
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.generated import with_names_of
from checker.rollout.inputs.sources import read_input
from checker.rollout.inputs.working import Operator, PodManagement, UpdateStrategy
from checker.rollout.stages import whole

SAMPLES = Path(__file__).parent.parent / "fixtures" / "rollout_inputs"
PARALLEL, ORDERED = PodManagement.PARALLEL, PodManagement.ORDERED_READY
ROLLING, ON_DELETE = UpdateStrategy.ROLLING_UPDATE, UpdateStrategy.ON_DELETE


def sample(name: str) -> str:
    return str(SAMPLES / f"{name}.yaml")


HOSTS = {
    "bitnami-3": {sid: f"zk-{sid - 1}.zk-headless.data.svc.cluster.local" for sid in (1, 2, 3)},
    "bitnami-5": {sid: f"zk-{sid - 1}.zk-headless.data.svc.cluster.local" for sid in (1, 2, 3, 4, 5)},
    "kafka-chart": {n + 10: f"RELEASE-{n}.RELEASE-headless.NAMESPACE.svc.cluster.local" for n in range(3)},
    "incubator-3": {n + 1: f"RELEASE-{n}.RELEASE-headless.NAMESPACE.svc.cluster.local" for n in range(3)},
    "cp-zookeeper-3": {n + 1: f"RELEASE-{n}.RELEASE-headless.NAMESPACE" for n in range(3)},
    "kubernetes-docs": {n + 1: f"zk-{n}.zk-hs.NAMESPACE.svc.cluster.local" for n in range(3)},
    "config-map": {n + 1: f"zk-{n}.zk.data.svc.cluster.local" for n in range(3)},
    "library-image": {n + 1: f"zookeeper-{n}.zookeeper" for n in range(3)},
    "three-deployments": {1: "zoo1", 2: "zoo2", 3: "zoo3"},
    "strimzi": {n + 1: f"my-cluster-zookeeper-{n}.my-cluster-zookeeper-nodes.kafka.svc" for n in range(3)},
    "pravega": {n + 1: f"zookeeper-{n}.zookeeper-headless.pravega.svc.cluster.local" for n in range(3)},
}


def test_every_sample_is_tested() -> None:
    assert {path.stem for path in SAMPLES.iterdir()} == set(HOSTS)


@pytest.mark.parametrize("name", HOSTS)
def test_each_server_has_its_id_and_its_address(name: str) -> None:
    state = read_input(sample(name))
    assert set(state.servers) == state.view.members == set(HOSTS[name])
    for given in state.servers.values():
        lines = {line.sid: line.addresses for line in given.config.servers}
        assert {sid: [(a.host, a.quorum_port, a.election_port) for a in found] for sid, found in lines.items()} == {
            sid: [(host, 2888, 3888)] for sid, host in HOSTS[name].items()
        }


def test_an_observer_stays_an_observer() -> None:
    assert read_input(sample("library-image")).view.observers == {3}


SETTINGS = {
    "bitnami-3": {
        **{"tickTime": "2000", "initLimit": "10", "dataDir": "/bitnami/zookeeper/data", "clientPort": "2181"},
        **{"quorumListenOnAllIPs": "true", "autopurge.purgeInterval": "24", "autopurge.snapRetainCount": "5"},
        "4lw.commands.whitelist": "srvr, mntr, ruok, conf",
    },
    "incubator-3": {"syncLimit": "10", "dataDir": "/data", "dataLogDir": "/data/log"},
    "cp-zookeeper-3": {"autopurge.purgeInterval": "24", "dataDir": "/var/lib/zookeeper/data"},
    "kubernetes-docs": {"tickTime": "2000", "clientPort": "2181", "dataDir": "/var/lib/zookeeper/data"},
    "config-map": {"syncLimit": "5", "dataDir": "/data"},
    "library-image": {"tickTime": "3000", "initLimit": "5", "dataLogDir": "/datalog"},
    "strimzi": {"reconfigEnabled": "true", "standaloneEnabled": "false", "sslQuorum": "true", "tickTime": "3000"},
    "pravega": {
        **{"reconfigEnabled": "true", "tickTime": "4000", "minSessionTimeout": "8000", "maxSessionTimeout": "80000"},
        **{"quorumListenOnAllIPs": "true", "snapshot.trust.empty": "true", "initLimit": "10"},
    },
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_zoo_cfg_has_the_given_values_and_the_defaults_of_the_platform(name: str) -> None:
    for given in read_input(sample(name)).servers.values():
        assert SETTINGS[name].items() <= settings(given).items()


WORKING = {
    "bitnami-3": (PARALLEL, ROLLING, 0, ()),
    "kafka-chart": (PARALLEL, ROLLING, 0, ("podManagementPolicy", "updateStrategy")),
    "incubator-3": (ORDERED, ON_DELETE, 0, ("podManagementPolicy",)),
    "kubernetes-docs": (ORDERED, ROLLING, 0, ()),
    "config-map": (PARALLEL, ROLLING, 0, ("updateStrategy",)),
    "library-image": (ORDERED, ROLLING, 1, ("podManagementPolicy",)),
}


@pytest.mark.parametrize("name", WORKING)
def test_the_way_of_working_is_a_value_and_a_sentence(name: str) -> None:
    state = read_input(sample(name))
    assert state.working is not None
    assert (state.working.pods, state.working.updates, state.working.partition, state.working.assumed) == WORKING[name]
    assert state.working.sentence in state.taken


@pytest.mark.parametrize(("name", "operator"), [("strimzi", Operator.STRIMZI), ("pravega", Operator.PRAVEGA)])
def test_an_operator_says_how_it_changes_the_membership(name: str, operator: Operator) -> None:
    state = read_input(sample(name))
    assert state.working is not None and state.working.operator is operator
    assert any("`reconfig`" in sentence for sentence in state.taken)


def test_a_default_number_of_servers_is_named_as_one(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("env: {ZK_TICK_TIME: 2000}\n")
    state = read_input(str(values))
    assert len(state.servers) == 3
    assert "replicaCount is not in it, and the chart's default is 3" in state.taken[0]


def test_servers_without_a_pod_are_named(tmp_path: Path) -> None:
    text = (SAMPLES / "config-map.yaml").read_text().replace("replicas: 3", "replicas: 2")
    (tmp_path / "zk.yaml").write_text(text)
    state = read_input(str(tmp_path / "zk.yaml"))
    assert set(state.servers) == {1, 2, 3}
    assert any("--down 3" in sentence for sentence in state.taken)


def test_a_folder_of_manifests_is_read_together(tmp_path: Path) -> None:
    config_map, _, stateful_set = (SAMPLES / "config-map.yaml").read_text().partition("---\n")
    (tmp_path / "1-config.yaml").write_text(config_map)
    (tmp_path / "2-set.yml").write_text(stateful_set)
    assert set(read_input(str(tmp_path)).servers) == {1, 2, 3}


def test_json_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text('{"replicaCount": 3, "minServerId": 4}')
    assert set(read_input(str(tmp_path / "values.json")).servers) == {4, 5, 6}


def test_a_custom_zoo_cfg_in_values_is_used_as_it_is(tmp_path: Path) -> None:
    lines = "".join(f"    server.{sid}=host{sid}:2888:3888\n" for sid in (1, 2, 3))
    (tmp_path / "values.yaml").write_text(f"replicaCount: 3\nconfiguration: |\n    tickTime=2500\n{lines}")
    state = read_input(str(tmp_path / "values.yaml"))
    assert state.servers[1].config.tick_time == 2500
    assert [line.addresses[0].host for line in state.servers[1].config.servers] == ["host1", "host2", "host3"]


def test_a_dynamic_file_in_a_config_map_is_read(tmp_path: Path) -> None:
    text = (SAMPLES / "config-map.yaml").read_text()
    text = text.replace(
        "    server.1", "    dynamicConfigFile=/conf/zoo.cfg.dynamic\n  zoo.cfg.dynamic: |\n    server.1"
    )
    (tmp_path / "zk.yaml").write_text(text)
    state = read_input(str(tmp_path / "zk.yaml"))
    assert state.view.members == {1, 2, 3}
    assert "server.1=" in (state.servers[1].dynamic or "")


# Two inputs together.


def test_growing_a_chart_from_three_to_five_adds_two_servers_and_changes_nothing_else() -> None:
    stage = whole(read_input(sample("bitnami-3")), read_input(sample("bitnami-5")))
    assert stage.added == (4, 5)
    assert not stage.readdressed and not stage.unmodelled
    assert {each.key for each in stage.differences} == {"server.4", "server.5"}


def test_names_that_values_do_not_state_are_those_of_the_other_input(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicaCount: 5\n")
    values, other = read_input(str(tmp_path / "values.yaml")), read_input(sample("bitnami-3"))
    state = with_names_of(values, other)
    assert [line.addresses[0].host for line in state.servers[1].config.servers] == [
        f"zk-{n}.zk-headless.data.svc.cluster.local" for n in range(5)
    ]
    assert any("RELEASE is zk, NAMESPACE is data" in sentence for sentence in state.taken)
    assert not whole(other, state).readdressed


def test_names_of_another_form_are_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicaCount: 3\n")
    values, other = read_input(str(tmp_path / "values.yaml")), read_input(sample("three-deployments"))
    state = with_names_of(values, other)
    assert state.servers[1].text == values.servers[1].text
    assert any("RELEASE and NAMESPACE stand for names" in sentence for sentence in state.taken)


def test_a_changed_key_of_a_chart_is_a_difference(tmp_path: Path) -> None:
    text = (SAMPLES / "bitnami-3.yaml").read_text()
    (tmp_path / "values.yaml").write_text(f"{text}snapCount: 5000\ntls: {{quorum: {{enabled: true}}}}\n")
    found = differences(read_input(sample("bitnami-3")).servers, read_input(str(tmp_path / "values.yaml")).servers)
    assert {(each.key, each.effect) for each in found} == {("snapCount", Effect.LOCAL), ("sslQuorum", Effect.PEERS)}
