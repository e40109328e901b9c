"""The reader of journals. A file has the runs of one server, each with a start record and numbered steps.

Rules:

- A damaged file, a mixed one, or one in another format raises `JournalError` with the line and the correction.
- The last line of a run may be incomplete, since the process may have been killed during the write. That is reported,
  but is not an error. An incomplete line is followed by a start record or by the end of the file.
- A file is read as a stream, so memory does not grow with it. Files and lines have a size limit (`checker.user_files`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from checker.command import CommandError, ExitCode
from checker.user_files import JOURNAL, JOURNAL_KIND, LINE, TooLargeError, kind_of, opened
from checker.validate.codec import CodecError, durable_of, event_of, rules_of, view_of, zab_rules_of
from spec.durable import Durable
from spec.election.state import ElectionRules
from spec.quorum import Sid, View
from spec.server import Event
from spec.zab.state import ZabRules

FORMAT = 2
"""The version of the format."""


class JournalError(CommandError):
    """A journal that cannot be read: the file, the line (0: none), the mistake and the correction."""

    exit_code = ExitCode.SCENARIO

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}" if line else f"{path}: {what}")
        self.path, self.line, self.what = path, line, what


@dataclass(frozen=True, slots=True)
class StartRecord:
    """A start record: the server's configuration and disk; the rules without variants, and the variants by name.

    `last_seen` is the configuration in its file `.dynamic.next`.
    """

    line: int
    time: float
    sid: Sid
    view: View
    durable: Durable
    rules: ElectionRules
    zab: ZabRules | None
    variants: tuple[str, ...]
    last_seen: View | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step: its number in this life, the event, the facts as written and the digest of the effects.

    `first` marks the first of the records that reached the system together. `oldest` is the first zxid that is still in
    memory, if that has changed.
    """

    line: int
    time: float
    number: int
    event: Event
    facts: list[Any]
    digest: str | None
    first: bool
    oldest: int | None


@dataclass(frozen=True, slots=True)
class TornRecord:
    """An unreadable line at the end of a life."""

    line: int


Record = StartRecord | StepRecord | TornRecord


class _Line(msgspec.Struct):
    """Any line of a journal; a start record has `journal` and no `e`."""

    n: int
    t: float
    journal: int | None = None
    sid: int | None = None
    view: Any = None
    next: Any = None
    durable: Any = None
    rules: Any = None
    zab: Any = None
    e: msgspec.Raw = msgspec.Raw(b"null")
    f: list[Any] = []
    x: str | None = None
    b: int = 0
    m: int | None = None


_decode = msgspec.json.Decoder(_Line).decode
_decode_event = msgspec.json.Decoder().decode


def read(path: Path) -> Iterator[Record]:
    """Read the records of a file in order. Raises JournalError."""
    try:
        with opened(path, JOURNAL) as stream:
            yield from _records(path, numbered_lines(path, stream, LINE))
    except TooLargeError as error:
        raise JournalError(path, 0, f"{error}; validate the journal of a shorter run") from None
    except OSError as error:
        raise JournalError(path, 0, f"it cannot be read ({error.strerror}); name the journal of a server") from None


def numbered_lines(path: Path, stream: BinaryIO, longest: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers. Raises JournalError for a line of more bytes than the longest."""
    number = 0
    while raw := stream.readline(longest + 1):
        number += 1
        if len(raw) > longest:
            raise JournalError(path, number, f"the line has more than {longest:,} bytes, which is the limit")
        yield number, raw


def _records(path: Path, numbered: Iterator[tuple[int, bytes]]) -> Iterator[Record]:
    sid: Sid | None = None
    count = 0
    torn: tuple[int, str] | None = None
    for number, raw in numbered:
        try:
            line = _decode(raw) if raw.endswith(b"\n") else _torn()
            event = _event_in(bytes(line.e))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if sid is None and torn is None:
                _check_kind(path)
            if torn is not None:
                raise JournalError(path, *torn) from None
            torn = (number, f"it is damaged ({error}); a line is one JSON object, as the node wrote it")
            continue
        if torn is not None:
            if line.journal is None:
                raise JournalError(path, *torn)
            yield TornRecord(torn[0])
            torn = None
        if line.journal is not None:
            start = _begun(path, number, line)
            if sid is not None and start.sid != sid:
                raise JournalError(path, number, f"server {start.sid} starts in the journal of server {sid}; "
                                   "give each server its own file")  # fmt: skip
            sid, count = start.sid, 0
            yield start
        elif sid is None:
            _check_kind(path)
            problem = 'not a journal: the first line must be a start record, {"journal": 2, ...}'
            raise JournalError(path, number, problem)
        else:
            count += 1
            if line.n != count:
                raise JournalError(path, number, f"this is record {line.n}, and record {count} is next; "
                                   "lines are lost, doubled or out of order")  # fmt: skip
            if isinstance(event, CodecError):
                raise JournalError(path, number, str(event))
            yield StepRecord(number, line.t, line.n, event, line.f, line.x, bool(line.b), line.m)
    if sid is None:
        if torn is not None:
            raise JournalError(path, *torn)
        raise JournalError(path, 0, "it has no records; a journal begins with a start record")
    if torn is not None:
        yield TornRecord(torn[0])


def _check_kind(path: Path) -> None:
    """Raises JournalError for a file that is no journal, rather than a damaged one."""
    if (kind := kind_of(path)) != JOURNAL_KIND:
        right = "name the journals that nodes write with --journal, or one recording"
        raise JournalError(path, 0, f"it is {kind}; {right}")


@lru_cache(maxsize=4096)
def _event_in(raw: bytes) -> Event | CodecError:
    """The event in a line, or the mistake in it. Servers have many equal events."""
    plain = _decode_event(raw)
    try:
        return event_of(plain)
    except CodecError as error:
        return error


def _torn() -> _Line:
    raise msgspec.DecodeError("the line has no end")


def _begun(path: Path, number: int, line: _Line) -> StartRecord:
    if line.journal != FORMAT:
        raise JournalError(path, number, f"the format is {line.journal}; this program reads format {FORMAT}")
    if line.sid is None:
        raise JournalError(path, number, "a start record names no server; it must have sid")
    try:
        rules, of_election = rules_of(line.rules)
        zab, of_zab = zab_rules_of(line.zab)
        variants = tuple(sorted({*of_election, *of_zab}))
        view, durable = view_of(line.view), durable_of(line.durable)
        last_seen = None if line.next is None else view_of(line.next)
    except CodecError as error:
        raise JournalError(path, number, str(error)) from None
    return StartRecord(number, line.t, line.sid, view, durable, rules, zab, variants, last_seen)
