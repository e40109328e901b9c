"""Scripts from plain text: requests as ZooKeeper's command line words them, for scenarios.

    create /a      create -e /a     create -s /q/n_    create -e -s /q/n_
    get /a         get -w /a        stat -w /a         ls -w /q          sync /a
    set /a         set -v 0 /a      delete /a          delete -v 2 /a    check -v 0 /a
    close

A list of requests is a multi, `{one of: [...]}` a choice. Data is not given: each update writes its own (`scripts`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from checker.models.service.scripts import Script
from checker.scenario.errors import nearest
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.fields import Record
from spec.tree.paths import fault_of
from spec.tree.requests import (
    Check,
    CloseSession,
    Create2,
    Delete,
    Exists,
    GetChildren2,
    GetData,
    Multi,
    SetData,
    Sync,
)

CHOICE = "one of"


class AskingError(ValueError):
    """A request is not worded as it should be; the message says what is wrong, and `right` what would be right."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(f"{wrong}; {right}")
        self.wrong, self.right = wrong, right


def script_of(steps: Sequence[Any], pipeline: int = 1) -> Script:
    """A script; each step is a text, a list of texts (a multi), or {one of: [texts or lists]}. Raises AskingError."""
    if pipeline < 1:
        raise AskingError(f"pipeline: {pipeline}", "a client leaves at least 1 request unanswered before it waits")
    return Script(tuple(map(step_of, steps)), pipeline)


def step_of(step: Any) -> tuple[Record, ...]:
    """The requests to choose from in a step. Raises AskingError."""
    if not isinstance(step, Mapping):
        return (request_of(step),)
    if set(step) != {CHOICE} or not isinstance(step[CHOICE], Sequence) or not step[CHOICE]:
        raise AskingError(f"{dict(step)}", f"a choice is written {{{CHOICE}: [get /a, set /a]}}")
    return tuple(map(request_of, step[CHOICE]))


def request_of(words: Any) -> Record:
    """A request. Raises AskingError."""
    if isinstance(words, str):
        return _request(words)
    if not isinstance(words, Sequence) or not words or not all(isinstance(each, str) for each in words):
        raise AskingError(f"{words!r}", "write a request like `get -w /a`, or a list of them for a multi")
    operations = tuple(map(_request, words))
    for operation in operations:
        if not isinstance(operation, Create2 | SetData | Delete | Check):
            raise AskingError(f"{list(words)}", "a multi consists of create, set, delete and check")
    return Multi(operations)


def _request(words: str) -> Record:
    name, *rest = words.split() or [""]
    if name not in _REQUESTS:
        raise AskingError(f"{words!r}: there is no request {name!r}", nearest(name, _REQUESTS))
    if name == "close":
        if rest:
            raise AskingError(f"{words!r}", "write close alone")
        return CloseSession()
    flags, version, paths = set[str](), -1, list[str]()
    allowed = _FLAGS.get(name, frozenset())
    rest_of = iter(rest)
    for word in rest_of:
        if not word.startswith("-"):
            paths.append(word)
        elif word not in allowed:
            takes = f"{name} takes {' and '.join(sorted(allowed))}" if allowed else f"{name} takes no option"
            raise AskingError(f"{words!r}: {name} knows no {word}", takes)
        elif word == "-v":
            version = _version(words, next(rest_of, ""))
        else:
            flags.add(word)
    if len(paths) != 1 or fault_of(paths[0]) is not None:
        raise AskingError(f"{words!r}", f"{name} is about one absolute path, like /a")
    return _REQUESTS[name](paths[0], flags, version)


def _version(words: str, number: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", number):
        raise AskingError(f"{words!r}", "-v is followed by the version that the znode must have, like `-v 0`")
    return int(number)


_FLAGS = {
    "create": frozenset({"-e", "-s"}),
    "get": frozenset({"-w"}),
    "stat": frozenset({"-w"}),
    "ls": frozenset({"-w"}),
    "set": frozenset({"-v"}),
    "delete": frozenset({"-v"}),
    "check": frozenset({"-v"}),
}
_REQUESTS: dict[str, Callable[[str, set[str], int], Record]] = {
    "create": lambda path, flags, _: Create2(path, b"", OPEN_ACL_UNSAFE, ("-e" in flags) + 2 * ("-s" in flags)),
    "get": lambda path, flags, _: GetData(path, "-w" in flags),
    "stat": lambda path, flags, _: Exists(path, "-w" in flags),
    "ls": lambda path, flags, _: GetChildren2(path, "-w" in flags),
    "set": lambda path, _, version: SetData(path, b"", version),
    "delete": lambda path, _, version: Delete(path, version),
    "check": lambda path, _, version: Check(path, version),
    "sync": lambda path, _flags, _version: Sync(path),
    "close": lambda _path, _flags, _version: CloseSession(),
}
