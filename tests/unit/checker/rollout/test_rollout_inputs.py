"""Inputs of the planner beyond folders: manifests and resources of operators give the same value.

The samples in `tests/fixtures/rollout_inputs` are written by hand, with the keys that the charts render and that the
operators document. Expected members, addresses and settings are those that the templates and scripts named in the
modules produce.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from checker.rollout.files.differences import WITHHOLDING, differences
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.folders import settings, with_namespace_of
from checker.rollout.inputs.platform import WORDS, Operator, PodManagement, Readiness, UpdateStrategy
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.data import plain
from checker.rollout.stages import whole
from spec.config import ConfigError
from tests.support.rollout_runs import SAMPLES

PARALLEL, ORDERED = PodManagement.PARALLEL, PodManagement.ORDERED_READY
ROLLING, ON_DELETE = UpdateStrategy.ROLLING_UPDATE, UpdateStrategy.ON_DELETE


def sample(name: str) -> str:
    return str(SAMPLES / f"{name}.yaml")


HOSTS = {
    "bitnami-3": {sid: f"zk-{sid - 1}.zk-headless.data.svc.cluster.local" for sid in (1, 2, 3)},
    "bitnami-5": {sid: f"zk-{sid - 1}.zk-headless.data.svc.cluster.local" for sid in (1, 2, 3, 4, 5)},
    "incubator-3": {
        n + 1: f"kafka-zookeeper-{n}.kafka-zookeeper-headless.NAMESPACE.svc.cluster.local" for n in range(3)
    },
    "cp-zookeeper-3": {n + 1: f"cp-zookeeper-{n}.cp-zookeeper-headless.data" for n in range(3)},
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


IMOK = "echo ruok | timeout 2 nc -w 2 localhost 2181 | grep imok"
PROBES = {
    "none": (None, Readiness.NONE),
    "ruok": ({"exec": {"command": ["/bin/bash", "-ec", IMOK]}}, Readiness.ALIVE),
    "an open port": ({"tcpSocket": {"port": 2181}}, Readiness.ALIVE),
    "the AdminServer": ({"httpGet": {"path": "/commands/ruok", "port": 8080}}, Readiness.ALIVE),
    "a script that is not shown": ({"exec": {"command": ["sh", "/config-scripts/ready"]}}, Readiness.ALIVE),
    "srvr without a look at its answer": (
        {"exec": {"command": ["sh", "-c", "echo srvr | nc localhost 2181"]}},
        Readiness.ALIVE,
    ),
    "ruok or srvr": (
        {"exec": {"command": ["sh", "-c", f"{IMOK} || echo srvr | nc localhost 2181 | grep Mode"]}},
        Readiness.ALIVE,
    ),
    "srvr": ({"exec": {"command": ["sh", "-c", "echo srvr | nc localhost 2181 | grep Mode"]}}, Readiness.SERVING),
    "mntr": (
        {"exec": {"command": ["sh", "-c", "echo mntr | nc localhost 2181 | grep -q zk_server_state"]}},
        Readiness.SERVING,
    ),
    "stat": ({"exec": {"command": ["sh", "-c", "echo stat | nc localhost 2181 | grep Zxid"]}}, Readiness.SERVING),
    "zkServer.sh": ({"exec": {"command": ["zkServer.sh", "status"]}}, Readiness.SERVING),
}


@pytest.mark.parametrize("name", PROBES)
def test_the_probe_of_the_container_says_whether_a_ready_pod_serves(tmp_path: Path, name: str) -> None:
    probe, readiness = PROBES[name]
    *others, stateful_set = yaml.safe_load_all((SAMPLES / "config-map.yaml").read_text())
    containers = stateful_set["spec"]["template"]["spec"]["containers"]
    containers[0] |= {} if probe is None else {"readinessProbe": probe}
    serving = {"exec": {"command": ["sh", "-c", "echo srvr | nc localhost 2181 | grep Mode"]}}
    containers.append({"name": "sidecar", "image": "busybox", "readinessProbe": serving})
    (tmp_path / "zk.yaml").write_text(yaml.safe_dump_all([*others, stateful_set]))
    working = read_input(str(tmp_path / "zk.yaml")).working
    assert working is not None and working.readiness is readiness
    assert plain(working)["readiness"] == readiness.value
    assert WORDS[readiness] in working.sentence


def test_an_operator_states_no_probe() -> None:
    strimzi = read_input(sample("strimzi")).working
    assert strimzi is not None and strimzi.readiness is None


@pytest.mark.parametrize(("name", "operator"), [("strimzi", Operator.STRIMZI), ("pravega", Operator.PRAVEGA)])
def test_an_operator_says_how_it_changes_the_membership(name: str, operator: Operator) -> None:
    state = read_input(sample(name))
    assert state.working is not None and state.working.operator is operator
    assert any("`reconfig`" in sentence for sentence in state.taken)


def test_a_default_number_of_servers_is_named_as_one(tmp_path: Path) -> None:
    text = (SAMPLES / "bitnami-3.yaml").read_text()
    (tmp_path / "zk.yaml").write_text(text.replace("  replicas: 3\n", ""))
    state = read_input(str(tmp_path / "zk.yaml"))
    assert "replicas is not in it, and the default is 1" in state.taken[0]
    assert any("--down 2,3" in sentence for sentence in state.taken)


def test_ids_that_do_not_begin_at_one_are_those_of_the_list(tmp_path: Path) -> None:
    text = (SAMPLES / "bitnami-3.yaml").read_text()
    (tmp_path / "zk.yaml").write_text(re.sub("::([123])", r"::1\1", text))
    state = read_input(str(tmp_path / "zk.yaml"))
    assert set(state.servers) == {11, 12, 13} and not any("--down" in sentence for sentence in state.taken)


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
    documents = list(yaml.safe_load_all((SAMPLES / "config-map.yaml").read_text()))
    (tmp_path / "zk.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert read_input(str(tmp_path / "zk.json")).servers[1].text == read_input(sample("config-map")).servers[1].text


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
    assert not stage.readdressed and not stage.keys_with(*WITHHOLDING)
    assert {each.key for each in stage.differences} == {"server.4", "server.5"}


def test_a_namespace_that_manifests_do_not_state_is_that_of_the_other_input(tmp_path: Path) -> None:
    text = (SAMPLES / "kubernetes-docs.yaml").read_text()
    five = text.replace("replicas: 3", "replicas: 5").replace("--servers=3", "--servers=5")
    named = text.replace("  name: zk\nspec:\n  serviceName", "  name: zk\n  namespace: data\nspec:\n  serviceName")
    (tmp_path / "five.yaml").write_text(five)
    (tmp_path / "named.yaml").write_text(named)
    given, other = read_input(str(tmp_path / "five.yaml")), read_input(str(tmp_path / "named.yaml"))
    state = with_namespace_of(given, other)
    assert [line.addresses[0].host for line in state.servers[1].config.servers] == [
        f"zk-{n}.zk-hs.data.svc.cluster.local" for n in range(5)
    ]
    assert any("NAMESPACE is data" in sentence for sentence in state.taken)
    assert not whole(other, state).readdressed
    assert with_namespace_of(other, given) is other


def test_a_namespace_in_names_of_another_form_is_not_taken_over() -> None:
    given, other = read_input(sample("kubernetes-docs")), read_input(sample("three-deployments"))
    state = with_namespace_of(given, other)
    assert state.servers[1].text == given.servers[1].text
    assert any("NAMESPACE stands for a name" in sentence for sentence in state.taken)


def test_a_changed_key_of_a_chart_is_a_difference(tmp_path: Path) -> None:
    text = (SAMPLES / "bitnami-3.yaml").read_text()
    more = '- {name: ZOO_SNAPCOUNT, value: "5000"}\n        - {name: ZOO_TLS_QUORUM_ENABLE, value: "true"}'
    (tmp_path / "new.yaml").write_text(text.replace("        env:\n", f"        env:\n        {more}\n"))
    found = differences(read_input(sample("bitnami-3")).servers, read_input(str(tmp_path / "new.yaml")).servers)
    assert {(each.key, each.effect) for each in found} == {("snapCount", Effect.LOCAL), ("sslQuorum", Effect.PEERS)}


@pytest.mark.parametrize("text", ["a\0b", "x" * 5000])
def test_a_path_that_cannot_be_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"no file can have this name|does not exist"):
        read_input(text)
