"""The evaluation of the models' invariants on the behaviour of live servers, after every step, by the same functions.

Rules this module keeps:

- A property gets the same arguments as in a model: servers and the history, without the settled transactions
  (`checker.validate.global_history`).
- If a log with its queue has more than WHOLE transactions, the inside of each run is removed from all sequences
  together. A run is a series of transactions that are adjacent in every sequence and have one epoch and one proposer;
  no sequence ends inside it. The ends of the runs stay, so the answers are the same. Properties over all pairs of
  transactions would otherwise be too expensive.
- A property is evaluated again only if a value that it reads has changed.

If that is asked for, each step of a live server must also be a step of abstract Zab, or change nothing.
`checker.refinement` maps a step to abstract actions, and judges their conditions:

- Transactions up to a floor are removed from logs and histories alike. They are settled, or a node has forgotten them.
  So the floor only rises.
- A life may be cut short between a record and its effects. A reign that no learner has heard of ends with its server,
  and may begin once more. If a learner has heard of it, its epoch must have been on the disk of its server: then the
  reign stays, and to begin it once more breaks a condition.
- The end of a process leaves the disk as it is and sends nothing. It is no abstract action, so it breaks no condition.
- An acknowledgement counts only if the journal of its server has it. So all voters need journals.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec.structs import replace

from checker.engine import TRIVIAL, Finding, Property
from checker.engine.model import Projection
from checker.models.ensemble import File, Member, Setup
from checker.models.ensemble.history import History
from checker.models.ensemble.setup import HISTORY, server_name
from checker.properties import ENSEMBLE_PROPERTIES
from checker.refinement.abstract_steps import (
    AbstractAction,
    AbstractSteps,
    Broken,
    Disk,
    Name,
    Reign,
    ReignHistory,
    abstract_steps,
)
from checker.validate.global_history import GlobalHistory, Image, Txns
from checker.validate.replay import appended, known_from
from spec.effects import Effects
from spec.quorum import Sid
from spec.server import Event, Server
from spec.txn import Txn, epoch_of
from spec.zab.state import Append, Leader, ZabRules

WHOLE = 16
"""The length up to which logs are evaluated in full."""


OF_ALL_LEADERS = ("ActiveViewCommitted", "CommittedViewInForce")
"""The invariants that hold only if the journals have every commit of a configuration."""


UNSEEN = object()
"""The value before the first look, which equals no other."""


@dataclass
class Count:
    """The number of evaluations of an invariant, and the number of those in which its premise held."""

    evaluated: int = 0
    premise: int = 0


@dataclass
class ReadValue:
    """A value that properties read, as it was at the last look, and the names of these properties."""

    projection: Projection | None
    readers: list[str] = field(default_factory=list)
    shown: Any = UNSEEN


class SeenServer(NamedTuple):
    """A server, its log without the settled part, and that log with the transactions in its queue."""

    server: Server
    log: Txns
    whole: Txns


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
        self._counts = {prop.name: Count() for prop in self.properties}
        self._uncounted = 0  # the evaluations with the present answers that are not in the counts
        self.left_out: list[str] = []
        values = {source: ReadValue(source.projection) for prop in self.properties for source in prop.reads}
        self._inputs = {prop.name: [values[source] for source in prop.reads] for prop in self.properties}
        self._values: dict[str, list[ReadValue]] = {}  # by the column that is read
        for source, value in values.items():
            value.readers = [prop.name for prop in self.properties if source in prop.reads]
            self._values.setdefault(source.column, []).append(value)
        self._seen: dict[Sid, SeenServer] = {}  # at the last look, as are the next two
        self._history = History()
        self._inside: frozenset[Txn] = frozenset()
        self._answers: dict[str, Any] = {}
        self._row: dict[str, Any] = {}

    @property
    def counts(self) -> Mapping[str, Count]:
        """The counts of each invariant, by its name."""
        self._count(self.properties)
        return self._counts

    def leave_out_views(self) -> None:
        """Exclude the invariants that need the view of every leader."""
        for name in OF_ALL_LEADERS:
            self.leave_out(name)

    def leave_out(self, name: str) -> None:
        """Exclude an invariant from all later evaluations."""
        if name in self._counts and name not in self.left_out:
            self._count(self.properties)
            self.left_out.append(name)
            self.properties = [prop for prop in self.properties if prop.name != name]

    def evaluate(self) -> tuple[Property, Finding] | None:
        """Evaluate all invariants in the present state; return the first violation, or None."""
        stale = self._stale()
        if stale:
            self._count(self.properties)
            for place, prop in enumerate(self.properties, start=1):
                if prop.name in stale:
                    answer = self._answers[prop.name] = self._answer(prop)
                    if isinstance(answer, Finding):
                        self._uncounted = 1
                        self._count(self.properties[:place])
                        return prop, answer
        self._uncounted += 1
        return None

    def _count(self, evaluated: Iterable[Property]) -> None:
        """Add the evaluations since the last change of an answer to the counts of these properties."""
        if self._uncounted:
            for prop in evaluated:
                count = self._counts[prop.name]
                count.evaluated += self._uncounted
                if self._answers[prop.name] is not TRIVIAL:
                    count.premise += self._uncounted
            self._uncounted = 0

    def _stale(self) -> set[str]:
        stale: set[str] = set()
        for column in self._look():
            value = self._row[column]
            for reading in self._values.get(column, ()):
                present = value if reading.projection is None else reading.projection(value)
                if reading.shown != present:
                    reading.shown = present
                    stale.update(reading.readers)
        return stale

    def _answer(self, prop: Property) -> Any:
        inputs = self._inputs[prop.name]
        values = [source.shown for source in inputs]
        if None in values and any(source.shown is None and source.projection is not None for source in inputs):
            return TRIVIAL
        return prop.check(*values)

    # The values that properties read.

    def _look(self) -> set[str]:
        """Update the row: a column for each server and one for the history, as in a model. Return changed columns."""
        history, last, former = self._past.history, self._row, self._seen
        servers = {sid: self._seen_of(sid, image) for sid, image in self._past.images.items()}
        if last and history is self._history and servers == former:
            return set()
        is_long = max(len(server.whole) for server in servers.values()) > WHOLE
        inside = _inside(servers, history) if is_long else frozenset()
        is_same = bool(last) and inside == self._inside
        row: dict[str, Any] = {
            HISTORY: last[HISTORY] if is_same and history is self._history else _history(history, inside)
        }
        for sid, server in servers.items():
            name = server_name(sid)
            row[name] = last[name] if is_same and server is former[sid] else _without_inside(server, inside)
        self._row, self._seen, self._history, self._inside = row, servers, history, inside
        return {name for name, value in row.items() if (old := last.get(name)) is not value and old != value}

    def _seen_of(self, sid: Sid, image: Image) -> SeenServer:
        """The server of an image; the same object as at the last look, if it has not changed."""
        server, log, former = image.server, self._past.log_of(image), self._seen.get(sid)
        if former is not None and former.log == log and former.server == server:
            return former
        return SeenServer(server, log, (*log, *appended(server)))


def _without_inside(seen: SeenServer, inside: frozenset[Txn]) -> Server:
    """A server with its log, without the inside of runs."""
    server = replace(seen.server, durable=replace(seen.server.durable, log=_without(seen.log, inside)))
    if not inside or server.zab is None or not server.zab.queue:
        return server
    queue = tuple(item for item in server.zab.queue if not (isinstance(item, Append) and item.txn in inside))
    return replace(server, zab=replace(server.zab, queue=queue))


def _history(history: History, inside: frozenset[Txn]) -> History:
    if not inside:
        return history
    return replace(
        history,
        established=tuple(replace(reign, initial=_without(reign.initial, inside)) for reign in history.established),
        committed=tuple(commit for commit in history.committed if commit.txn not in inside),
        broadcast=tuple(proposal for proposal in history.broadcast if proposal.txn not in inside),
    )


def _without(txns: Txns, inside: frozenset[Txn]) -> Txns:
    return tuple(txn for txn in txns if txn not in inside) if inside else txns


# Runs.


def _inside(seen: Mapping[Sid, SeenServer], history: History) -> frozenset[Txn]:
    """The transactions that can be left out; see the rules of this module.

    `spine` is the longest log. Every sequence agrees with it up to `common`, or up to its end if that comes first. A
    run ends at the end of a sequence, at the last delivery of a server, and where the epoch or the proposer changes.
    """
    spine = max((server.whole for server in seen.values()), key=len)
    committed = tuple(commit.txn for commit in history.committed)
    servers = [sequence for server in seen.values() for sequence in (server.whole, server.log)]
    sequences = [*servers, committed, *(reign.initial for reign in history.established)]
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
    if any(low >= high for low, high in pairwise(zxids)):
        return frozenset()
    for server in seen.values():
        part = server.server.zab
        if part is not None:
            ends.add(bisect_right(zxids, part.committed if isinstance(part, Leader) else part.delivered))
    ends.update(_changes(spine, history))
    edges = {place for end in ends for place in (end - 1, end)}
    inside = {txn for place, txn in enumerate(spine[:common]) if place not in edges}
    return frozenset(inside.difference(behind))


def _agreed(sequence: Txns, spine: Txns) -> int:
    """The length of the common prefix of a sequence and the spine."""
    length = min(len(sequence), len(spine))
    if sequence[:length] == spine[:length]:
        return length
    return next(n for n in range(length) if sequence[n] != spine[n])


def _changes(spine: Txns, history: History) -> Iterable[int]:
    """The positions at which the epoch, the proposer, or the epoch of the first commit changes."""
    proposers = {proposal.txn: (proposal.epoch, proposal.leader) for proposal in history.broadcast}
    commits = {commit.txn: commit.epoch for commit in history.committed}
    kinds = [(epoch_of(txn.zxid), proposers.get(txn), commits.get(txn)) for txn in spine]
    return [place for place in range(1, len(kinds)) if kinds[place] != kinds[place - 1]]


OF_A_TRANSACTION = (Name.ACK, Name.COMMIT, Name.PROPOSE)


class JournalRefinement:
    """The history variables of the refinement, along the common order of all records."""

    def __init__(self) -> None:
        self.count = Count()
        self._reigns = ReignHistory()
        self._floor = 0

    def stepped(
        self, before: Server, event: Event | None, after: Server, effects: Effects, settled: int
    ) -> tuple[Broken, ...]:
        """Take a step; the event is None for the end of a process. Returns the conditions that it breaks."""
        self.count.evaluated += 1
        steps = abstract_steps(before, event, after, effects)
        if steps is None:
            return ()
        from checker.refinement.judgement import judged_step  # noqa: PLC0415 (it loads z3 where that is installed)

        self.count.premise += 1
        self._raise_floor(max(settled, known_from(before.durable) - 1, known_from(after.durable) - 1))
        result = judged_step(self._reigns, self._above(steps))
        self._reigns = result.reigns
        return result.broken

    def ended(self, running: Server, stopped: Server, settled: int) -> None:
        """A process ends: its server leads or follows no longer."""
        broken = self.stepped(running, None, stopped, (), settled)
        assert not broken, "the disk stays, and nothing is sent"

    def _raise_floor(self, floor: int) -> None:
        if floor > self._floor:
            self._floor = floor
            self._reigns = replace(self._reigns, known=tuple(map(self._reign_above, self._reigns.known)))

    def _reign_above(self, reign: Reign) -> Reign:
        return replace(
            reign,
            initial=self._txns(reign.initial),
            history=self._txns(reign.history),
            acked=frozenset((sid, txn) for sid, txn in reign.acked if txn.zxid > self._floor),
            committed=frozenset((txn, quorum) for txn, quorum in reign.committed if txn.zxid > self._floor),
        )

    def _above(self, steps: AbstractSteps) -> AbstractSteps:
        """The step without the transactions up to the floor."""
        calls = tuple(self._call(call) for call in steps.calls if not self._is_below(call))
        return replace(steps, before=self._disk(steps.before), calls=calls, after=self._disk(steps.after))

    def _call(self, call: AbstractAction) -> AbstractAction:
        return replace(call, txns=self._txns(call.txns)) if call.txns else call

    def _is_below(self, call: AbstractAction) -> bool:
        return call.name in OF_A_TRANSACTION and call.zxid <= self._floor

    def _disk(self, disk: Disk) -> Disk:
        return replace(disk, txns=self._txns(disk.txns))

    def _txns(self, txns: tuple[Txn, ...]) -> tuple[Txn, ...]:
        return tuple(txn for txn in txns if txn.zxid > self._floor)
