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


@pytest.mark.parametrize("stream", ["/dev/fd/63", "/proc/self/fd/63", "/dev/stdin"])
def test_a_stream_is_no_file_to_apply(stream: str) -> None:
    """A shell's `<(helm template ...)` is gone when the operator applies."""
    old, new = (read_input(str(OPERATOR / f"rendered{count}.yaml")) for count in (3, 5))
    text = brief(plan(PlanRequest(old, replace(new, path=stream)), fine))
    assert "kubectl apply -n kafka -f NEW.yaml" in commands(text) and stream not in text


def test_the_wait_in_a_pod_is_a_command_of_bash(tmp_path: Path) -> None:
    """A stand-in for `kubectl` answers as a follower; the function and a call run as they are printed."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$@" >> "$0.log"\necho Mode: follower\n')
    (tmp_path / "kubectl").chmod(0o755)
    inputs = (read_input(str(OPERATOR / f"rendered{count}.yaml")) for count in (3, 5))
    blocks = re.findall(r"```\n(.*?)```", brief(plan(PlanRequest(*inputs), fine)), re.DOTALL)
    (function,) = (block for block in blocks if block.startswith("serves_"))
    script = f"PATH={tmp_path}:$PATH\n{function}\nserves_kafka_zookeeper 2"
    subprocess.run(["bash", "-ec", script], check=True, timeout=20)
    asked = (tmp_path / "kubectl.log").read_text(encoding="utf-8")
    assert asked.startswith("exec -n kafka kafka-zookeeper-2 -- bash -c exec 3<>/dev/tcp/127.0.0.1/2181; echo srvr")
