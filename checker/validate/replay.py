"""The replay of one server: every step of its journal, by the step functions of the unmodified specification; and its
position after a step: whether it is present, what it has delivered, what its disk has finished.

Rules this module keeps:

- A step fits if the event is possible and produces the facts and the effects in the journal.
- After a restart the disk contains the state that is durable according to the journal, with any number of the requested
  and unreported operations, oldest first. The records of the last turn of the node's loop may have reached the system
  before or after its effects were carried out, so any part of that turn may have happened: the disk may be behind it or
  ahead of it.
- Only the present state is kept, and the states of that last turn.
- A second pass over a journal that fits has the same results. The first pass keeps them while a journal is short, so
  that its steps are not computed twice. A longer one is read and replayed again, so memory does not grow with it.

Source: `spec.server`, `spec.zab.disk`; `QuorumPeer.loadDataBase` for the state after a restart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from checker.validate.codec import digest_of, fits, text_of
from checker.validate.journals import StartRecord, StepRecord, TornRecord, read
from spec import server as spec_server
from spec.durable import Durable
from spec.effects import DiskOperation, Effects, Observe, Persist, ServerStep
from spec.election.state import ElectionRules
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab import disk
from spec.zab.state import Append, Leader, LeaderPhase, Learner, LearnerPhase, TakeSnapshot, ZabRules

LAST_TURN = 256
"""The number of states of the last turn that are kept; longer turns lose their beginning."""
KEPT_IN_MEMORY = 500
"""The least number of transactions that a server keeps in memory if it has them (`ZKDatabase.commitLogCount`)."""


@dataclass(frozen=True)
class Mismatch:
    """The first step that does not fit, with the clause that decided and its witnesses.

    `invariant` is the name of the violated invariant; empty if the step is not a step of the specification.
    """

    path: Path
    line: int
    time: float
    sid: Sid
    event: str
    clause: str
    values: tuple[tuple[str, object], ...] = ()
    invariant: str = ""


@dataclass(frozen=True)
class DiskAhead:
    """A restart that found more on the disk than the journal contains."""

    line: int
    what: str


class Replay:
    """A server according to its journal; `checks` is False for a second pass over a journal that fits."""

    def __init__(self, path: Path, begun: StartRecord, *, checks: bool = True) -> None:
        self.path, self.checks = path, checks
        self.server = Server(begun.sid, begun.view, begun.durable, last_seen=begun.last_seen)
        self.stepped = self.server  # after the last step, before the node has forgotten any of its log
        self.rules: ElectionRules = begun.rules
        self.zab: ZabRules | None = begun.zab
        self._turn: list[tuple[Durable, tuple[DiskOperation, ...]]] = []

    def restart(self, begun: StartRecord) -> Mismatch | DiskAhead | None:
        """Starts the next life of the server, and compares the contents of its disk with the expected contents."""
        mismatch = self._compare(begun) if self.checks else None
        self.server = self.stepped = Server(begun.sid, begun.view, begun.durable, last_seen=begun.last_seen)
        self.rules, self.zab, self._turn = begun.rules, begun.zab, []
        return mismatch

    def step(self, handled: StepRecord) -> Effects | Mismatch:
        """Replays one step; returns its effects, or the reason why it does not fit."""
        try:
            stepped = spec_server.step(self.server, handled.event, self.rules, self.zab)
        except (ArithmeticError, AssertionError, LookupError, StopIteration, ValueError) as error:
            return self._mismatch(handled, f"the specification cannot take this step ({type(error).__name__}: {error})")
        if stepped is None:
            return self._mismatch(handled, "the event is impossible in this state", self._state())
        if self.checks:
            mismatch = self._mismatch_of(handled, stepped)
            if mismatch is not None:
                return mismatch
            if handled.first:
                self._turn.clear()
            self._turn.append((self.server.durable, _queue(self.server)))
            if len(self._turn) > LAST_TURN:
                del self._turn[0]
        self.server = self.stepped = stepped.state
        if handled.oldest is not None:
            return self._shorten(handled) or stepped.effects
        return stepped.effects

    def _mismatch_of(self, handled: StepRecord, stepped: ServerStep[Server]) -> Mismatch | None:
        facts = [effect.fact for effect in stepped.effects if isinstance(effect, Observe)]
        for entry, fact in zip(handled.facts, facts, strict=False):
            if not fits(entry, fact):
                clause = "the node observed another fact than the specification"
                return self._mismatch(handled, clause, (("written", entry), ("by the specification", text_of(fact))))
        if len(handled.facts) != len(facts):
            clause = "the node observed more or fewer facts than the specification"
            ours = [text_of(fact) for fact in facts]
            return self._mismatch(handled, clause, (("written", handled.facts), ("by the specification", ours)))
        if handled.digest != digest_of(stepped.effects):
            effects = [text_of(effect) for effect in stepped.effects]
            values = (("by the specification", effects), *self._state())
            return self._mismatch(handled, "the effects are not those of the specification", values)
        return None

    def _mismatch(self, handled: StepRecord, clause: str, values: tuple[tuple[str, object], ...] = ()) -> Mismatch:
        return Mismatch(self.path, handled.line, handled.time, self.server.sid, text_of(handled.event), clause, values)

    def _state(self) -> tuple[tuple[str, object], ...]:
        server = self.server
        if server.election is None:
            return (("state", "not running"),)
        state: list[tuple[str, object]] = [("state", server.election.state.name)]
        if server.zab is not None:
            state += [("phase", server.zab.phase.name), ("epoch", server.zab.epoch)]
        return (*state, ("round", server.election.round), ("last zxid on disk", format_zxid(server.durable.last_zxid)))

    def _shorten(self, handled: StepRecord) -> Mismatch | None:
        """Removes the beginning of the log, as the node has done."""
        durable = self.server.durable
        place = next((n for n, txn in enumerate(durable.log) if txn.zxid == handled.oldest), None)
        if place is None:
            values = (("oldest in memory", format_zxid(handled.oldest or 0)),)
            return self._mismatch(handled, "the node remembers its log from a transaction on that is not in it", values)
        if place:
            self.server = replace(self.server, durable=replace(durable, log=durable.log[place:]))
        return None

    # After a restart.

    def _compare(self, begun: StartRecord) -> Mismatch | DiskAhead | None:
        actual = begun.durable
        last = Durable()
        behind: Durable | None = None
        for last in self._possible():
            half = last if behind is None else replace(behind, accepted_epoch=last.accepted_epoch)
            if _same(last, actual) or _same(half, actual):
                return None
            behind = last
        if _is_ahead(actual, last):
            disk = f"the disk held last zxid {format_zxid(actual.last_zxid)} and epochs {_epochs(actual)}, the journal "
            return DiskAhead(begun.line, f"{disk}{format_zxid(last.last_zxid)} and {_epochs(last)}")
        values = (
            ("on disk", f"last zxid {format_zxid(actual.last_zxid)}, epochs {_epochs(actual)}"),
            ("durable by the journal", f"last zxid {format_zxid(last.last_zxid)}, epochs {_epochs(last)}"),
            *_first_difference(last, actual),
        )
        clause = "after the restart the disk does not hold what was durable before"
        return Mismatch(self.path, begun.line, begun.time, begun.sid, "start", clause, values)

    def _possible(self) -> Iterator[Durable]:
        """The possible contents of the disk, in ascending order, from the last turn and the requested operations."""
        states = [*self._turn, (self.server.durable, _queue(self.server))]
        yield states[0][0]
        yield from _prefixes(*states[0])
        for durable, _ in states[1:]:
            yield durable
        yield from _prefixes(*states[-1])


def _queue(server: Server) -> tuple[DiskOperation, ...]:
    return () if server.zab is None else tuple(server.zab.queue)


def _prefixes(durable: Durable, queue: tuple[DiskOperation, ...]) -> Iterator[Durable]:
    for operation in queue:
        durable = disk.done(durable, operation)
        yield durable


def _epochs(durable: Durable) -> str:
    return f"{durable.accepted_epoch} and {durable.current_epoch}"


def _same(one: Durable, other: Durable) -> bool:
    """Whether two disks have the same contents, as far as both are known: a node reads only the end of its log."""
    epochs = (one.accepted_epoch, one.current_epoch) == (other.accepted_epoch, other.current_epoch)
    if not epochs or one.last_zxid != other.last_zxid:
        return False
    return _tails_agree(one, other, one.last_zxid)


def _is_ahead(found: Durable, known: Durable) -> bool:
    """Whether a disk contains everything that is known, and more after it."""
    later = found.accepted_epoch >= known.accepted_epoch and found.current_epoch >= known.current_epoch
    return later and found.last_zxid >= known.last_zxid and _tails_agree(found, known, known.last_zxid)


def _tails_agree(one: Durable, other: Durable, last: int) -> bool:
    """Whether the logs agree up to this zxid, from the point where both are known."""
    first = max(known_from(one), known_from(other))
    mine, theirs = ([t for t in durable.txns if first <= t.zxid <= last] for durable in (one, other))
    return mine == theirs


def known_from(durable: Durable) -> int:
    """The first zxid of the known part of a log.

    A long log is the end of a possibly longer one. A shorter log is everything after the snapshot, unless the snapshot
    covers its beginning.
    """
    txns = durable.txns
    if txns and (len(txns) >= KEPT_IN_MEMORY or txns[0].zxid <= durable.snapshot):
        return txns[0].zxid
    return durable.snapshot + 1


def _first_difference(one: Durable, other: Durable) -> tuple[tuple[str, object], ...]:
    first = max(known_from(one), known_from(other))
    mine, theirs = ({t.zxid: t.value for t in durable.txns if t.zxid >= first} for durable in (one, other))
    for zxid in sorted({*mine, *theirs}):
        if mine.get(zxid) != theirs.get(zxid):
            return (("first difference at", format_zxid(zxid)),)
    return ()


# The position of a server.


def is_present(server: Server) -> bool:
    """Whether a server leads an established epoch, or has acknowledged NEWLEADER."""
    part = server.zab
    if isinstance(part, Leader):
        return part.phase in (LeaderPhase.NEWLEADER_ACK, LeaderPhase.BROADCAST)
    return isinstance(part, Learner) and part.phase in (LearnerPhase.SYNCED, LearnerPhase.BROADCAST)


def delivered(server: Server) -> int | None:
    """The last zxid that a serving server has delivered; None if it does not serve."""
    part = server.zab
    if part is None or not part.serves:
        return None
    return part.committed if isinstance(part, Leader) else part.delivered


def tree_in_memory(server: Server) -> Sequence[Txn] | None:
    """The tree of a learner after TRUNC or SNAP, until it is on disk; None if the disk already has it."""
    return server.zab.tree if isinstance(server.zab, Learner) else None


def written(before: Server, after: Server, effects: Effects) -> TakeSnapshot | None:
    """The snapshot that the disk has finished in this step."""
    operations = (*_queue(before), *(effect.operation for effect in effects if isinstance(effect, Persist)))
    waiting = _queue(after)
    ended = (operation for operation in operations if isinstance(operation, TakeSnapshot) and operation not in waiting)
    return next(ended, None)


def appended(server: Server) -> tuple[Txn, ...]:
    """The transactions that a server has asked its disk to log, and that the disk has not reported."""
    return tuple(item.txn for item in _queue(server) if isinstance(item, Append))


def finished(ended: Server, found: Durable) -> tuple[DiskOperation, ...]:
    """The operations that the disk has finished without a report, by its contents `found` after the end of a process.

    Operations complete in the order of their requests. So the disk was in the first state with the epochs, the snapshot
    and the last zxid that were found; or with this last zxid, if a snapshot of the tree has taken the place of the log.
    That has all applied transactions, and a leader may apply one before its own log has it.
    """
    queue = _queue(ended)
    states = [ended.durable, *_prefixes(ended.durable, queue)]
    for look in (_position, lambda durable: durable.last_zxid):
        for count, durable in enumerate(states):
            if look(durable) == look(found):
                return queue[:count]
    return ()


def _position(durable: Durable) -> tuple[int, ...]:
    return durable.last_zxid, durable.snapshot, durable.accepted_epoch, durable.current_epoch


SHORT = 1 << 13
"""The number of records of a journal up to which their results are kept."""


class ReplayedRecord(NamedTuple):
    """A record and its effects; `stepped` is the server before it forgets any of its log, `server` the one after."""

    record: StartRecord | StepRecord
    stepped: Server
    server: Server
    effects: Effects = ()


class ReplayedRecords:
    """The results of the first pass over one journal; without `keeps` none are kept."""

    def __init__(self, path: Path, *, keeps: bool) -> None:
        self._path = path
        self._kept: list[ReplayedRecord] | None = [] if keeps else None

    def add(self, record: StartRecord | StepRecord, replay: Replay, effects: Effects = ()) -> None:
        """Keep the result of a record, if the journal is short."""
        if self._kept is not None:
            self._kept.append(ReplayedRecord(record, replay.stepped, replay.server, effects))
            if len(self._kept) > SHORT:
                self._kept = None

    def __iter__(self) -> Iterator[ReplayedRecord]:
        return iter(self._kept) if self._kept is not None else _replayed(self._path)


def _replayed(path: Path) -> Iterator[ReplayedRecord]:
    replay: Replay | None = None
    for record in read(path):
        if isinstance(record, StartRecord):
            replay = Replay(path, record, checks=False)
            yield ReplayedRecord(record, replay.server, replay.server)
        elif not isinstance(record, TornRecord):
            assert replay is not None  # a journal begins with a start record
            effects = replay.step(record)
            assert not isinstance(effects, Mismatch)  # the first pass has checked that it fits
            yield ReplayedRecord(record, replay.stepped, replay.server, effects)
