"""One server by itself: every step of its journal again, by the step functions of the unmodified specification.

Rules this module keeps:

- A step fits if the event is possible, and comes to the facts and to the effects that the journal has.
- After a restart the disk holds what the journal says is durable, with any number of the operations, oldest first, that
  were asked for and not reported. Of the last turn of the node's loop, whose records may have reached the system before
  or after its effects were carried out, any part may have happened: the disk may be behind by it, or ahead of it.
- Nothing but the present state is kept, and the states of that last turn.

Source: `spec.server`, `spec.zab.disk`; `QuorumPeer.loadDataBase` for what a restart finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from checker.validate.journals import Begun, Handled
from checker.validate.words import digest_of, fits, told
from spec import server as spec_server
from spec.durable import Durable
from spec.effects import DiskOperation, Effects, Observe, Step
from spec.election.state import Rules
from spec.quorum import Sid
from spec.server import Server
from spec.txn import told as zxid_told
from spec.zab import disk
from spec.zab.state import ZabRules

LAST_TURN = 256
"""How many states of the last turn are kept; longer turns are cut at their beginning."""
KEPT_IN_MEMORY = 500
"""The least number of transactions that a server keeps in memory if it has them (`ZKDatabase.commitLogCount`)."""


@dataclass(frozen=True)
class Misfit:
    """The first step that does not fit, with the clause that decided and its witnesses.

    `invariant` is the name of the invariant that it violates; empty where it is no step of the specification.
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
class Ahead:
    """A restart that found more on the disk than the journal knows of."""

    line: int
    what: str


class Replay:
    """A server as its journal tells it; `checks` is False for a second pass over what has been found to fit."""

    def __init__(self, path: Path, begun: Begun, *, checks: bool = True) -> None:
        self.path, self.checks = path, checks
        self.server = Server(begun.sid, begun.view, begun.durable)
        self.stepped = self.server  # after the last step, before the node has forgotten any of its log
        self.rules: Rules = begun.rules
        self.zab: ZabRules | None = begun.zab
        self._turn: list[tuple[Durable, tuple[DiskOperation, ...]]] = []

    def restart(self, begun: Begun) -> Misfit | Ahead | None:
        """The next life of the server; what its disk holds is compared with what it should hold."""
        found = self._compare(begun) if self.checks else None
        self.server = Server(begun.sid, begun.view, begun.durable)
        self.rules, self.zab, self._turn = begun.rules, begun.zab, []
        return found

    def crash(self) -> None:
        """The process has ended: what is on disk stays."""
        self.server = Server(self.server.sid, self.server.view, self.server.durable)

    def step(self, handled: Handled) -> Effects | Misfit:
        """One step: its effects, or why it is none."""
        try:
            stepped = spec_server.step(self.server, handled.event, self.rules, self.zab)
        except (ArithmeticError, AssertionError, LookupError, StopIteration, ValueError) as error:
            return self._misfit(handled, f"the specification cannot take this step ({type(error).__name__}: {error})")
        if stepped is None:
            return self._misfit(handled, "the event is impossible in this state", self._state())
        if self.checks:
            misfit = self._misfit_of(handled, stepped)
            if misfit is not None:
                return misfit
            self._remember(handled.first)
        self.server = self.stepped = stepped.state
        if handled.oldest is not None:
            return self._shorten(handled) or stepped.effects
        return stepped.effects

    def _remember(self, first: bool) -> None:
        if first:
            self._turn.clear()
        self._turn.append((self.server.durable, _queue(self.server)))
        if len(self._turn) > LAST_TURN:
            del self._turn[0]

    def _misfit_of(self, handled: Handled, stepped: Step[Server]) -> Misfit | None:
        facts = [each.fact for each in stepped.effects if isinstance(each, Observe)]
        for written, fact in zip(handled.facts, facts, strict=False):
            if not fits(written, fact):
                clause = "the node observed another fact than the specification"
                return self._misfit(handled, clause, (("written", written), ("by the specification", told(fact))))
        if len(handled.facts) != len(facts):
            clause = "the node observed more or fewer facts than the specification"
            ours = [told(fact) for fact in facts]
            return self._misfit(handled, clause, (("written", handled.facts), ("by the specification", ours)))
        if handled.digest != digest_of(stepped.effects):
            asked = [told(each) for each in stepped.effects]
            values = (("by the specification", asked), *self._state())
            return self._misfit(handled, "the effects are not those of the specification", values)
        return None

    def _misfit(self, handled: Handled, clause: str, values: tuple[tuple[str, object], ...] = ()) -> Misfit:
        return Misfit(self.path, handled.line, handled.time, self.server.sid, told(handled.event), clause, values)

    def _state(self) -> tuple[tuple[str, object], ...]:
        """Where the server stands, for a reader."""
        server = self.server
        if server.election is None:
            return (("state", "not running"),)
        state: list[tuple[str, object]] = [("state", server.election.state.name)]
        if server.zab is not None:
            state += [("phase", server.zab.phase.name), ("epoch", server.zab.epoch)]
        return (*state, ("round", server.election.round), ("last zxid on disk", zxid_told(server.durable.last_zxid)))

    def _shorten(self, handled: Handled) -> Misfit | None:
        """The node has forgotten the beginning of its log."""
        durable = self.server.durable
        place = next((n for n, txn in enumerate(durable.txns) if txn.zxid == handled.oldest), None)
        if place is None:
            values = (("oldest in memory", zxid_told(handled.oldest or 0)),)
            return self._misfit(handled, "the node remembers its log from a transaction on that is not in it", values)
        if place:
            self.server = replace(self.server, durable=replace(durable, txns=durable.txns[place:]))
        return None

    # After a restart.

    def _compare(self, begun: Begun) -> Misfit | Ahead | None:
        found = begun.durable
        last = Durable()
        behind: Durable | None = None
        for last in self._possible():
            half = last if behind is None else replace(behind, accepted_epoch=last.accepted_epoch)
            if _same(last, found) or _same(half, found):
                return None
            behind = last
        if _is_ahead(found, last):
            what = f"the disk held last zxid {zxid_told(found.last_zxid)} and epochs {_epochs(found)}, the journal "
            return Ahead(begun.line, f"{what}{zxid_told(last.last_zxid)} and {_epochs(last)}")
        values = (
            ("on disk", f"last zxid {zxid_told(found.last_zxid)}, epochs {_epochs(found)}"),
            ("durable by the journal", f"last zxid {zxid_told(last.last_zxid)}, epochs {_epochs(last)}"),
            *_first_difference(last, found),
        )
        clause = "after the restart the disk does not hold what was durable before"
        return Misfit(self.path, begun.line, begun.time, begun.sid, "start", clause, values)

    def _possible(self) -> Iterator[Durable]:
        """What may be on disk, from the least to the most: the states of the last turn, and what was asked for."""
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
    """Whether two disks hold the same, as far as both are known: a node reads the end of its log only."""
    epochs = (one.accepted_epoch, one.current_epoch) == (other.accepted_epoch, other.current_epoch)
    if not epochs or one.last_zxid != other.last_zxid:
        return False
    return _tails_agree(one, other, one.last_zxid)


def _is_ahead(found: Durable, known: Durable) -> bool:
    """Whether a disk holds all that is known, and more behind it."""
    later = found.accepted_epoch >= known.accepted_epoch and found.current_epoch >= known.current_epoch
    return later and found.last_zxid >= known.last_zxid and _tails_agree(found, known, known.last_zxid)


def _tails_agree(one: Durable, other: Durable, last: int) -> bool:
    """Whether the logs are the same up to this zxid, from where both are known."""
    first = max(known_from(one), known_from(other))
    mine, theirs = ([t for t in each.txns if first <= t.zxid <= last] for each in (one, other))
    return mine == theirs


def known_from(durable: Durable) -> int:
    """The first zxid from which on a log is known.

    A long one is the end of a log that may be longer; a shorter one is all there is behind the snapshot, if that does
    not cover its beginning.
    """
    txns = durable.txns
    if txns and (len(txns) >= KEPT_IN_MEMORY or txns[0].zxid <= durable.snapshot):
        return txns[0].zxid
    return durable.snapshot + 1


def _first_difference(one: Durable, other: Durable) -> tuple[tuple[str, object], ...]:
    first = max(known_from(one), known_from(other))
    mine, theirs = ({t.zxid: t.value for t in each.txns if t.zxid >= first} for each in (one, other))
    for zxid in sorted({*mine, *theirs}):
        if mine.get(zxid) != theirs.get(zxid):
            return (("first difference at", zxid_told(zxid)),)
    return ()
