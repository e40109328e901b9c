"""Compares two records of one script, and describes where they differ.

Rules of this module:

- Values that may differ between two correct servers with other clients are left out: the zxids of a Stat are replaced
  by their order in the record so far, the zxids of replies are left out unless the case is exact, and so are the
  granted timeout of a session and the client's own address. Next to a late answer no case is exact: the request of
  another session, which it came after, takes zxids.
- After a difference with a known cause that changes no data, the comparison continues. After any other one it ends,
  since the rest of the record may be a consequence of it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness import commands as c
from harness.conform.known_causes import cause_of
from harness.conform.mismatch import KnownCause, Mismatch
from harness.interpreter import Seen
from harness.layouts import Stat
from harness.session import Answer


class Difference(NamedTuple):
    """A command with two different answers, and the known cause of it, if one fits."""

    number: int
    mismatch: Mismatch
    cause: KnownCause | None

    @property
    def explained(self) -> bool:
        """Whether the cause is the release of the server, or a meant difference: no setting, and no defect."""
        return self.cause is not None and self.cause.explains

    @property
    def signature(self) -> tuple[object, ...]:
        """What two differences of probably one cause have in common: the kind of command and of both answers."""
        command, tested, expected = self.mismatch[:3]
        kind = (type(command).__name__, getattr(command, "opcode", None), getattr(command, "by", None))
        return (kind, _kind(tested), _kind(expected), self.cause.name if self.cause else None)


def differences(tested: Sequence[Seen], expected: Sequence[Seen], exact: bool, release: str | None) -> list[Difference]:
    """The differences of two records of one script, up to the first one that is not harmless."""
    results: list[Difference] = []
    exact = exact and not any(record.late for record in (*tested, *expected))
    pairs = zip(comparable(tested, exact), comparable(expected, exact), strict=True)
    before: list[c.Command] = []
    for number, (ours, theirs) in enumerate(pairs):
        if ours.late or (ours.outcome, ours.events) != (theirs.outcome, theirs.events):
            values = (ours.command, ours.outcome, theirs.outcome, ours.events, theirs.events)
            mismatch = Mismatch(*values, tuple(before), ours.late)
            cause = cause_of(mismatch, release)
            results.append(Difference(number, mismatch, cause))
            if cause is None or not cause.harmless:
                break
        before.append(ours.command)
    return results


def comparable(record: Sequence[Seen], exact: bool) -> list[Seen]:
    """A record without the values that may differ between correct servers."""
    zxids: set[int] = set()
    compared: list[Seen] = []
    for entry in record:
        zxids |= {zxid for stat in _stats(entry) for zxid in (stat.czxid, stat.mzxid, stat.pzxid)}
        masked = _masked(entry, exact)
        compared.append(masked._replace(outcome=_changed(masked.outcome, partial(_ranked, sorted(zxids)))))
    return compared


def _ranked(zxids: Sequence[int], stat: Stat) -> Stat:
    """A Stat with the places of its zxids among all that the record has had so far."""
    return stat._replace(czxid=zxids.index(stat.czxid), mzxid=zxids.index(stat.mzxid), pzxid=zxids.index(stat.pzxid))


def _masked(seen: Seen, exact: bool) -> Seen:
    match seen.outcome:
        case Answer() as answer if isinstance(seen.command, c.WhoAmI) and answer.values:
            identities = [(scheme, "client" if scheme == "ip" else name) for scheme, name in answer.values[0]]
            return seen._replace(outcome=Answer(answer.err, 0, (sorted(identities),)))
        case Answer() as answer:
            return seen._replace(outcome=answer if exact else answer._replace(zxid=0))
        case ("attached" | "begun anew" as name, _):
            return seen._replace(outcome=name)
        case _:
            return seen


def _stats(value: Any) -> list[Stat]:
    if isinstance(value, Stat):
        return [value]
    if isinstance(value, tuple | list):
        return [stat for item in value for stat in _stats(item)]
    return []


def _changed(value: Any, change: Callable[[Stat], Stat]) -> Any:
    match value:
        case Stat():
            return change(value)
        case Answer():
            return value._replace(values=_changed(value.values, change))
        case tuple():
            return tuple(_changed(item, change) for item in value)
        case _:
            return value


def _kind(outcome: object) -> object:
    match outcome:
        case Answer(err=err):
            return err
        case (int() as err, int()):
            return err
        case _:
            return outcome
