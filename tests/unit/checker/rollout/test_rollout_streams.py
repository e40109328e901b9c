"""Inputs and outputs of the planner that are no plain files: pipes, empty names, hostile YAML, secrets.

Expected values: a stream gives the state of the same text in a file; errors name the input. YAML 1.1 has aliases and
merge keys ("Merge Key Language-Independent Type"), and no bound on them. `Properties.load` has continued lines.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checker.rollout import Engine, PlanRequest, plan, read_folder
from checker.rollout.files.differences import masked
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.data import data, write_scenarios, write_stages
from checker.rollout.output.markdown import markdown
from spec.config import ConfigError
from spec.config.problems import Findings
from spec.config.properties import read_properties
from tests.support.command_line import python_m_checker
from tests.support.rollout_runs import FOLDERS

THREE = (FOLDERS / "three" / "zoo.cfg").read_text(encoding="utf-8")
KAFKA = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: a, namespace: n}
spec:
  zookeeper: {replicas: 3}
"""
AS_JSON = (
    '{"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "Kafka", "metadata": {"name": "a", "namespace": "n"}, '
    '"spec": {"zookeeper": {"replicas": 3}}}'
)


@contextmanager
def pipe(text: str) -> Iterator[str]:
    """The path of a pipe with a text, as `<(command)` gives it."""
    reader, writer = os.pipe()

    def fill() -> None:
        with os.fdopen(writer, "w") as file:
            file.write(text)

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        yield f"/dev/fd/{reader}"
    finally:
        thread.join()
        os.close(reader)


@pytest.mark.parametrize(
    "text", [THREE, f"# members\n\n{THREE}", KAFKA, f"---\n{KAFKA}", f"# a resource\n{KAFKA}", AS_JSON]
)
def test_a_pipe_is_read_as_one_file(text: str) -> None:
    with pipe(text) as path:
        state = read_input(path)
    assert set(state.servers) == {1, 2, 3} and path in state.taken[0]


@pytest.mark.parametrize("text", ["", "# nothing\n", "tickTime=2000\n", "a: [\n"])
def test_a_pipe_without_a_state_is_one_error(text: str) -> None:
    with pipe(text) as path, pytest.raises(ConfigError) as caught:
        read_input(path)
    assert str(caught.value).startswith(path) and "\n" not in str(caught.value)


def test_a_pipe_with_an_inventory_has_the_way_out() -> None:
    """A line such as `[zookeeper]` would be YAML, too."""
    with pipe("# hosts\n[zookeeper]\nzk1 zookeeper_id=1\n") as path, pytest.raises(ConfigError) as caught:
        read_input(path)
    assert "this is an Ansible inventory" in str(caught.value) and "ansible all -m fetch" in str(caught.value)


def test_a_file_on_standard_input_is_read_as_one_file(tmp_path: Path) -> None:
    """`< kafka.yaml` makes /dev/stdin a plain file without the suffix of YAML."""
    (tmp_path / "kafka.yaml").write_text(KAFKA)
    (tmp_path / "named.yaml").write_text(KAFKA)
    with (tmp_path / "kafka.yaml").open() as stdin:
        ended = python_m_checker("rollout", "--from", tmp_path / "named.yaml", "--to", "/dev/stdin", stdin=stdin)
    assert (ended.code, ended.err) == (0, "")


# YAML.


def bomb(depth: int, width: int, merge: str) -> str:
    """Maps that are each made of many aliases of the one before."""
    lines = ["a0: &a0 {k: v}"]
    for number in range(1, depth):
        aliases = ", ".join([f"*a{number - 1}"] * width)
        lines.append(f"a{number}: &a{number} {{{merge}: [{aliases}]}}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("merge", ["<<", "list"])
def test_a_file_that_grows_without_end_by_its_aliases_is_one_error(tmp_path: Path, merge: str) -> None:
    (tmp_path / "kafka.yaml").write_text(f"{bomb(12, 60, merge)}{KAFKA}")
    begun = time.process_time()
    with pytest.raises(ConfigError, match="with all aliases filled in it has more than 262,144 keys and values"):
        read_input(str(tmp_path / "kafka.yaml"))
    assert time.process_time() - begun < 5


def test_an_alias_of_itself_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "kafka.yaml").write_text(f"{KAFKA}extra: &a [*a]\n")
    with pytest.raises(ConfigError, match="with all aliases filled in"):
        read_input(str(tmp_path / "kafka.yaml"))


def test_merges_below_the_bound_are_followed_at_once(tmp_path: Path) -> None:
    aliases = ", ".join(["*x"] * 20_000)
    text = KAFKA.replace("{replicas: 3}", f"\n    x: &x {{replicas: 3}}\n    <<: [{aliases}]")
    (tmp_path / "kafka.yaml").write_text(text)
    begun = time.process_time()
    assert len(read_input(str(tmp_path / "kafka.yaml")).servers) == 3
    assert time.process_time() - begun < 20


def test_many_servers_are_judged_in_seconds(tmp_path: Path) -> None:
    """255 servers took more than 100 seconds; the quorums alone speak of them."""
    (tmp_path / "kafka.yaml").write_text(KAFKA.replace("replicas: 3", "replicas: 255"))
    state = read_input(str(tmp_path / "kafka.yaml"))
    begun = time.process_time()
    assert plan(PlanRequest(state, state), Engine().run).exit_code == 0
    assert time.process_time() - begun < 30


# A dataDir that leads elsewhere.


@pytest.mark.parametrize("directory", ["../../secret", "../secret", "/../../{root}/secret", "{top}/../../secret"])
def test_a_myid_outside_of_the_input_is_not_read(tmp_path: Path, directory: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "myid").write_text("a secret text")
    top = tmp_path / "a" / "before"
    (top / "one").mkdir(parents=True)
    text = directory.format(root=tmp_path, top=top)
    for file in (top / "zoo.cfg", top / "one" / "zoo.cfg"):
        file.write_text(f"dataDir={text}\n")
        for given in (file, file.parent):
            with pytest.raises(ConfigError) as caught:
                read_folder(given)
            assert "a secret text" not in str(caught.value) and "standalone" in str(caught.value)
        file.unlink()


def test_a_myid_beside_the_folder_of_its_server_is_read(tmp_path: Path) -> None:
    for name, sid in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / f"data-{name}").mkdir()
        (tmp_path / f"data-{name}" / "myid").write_text(f"{sid}\n")
        (tmp_path / name / "zoo.cfg").write_text(f"dataDir=../data-{name}\nserver.1=h:1:2\nserver.2=i:1:2\n")
    assert set(read_folder(tmp_path).servers) == {1, 2}


# Secrets.

SECRETS = (
    "ssl.quorum.keyStore.password=hunter2\nssl.trustStore.password : hunter2\nmySecret hunter2\n"
    "ssl.keyStore.passwd=hun\\\n  ter2\n#ssl.keyStore.password=hunter2\nsuper\\u0050assword=hunter2\n"
)


def test_the_values_of_passwords_are_hidden_and_the_rest_of_a_text_stays() -> None:
    text = f"# a comment\n{THREE}{SECRETS}tickTime=2000"
    found = masked(text)
    assert "hunter2" not in found and "ter2" not in found
    assert found.startswith(f"# a comment\n{THREE}") and found.endswith("\ntickTime=2000")
    keys = [[prop.key for prop in read_properties(each, "", Findings())] for each in (text, found)]
    assert keys[0] == keys[1]
    assert masked(THREE) is THREE


def test_no_output_has_the_value_of_a_password(tmp_path: Path) -> None:
    """The files of --stages are for servers, so they have it."""
    for name in ("three", "five"):
        (tmp_path / name).mkdir()
        text = (FOLDERS / name / "zoo.cfg").read_text(encoding="utf-8")
        (tmp_path / name / "zoo.cfg").write_text(text + SECRETS)
    folders = read_folder(tmp_path / "three"), read_folder(tmp_path / "five")
    made = plan(PlanRequest(*folders, faults=0, seconds=4.0), Engine().run)
    write_scenarios(made, tmp_path / "scenarios")
    write_stages(made, tmp_path / "stages")
    written = [path.read_text() for path in (tmp_path / "scenarios").rglob("*") if path.is_file()]
    assert len(written) > 2
    for text in (str(data(made)), markdown(made), *written):
        assert "hunter2" not in text
    assert "hunter2" in (tmp_path / "stages" / "stage-1" / "1" / "zoo.cfg").read_text()
