"""Inputs that have no zoo.cfg in them: each is recognised by name or content, and gets a sentence with the way out.

Rule of this module: a row speaks of what a file surely is. A zoo.cfg matches none: `java.util.Properties` would read a
section such as `[Unit]` as a key, and ZooKeeper knows no such key.

Sources: Ansible, "How to build your inventory"; Compose Specification, `services`; systemd.unit(5); Terraform,
"Configuration Syntax"; Helm, "The Chart.yaml File"; Kubernetes, "Management of Objects Using Kustomize".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from yaml import SequenceNode

from checker.rollout.inputs.documents import RENDER, YamlValue, input_error
from spec.config import ConfigError

FETCH = (
    "fetch the rendered zoo.cfg and the myid of each host into a folder for each: "
    'ansible all -m fetch -a "src=/conf/zoo.cfg dest=before/{{ inventory_hostname }}/ flat=yes"'
)
COPY = "copy the zoo.cfg out of each container into a folder for each: docker compose cp zk1:/conf/zoo.cfg zk1/"
COPY_FROM_HOST = "copy the zoo.cfg and the myid of each host into a folder for each: scp zk1:/conf/zoo.cfg before/zk1/"
COPY_FROM_POD = (
    "copy the zoo.cfg and the myid of each pod into a folder for each: kubectl exec zk-0 -- cat /conf/zoo.cfg > "
    "before/zk-0/zoo.cfg; and name with --how the way in which its controller restarts them"
)
KUSTOMIZED = "give the result: kubectl kustomize DIR > rendered.yaml"


class ForeignInput(NamedTuple):
    """The kind of an input, the way out, the names of its files, and the first line of its text without comments."""

    what: str
    right: str
    names: tuple[str, ...] = ()
    first: str = ""

    def error(self, file: str, line: int = 0) -> ConfigError:
        """The error for this input."""
        return input_error(file, self.what, self.right, line)


CHART = ForeignInput("this is the folder of a chart", RENDER, ("Chart.yaml",))
KUSTOMIZATION = ForeignInput(
    "this is a kustomization", KUSTOMIZED, ("kustomization.yaml", "kustomization.yml", "Kustomization")
)
COMPOSE = ForeignInput("this is a Compose file, and the images write the zoo.cfg from it", COPY)
INVENTORY = ForeignInput(
    "this is an Ansible inventory, which has no zoo.cfg in it",
    FETCH,
    ("hosts", "hosts.ini", "inventory", "inventory.ini"),
    r"\[[\w.-]+(:(children|vars))?\]",
)
PLAYBOOK = ForeignInput("this is an Ansible playbook, which has no zoo.cfg in it", FETCH)
RENDERED = (CHART, KUSTOMIZATION)
"""Folders of YAML files that a program renders."""
TEXTS = (
    ForeignInput(
        "this is a unit of systemd, which has no zoo.cfg in it; its ExecStart may name one",
        COPY_FROM_HOST,
        ("*.service",),
        r"\[(Unit|Service|Install)\]",
    ),
    INVENTORY,
    ForeignInput(
        "this is a configuration of Terraform, which has no zoo.cfg in it",
        f"{COPY_FROM_HOST}; or give the manifests that it applies",
        ("*.tf", "*.tf.json"),
        r'(resource|provider|terraform|module|variable|locals|data|output)\b[\w" -]*\{',
    ),
    ForeignInput(
        "this is a Dockerfile, and the image writes the zoo.cfg",
        "give the manifests, or copy it out of each container: docker cp zk1:/conf/zoo.cfg zk1/",
        ("Dockerfile",),
        r"FROM\s",
    ),
    ForeignInput(
        "these are variables of an image, which writes the zoo.cfg from them",
        "give the manifests with them, or copy it out of each container: docker cp zk1:/conf/zoo.cfg zk1/",
        (".env", "*.env"),
        r"(export\s+)?(ZOO|ZOOKEEPER|ZK)_\w+=",
    ),
    ForeignInput("this is a template that nothing has filled in", FETCH, ("*.j2",), r".*\{[{%]"),
)
"""Files of other programs; the first row that matches counts."""
GROUP_KEYS = frozenset({"hosts", "children", "vars"})
"""The keys of a group in an Ansible inventory."""


def check_folder(folder: Path, rows: tuple[ForeignInput, ...]) -> None:
    """Raises ConfigError for a folder with a file that one of these rows names."""
    for row in rows:
        for pattern in row.names:
            if file := next((path for path in sorted(folder.glob(pattern)) if path.is_file()), None):
                raise row.error(str(folder if row is CHART else file))


def check_text(file: str, text: str, *, is_yaml: bool = False) -> None:
    """Raises ConfigError for the text of another program. A template may begin as a zoo.cfg, so its lines count."""
    lines = [(number, line) for number, raw in enumerate(text.splitlines(), start=1) if (line := _content(raw))]
    *rows, template = TEXTS
    for row in rows:
        if lines and re.match(row.first, lines[0][1]):
            raise row.error(file, lines[0][0])
    for number, line in [] if is_yaml else lines:
        if re.match(template.first, line):
            raise template.error(file, number)


def _content(line: str) -> str:
    return "" if line.lstrip()[:1] in "#!;" else line.strip()


def no_manifest(document: YamlValue) -> ConfigError:
    """The error for a YAML document without a kind, with the way out for what it is taken for."""
    for row in _rows_of(document):
        return row.error(document.file, document.line)
    if not document.is_mapping:
        return document.error("a map of keys is expected", "name a file with manifests")
    missing = " and no ".join(key for key in ("apiVersion", "kind") if document.get(key) is None)
    problem = f"it has no {missing}, so it is taken for the values of a Helm chart, and they do not say of which"
    rendered = f"helm template NAME CHART --values {shlex.quote(document.file)} > rendered.yaml"
    return document.error(problem, f"give the rendered manifests: {rendered}; or a folder of zoo.cfg files")


def _rows_of(document: YamlValue) -> Iterator[ForeignInput]:
    """The rows for a document without a kind, as far as its keys say it."""
    if not document.is_mapping:
        plays = document.items if isinstance(document.node, SequenceNode) else []
        if plays and all(play.is_mapping and {"hosts", "import_playbook"}.intersection(play.keys) for play in plays):
            yield PLAYBOOK
        return
    parts = {key: value for key in document.keys if (value := document.child(key)) is not None and value.is_mapping}
    if Path(document.file).name in KUSTOMIZATION.names:
        yield KUSTOMIZATION
    if {"apiVersion", "name", "version"}.issubset(document.keys):
        yield CHART._replace(what="this is the description of a chart")
    if "services" in parts:
        yield COMPOSE
    if any(map(_is_group, parts.values())):
        yield INVENTORY


def _is_group(value: YamlValue) -> bool:
    """Whether a value is a group of an Ansible inventory, with hosts or other groups."""
    members = (value.child(key) for key in GROUP_KEYS - {"vars"})
    return GROUP_KEYS.issuperset(value.keys) and any(member is not None and member.is_mapping for member in members)
