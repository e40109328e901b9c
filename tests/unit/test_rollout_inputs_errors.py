"""Bad inputs of the planner: each is one clear error with its file, its line, what is wrong and what would be right."""

import re
from pathlib import Path

import pytest

from checker.rollout.inputs.documents import LARGEST
from checker.rollout.inputs.sources import read_input
from spec.config import ConfigError
from tests.support.rollout_runs import SAMPLES

STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: zk}
spec:
  replicas: 3
  serviceName: zk
  template:
    spec:
      containers:
      - name: zookeeper
        image: zookeeper:3.9
        env: [{name: ZOO_SERVERS, value: "server.1=a:2888:3888;2181 server.2=b:2888:3888;2181"}]
"""
TWO = STATEFUL_SET.replace("replicas: 3", "replicas: 2")
CLUSTER = """\
apiVersion: zookeeper.pravega.io/v1beta1
kind: ZookeeperCluster
metadata: {name: zk}
spec: {replicas: 3}
"""
VALUES = (
    "no apiVersion and no kind, so it is taken for the values of a Helm chart",
    "helm template NAME CHART --values /",
)

BAD = {
    "not YAML": ("replicas: [3\n", 2, "invalid YAML", "see the line"),
    "a template": (
        "a: 1\nspec:\n  replicas: {{ .Values.n }}\n  x: {{- if }}\n",
        3,
        "template of a chart",
        "helm template",
    ),
    "a template in a value": (
        *(STATEFUL_SET.replace("replicas: 3", "replicas: '{{ .Values.n }}'"), 5),
        *("template that nothing", "helm template NAME CHART --values FILE > rendered.yaml"),
    ),
    "values of a chart of Bitnami": ("fullnameOverride: zk\nreplicaCount: 3\n", 1, *VALUES),
    "values of another chart": ("image: {repository: nginx}\nreplicaCount: 3\n", 1, *VALUES),
    "values with ids from 0": ("replicaCount: 3\nserverIdOffset: 0\n", 1, *VALUES),
    "values with ZooKeeper as a part": ("zookeeper:\n  replicaCount: 3\n  volumes: {persistence: false}\n", 1, *VALUES),
    "values with lists of hosts": ("ingress: {hosts: [zk.example.com]}\nservices: [zk]\n", 1, *VALUES),
    "a kind without apiVersion": (
        "kind: StatefulSet\n",
        1,
        "it has no apiVersion, so it is taken",
        "folder of zoo.cfg",
    ),
    "a Compose file": (
        *("name: zk\nservices:\n  zk1:\n    image: zookeeper:3.9\n", 1),
        *("this is a Compose file", "docker compose cp zk1:/conf/zoo.cfg zk1/"),
    ),
    "an Ansible inventory": (
        *("all:\n  children:\n    zookeeper:\n      hosts: {zk1: {zookeeper_id: 1}}\n", 1),
        *("this is an Ansible inventory", "fetch the rendered zoo.cfg and the myid of each host into a folder"),
    ),
    "an Ansible inventory of one group": (
        *("zookeeper:\n  hosts: {zk1: {}}\n  vars: {zookeeper_id: 1}\n", 1),
        *("this is an Ansible inventory", "ansible all -m fetch"),
    ),
    "an empty file": ("# nothing\n", 0, "nothing in it", "with manifests"),
    "a list": ("- 1\n- 2\n", 1, "a map of keys", "with manifests"),
    "a word for a number": (
        *(STATEFUL_SET.replace("replicas: 3", "replicas: three"), 5),
        *("'three' is not a number", "in digits"),
    ),
    "no servers": (CLUSTER.replace("replicas: 3", "replicas: 0"), 4, "0 servers", "1 to 255"),
    "a key written twice": (
        *(STATEFUL_SET.replace("  serviceName", "  replicas: 5\n  serviceName"), 6),
        *("written twice", "see line 5"),
    ),
    "an unknown policy": (
        *(TWO.replace("  serviceName", "  podManagementPolicy: parallel\n  serviceName"), 6),
        *("unknown", "did you mean Parallel"),
    ),
    "a zoo.cfg without servers": (
        *(re.sub("    server.*\n", "", (SAMPLES / "config-map.yaml").read_text()), 7),
        *("has no server.N line", "write the server.N lines"),
    ),
    "a zoo.cfg with too few servers": (
        *(re.sub("    server.3.*\n", "", (SAMPLES / "config-map.yaml").read_text()), 23),
        *("there are 3 pods, and the list of servers (1, 2) lacks server 3", "list every server"),
    ),
    "a bad list of servers": (
        *(re.sub('"server.1=.*"', "'zk-0:2888'", STATEFUL_SET).replace("replicas: 3", "replicas: 1"), 12),
        *("'zk-0:2888' is no server", "2888:3888::1"),
    ),
    "a ZookeeperCluster of another operator": (
        *(CLUSTER.replace("zookeeper.pravega.io/v1beta1", "zookeeper.stackable.tech/v1alpha1"), 1),
        *("the ZookeeperCluster of zookeeper.stackable.tech/v1alpha1", "kubectl get statefulset,configmap -o yaml"),
    ),
    "a Kafka of another operator": (
        *("apiVersion: kafka.banzaicloud.io/v1beta1\nkind: Kafka\nspec: {zookeeper: {replicas: 3}}\n", 1),
        *("the Kafka of kafka.banzaicloud.io/v1beta1", "kubectl get statefulset,configmap -o yaml"),
    ),
    "a group that only begins like a known one": (
        *(CLUSTER.replace("zookeeper.pravega.io/v1beta1", "zookeeper.pravega.io.example.com/v1beta1"), 1),
        *("is of an operator that is not known here", "known is zookeeper.pravega.io"),
    ),
    "no StatefulSet": ("apiVersion: v1\nkind: Service\n", 0, "no StatefulSet of ZooKeeper in it, only Service", "give"),
    "a kustomization": (
        *("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n", 1),
        *("kustomization", "kubectl kustomize"),
    ),
    "fewer servers than pods": (
        STATEFUL_SET,
        5,
        "there are 3 pods, and the list of servers (1, 2) lacks",
        "list every",
    ),
    "quoted replicas": (STATEFUL_SET.replace("replicas: 3", "replicas: '3'"), 5, "not a number", "without quotes"),
    "no pods": (STATEFUL_SET.replace("replicas: 3", "replicas: 0"), 5, "there is no pod", "number of servers"),
    "ordinals": (
        STATEFUL_SET.replace("  replicas: 3", "  ordinals: {start: 1}\n  replicas: 2"),
        *(5, "do not begin at 0", "leave ordinals out"),
    ),
    "no servers anywhere": (
        STATEFUL_SET.replace("ZOO_SERVERS", "OTHER"),
        *(10, "StatefulSet/zk: no variable and no flag states the servers", "set ZOO_SERVERS"),
    ),
    "no server": (STATEFUL_SET.replace("server.2=b", "server.2 = b"), 12, "'server.2' is no server", "server.1=HOST"),
    "one id twice": (STATEFUL_SET.replace("server.2", "server.1"), 12, "server 1 is in it twice", "each id once"),
    "one id for all pods": (
        STATEFUL_SET.replace("replicas: 3", "replicas: 2").replace("env: [", "env: [{name: ZOO_MY_ID, value: '1'}, "),
        *(12, "ZOO_MY_ID is 1 for each of 2 pods", "derive it from the ordinal"),
    ),
    "a variable from a ConfigMap that is not given": (
        STATEFUL_SET.replace(
            'value: "server.1=a:2888:3888;2181 server.2=b:2888:3888;2181"',
            "valueFrom: {configMapKeyRef: {name: zk-env, key: servers}}",
        ),
        *(12, "ZOO_SERVERS is in the ConfigMap zk-env, key servers, which is not in the input", "add this ConfigMap"),
    ),
    "a reference to a variable that is not set": (
        STATEFUL_SET.replace("=a:", "=$(HOST):"),
        *(12, "$(HOST) is not set", "write its value out"),
    ),
    "a script without a service": (
        STATEFUL_SET.replace("ZOO_SERVERS", "ZK_REPLICAS").replace("  serviceName: zk\n", ""),
        *(11, "is not a number of servers", "such as 3"),
    ),
    "Kafka without ZooKeeper": (
        *("apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {name: k}\nspec: {kafka: {replicas: 3}}\n", 1),
        *("no spec.zookeeper", "spec.zookeeper.replicas"),
    ),
    "Kafka without replicas": (
        *(
            "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {name: k}\nspec:\n  zookeeper: {config: {}}\n",
            5,
        ),
        *("replicas is missing", "replicas: 3"),
    ),
    "a cluster without a name": (
        *("apiVersion: zookeeper.pravega.io/v1beta1\nkind: ZookeeperCluster\nspec: {replicas: 3}\n", 1),
        *("metadata.name is missing", "write the name"),
    ),
    "a value for a map": (
        *(TWO.replace("  serviceName", "  updateStrategy: OnDelete\n  serviceName"), 6),
        *("a map of keys is expected here", "below it"),
    ),
    "nested too deep": ("[" * 4000 + "]" * 4000, 0, "nested too deep", "fewer"),
    "a bad zoo.cfg": (
        (SAMPLES / "config-map.yaml").read_text().replace("tickTime=2000", "tickTime=soon"),
        *(1, "(ConfigMap zk-config, zoo.cfg)", "soon"),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_input_is_one_error_with_its_place(name: str, tmp_path: Path) -> None:
    text, line, what, right = BAD[name]
    path = tmp_path / "input.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_input(str(path))
    said = str(caught.value)
    assert said.startswith(str(path)) and "\n" not in said
    assert what in said and right in said
    found = re.search(r":(\d+): ", said)
    assert (int(found[1]) if found else 0) == line


def test_a_file_that_is_too_large_or_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text("#" * (LARGEST + 1))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\xfa")
    for name, what in (
        ("large.yaml", "the limit is 262,144; give the manifests of ZooKeeper alone"),
        ("binary.yaml", "not UTF-8"),
    ):
        with pytest.raises(ConfigError, match=what):
            read_input(str(tmp_path / name))


def test_the_folder_of_a_chart_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("name: zookeeper\n")
    with pytest.raises(ConfigError, match="folder of a chart; give the rendered manifests: helm template"):
        read_input(str(tmp_path))


def test_a_mounted_config_map_must_be_given(tmp_path: Path) -> None:
    _, _, alone = (SAMPLES / "config-map.yaml").read_text().partition("---\n")
    (tmp_path / "set.yaml").write_text(alone)
    with pytest.raises(ConfigError, match="in the ConfigMap zk-config, which is not in the input; add it: kubectl get"):
        read_input(str(tmp_path / "set.yaml"))


def test_several_workloads_must_each_state_an_id_of_their_own(tmp_path: Path) -> None:
    text = (SAMPLES / "three-deployments.yaml").read_text()
    for wrong, what in (
        (text.replace('"2"', '"1"'), "is server 1, and another workload too"),
        (text.replace('- {name: ZOO_MY_ID, value: "2"}\n', ""), "not each states its id"),
    ):
        (tmp_path / "all.yaml").write_text(wrong)
        with pytest.raises(ConfigError, match=what):
            read_input(str(tmp_path / "all.yaml"))


@pytest.mark.parametrize("text", ["nowhere", "no/where.yaml", "a\0b", "x" * 5000])
def test_a_path_that_does_not_exist_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"no file can have this name|does not exist"):
        read_input(text)
