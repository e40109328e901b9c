"""Scripts from plain text: requests as ZooKeeper's command line words them, for scenarios.

    create /a      create -e /a     create -s /q/n_    create -e -s /q/n_
    create -c /a   create -t 60000 /a                  create -a world:anyone:r /a
    get /a         get -w /a        stat -w /a         ls -w /q          sync /a
    set /a         set -v 0 /a      delete /a          delete -v 2 /a    check -v 0 /a
    getAcl /a      setAcl -a world:anyone:cdrwa -v 0 /a
    getEphemerals /                 getAllChildrenNumber /a              close

A list of requests is a multi, `{one of: [...]}` a choice. Data is not given: each update writes its own (`scripts`).

`get /a => NoNode` states the expected answer, and so may the last element of a multi. Answers are `ok | NodeExists` or
`ok version=0 children=a,b`. Codes have the names of ZooKeeper's `KeeperException.Code`, in any case. `ok` may be
followed by fields of the reply, in the notation of `checker.models.service.observations.field_of`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from checker.models.service.observations import Expected, fields_of
from checker.models.service.scripts import Script
from checker.scenario.yaml_lines import nearest
from spec.text import required_integer
from spec.tree import replies, requests
from spec.tree.data import OPEN_ACL_UNSAFE, Acl, Id, Perms, Record
from spec.tree.paths import fault_of
from spec.tree.replies import Code
from spec.tree.requests import (
    Check,
    CloseSession,
    Create,
    Create2,
    CreateContainer,
    CreateMode,
    CreateTtl,
    Delete,
    Exists,
    GetAcl,
    GetAllChildrenNumber,
    GetChildren2,
    GetData,
    GetEphemerals,
    Multi,
    SetAcl,
    SetData,
    Sync,
)

CHOICE = "one of"
EXPECTS = "=>"


def script_of(steps: Sequence[Any], pipeline: int = 1) -> Script:
    """A script; each step is a text, a list of texts (a multi), or {one of: [texts or lists]}. Raises RequestError."""
    if pipeline < 1:
        raise RequestError(f"pipeline: {pipeline}", "a client leaves at least 1 request unanswered before it waits")
    requests, expected = zip(*map(_split, steps), strict=True) if steps else ((), ())
    records = tuple(map(step_of, requests))
    if pipeline > 1 and any(expected):
        raise RequestError(f"pipeline: {pipeline} with expected answers", "leave pipeline out")
    answers = tuple(expected_of(*pair) if pair[1] else None for pair in zip(records, expected, strict=True))
    return Script(records, pipeline, answers if any(answers) else ())


def _split(step: Any) -> tuple[Any, str]:
    """A step without its expected answer, and this answer; empty if there is none."""
    if isinstance(step, str) and EXPECTS in step:
        request, _, expected = step.partition(EXPECTS)
        return request.strip(), expected.strip() or EXPECTS
    if isinstance(step, list) and step and isinstance(step[-1], str) and step[-1].startswith(EXPECTS):
        return step[:-1], step[-1].removeprefix(EXPECTS).strip() or EXPECTS
    return step, ""


def step_of(step: Any) -> tuple[Record, ...]:
    """The requests to choose from in a step. Raises RequestError."""
    if not isinstance(step, Mapping):
        return (request_of(step),)
    if set(step) != {CHOICE} or not isinstance(step[CHOICE], Sequence) or not step[CHOICE]:
        raise RequestError(f"{dict(step)}", f"a choice is written {{{CHOICE}: [get /a, set /a]}}")
    return tuple(map(request_of, step[CHOICE]))


def request_of(words: Any) -> Record:
    """A request. Raises RequestError."""
    if isinstance(words, str):
        return _request(words)
    if not isinstance(words, Sequence) or not words or not all(isinstance(word, str) for word in words):
        raise RequestError(f"{words!r}", "write a request like `get -w /a`, or a list of them for a multi")
    operations = tuple(map(_request, words))
    for operation in operations:
        if not isinstance(operation, Create | SetData | Delete | Check):
            raise RequestError(f"{list(words)}", "a multi consists of create, set, delete and check")
    return Multi(operations)


def _request(words: str) -> Record:
    name, *rest = words.split() or [""]
    if name not in _REQUESTS:
        raise RequestError(f"{words!r}: unknown request {name!r}", nearest(name, _REQUESTS))
    make, options = _REQUESTS[name]
    if name == "close":
        if rest:
            raise RequestError(f"{words!r}", "write close alone")
        return CloseSession()
    values, paths = dict[str, str](), list[str]()
    rest_of = iter(rest)
    for word in rest_of:
        if not word.startswith("-"):
            paths.append(word)
        elif word not in options.split():
            takes = f"{name} takes {' and '.join(options.split())}" if options else f"{name} takes no option"
            raise RequestError(f"{words!r}: {name} knows no {word}", takes)
        else:
            values[word] = next(rest_of, "") if word in _VALUES else word
    for option in values.keys() & _VALUES.keys():
        pattern, right = _VALUES[option]
        if not re.fullmatch(pattern, values[option]):
            raise RequestError(f"{words!r}", right)
    if len(paths) != 1 or fault_of(paths[0]) is not None:
        raise RequestError(f"{words!r}", f"{name} is about one absolute path, like /a")
    if name == "setAcl" and "-a" not in values:
        raise RequestError(f"{words!r}", "setAcl has the new ACL behind -a, like `-a world:anyone:r`")
    for first, second in (("-c", "-e"), ("-c", "-s"), ("-c", "-t"), ("-t", "-e")):
        if first in values and second in values:
            raise RequestError(f"{words!r}", f"no znode is of both kinds: write {first} or {second}")
    return make(paths[0], values)


_VALUES = {
    "-v": ("[0-9]{1,9}", "-v is followed by the version that the znode must have, like `-v 0`"),
    "-t": ("[0-9]{1,15}", "-t is followed by a time to live in milliseconds, like `-t 60000`"),
    "-a": ("[a-z]{1,20}:[^: ]{0,80}(:[^: ]{1,80})?:[cdrwa]{1,5}", "-a is followed by an ACL, like `world:anyone:r`"),
}
"""The options with a value: the pattern of the value, and the advice for a value that does not match."""


def _create(path: str, given: Mapping[str, str]) -> Record:
    acl = _acl(given)
    if "-t" in given:
        mode = CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL if "-s" in given else CreateMode.PERSISTENT_WITH_TTL
        return CreateTtl(path, b"", acl, mode, required_integer(given["-t"]))
    if "-c" in given:
        return CreateContainer(path, b"", acl, CreateMode.CONTAINER)
    return Create2(path, b"", acl, ("-e" in given) + 2 * ("-s" in given))


def _acl(given: Mapping[str, str]) -> tuple[Acl, ...]:
    if "-a" not in given:
        return OPEN_ACL_UNSAFE
    scheme, _, rest = given["-a"].partition(":")
    identity, _, letters = rest.rpartition(":")
    return (Acl(sum(int(_PERMS[letter]) for letter in set(letters)), Id(scheme, identity)),)


def _version(given: Mapping[str, str]) -> int:
    return required_integer(given.get("-v", "-1"))


_PERMS = {"r": Perms.READ, "w": Perms.WRITE, "c": Perms.CREATE, "d": Perms.DELETE, "a": Perms.ADMIN}
"""The bits of permissions (`ZooDefs.Perms`), by the letters of `zkCli.sh`."""

_REQUESTS: dict[str, tuple[Callable[[str, Mapping[str, str]], Record], str]] = {
    "create": (_create, "-e -s -c -t -a"),
    "get": (lambda path, given: GetData(path, "-w" in given), "-w"),
    "stat": (lambda path, given: Exists(path, "-w" in given), "-w"),
    "ls": (lambda path, given: GetChildren2(path, "-w" in given), "-w"),
    "set": (lambda path, given: SetData(path, b"", _version(given)), "-v"),
    "delete": (lambda path, given: Delete(path, _version(given)), "-v"),
    "check": (lambda path, given: Check(path, _version(given)), "-v"),
    "getAcl": (lambda path, _: GetAcl(path), ""),
    "setAcl": (lambda path, given: SetAcl(path, _acl(given), _version(given)), "-v -a"),
    "getEphemerals": (lambda path, _: GetEphemerals(path), ""),
    "getAllChildrenNumber": (lambda path, _: GetAllChildrenNumber(path), ""),
    "sync": (lambda path, _: Sync(path), ""),
    "close": (lambda _path, _given: CloseSession(), ""),
}
"""Each request by its name: its constructor, and its options."""


CODES = {code.name.replace("_", "").lower(): code for code in Code}
SPELLED = {name: "".join(part.capitalize() for part in code.name.split("_")) for name, code in CODES.items()}
REPLIES: dict[type[Record], type[Record]] = {
    requests.Create2: replies.Create2Reply,
    requests.CreateContainer: replies.Create2Reply,
    requests.CreateTtl: replies.Create2Reply,
    requests.GetData: replies.DataReply,
    requests.Exists: replies.StatReply,
    requests.SetData: replies.StatReply,
    requests.SetAcl: replies.StatReply,
    requests.GetChildren2: replies.Children2Reply,
    requests.GetAcl: replies.AclReply,
    requests.GetEphemerals: replies.EphemeralsReply,
    requests.GetAllChildrenNumber: replies.NumberReply,
    requests.Multi: replies.MultiReply,
    requests.Sync: replies.PathReply,
}
"""The reply to each request that has one."""


class RequestError(ValueError):
    """A malformed request or answer; `wrong` is the mistake, and `right` the correction."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(f"{wrong}; {right}")
        self.wrong, self.right = wrong, right


def expected_of(step: tuple[Record, ...], text: str) -> Expected:
    """The answers that a text allows to the request of a step. Raises RequestError."""
    if len(step) != 1:
        raise RequestError(f"the expected answer {text!r} of a choice", "expect an answer to a single request")
    codes: list[Code] = []
    fields: list[tuple[str, str]] = []
    for part in text.split("|"):
        word, *rest = part.split() or [""]
        name = word.lower()
        if name not in CODES:
            raise RequestError(f"unknown error code {word!r}", nearest(word, SPELLED.values()))
        if rest and CODES[name] is not Code.OK:
            raise RequestError(f"{part.strip()!r}", "only ok is followed by fields, like `ok version=0`")
        codes.append(CODES[name])
        fields += [_field(field, type(step[0])) for field in rest]
    return Expected(tuple(codes), tuple(fields))


def _field(text: str, request: type[Record]) -> tuple[str, str]:
    """A field of the reply and its value. Raises RequestError."""
    name, equals, value = text.partition("=")
    names = sorted(fields_of(REPLIES[request])) if request in REPLIES else []
    if not names:
        raise RequestError(f"{text!r}: the reply to {request.__name__} has no fields", "write ok alone")
    if name not in names:
        raise RequestError(f"{text!r}: the reply to {request.__name__} has no field {name!r}", nearest(name, names))
    if not equals:
        raise RequestError(f"{text!r}: the value is missing", f"write it behind the name, like `{name}=0`")
    return name, value
