"""YAML as plain values, with the line of each; and the errors that name those lines.

PyYAML composes the text into nodes, and this module converts the nodes into dicts, lists and scalars. Every value has a
path (keys and positions from the top), and every path has a line. Rules:

- Numbers are decimal or 0x hexadecimal: YAML 1.1 reads 1:3, an epoch and a counter, as 63, and 010 as 8. The first
  remains text here; the second is an error, and so are infinity and NaN.
- A repeated key, an alias, a tag and a second document are errors: each hides a part of the text.
- Loading raises `ScenarioError` or `spec.config.ConfigError`, and no other exception, for any text. An error names the
  place to change, and the nearest valid word for a misspelt one.
- A variant that cannot change anything is rejected, since a run with it would suggest that the defect is harmless.
- A text has at most `checker.user_files.SCENARIO` characters, and at most `DEEPEST` levels of lists and maps.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from checker.command import CommandError, ExitCode
from checker.printable import nearest, one_of
from checker.user_files import SCENARIO, TooLargeError
from spec.releases import Release, ReleaseError, release_named
from spec.text import on_a_line, required_decimal, required_integer
from spec.variants import Variant

Path = tuple[str | int, ...]
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]{0,40})")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,40}")
_FLOAT = re.compile(r"[+-]?[0-9]{1,40}\.[0-9]{1,40}")
_NOT_FINITE = re.compile(r"[+-]?\.(?:inf|nan)", re.IGNORECASE)
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_KINDS = ("str", "int", "bool", "null", "float", "timestamp", "merge", "value", "map", "seq")
_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in _KINDS)  # the tags of nodes without an explicit tag


class _Writer(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - a scenario may not have aliases
        return True


def write_yaml(keys: Mapping[str, object]) -> str:
    """The text of a scenario with these keys; those with the value None are left out."""
    pairs = {key: value for key, value in keys.items() if value is not None}
    return yaml.dump(pairs, Dumper=_Writer, sort_keys=False, default_flow_style=None, width=sys.maxsize)


DEEPEST = 100
"""The limit for nested lists and maps; an OpenAPI schema in a Kubernetes manifest has about 40 levels."""


class InvalidYamlError(Exception):
    """A text that is no YAML, or is nested too deep; with what would be right, and the line, or 0."""

    def __init__(self, what: str, right: str, line: int = 0) -> None:
        super().__init__(what)
        self.right = right
        self.line = line


class YamlSyntaxError(InvalidYamlError):
    """A text that breaks the grammar of YAML."""


class _BoundedLoader(yaml.SafeLoader):
    """A loader that raises InvalidYamlError for lists and maps that are nested too deep.

    PyYAML composes nodes recursively, and Python's own limit for that depends on the caller and the program.
    """

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > DEEPEST:
            problem = f"it is nested too deep: the limit is {DEEPEST} levels"
            raise InvalidYamlError(problem, "write fewer lists and maps within each other", self.line + 1)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def composed(text: str, *, several: bool = False) -> list[yaml.Node | None]:
    """The only document of a text, or its `several`, as PyYAML composes them. Raises InvalidYamlError."""
    try:
        if several:
            return list(yaml.compose_all(text, Loader=_BoundedLoader))
        return [yaml.compose(text, Loader=_BoundedLoader)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        raise YamlSyntaxError(f"invalid YAML: {said}", "see the line named", mark.line + 1 if mark else 0) from None
    except (yaml.YAMLError, ValueError) as error:
        said = (str(error).splitlines() or ["it cannot be read"])[0]
        raise InvalidYamlError(f"invalid YAML: {said}", "write plain text") from None


@dataclass
class YamlDocument:
    """The content of a file, and the line of each path."""

    file: str
    value: Any
    lines: dict[Path, int] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set, repr=False)

    def take(self, node: yaml.Node, path: Path) -> None:
        """Store the line of a node. Raises ScenarioError for an alias or an explicit tag."""
        self.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self._seen:
            raise self.error(path, "an alias is used here", "write its value out")
        if node.tag not in _TAGS:
            raise self.error(path, f"the tag {node.tag[:60]} is used here", "write the value without a tag")
        self._seen.add(id(node))

    def line(self, path: Path) -> int:
        """Return the line of a path, or of the nearest enclosing value."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)

    def error(self, path: Path, what: str, right: str) -> ScenarioError:
        """Make the error for the value at a path."""
        return ScenarioError(self.file, self.line(path), shown(path), what, right)


def shown(path: Path) -> str:
    """Return a path as text: `servers.4.file`, `plan[1].wait`."""
    text = "".join(f"[{key}]" if isinstance(key, _Position) else f".{str(key)[:60]}" for key in path)
    return text.removeprefix(".")


class _Position(int):
    """A position in a list: equal to the number, but shown in brackets."""


def position(number: int) -> int:
    """Make a position in a list, for a path."""
    return _Position(number)


def read_yaml(text: str, file: str) -> YamlDocument:
    """Parse a YAML text by the rules of this module. Raises ScenarioError."""
    document = YamlDocument(file, None)
    if len(text) > SCENARIO:
        raise ScenarioError(file, 0, "", str(TooLargeError(len(text), SCENARIO)), "write a smaller scenario")
    try:
        (node,) = composed(text)
    except InvalidYamlError as error:
        raise ScenarioError(file, error.line, "", str(error), error.right) from None
    document.value = None if node is None else _value(document, node, ())
    return document


def _value(document: YamlDocument, node: yaml.Node, path: Path) -> Any:
    document.take(node, path)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(document, node, path)
    if isinstance(node, yaml.SequenceNode):
        return [_value(document, item, (*path, position(number))) for number, item in enumerate(node.value)]
    assert isinstance(node, yaml.MappingNode)
    return _mapping(document, node, path)


def _mapping(document: YamlDocument, node: yaml.MappingNode, path: Path) -> dict[Any, Any]:
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ScenarioError(
                document.file, line, shown(path), "a key is a list or a map", "write a word or a number"
            )
        key = _scalar(document, key_node, path)
        if isinstance(key, bool | float) or key is None:
            key = key_node.value
        if key in mapping:
            earlier = document.lines[(*path, key)]
            raise ScenarioError(
                document.file, line, shown((*path, key)), "this key is written twice", f"see line {earlier}"
            )
        document.lines[(*path, key)] = line
        mapping[key] = _value(document, value_node, (*path, key))
    return mapping


def _scalar(document: YamlDocument, node: yaml.ScalarNode, path: Path) -> Any:
    """Convert a scalar by the rules of this module; a quoted one is text."""
    text: str = node.value
    if node.style is not None or node.tag == "tag:yaml.org,2002:str":
        return text
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    if _DECIMAL.fullmatch(text):
        return required_integer(text, -(10**41), 10**41)
    if _HEXADECIMAL.fullmatch(text):
        return required_integer(text[2:], 0, 16**40, base=16)
    if _FLOAT.fullmatch(text):
        return required_decimal(text, -1e41, 1e41)
    if node.tag == "tag:yaml.org,2002:float" and _NOT_FINITE.fullmatch(text):
        line = node.start_mark.line + 1
        right = "write a number in digits, or in quotes if it is text"
        raise ScenarioError(document.file, line, shown(path), f"{text} is not a finite number", right)
    if node.tag == "tag:yaml.org,2002:int" and ":" not in text:
        line = node.start_mark.line + 1
        right = "write it in decimal without zeros before it, or in hexadecimal with 0x"
        raise ScenarioError(document.file, line, shown(path), f"YAML would read {text[:40]} in its own way", right)
    return text


__all__ = [
    "LikeError",
    "NoEffect",
    "ScenarioError",
    "VariantError",
    "like_named",
    "nearest",
    "one_of",
    "variant_named",
    "variant_names",
]


class ScenarioError(CommandError):
    """A scenario that cannot be run. `line` is 0 if it is unknown; `key` is the path to the place."""

    exit_code = ExitCode.SCENARIO

    def __init__(self, file: str, line: int, key: str, what: str, right: str) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(on_a_line(f"{where}: {f'{key}: ' if key else ''}{what}; {right}"))
        self.file, self.line, self.key, self.what, self.right = file, line, key, what, right


class NoEffect(NamedTuple):
    """The reason why a variant changes nothing, and the correction."""

    what: str
    right: str


class VariantError(CommandError):
    """A variant that does not exist, or that changes nothing in its run."""

    def __init__(self, name: str, reason: NoEffect) -> None:
        super().__init__(f"the variant {name}: {reason.what}; {reason.right}")
        self.name, self.reason = name, reason


class LikeError(VariantError):
    """A release that is not in the table, or whose defects change nothing in a run."""

    def __init__(self, release: str, reason: NoEffect) -> None:
        Exception.__init__(self, f"like {release}: {reason.what}; {reason.right}")
        self.name, self.reason = release, reason


def like_named(text: str) -> Release:
    """The release of that number. Raises LikeError with the nearest ones."""
    try:
        return release_named(text)
    except ReleaseError as error:
        raise LikeError(text[:60], NoEffect(error.what, error.right)) from None


def variant_named(name: str) -> Variant:
    """The variant of that name. Raises VariantError."""
    try:
        return Variant(name)
    except ValueError:
        right = nearest(name, [variant.value for variant in Variant])
        raise VariantError(name[:60], NoEffect("the name is unknown", right)) from None


def variant_names(variants: Iterable[Variant]) -> str:
    """The names of variants, sorted, as text."""
    return ", ".join(sorted(variant.value for variant in variants))
