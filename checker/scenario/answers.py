"""Expected answers from plain text, for scripts: `NoNode`, `ok`, `ok version=0 children=a,b`, `ok | NodeExists`.

Codes have the names of ZooKeeper's `KeeperException.Code`, in any case. `ok` may be followed by fields of the reply, in
the notation of `checker.models.service.expected.field_of`.
"""

from __future__ import annotations

from checker.models.service.expected import Expected, fields_of
from checker.scenario.errors import nearest
from spec.tree import replies, requests
from spec.tree.fields import Record
from spec.tree.replies import Code

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
    for one in text.split("|"):
        word, *rest = one.split() or [""]
        name = word.lower()
        if name not in CODES:
            raise RequestError(f"there is no error code {word!r}", nearest(word, SPELLED.values()))
        if rest and CODES[name] is not Code.OK:
            raise RequestError(f"{one.strip()!r}", "only ok is followed by fields, like `ok version=0`")
        codes.append(CODES[name])
        fields += [_field(each, type(step[0])) for each in rest]
    return Expected(tuple(codes), tuple(fields))


def _field(text: str, request: type[Record]) -> tuple[str, str]:
    """A field of the reply and its value. Raises RequestError."""
    name, equals, value = text.partition("=")
    known = sorted(fields_of(REPLIES[request])) if request in REPLIES else []
    if not known:
        raise RequestError(f"{text!r}: the reply to {request.__name__} has no fields", "write ok alone")
    if name not in known:
        raise RequestError(f"{text!r}: the reply to {request.__name__} has no field {name!r}", nearest(name, known))
    if not equals:
        raise RequestError(f"{text!r}: there is no value", f"write it behind the name, like `{name}=0`")
    return name, value
