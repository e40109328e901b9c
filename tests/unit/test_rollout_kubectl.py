"""The steps of a StatefulSet: `kubectl` commands with the names of the manifest, which run as they are printed.

A patch is applied here by a merge of its own, by the names of containers and variables as the API server does it.
Sources: Kubernetes, "StatefulSets" (Update Strategies, Partitions, Forced rollback), "Update API Objects in Place Using
kubectl patch", and the help texts of `kubectl apply`, `delete`, `exec`, `patch`, `rollout status` and `scale`.
"""

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from checker.rollout import Plan, PlanRequest, plan
from checker.rollout.inputs.sources import read_input
from checker.rollout.orders import Way
from checker.rollout.output.markdown import markdown
from tests.support.rollout_runs import OPERATOR, SAMPLES, fine

NAME, NAMESPACE = "kafka-zookeeper", "kafka"
SCALE, DELETE = f"kubectl scale -n {NAMESPACE} statefulset/{NAME}", f"kubectl delete pod -n {NAMESPACE}"
APPLY = f"kubectl apply -n {NAMESPACE} -f NEW.yaml"


STRATEGY = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}


def planned(tmp_path: Path, *edits: tuple[str, str], how: Way | None = None, old: int = 3, new: int = 5) -> Plan:
    """The plan between two manifests of the operators, with the same edits in both."""
    inputs = []
    for count in (old, new):
        text = (OPERATOR / f"rendered{count}.yaml").read_text(encoding="utf-8")
        for before, after in edits:
            assert before in text
            text = text.replace(before, after)
        path = tmp_path / f"{count}.yaml"
        path.write_text(text, encoding="utf-8")
        inputs.append(read_input(str(path)))
    return plan(PlanRequest(*inputs, how=how), fine)


def brief(made: Plan) -> str:
    return markdown(made, traces=False, evidence=False)


def commands(text: str) -> list[str]:
    """Every command with `kubectl` in the order of the text; not the question of a wait."""
    spans = re.findall(r"`(kubectl[^`]*)`|^ *(kubectl .*)$", text, re.MULTILINE)
    return [one or other for one, other in spans]


def merged(old: object, patch: object) -> object:
    """Return an object with a patch: maps by their keys, lists of named parts by the names, all else replaced."""
    if isinstance(old, dict) and isinstance(patch, dict):
        return {**old, **{key: merged(old.get(key), value) for key, value in patch.items()}}
    if isinstance(old, list) and isinstance(patch, list):
        named = {part["name"]: part for part in patch}
        return [merged(part, named.pop(part["name"], {})) for part in old] + list(named.values())
    return patch


def patched(manifest: Path, text: str) -> dict[str, object]:
    """Return the objects of a manifest, by kind and name, after the patches of a text."""
    documents = yaml.safe_load_all(manifest.read_text(encoding="utf-8"))
    resources = (item for each in documents if each for item in each.get("items", [each]))
    objects = {f"{each['kind'].lower()}/{each['metadata']['name']}": each for each in resources}
    for command in commands(text):
        words = shlex.split(command)
        if words[1] == "patch":
            target = next(word for word in words if "/" in word)
            objects[target] = merged(objects[target], json.loads(words[-1]))
    return objects


def grown(tmp_path: Path, name: str, old: str, new: str) -> list[Path]:
    """Return two manifests: a fixture with three voters, and the same with five servers by this edit of its list."""
    text = (SAMPLES / f"{name}.yaml").read_text(encoding="utf-8").replace(":observer", "")
    assert old in text
    paths = [tmp_path / "three.yaml", tmp_path / "five.yaml"]
    paths[0].write_text(text, encoding="utf-8")
    paths[1].write_text(text.replace(old, new).replace("replicas: 3", "replicas: 5"), encoding="utf-8")
    return paths


HOSTS = [f"zk-{n}.zk.data.svc.cluster.local:2888:3888" for n in range(5)]
LISTS = {
    "config-map": (HOSTS[2], "\n    ".join([HOSTS[2], *(f"server.{n + 1}={HOSTS[n]}" for n in (3, 4))])),
    "library-image": (
        "zookeeper-2.zookeeper:2888:3888;2181",
        " ".join(f"server.{n + 1}=zookeeper-{n}.zookeeper:2888:3888;2181" for n in (2, 3, 4)).removeprefix("server.3="),
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_the_patches_of_a_stage_make_the_objects_that_have_its_servers(tmp_path: Path, name: str) -> None:
    old, new = grown(tmp_path, name, *LISTS[name])
    made = plan(PlanRequest(read_input(str(old)), read_input(str(new)), how=Way.CONTROLLER), fine)
    first, last = brief(made).split("### Stage ")[1:3]
    objects = patched(old, first)
    (tmp_path / "now.yaml").write_text(yaml.safe_dump_all(objects.values()), encoding="utf-8")
    now = read_input(str(tmp_path / "now.yaml"))
    stage = made.stages[0].stage
    assert now.view.members == {1, 2, 3, 4} and now.view == stage.new.view
    assert {line.sid: line.addresses for line in now.servers[1].config.servers} == {
        line.sid: line.addresses for line in stage.new.servers[1].config.servers
    }
    assert now.working is not None and set(now.working.ordinals) == {1, 2, 3, 4}
    assert "kubectl patch" not in last and f"-f {new}`." in last
    restart = "If its pod template is the one of now, restart the pods: `kubectl rollout restart"
    assert (restart in last) == (name == "config-map"), "a new ConfigMap alone restarts no pod"


def test_a_list_that_is_a_number_or_that_no_command_changes(tmp_path: Path) -> None:
    """ZK_REPLICAS is a number; `--servers=3` is a word of the command, so the servers are told instead."""
    old, new = grown(tmp_path, "incubator-3", 'ZK_REPLICAS, value: "3"', 'ZK_REPLICAS, value: "5"')
    made = plan(PlanRequest(read_input(str(old)), read_input(str(new)), how=Way.CONTROLLER), fine)
    assert '{"name": "ZK_REPLICAS", "value": "4"}' in brief(made)
    old, new = grown(tmp_path, "kubernetes-docs", "--servers=3", "--servers=5")
    made = plan(PlanRequest(read_input(str(old)), read_input(str(new)), how=Way.CONTROLLER), fine)
    assert "with `replicas: 4` and the servers above" in brief(made) and "kubectl patch" not in brief(made)


def test_a_controller_gets_the_servers_of_each_stage_and_is_waited_for(tmp_path: Path) -> None:
    """The probe is `ruok`: the rollout ends before servers serve, so every server is asked afterwards."""
    text = brief(planned(tmp_path))
    status = f"kubectl rollout status -n {NAMESPACE} statefulset/{NAME}"
    patch, *others = commands(text.partition("## If a step fails")[0])
    assert others == [status, APPLY.replace("NEW.yaml", str(tmp_path / "5.yaml")), status]
    listed = re.search(r'ZOO_SERVERS, value: "([^"]*)"', (OPERATOR / "rendered5.yaml").read_text(encoding="utf-8"))
    assert listed is not None
    variable = {"name": "ZOO_SERVERS", "value": " ".join(listed[1].split()[:4])}
    template = {"spec": {"containers": [{"name": "zookeeper", "env": [variable]}]}}
    assert json.loads(shlex.split(patch)[-1]) == {"spec": {"replicas": 4, "template": template}}
    stages = text.split("### Stage ")[1:]
    assert "with `replicas: 5`: " in stages[1]
    assert "for n in 0 1 2 3; do serves_kafka_zookeeper $n; done" in stages[0]
    assert "for n in 0 1 2 3 4; do serves_kafka_zookeeper $n; done" in stages[1]
    assert "zoo.cfg" not in text and "step-1" not in text and "myid" not in text


MANIFEST = "In stage 1 run `kubectl apply -n kafka -f {}`."
TICK = ('ZOO_TICK_TIME, value: "2000"', 'ZOO_TICK_TIME, value: "3000"')
HAND = "never do that: apply the old manifest with the `replicas` and the servers of stage 1."


def if_it_fails(made: Plan) -> str:
    """The section on a step that fails."""
    return brief(made).partition("## If a step fails\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("old", "new"), [(3, 5), (5, 3)])
def test_a_stage_goes_back_to_the_state_before_itself(tmp_path: Path, old: int, new: int) -> None:
    """The old manifest in stage 2 would be two stages in one go, which is unsafe (R10)."""
    text = if_it_fails(planned(tmp_path, old=old, new=new))
    assert "Or go back to the state before this stage: safe." in text
    assert MANIFEST.format(tmp_path / f"{old}.yaml") in text
    assert (
        "In stage 2 never do that: repeat the patch of stage 1. Delete a pod that hangs: the StatefulSet does" in text
    )


def test_a_change_of_one_stage_goes_back_to_the_old_manifest(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    edited = planned(tmp_path / "new", TICK, old=5, new=5).request.new
    made = plan(PlanRequest(planned(tmp_path, old=5, new=5).request.old, edited), fine)
    undo = f"Or apply the old manifest (`kubectl apply -n kafka -f {tmp_path / '5.yaml'}`): safe. Delete a pod"
    assert undo in if_it_fails(made)


def test_a_patch_of_the_servers_is_no_way_back_from_a_stage_that_changes_other_keys(tmp_path: Path) -> None:
    old = planned(tmp_path).request.old
    (tmp_path / "new").mkdir()
    made = plan(PlanRequest(old, planned(tmp_path / "new", TICK).request.new), fine)
    assert HAND in if_it_fails(made) and "repeat the patch" not in if_it_fails(made)


def test_files_without_a_patch_go_back_by_hand(tmp_path: Path) -> None:
    old, new = grown(tmp_path, "kubernetes-docs", "--servers=3", "--servers=5")
    made = plan(PlanRequest(read_input(str(old)), read_input(str(new)), how=Way.CONTROLLER), fine)
    assert HAND in if_it_fails(made)


def test_a_config_map_goes_back_by_its_patch_and_a_restart(tmp_path: Path) -> None:
    """The template has the annotation of stage 1 already, so the patch alone restarts no pod."""
    old, new = grown(tmp_path, "config-map", *LISTS["config-map"])
    made = plan(PlanRequest(read_input(str(old)), read_input(str(new)), how=Way.CONTROLLER), fine)
    assert re.search(
        r"repeat the patch of stage 1\. Then restart the pods: `kubectl rollout restart [^`]*`\.", if_it_fails(made)
    )


def test_a_person_keeps_the_pods_that_run_on_the_way_back(tmp_path: Path) -> None:
    """The patch of stage 1 has the `replicas` before stage 1: with them, two pods would stop at once."""
    made = planned(tmp_path, how=Way.ONE_BY_ONE, old=5, new=3)
    text = if_it_fails(made)
    assert len(made.stages) == 2 and "apply the old manifest with the present replicas and OnDelete. In stage 2" in text
    assert "repeat the patch of stage 1 with the present replicas. Then undo the steps of this stage backwards." in text


def test_a_person_deletes_pods_behind_on_delete(tmp_path: Path) -> None:
    """Server N runs in the pod N-1. Two pods cannot be started in another order than by their ordinals."""
    text = brief(planned(tmp_path, how=Way.ONE_BY_ONE))
    patch, apply, *steps, last = commands(text)
    assert shlex.split(patch)[:6] == ["kubectl", "patch", "-n", NAMESPACE, f"statefulset/{NAME}", "-p"]
    assert json.loads(shlex.split(patch)[6]) == STRATEGY
    assert (
        apply == APPLY
        and "Apply a copy of the new manifest with `replicas: 3`, `updateStrategy: {type: OnDelete}`" in text
    )
    pods = [f"{DELETE} {NAME}-{ordinal}" for ordinal in (0, 1, 2)]
    assert steps == [f"{SCALE} --replicas=4", *pods, f"{SCALE} --replicas=5"]
    assert last == APPLY.replace("NEW.yaml", str(tmp_path / "5.yaml")) and "as it is: `" in text
    assert "**Check first**: one of servers 1, 2 and 3 (pods 0, 1 and 2) says" in text
    assert "servers 1 to 4 (pods 0 to 3) run with their new files" in text


def test_a_check_names_the_pods_as_the_waits_do(tmp_path: Path) -> None:
    text = brief(planned(tmp_path, old=5, new=3))
    assert "**Check first**: servers 1 to 4 (pods 0 to 3) run with their new files" in text
    assert "Server 5 (pod 4) must stay stopped." in text


@pytest.mark.parametrize("stream", ["/dev/fd/63", "/proc/self/fd/63", "/dev/stdin"])
def test_a_stream_is_no_file_to_apply(tmp_path: Path, stream: str) -> None:
    """A shell's `<(helm template ...)` is gone when the operator applies."""
    request = planned(tmp_path).request
    made = plan(PlanRequest(request.old, replace(request.new, path=stream)), fine)
    assert APPLY in commands(brief(made)) and stream not in brief(made)


PARTITION = ("{type: RollingUpdate}", "{type: RollingUpdate, rollingUpdate: {partition: 2}}")


@pytest.mark.parametrize(
    ("edit", "patches"), [(("type: RollingUpdate", "type: OnDelete"), 0), (PARTITION, 1)], ids=["OnDelete", "partition"]
)
def test_a_controller_that_does_not_restart_every_pod_leaves_it_to_a_person(
    tmp_path: Path, edit: tuple[str, str], patches: int
) -> None:
    """Below a partition a pod that is deleted comes back with the old template, so the strategy is changed."""
    text = brief(planned(tmp_path, edit))
    assert sum("kubectl patch" in command for command in commands(text)) == patches
    assert f"{DELETE} {NAME}-0" in commands(text) and "rollout status" not in text


def test_a_server_that_goes_is_the_last_pod(tmp_path: Path) -> None:
    made = planned(tmp_path, how=Way.ONE_BY_ONE, old=5, new=3)
    text = brief(made)
    assert [part.stage.removed for part in made.stages] == [(5,), (4,)]
    assert "cannot take these steps" not in text
    assert [command for command in commands(text) if "scale" in command] == [
        f"{SCALE} --replicas=4",
        f"{SCALE} --replicas=3",
    ]


def test_the_wait_in_a_pod_is_a_command_of_bash(tmp_path: Path) -> None:
    """A stand-in for `kubectl` answers as a follower; the function and a call run as they are printed."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$@" >> "$0.log"\necho Mode: follower\n')
    (tmp_path / "kubectl").chmod(0o755)
    blocks = re.findall(r"```\n(.*?)```", brief(planned(tmp_path)), re.DOTALL)
    (function,) = (block for block in blocks if block.startswith("serves_"))
    script = f"PATH={tmp_path}:$PATH\n{function}\nserves_kafka_zookeeper 2"
    subprocess.run(["bash", "-ec", script], check=True, timeout=20)
    asked = (tmp_path / "kubectl.log").read_text(encoding="utf-8")
    assert asked.startswith(f"exec -n {NAMESPACE} {NAME}-2 -- bash -c exec 3<>/dev/tcp/127.0.0.1/2181; echo srvr")
