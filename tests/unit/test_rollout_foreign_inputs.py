"""Inputs of other programs: each gets one sentence with its way out. And what was not read of a manifest is named.

The files are written by hand, after the manuals of the programs.
"""

import json
from pathlib import Path

import pytest

from checker.command import ExitCode
from checker.rollout.inputs.platform import UpdateStrategy
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.data import plain
from spec.config import ConfigError
from tests.support.command_line import cli
from tests.support.rollout_runs import SAMPLES

STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: zk, namespace: data, labels: {app: zk}}
spec:
  replicas: 3
  serviceName: zk
  selector: {matchLabels: {app: zk}}
  template:
    metadata: {labels: {app: zk}}
    spec:
      containers:
      - name: zookeeper
        image: zookeeper:3.9
        resources: {requests: {cpu: 1}}
        env:
        - {name: ZOO_SERVERS, value: "server.1=zk-0:2888:3888 server.2=zk-1:2888:3888 server.3=zk-2:2888:3888"}
        - {name: ZOO_TICKTIME, value: "3000"}
        - {name: ZOO_INIT_LIMIT, value: "7"}
        - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}
"""
FETCH, SCP, CP = "ansible all -m fetch", "scp zk1:/conf/zoo.cfg", "docker cp zk1:/conf/zoo.cfg zk1/"

TEXTS = {
    "hosts.ini": (
        "# the servers\n[zookeeper]\nzk1 ansible_host=10.0.0.1 zookeeper_id=1\n",
        2,
        "Ansible inventory",
        FETCH,
    ),
    "inventory": ("; old\n[zookeeper:children]\nzk_east\n", 2, "Ansible inventory", FETCH),
    "zookeeper.service": (
        "[Unit]\nDescription=ZooKeeper\n[Service]\nExecStart=/opt/zk start\n",
        1,
        "unit of systemd",
        SCP,
    ),
    "main.tf": ('resource "aws_instance" "zk" {\n  count = 3\n}\n', 1, "Terraform", SCP),
    "versions.tf": ('\nterraform {\n  required_version = ">= 1.5"\n}\n', 2, "Terraform", SCP),
    "Dockerfile": ("# zk\nFROM zookeeper:3.9\nENV ZOO_TICK_TIME=2000\n", 2, "Dockerfile", CP),
    "zk.env": ("ZOO_SERVERS=server.1=zk1:2888:3888;2181\n", 1, "variables of an image", CP),
    "zoo.cfg.j2": ("tickTime=2000\n{% for h in groups['zk'] %}\nserver.1={{ h }}:2888:3888\n", 2, "template", FETCH),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_of_another_program_has_one_sentence_with_the_way_out(name: str, tmp_path: Path) -> None:
    text, line, what, right = TEXTS[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_input(str(tmp_path / name))
    (problem,) = raised.value.problems
    assert (problem.file, problem.line) == (str(tmp_path / name), line)
    assert what in problem.what and right in problem.right
    with pytest.raises(ConfigError) as raised:
        read_input(str(tmp_path))
    assert (what in str(raised.value) and right in str(raised.value)) or name == "zk.env"


def test_a_folder_with_variables_alone_is_recognised_by_its_name(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ZOO_MY_ID=1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="variables of an image"):
        read_input(str(tmp_path))


def test_a_folder_with_zoo_cfg_files_may_have_any_other_file(tmp_path: Path) -> None:
    for name, (text, *_) in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = "tickTime=2000\n# [Unit] {{ not a template }}\nserver.1=a:2888:3888\nserver.2=b:2888:3888\n"
    (tmp_path / "zoo.cfg").write_text(lines, encoding="utf-8")
    assert set(read_input(str(tmp_path)).servers) == set(read_input(str(tmp_path / "zoo.cfg")).servers) == {1, 2}


DOCUMENTS = {
    "the description of a chart": (
        "Chart.yaml", "apiVersion: v2\nname: zookeeper\nversion: 1.0.0\n", "description of a chart", "helm template",
    ),
    "a kustomization without a kind": (
        "kustomization.yaml", "resources: [set.yaml]\n", "this is a kustomization", "kubectl kustomize",
    ),
    "a playbook": ("site.yml", "- hosts: zookeeper\n  roles: [zookeeper]\n", "Ansible playbook", FETCH),
}  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_yaml_of_another_program_has_one_sentence_with_the_way_out(name: str, tmp_path: Path) -> None:
    file, text, what, right = DOCUMENTS[name]
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_input(str(tmp_path / file))
    assert what in str(raised.value) and right in str(raised.value)


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_the_folder_of_a_kustomization_is_an_error_beside_its_manifests(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("resources: [set.yaml]\n", encoding="utf-8")
    (tmp_path / "set.yaml").write_text(STATEFUL_SET, encoding="utf-8")
    with pytest.raises(ConfigError, match="this is a kustomization; give the result: kubectl kustomize"):
        read_input(str(tmp_path))


# Workloads.


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("apps.kruise.io/v1alpha1", "CloneSet"),
        ("argoproj.io/v1alpha1", "Rollout"),
        ("apps/v1", "DaemonSet"),
        ("v1", "StatefulSet"),
        ("apps.example.com/apps/v1", "StatefulSet"),
    ],
)
def test_a_workload_of_another_controller_is_refused_with_the_way_out(version: str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(STATEFUL_SET.replace("apps/v1", version).replace("StatefulSet", kind), encoding="utf-8")
    ended = cli("rollout", "--from", str(file), "--to", str(file))
    assert ended.code == ExitCode.CONFIGURATION
    assert f"{file}:1: the {kind} of {version} has a controller that is not known here" in ended.err
    assert "kubectl exec zk-0 -- cat /conf/zoo.cfg" in ended.err and "--how" in ended.err


@pytest.mark.parametrize("version", ["apps/v1", "apps/v1beta2"])
def test_a_workload_of_kubernetes_is_read_beside_other_documents(version: str, tmp_path: Path) -> None:
    job = "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{image: zookeeper:3.9}]}}}\n"
    strange = "apiVersion: example.com/v1\nkind: Thing\nspec: {template: word}\n"
    text = f"{STATEFUL_SET.replace('apps/v1', version)}---\n{job}---\n{strange}"
    (tmp_path / "set.yaml").write_text(text, encoding="utf-8")
    assert set(read_input(str(tmp_path / "set.yaml")).servers) == {1, 2, 3}


def test_every_key_that_was_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "set.yaml").write_text(STATEFUL_SET, encoding="utf-8")
    taken = read_input(str(tmp_path / "set.yaml")).taken
    assert "variables of StatefulSet/zk that say nothing here: SECRET, ZOO_TICKTIME" in taken
    (unread,) = [sentence for sentence in taken if sentence.startswith("not read of StatefulSet/zk: ")]
    assert unread.removeprefix("not read of StatefulSet/zk: ").split(", ") == [
        "metadata.labels",
        "spec.selector",
        "spec.template.metadata",
        "spec.template.spec.containers[0].resources",
    ]


def test_the_keys_of_a_resource_of_an_operator_that_were_not_read_are_named() -> None:
    (unread,) = [
        each for each in read_input(str(SAMPLES / "strimzi.yaml")).taken if each.startswith("not read of Kafka")
    ]
    assert "spec.kafka" in unread and "spec.zookeeper.replicas" not in unread


# The controller of a StatefulSet: which pods it restarts.


def updated(tmp_path: Path, strategy: str, *more: str) -> Path:
    file = tmp_path / "set.yaml"
    text = STATEFUL_SET.replace("  serviceName", f"  updateStrategy: {strategy}\n  serviceName")
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("strategy", "restarted", "by_hand"),
    [
        ("{type: RollingUpdate}", [3, 2, 1], []),
        ("{rollingUpdate: {partition: 0}}", [3, 2, 1], []),
        ("{rollingUpdate: {partition: 1}}", [3, 2], [1]),
        ("{type: RollingUpdate, rollingUpdate: {partition: 2}}", [3], [1, 2]),
        ("{rollingUpdate: {partition: 3}}", [], [1, 2, 3]),
        ("{type: OnDelete}", [], [1, 2, 3]),
    ],
)
def test_the_pods_that_the_controller_restarts(
    strategy: str, restarted: list[int], by_hand: list[int], tmp_path: Path
) -> None:
    """Kubernetes: ordinals from the partition on, the highest first; with OnDelete none."""
    working = read_input(str(updated(tmp_path, strategy))).working
    assert working is not None
    assert (list(working.restarted), list(working.by_hand)) == (restarted, by_hand)
    assert plain(working)["restarted"] == restarted and plain(working)["by_hand"] == by_hand
    assert plain(working)["pods"] == {"1": "zk-0", "2": "zk-1", "3": "zk-2"}
    assert (plain(working)["statefulSet"], plain(working)["namespace"]) == ("zk", "data")
    if by_hand and working.updates is UpdateStrategy.ROLLING_UPDATE:
        named = ", ".join(map(str, by_hand))
        assert f"those of {named} keep the old configuration, even if they are deleted" in working.sentence


def test_the_answer_for_machines_has_the_pods_and_who_restarts_them(tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    old, new = updated(before, "{type: OnDelete}"), updated(tmp_path, "{rollingUpdate: {partition: 2}}")
    ended = cli("rollout", "--from", str(old), "--to", str(new), "--json", "--faults", "0", "--in-one-go")
    answer = json.loads(ended.out)
    assert answer["before"]["working"]["updateStrategy"] == "OnDelete"
    assert answer["before"]["working"]["by_hand"] == [1, 2, 3]
    assert answer["after"]["working"]["restarted"] == [3] and answer["after"]["working"]["partition"] == 2
    assert any("those of 1, 2 keep the old configuration" in warning for warning in answer["after"]["warnings"])
    assert not any("keep the old configuration" in warning for warning in answer["before"]["warnings"])
