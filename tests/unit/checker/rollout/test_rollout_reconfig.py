"""Where `reconfigEnabled=true`, restarts with other members bring no change about, also if no file states a version.

`Leader.lead` gives the first configuration the version of its NEWLEADER packet, and `QuorumPeer.processReconfig` adopts
a newer one that another server sends. `QuorumPeer.setLastSeenQuorumVerifier` stores none without `reconfigEnabled`.
"""

import json
import os
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from checker.rollout import Engine, PlanRequest, plan
from checker.rollout.answer import Plan
from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.markdown import markdown
from checker.rollout.output.shell_commands import Wait, wait_of
from checker.rollout.stages import whole
from tests.support.rollout_runs import SAMPLES

ADVICE = "**Use `reconfig` for this change**"


def files(folder: Path, servers: range, head: str) -> Folder:
    path = folder / f"{head}-{len(servers)}"
    path.mkdir()
    lines = "".join(f"server.{sid}=h{sid}:2888:3888\n" for sid in servers)
    (path / "zoo.cfg").write_text(f"tickTime=2000\ndataDir=/data\n{head}\n{lines}")
    return read_folder(path)


def judged(old: Folder, new: Folder) -> Plan:
    return plan(PlanRequest(old, new), Engine().run)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("reconfigEnabled=true", "reconfigEnabled=true", 20),
        ("reconfigEnabled=false", "reconfigEnabled=true", 20),
        ("reconfigEnabled=true", "reconfigEnabled=false", 20),
        ("reconfigEnabled=false", "reconfigEnabled=false", 0),
    ],
)
def test_restarts_with_other_members_are_not_proved_where_configurations_get_versions(
    tmp_path: Path, before: str, after: str, code: int
) -> None:
    made = judged(files(tmp_path, range(1, 4), before), files(tmp_path, range(1, 5), after))
    assert made.exit_code == code
    assert (ADVICE in markdown(made)) is (code == 20)
    assert not made.runs or code == 0


def test_restarts_with_the_same_members_are_proved(tmp_path: Path) -> None:
    three = files(tmp_path, range(1, 4), "reconfigEnabled=true")
    assert judged(three, three).exit_code == 0


def test_a_standalone_server_gives_no_version(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    (one / "zoo-1.cfg").write_text("tickTime=2000\ndataDir=/data\nreconfigEnabled=true\n")
    assert not whole(read_folder(one), files(tmp_path, range(1, 4), "reconfigEnabled=true")).gossips


# Operators: they write `reconfigEnabled=true`.


def strimzi(folder: Path, replicas: int) -> Path:
    """A small resource: the generated zoo.cfg has more lines than this file."""
    path = folder / f"kafka-{replicas}.yaml"
    spec = {"zookeeper": {"replicas": replicas, "storage": {"type": "persistent-claim"}}}
    named = {"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "Kafka", "metadata": {"name": "a", "namespace": "n"}}
    path.write_text(json.dumps({**named, "spec": spec}))
    return path


def test_a_generated_file_has_no_lines_that_a_warning_could_name(tmp_path: Path) -> None:
    """Strimzi's loopback address for clients is a different one in each pod, so it is no warning either."""
    assert read_input(str(strimzi(tmp_path, 4))).warnings == ()
    path = tmp_path / "zk.yaml"
    text = re.sub("value: zk-0.*", "value: zk:2888:3888::1 zk:2888:3888::2", (SAMPLES / "bitnami-3.yaml").read_text())
    path.write_text(text.replace("replicas: 3", "replicas: 2"))
    warnings = read_input(str(path)).warnings
    assert any("is also an address of server.1" in each for each in warnings)
    assert not [each for each in warnings if re.match(rf"{re.escape(str(path))}:\d", each)]


def test_a_server_that_listens_for_clients_on_its_loopback_address_is_asked_in_its_pod(tmp_path: Path) -> None:
    state = read_input(str(strimzi(tmp_path, 3)))
    wait = wait_of(whole(state, state).new, 2)
    assert wait.call == "serves_a_zookeeper_12181 1"
    assert 'kubectl exec -n n "a-zookeeper-$1"' in wait.question.function and " nc " not in wait.question.function


def pasted(wait: Wait) -> str:
    """What the reader pastes: the function, and its call."""
    return f"{wait.question.function}\n{wait.call}"


def test_the_question_in_a_pod_is_answered(tmp_path: Path) -> None:
    """The command runs as it stands, with a `kubectl` that runs its command here."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    (tmp_path / "kubectl").chmod(0o755)
    state = read_input(str(strimzi(tmp_path, 3)))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                assert connection.recv(5) == b"srvr\n"
                connection.sendall(b"Zookeeper version: 3.9.3\nMode: follower\n")

        thread = threading.Thread(target=answer)
        thread.start()
        wait = wait_of(whole(state, state).new, 2)
        command = pasted(wait).replace("/12181", "/" + str(listening.getsockname()[1]))
        path = f"{tmp_path}:{os.environ['PATH']}"
        subprocess.run(["bash", "-c", command], check=True, timeout=20, env={**os.environ, "PATH": path})
        thread.join()
