"""A trace in the Informal Trace Format (ITF), and back: a file that other tools show and this checker replays.

The variables are the lanes, each a record, and `mbt::actionTaken` and `mbt::nondetPicks`, as in Quint. The `#meta` of
the file holds the rest as plain JSON: the source of the job, the property and its finding, the moves. The `#meta` of
each state holds its caption, the drawn elements of the step, and the truth of each property.

Rules of this module:

- Integers in states are `{"#bigint": "1"}`; states contain no bare number and no null. None is the variant `{"tag":
  "None", "value": {"#tup": []}}`. Maps with keys that a record cannot have are `{"#map": ...}`.
- A run that loops has `loop`, the index of the state that follows the last one. That state is therefore written once.
  The caption and the drawn elements of the step back to it are `closing` in `#meta`. A run that stays loops in its last
  state, without a move.
- Reading returns a trace equal to the written one. Any other input raises TraceFileError, and no other error; it names
  the file, the mistake and its place, and the correction.
- An HTML page and a pytest test contain the file unchanged, so `read_trace` reads them too. The other formats are for
  readers, and the error for them says so.

Source: Apalache's ADR-015, "Informal Trace Format in JSON".
"""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from checker.command import CommandError, ExitCode
from checker.engine.model import Kind
from checker.engine.values import key_of, show
from checker.job import DiagramEvent, Json, Verdict
from checker.traces.trace import RESERVED, Lanes, Trace, TraceStep, Truth, changed_fields
from spec.text import excerpt, integer

ACTION, PICKS = "mbt::actionTaken", "mbt::nondetPicks"
NONE = {"tag": "None", "value": {"#tup": []}}
START = "init"  # the action of the first state
VERSION = 1

T = TypeVar("T")


class TraceFileError(CommandError):
    """A file is not a trace; the message names the file, the mistake and the correction."""

    exit_code = ExitCode.SCENARIO


class _Move(msgspec.Struct, forbid_unknown_fields=True):
    action: str
    arguments: list[Any]


class _Closing(msgspec.Struct):
    """The caption and the drawn elements of the step that closes a loop; its state is where the loop starts."""

    caption: str
    drawn: tuple[DiagramEvent, ...]


class _Meta(msgspec.Struct, kw_only=True):
    """`#meta` of a file. Only a run that never reaches a goal has `since`, and `closing` if it loops."""

    format: str = "ITF"
    description: str = "https://apalache-mc.org/docs/adr/015adr-trace.html"
    quorate: int = VERSION
    job: str
    source: dict[str, Any]
    grain: str
    bounds: list[str]
    verdict: Verdict | None
    property: str
    kind: Kind | None  # None, like the verdict, for a walked run without a finding
    clause: str
    values: list[tuple[str, Any]]
    moves: list[_Move]
    since: int | msgspec.UnsetType = msgspec.UNSET
    closing: _Closing | msgspec.UnsetType = msgspec.UNSET


class _StateMeta(msgspec.Struct):
    index: int
    caption: str
    drawn: tuple[DiagramEvent, ...]
    truth: dict[str, Truth]


class _ItfFile(msgspec.Struct, rename={"meta": "#meta"}):
    meta: _Meta
    vars: list[str]
    states: list[dict[str, Any]]
    loop: int | None = None


# -- writing -------------------------------------------------------------------------------------------------


def to_itf(trace: Trace) -> str:
    """The trace as an ITF file, with a newline at the end."""
    closes = trace.loop is not None and trace.loop < trace.depth
    last = trace.steps[-1]
    meta = _Meta(
        job=trace.job,
        source=dict(trace.source),
        grain=trace.grain,
        bounds=list(trace.bounds),
        verdict=trace.verdict,
        property=trace.prop,
        kind=trace.kind,
        clause=trace.clause,
        values=list(trace.values),
        moves=[_Move(step.action or "", list(step.arguments)) for step in trace.steps[1:]],
        since=msgspec.UNSET if trace.since is None else trace.since,
        closing=_Closing(last.caption, last.events) if closes else msgspec.UNSET,
    )
    variables = [ACTION, PICKS, *trace.lanes]
    head = msgspec.to_builtins(meta)
    fields = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items() if name != "moves"]
    fields.append(f'  "moves": [\n{_lines(head["moves"])}\n  ]')
    states = f"[\n{_lines([_state(trace, step) for step in trace.steps[: -1 if closes else None]])}\n ]"
    parts = ["{\n" + ",\n".join(fields) + "\n }", json.dumps(variables), states]
    members = [*zip(("#meta", "vars", "states"), parts, strict=True)]
    members += [] if trace.loop is None else [("loop", json.dumps(trace.loop))]
    return "{\n" + ",\n".join(f' "{name}": {part}' for name, part in members) + "\n}\n"


def _lines(items: list[Any]) -> str:
    """One line for each item, so that a long trace is readable, and two traces can be compared line by line."""
    return ",\n".join("   " + json.dumps(item) for item in items)


def _state(trace: Trace, step: TraceStep) -> dict[str, Any]:
    meta = _StateMeta(step.number, step.caption, step.events, dict(step.truth))
    picks = {f"a{place}": {"tag": "Some", "value": expr(value)} for place, value in enumerate(step.arguments, 1)}
    lanes = {lane: expr(dict(step.lanes[lane])) if lane in step.lanes else NONE for lane in trace.lanes}
    return {"#meta": msgspec.to_builtins(meta), ACTION: step.action or START, PICKS: picks, **lanes}


def expr(value: Json) -> Any:
    """A JSON value as an expression of the format."""
    if value is None:
        return NONE
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return {"#bigint": str(value)}
    if isinstance(value, list):
        return [expr(item) for item in value]
    if any(key.startswith("#") for key in value):
        return {"#map": [[key, expr(item)] for key, item in value.items()]}
    return {key: expr(item) for key, item in value.items()}


# -- reading -------------------------------------------------------------------------------------------------


def read_itf(text: str, name: str = "the trace") -> Trace:
    """Read the trace in a file's text; `name` is the file's name in errors. Raises TraceFileError."""
    try:
        return _read(text)
    except _ContentError as error:
        problem = " ".join(error.what.splitlines())  # a key may have any character
        raise TraceFileError(f"{name} is not a trace: {problem}; {error.right}") from None
    except RecursionError:
        raise TraceFileError(f"{name} is not a trace: its values are nested too deeply") from None


class _ContentError(Exception):
    def __init__(self, what: str, right: str) -> None:
        super().__init__(what)
        self.what, self.right = what, right


def _read(text: str) -> Trace:
    file = _checked("", lambda: msgspec.convert(_parsed(text), _ItfFile))
    meta = file.meta
    if (meta.format, meta.quorate) != ("ITF", VERSION):
        problem = f"it is of format {meta.format!r}, version {meta.quorate}"
        raise _ContentError(problem, f"this release reads 'ITF', version {VERSION}")
    closes = meta.closing is not msgspec.UNSET
    if len(file.states) != len(meta.moves) + (0 if closes else 1):
        problem = f"it has {len(file.states)} states and {len(meta.moves)} moves"
        right = "a loop has as many states as moves" if closes else "a trace has one state more than moves"
        raise _ContentError(problem, right)
    _check_finding(meta)
    _check_loop(file)
    lanes = [variable for variable in file.vars if variable not in (ACTION, PICKS)]
    return _trace(file, _steps(file, lanes))


def _check_loop(file: _ItfFile) -> None:
    """Raise _ContentError unless `loop`, `closing` and `since` agree with the kind of the property."""
    meta, last = file.meta, len(file.states) - 1
    closes, has_since = meta.closing is not msgspec.UNSET, meta.since is not msgspec.UNSET
    is_liveness = meta.kind is not None and meta.kind.is_liveness
    if has_since is not is_liveness or not 0 <= (meta.since or 0) <= last:
        raise _ContentError(
            f"its kind is {_kind(meta)} and its since {meta.since if has_since else 'is not there'}",
            "only a run that never reaches a goal has a step since which it does not",
        )
    allowed: tuple[int | None, ...] = (None,)
    if closes:
        allowed = tuple(range(last + 1))
    elif is_liveness:
        allowed = (last,) if meta.kind is Kind.EVENTUALLY else (None,)
    if file.loop not in allowed or (closes and not is_liveness):
        raise _ContentError(
            f"its loop is {file.loop} in {last + 1} states",
            "a loop begins at one of the states, and has a closing step unless the run stays in its last one",
        )


def _check_finding(meta: _Meta) -> None:
    """Raise _ContentError unless a run with a finding has all parts of one, and a run without a finding has none."""
    finds = (meta.verdict is not None, bool(meta.property), bool(meta.clause))
    if meta.kind is None and any((*finds, meta.values)):
        right = "a run that ends in no finding has no verdict, property, clause and values"
        raise _ContentError("its kind is missing, and it has parts of a finding", right)
    if meta.kind is not None and not all(finds):
        right = "a finding has a verdict, a property and a clause"
        raise _ContentError(f"its kind is {_kind(meta)}, and something of the finding is missing", right)


def _kind(meta: _Meta) -> str:
    return "none" if meta.kind is None else meta.kind.value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _ContentError(f"it is not JSON ({error})", "a trace is one JSON object, as --traces writes it") from None


def _checked(where: str, convert: Callable[[], T]) -> T:
    try:
        return convert()
    except msgspec.ValidationError as error:
        raise _ContentError(f"{where}{error}", "write it again with the release that reads it") from None


def _trace(file: _ItfFile, steps: tuple[TraceStep, ...]) -> Trace:
    meta = file.meta
    return Trace(
        job=meta.job,
        source=meta.source,
        grain=meta.grain,
        bounds=tuple(meta.bounds),
        verdict=meta.verdict,
        prop=meta.property,
        kind=meta.kind,
        clause=meta.clause,
        values=tuple(meta.values),
        steps=steps,
        loop=file.loop,
        since=None if meta.since is msgspec.UNSET else meta.since,
    )


def _steps(file: _ItfFile, lanes: list[str]) -> tuple[TraceStep, ...]:
    steps: list[TraceStep] = []
    before: Lanes = {}
    for number, state in enumerate(file.states):
        where = f"state {number}: "
        meta = _checked(where, lambda: msgspec.convert(state.get("#meta"), _StateMeta))  # noqa: B023
        move = file.meta.moves[number - 1] if number else _Move(START, [])
        if meta.index != number or state.get(ACTION) != move.action:
            raise _ContentError(
                f"{where}it is numbered {meta.index} and its action is {state.get(ACTION)!r}",
                f"after the moves in #meta it should be state {number} after {move.action!r}",
            )
        after = _lanes(where, state, lanes)
        changed = changed_fields(before, after)
        action, arguments = move.action if number else None, tuple(move.arguments)
        steps.append(TraceStep(number, action, arguments, meta.caption, after, changed, meta.drawn, meta.truth))
        before = after
    if file.meta.closing is not msgspec.UNSET:
        move, closing, again = file.meta.moves[-1], file.meta.closing, steps[file.loop or 0]
        arguments, lanes_there = tuple(move.arguments), again.lanes
        changed = changed_fields(before, lanes_there)
        steps.append(
            TraceStep(
                len(steps), move.action, arguments, closing.caption, lanes_there, changed, closing.drawn, again.truth
            )
        )
    return tuple(steps)


def _lanes(where: str, state: dict[str, Any], lanes: list[str]) -> dict[str, dict[str, Json]]:
    values = {}
    for lane in lanes:
        if lane.startswith(RESERVED) or lane not in state:
            raise _ContentError(f"{where}it has no value for the variable {lane!r}", "each state gives every variable")
        value = json_of(state[lane], f"{where}{lane}")
        if value is not None and not isinstance(value, dict):
            raise _ContentError(f"{where}{lane} is {show(value)!r}", "a lane is a record of fields")
        if value is not None:
            values[lane] = value
    return values


def json_of(value: Any, where: str = "value") -> Json:
    """The JSON value of an expression of the format; sets and tuples become lists."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, list):
        return [json_of(item, where) for item in value]
    if not isinstance(value, dict):
        raise _ContentError(
            f"{where} has the bare value {value!r}",
            'a number is written {"#bigint": "1"}, and nothing is null',
        )
    if value == NONE:
        return None
    tag = next((key for key in value if key.startswith("#")), None)
    if tag is None:
        return {key: json_of(item, f"{where}.{key}") for key, item in value.items()}
    return _special(tag, value[tag], where) if len(value) == 1 else _unknown(where, tag)


def _special(tag: str, content: Any, where: str) -> Json:
    if tag == "#bigint" and isinstance(content, str):
        number = integer(content, -(10**999), 10**999)
        return _unknown(where, f"{tag} with {excerpt(content, 40)!r}") if number is None else number
    if tag in ("#tup", "#set") and isinstance(content, list):
        return [json_of(item, where) for item in content]
    pairs = isinstance(content, list) and all(isinstance(item, list) and len(item) == 2 for item in content)
    if tag == "#map" and pairs:
        return {key_of(json_of(key, where)): json_of(item, where) for key, item in content}
    return _unknown(where, tag)


def _unknown(where: str, what: str) -> Json:
    right = 'the format has {"#bigint": "1"}, {"#tup": []}, {"#set": []} and {"#map": [[key, value]]}'
    raise _ContentError(f"{where} has {what}, not as the format has it", right)


IN_PAGE = re.compile(r'<script type="application/json" id="itf">(.*?)</script>', re.DOTALL)
IN_TEST = re.compile(r'^TRACE = r"""\n(.*?)^}\n"""', re.DOTALL | re.MULTILINE)


def read_trace(text: str, name: str = "the trace") -> Trace:
    """Read the trace in a file's text; `name` is the file's name in errors. Raises TraceFileError."""
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return read_itf(text, name)
    page, test = IN_PAGE.search(text), IN_TEST.search(text)
    if page is not None:
        return read_itf(page[1], name)
    if test is not None:
        return read_itf(test[1] + "}", name)
    raise TraceFileError(
        f"{name} is not a trace: it is neither an ITF file nor a page or test that holds one; "
        "of what --traces writes, the .itf.json, .html and .py files replay"
    )


def for_page(itf: str) -> str:
    """An ITF file's text as the content of a script element: JSON that cannot end the element."""
    return itf.replace("<", "\\u003c")
