"""YAML as plain values that remember their lines.

PyYAML composes the text into nodes, and the nodes become dicts, lists and scalars here, so that every value
has a path (keys and positions from the top) and every path a line. Rules of this module:

- Numbers are decimal or 0x hexadecimal and nothing else: YAML 1.1 would read 1:3, an epoch and a counter, as
  63, and 010 as 8. The first stays text; the second is an error.
- A key that is written twice, an alias, a tag and a second document are errors: each hides something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from checker.scenario.errors import ScenarioError

Path = tuple[str | int, ...]
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]{0,40})")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,40}")
_FLOAT = re.compile(r"[+-]?[0-9]{1,40}\.[0-9]{1,40}")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_KINDS = ("str", "int", "bool", "null", "float", "timestamp", "merge", "value", "map", "seq")
_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in _KINDS)  # what a node without a tag of its own may have


@dataclass
class Located:
    """A file's content, and the line of each path in it."""

    file: str
    value: Any
    lines: dict[Path, int] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set, repr=False)

    def take(self, node: yaml.Node, path: Path) -> None:
        """Note where a node stands. Raises ScenarioError for one that was met before, or has its own tag."""
        self.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self._seen:
            raise self.error(path, "an alias stands here", "write out what it stands for")
        if node.tag not in _TAGS:
            raise self.error(path, f"the tag {node.tag[:60]} stands here", "write the value without a tag")
        self._seen.add(id(node))

    def line(self, path: Path) -> int:
        """The line of a path, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)

    def error(self, path: Path, what: str, right: str) -> ScenarioError:
        """The error of what stands at that path."""
        return ScenarioError(self.file, self.line(path), shown(path), what, right)


def shown(path: Path) -> str:
    """A path as a reader is told it: `servers.4.file`, `plan[1].wait`."""
    text = "".join(f"[{key}]" if isinstance(key, _Position) else f".{str(key)[:60]}" for key in path)
    return text.removeprefix(".")


class _Position(int):
    """A position in a list; equal to the number, and shown in brackets."""


def position(number: int) -> int:
    """A position in a list, as a part of a path."""
    return _Position(number)


def read_yaml(text: str, file: str) -> Located:
    """The content of a YAML text. Raises ScenarioError where it is not what this module's rules allow."""
    located = Located(file, None)
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise ScenarioError(file, line, "", f"this is no YAML: {_said(error)}", "see the line named") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ScenarioError(file, 0, "", f"this is no YAML: {_first_line(error)}", "write plain text") from None
    located.value = None if node is None else _value(located, node, ())
    return located


def _said(error: yaml.MarkedYAMLError) -> str:
    return " ".join(f"{error.context or ''} {error.problem or ''}".split())


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["it cannot be read"])[0]


def _value(located: Located, node: yaml.Node, path: Path) -> Any:
    located.take(node, path)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(located, node, path)
    if isinstance(node, yaml.SequenceNode):
        return [_value(located, item, (*path, position(number))) for number, item in enumerate(node.value)]
    assert isinstance(node, yaml.MappingNode)
    return _mapping(located, node, path)


def _mapping(located: Located, node: yaml.MappingNode, path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ScenarioError(located.file, line, shown(path), "a key is a list or a map", "write a word or a number")
        key = _scalar(located, key_node, path)
        if isinstance(key, bool | float) or key is None:
            key = key_node.value
        if key in found:
            earlier = located.lines[(*path, key)]
            raise ScenarioError(
                located.file, line, shown((*path, key)), "this key is written twice", f"see line {earlier}"
            )
        located.lines[(*path, key)] = line
        found[key] = _value(located, value_node, (*path, key))
    return found


def _scalar(located: Located, node: yaml.ScalarNode, path: Path) -> Any:
    """A scalar by this module's own rules; what is quoted is text."""
    text: str = node.value
    if node.style is not None or node.tag == "tag:yaml.org,2002:str":
        return text
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    if node.tag == "tag:yaml.org,2002:int" and ":" not in text:
        line = node.start_mark.line + 1
        right = "write it in decimal without zeros before it, or in hexadecimal with 0x"
        raise ScenarioError(located.file, line, shown(path), f"YAML would read {text[:40]} in its own way", right)
    return text
