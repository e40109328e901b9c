"""YAML documents of other programs: Kubernetes manifests, resources of operators.

Such a file has far more in it than the planner needs. So a document stays as PyYAML composed it, and `YamlValue` looks
up single values. Nothing else is converted or judged. Rules:

- Numbers are decimal. Text in quotes is text; a caller that accepts a number in quotes says so.
- Anchors, aliases and merge keys (`<<`) are followed, as Helm and kubectl do, in a file that has at most `MOST_VALUES`
  with all aliases filled in. A key that is looked up and written twice is an error.
- A template (`{{ }}`) is an error where a value is needed. Elsewhere it does no harm.
- Every error is a `ConfigError` with the file and the line.
- An input of another program that has no zoo.cfg in it is recognised by name or content, and gets a sentence with the
  way out. A row speaks of what a file surely is. A zoo.cfg matches none: `java.util.Properties` would read a section
  such as `[Unit]` as a key, and ZooKeeper knows no such key.

Sources: Ansible, "How to build your inventory"; Compose Specification, `services`; systemd.unit(5); Terraform,
"Configuration Syntax"; Helm, "The Chart.yaml File"; Kubernetes, "Management of Objects Using Kustomize".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import yaml
from yaml import SequenceNode

from checker.scenario.yaml_lines import InvalidYamlError, YamlSyntaxError, composed
from checker.user_files import TooLargeError, read_bytes
from spec.config import ConfigError, Problem
from spec.text import required_integer

LARGEST = 256 * 1024
"""The limit for a file, in bytes: PyYAML takes seconds for it."""
MOST_VALUES = LARGEST
"""The limit for keys and values with all aliases filled in. Without aliases a file has fewer of them than bytes."""
DECIMAL = re.compile(r"0|[1-9][0-9]{0,8}")
TEMPLATE = re.compile(r"\{\{.*?\}\}")
MERGE = "<<"
SMALLER = "give the manifests of ZooKeeper alone"
RENDER = "give the rendered manifests: helm template NAME CHART --values FILE > rendered.yaml"


def input_error(file: str | Path, what: str, right: str, line: int = 0) -> ConfigError:
    """The error for a place in an input."""
    return ConfigError((Problem(str(file), line, what, right),))


@dataclass(frozen=True)
class YamlValue:
    """A value in a file: its node, and the path that leads to it (`spec.replicas`).

    `looked_up` are the nodes of the document that were looked up, by their identity.
    """

    file: str
    node: yaml.Node
    path: str = ""
    looked_up: set[int] = field(default_factory=set, compare=False, repr=False)

    @property
    def line(self) -> int:
        """The number of the line where the value begins."""
        return int(self.node.start_mark.line) + 1

    def error(self, what: str, right: str) -> ConfigError:
        """The error for this value."""
        return input_error(self.file, f"{self.path}: {what}" if self.path else what, right, self.line)

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a map of keys."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_null(self) -> bool:
        """Whether the value is left empty, or null."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a map, in the order of the file; empty for any other value."""
        return tuple(key for key, _ in self._pairs())

    def get(self, path: str) -> YamlValue | None:
        """The value below some keys (`spec.replicas`); None if a key is missing, or its value empty.

        Raises ConfigError for a key that is written twice, and for a value on the way that has no keys.
        """
        value = self
        for key in path.split("."):
            part = value.child(key)
            if part is None or part.is_null:
                return None
            value = part
        return value

    def required(self, path: str, right: str) -> YamlValue:
        """The value below some keys. Raises ConfigError if it is missing or empty, with what would be right."""
        value = self.get(path)
        if value is None or not value.node.value:
            raise self.error(f"{path} is missing", right)
        return value

    def word(self, path: str, default: str = "") -> str:
        """The text below some keys; the default if a key is missing, or its value empty. Raises ConfigError."""
        value = self.get(path)
        return default if value is None else value.text

    def texts(self, path: str) -> dict[str, str]:
        """The texts of the map below some keys, by its keys, which may have dots in them. Raises ConfigError."""
        value = self.get(path)
        parts = {key: value.child(key) for key in value.keys} if value is not None else {}
        return {key: "" if part is None or part.is_null else part.text for key, part in parts.items()}

    def listed(self, path: str) -> list[YamlValue]:
        """The values of the list below some keys; empty if a key is missing. Raises ConfigError."""
        value = self.get(path)
        return [] if value is None else value.items

    def child(self, key: str) -> YamlValue | None:
        """The value of one key, which may have dots in it; None if it is missing. Raises ConfigError."""
        if not self.is_mapping:
            raise self.error("a map of keys is expected here", f"write {key}: below it")
        names = [name for name, _ in self.node.value if isinstance(name, yaml.ScalarNode) and name.value == key]
        path = f"{self.path}.{key}".removeprefix(".")
        if len(names) > 1:
            first, second = (int(name.start_mark.line) + 1 for name in names[:2])
            raise input_error(self.file, f"{path}: this key is written twice", f"see line {first}", second)
        part = next(
            (node for name, node in self._pairs() if name == key), None
        )  # its own key comes before a merged one
        if part is None:
            return None
        self.looked_up.add(id(part))
        return replace(self, node=part, path=path)

    @property
    def unread(self) -> Iterator[str]:
        """The keys that nothing has looked up, by their paths; of a map that was taken as a whole none is named."""
        for key, node in self._pairs():
            value = replace(self, node=node, path=f"{self.path}.{key}".removeprefix("."))
            if id(node) not in self.looked_up:
                yield value.path
            else:
                for part in value.items if isinstance(node, yaml.SequenceNode) else [value]:
                    if any(id(inner) in self.looked_up for _, inner in part._pairs()):
                        yield from part.unread

    def _pairs(self, visited: set[int] | None = None) -> Iterator[tuple[str, yaml.Node]]:
        """The keys with their values; those of merged maps come last, each map once. `visited` are the maps so far."""
        visited = set() if visited is None else visited
        if not isinstance(self.node, yaml.MappingNode) or id(self.node) in visited:
            return
        visited.add(id(self.node))
        merged: list[yaml.Node] = []
        for key, node in self.node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == MERGE:
                merged += node.value if isinstance(node, yaml.SequenceNode) else [node]
            elif isinstance(key, yaml.ScalarNode):
                yield key.value, node
        for node in merged:
            yield from replace(self, node=node)._pairs(visited)

    @property
    def items(self) -> list[YamlValue]:
        """The values of a list. Raises ConfigError for any other value."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("a list is expected here", "write it as a list")
        return [replace(self, node=node, path=f"{self.path}[{n}]") for n, node in enumerate(self.node.value)]

    @property
    def text(self) -> str:
        """The value as text. Raises ConfigError for a map, a list or a template."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.error("a word or a number is expected here", "write one value")
        value = str(self.node.value)
        if template := TEMPLATE.search(value):
            raise self.error(f"{template[0][:60]} is a template that nothing has filled in", RENDER)
        return value

    def number(self, *, quoted: bool = False) -> int:
        """The value as a number; `quoted`: quotes around it are accepted. Raises ConfigError."""
        text = self.text
        if not DECIMAL.fullmatch(text.strip()) or (getattr(self.node, "style", None) is not None and not quoted):
            raise self.error(f"{text[:40]!r} is not a number", "write a number in digits, without quotes")
        return required_integer(text.strip())


def read_raw(path: Path) -> bytes:
    """The content of a file or a stream. Raises ConfigError."""
    try:
        return read_bytes(path, LARGEST, streams=True)
    except OSError:
        raise input_error(str(path), "it cannot be read", "name a readable file") from None
    except TooLargeError as error:
        raise input_error(str(path), f"the file is too large: {error}", SMALLER) from None


def documents_in(raw: bytes, file: str) -> list[YamlValue]:
    """The documents in the content of a file that are not empty. Raises ConfigError."""
    try:
        text = raw.decode("utf-8-sig")
        documents = [YamlValue(file, node) for node in composed(text, several=True) if node is not None]
    except UnicodeDecodeError:
        raise input_error(file, "it is not UTF-8 text", "write YAML in UTF-8") from None
    except InvalidYamlError as error:
        raise _invalid(file, text, error) from None
    for document in documents:
        _check_size(document)
    return [document for document in documents if not document.is_null]


def _check_size(document: YamlValue) -> None:
    """Raises ConfigError for a document that is too large, or endless, with all aliases filled in."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        # A node that is its own part has no end.
        if id(node) not in sizes:
            sizes[id(node)] = MOST_VALUES + 1  # while its parts are counted
            parts = node.value if isinstance(node, yaml.CollectionNode) else ()
            nodes = (node for part in parts for node in (part if isinstance(part, tuple) else (part,)))
            sizes[id(node)] = min(1 + sum(map(size, nodes)), MOST_VALUES + 1)
        return sizes[id(node)]

    if size(document.node) > MOST_VALUES:
        raise document.error(f"with all aliases filled in it has more than {MOST_VALUES:,} keys and values", SMALLER)


def _invalid(file: str, text: str, error: InvalidYamlError) -> ConfigError:
    """The error for invalid YAML; often the text is a template of a chart."""
    for number, line in enumerate(text.splitlines(), start=1) if isinstance(error, YamlSyntaxError) else ():
        if "{{" in line:
            return input_error(file, "the file is a template of a chart: {{ }} is not filled in", RENDER, number)
    return input_error(file, str(error), error.right, error.line)


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
