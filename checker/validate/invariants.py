"""The evaluation of the models' invariants on the behaviour of live servers, after every step, by the same functions.

Rules this module keeps:

- A property gets the same arguments as in a model: servers and the history, without the settled transactions
  (`checker.validate.global_history`).
- If a log with its queue has more than WHOLE transactions, the inside of each run is removed from all sequences
  together. A run is a series of transactions that are adjacent in every sequence and have one epoch and one proposer;
  no sequence ends inside it. The ends of the runs stay, so the answers are the same. Properties over all pairs of
  transactions would otherwise be too expensive.
- A property is evaluated again only if a value that it reads has changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from checker.engine import TRIVIAL, Finding, Property, Read
from checker.models.ensemble import File, Member, Setup
from checker.models.ensemble.history import History
from checker.models.ensemble.setup import HISTORY, server_name
from checker.properties import ENSEMBLE_PROPERTIES
from checker.validate.global_history import GlobalHistory
from checker.validate.logs import Txns
from checker.validate.replay import appended
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn, epoch_of
from spec.zab.state import Append, Leader, ZabRules

WHOLE = 16
"""The length up to which logs are evaluated in full."""


OF_ALL_LEADERS = ("ActiveViewCommitted", "CommittedViewInForce")
"""The invariants that hold only if the journals have every commit of a configuration."""


@dataclass
class Count:
    """The number of evaluations of an invariant, and the number of those in which its premise held."""

    evaluated: int = 0
    premise: int = 0


class Invariants:
    """The invariants of an ensemble, given the servers at the start of their journals."""

    def __init__(self, past: GlobalHistory, servers: Mapping[Sid, Server], zab: ZabRules | None) -> None:
        self._past = past
        members = tuple(
            Member(sid, File(server_name(sid), server.view), replace(server.durable, log=past.given[sid]))
            for sid, server in servers.items()
        )
        reconfigurable = zab is not None and zab.first_version
        setup = Setup(members=members, zab=zab, reconfigurable=reconfigurable)
        self.properties = ENSEMBLE_PROPERTIES.build_for_journals(setup)
        self.counts = {prop.name: Count() for prop in self.properties}
        self.left_out: list[str] = []
        self._readers: dict[str, dict[Read, list[str]]] = {}  # by the column that is read: the names of the readers
        for prop in self.properties:
            for read in dict.fromkeys(prop.reads):
                self._readers.setdefault(read.column, {}).setdefault(read, []).append(prop.name)
        self._inputs: dict[str, tuple[Server, Txns, frozenset[Txn]]] = {}  # those of each server's value in the row
        self._shown: dict[Read, Any] = {}
        self._answers: dict[str, Any] = {}
        self._row: dict[str, Any] = {}

    def leave_out_views(self) -> None:
        """Exclude the invariants that need the view of every leader."""
        for name in OF_ALL_LEADERS:
            self.leave_out(name)

    def leave_out(self, name: str) -> None:
        """Exclude an invariant from all later evaluations."""
        if name in self.counts and name not in self.left_out:
            self.left_out.append(name)
            self.properties = [prop for prop in self.properties if prop.name != name]

    def evaluate(self) -> tuple[Property, Finding] | None:
        """Evaluate all invariants in the present state; return the first violation, or None."""
        changed = self._look()
        stale: set[str] = set()
        for column in changed:
            value = self._row[column]
            for read, readers in self._readers.get(column, {}).items():
                shown = value if read.projection is None else read.projection(value)
                if read not in self._shown or self._shown[read] != shown:
                    self._shown[read] = shown
                    stale.update(readers)
        for prop in self.properties:
            if prop.name in stale:
                self._answers[prop.name] = self._answer(prop)
            answer, count = self._answers[prop.name], self.counts[prop.name]
            count.evaluated += 1
            count.premise += answer is not TRIVIAL
            if isinstance(answer, Finding):
                return prop, answer
        return None

    def _answer(self, prop: Property) -> Any:
        seen = [self._shown[read] for read in prop.reads]
        if any(value is None and read.projection is not None for value, read in zip(seen, prop.reads, strict=True)):
            return TRIVIAL
        return prop.check(*seen)

    # The values that properties read.

    def _look(self) -> set[str]:
        """Update the row: a column for each server and one for the history, as in a model. Return changed columns."""
        past = self._past
        logs = {each: past.log_of(image) for each, image in past.images.items()}
        queued = {each: appended(image.server) for each, image in past.images.items()}
        wholes = {each: (*log, *queued[each]) for each, log in logs.items()}
        inside: frozenset[Txn] = frozenset()
        if max(map(len, wholes.values())) > WHOLE:
            inside = _inside(wholes, logs, past)
        row: dict[str, Any] = {HISTORY: _history(past.history, inside)}
        last = self._row
        for each, image in past.images.items():
            name, inputs = server_name(each), (image.server, logs[each], inside)
            row[name] = last[name] if self._inputs.get(name) == inputs else _without_inside(*inputs)
            self._inputs[name] = inputs
        changed = {name for name, value in row.items() if (old := last.get(name)) is not value and old != value}
        self._row = row
        return changed


def _without_inside(server: Server, log: Txns, inside: frozenset[Txn]) -> Server:
    """A server with this log, without the inside of runs."""
    shown = replace(server, durable=replace(server.durable, log=_without(log, inside)))
    if not inside or shown.zab is None or not shown.zab.queue:
        return shown
    queue = tuple(each for each in shown.zab.queue if not (isinstance(each, Append) and each.txn in inside))
    return replace(shown, zab=replace(shown.zab, queue=queue))


def _history(history: History, inside: frozenset[Txn]) -> History:
    if not inside:
        return history
    return replace(
        history,
        established=tuple(replace(each, initial=_without(each.initial, inside)) for each in history.established),
        committed=tuple(each for each in history.committed if each.txn not in inside),
        broadcast=tuple(each for each in history.broadcast if each.txn not in inside),
    )


def _without(txns: Txns, inside: frozenset[Txn]) -> Txns:
    return tuple(txn for txn in txns if txn not in inside) if inside else txns


# Runs.


def _inside(wholes: Mapping[Sid, Txns], logs: Mapping[Sid, Txns], past: GlobalHistory) -> frozenset[Txn]:
    """The transactions that can be left out; see the rules of this module.

    `spine` is the longest log. Every sequence agrees with it up to `common`, or up to its end if that comes first. A
    run ends at the end of a sequence, at the last delivery of a server, and where the epoch or the proposer changes.
    """
    spine = max(wholes.values(), key=len)
    history = past.history
    committed = tuple(each.txn for each in history.committed)
    sequences = [*wholes.values(), *logs.values(), committed, *(each.initial for each in history.established)]
    common, ends = len(spine), {0, len(spine)}
    behind: list[Txn] = []
    for sequence in sequences:
        agreed = _agreed(sequence, spine)
        ends.add(agreed)
        if agreed < len(sequence):
            common = min(common, agreed)
    for sequence in sequences:
        behind += sequence[common:]
    zxids = [txn.zxid for txn in spine]
    if any(one >= other for one, other in pairwise(zxids)):
        return frozenset()
    for image in past.images.values():
        part = image.server.zab
        if part is not None:
            ends.add(bisect_right(zxids, part.committed if isinstance(part, Leader) else part.delivered))
    ends.update(_changes(spine, history))
    kept = {place for end in ends for place in (end - 1, end)}
    inside = {txn for place, txn in enumerate(spine[:common]) if place not in kept}
    return frozenset(inside.difference(behind))


def _agreed(sequence: Txns, spine: Txns) -> int:
    """The length of the common prefix of a sequence and the spine."""
    length = min(len(sequence), len(spine))
    if sequence[:length] == spine[:length]:
        return length
    return next(n for n in range(length) if sequence[n] != spine[n])


def _changes(spine: Txns, history: History) -> Iterable[int]:
    """The positions at which the epoch, the proposer, or the epoch of the first commit changes."""
    proposers = {each.txn: (each.epoch, each.leader) for each in history.broadcast}
    commits = {each.txn: each.epoch for each in history.committed}
    kinds = [(epoch_of(txn.zxid), proposers.get(txn), commits.get(txn)) for txn in spine]
    return [place for place in range(1, len(kinds)) if kinds[place] != kinds[place - 1]]
