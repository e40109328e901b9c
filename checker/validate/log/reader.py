"""The reader of logs: lines of JSON, from one file or from one for each process.

Rules of this module:

- A line is one JSON object. Anything else raises `JournalError` with the line, the mistake and the correction; so does
  a name that the model does not have, and an exception of the user's function.
- The lines of one process are in their order. A process has a file, or with `Events.process` a value of that field,
  in whatever file.
- The lines of different processes are reported by their times if `Events.time` names the field, otherwise by their
  numbers. No line comes before an earlier one of its process.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import Any

import msgspec

from checker.engine.model import Model, ModelError
from checker.engine.values import canonical
from checker.kit.events import Events
from checker.user_files import LOG, LOG_LINE, TooLargeError, opened
from checker.validate.journals import JournalError, numbered_lines
from checker.validate.log import EventLine
from checker.validate.log.patterns import event_of
from spec.text import excerpt

RIGHT = "a line is one JSON object"


def read_log(paths: Sequence[Path], events: Events, model: Model) -> tuple[list[EventLine], int]:
    """The lines that say something about the model, in the order of reports, and the number of all lines.

    Raises JournalError.
    """
    processes: dict[str, list[tuple[Any, EventLine]]] = {}
    numbers: dict[str, int] = {}
    total = 0
    for place, path in enumerate(paths):
        for number, raw in _raw_lines(path):
            total += 1
            fields = _fields(path, number, raw)
            name = str(place) if events.process is None else canonical(_field(path, number, fields, events.process))
            time = _time(path, number, fields, events.time)
            try:
                event = event_of(events, fields, model)
            except ModelError as error:
                raise JournalError(path, number, str(error)) from None
            if event is not None:
                text = excerpt(raw.decode("utf-8"))
                line = EventLine(str(path), number, text, numbers.setdefault(name, len(numbers)), event)
                processes.setdefault(name, []).append(((*time, number, place), line))
    try:
        lines = [line for _, line in merge(*processes.values(), key=lambda entry: entry[0])]
    except TypeError:
        raise JournalError(
            paths[0], 0, f"some times ({events.time}) are numbers and others texts; write one kind"
        ) from None
    return lines, total


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers."""
    try:
        with opened(path, LOG, streams=True) as stream:
            for number, raw in numbered_lines(path, stream, LOG_LINE):
                if raw.strip():
                    yield number, raw
    except TooLargeError as error:
        raise JournalError(path, 0, f"{error}; validate the log of a shorter run") from None
    except OSError as error:
        raise JournalError(path, 0, f"it cannot be read ({error.strerror}); name a log of JSON lines") from None


def _fields(path: Path, number: int, raw: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(path, number, f"it is not JSON ({error}); {RIGHT}") from None
    if not isinstance(fields, dict):
        raise JournalError(path, number, f"it is JSON and no object; {RIGHT}")
    return fields


def _field(path: Path, number: int, fields: dict[str, Any], name: str) -> Any:
    if name not in fields:
        raise JournalError(path, number, f"it has no field {name!r}, which says whose line it is; {RIGHT} with it")
    return fields[name]


def _time(path: Path, number: int, fields: dict[str, Any], name: str | None) -> tuple[Any, ...]:
    if name is None:
        return ()
    time = fields.get(name)
    if isinstance(time, bool) or not isinstance(time, int | float | str):
        raise JournalError(path, number, f"its time {name!r} is no number and no text; write one in each line")
    return (time,)
