"""Episodes of a twin: events are chosen at random, rare ones first, and each is followed in all candidates.

Rules of this module:

- An episode begins with new disks, since logs grow. A misfit ends it.
- The choice depends only on the seed and on what the server under test shows.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from checker.engine import Move
from checker.engine.model import Row
from checker.models.ensemble.actions import Budgets, ServerAction
from checker.models.ensemble.build import ensemble
from checker.models.ensemble.setup import File, Grain, Member, Prologue, Setup, Software
from harness.processes import POLL_SECONDS, ServerError
from harness.twin.candidates import HOLD, RELEASE, Candidates, Ensemble, Outlook, Sight
from harness.twin.subject import SECONDS, Subject
from spec.durable import Durable
from spec.quorum import Majority, Sid, View
from spec.txn import Txn, format_zxid, make_zxid
from spec.variants import Variant
from spec.zab.packets import name_of
from spec.zab.state import Append, Leader, ZabRules

FIRST_DISK = Durable(1, 1, 0, (Txn(make_zxid(1) + 1, format_zxid(make_zxid(1) + 1)),))
"""The disk of every server at the beginning: one epoch, with one transaction."""
MANY = 1 << 20
WRITES = 40
"""The writes of clients in one episode."""


def build(
    sid: Sid, sids: tuple[Sid, ...], defects: frozenset[Variant] = frozenset(), *, is_node: bool = False
) -> Ensemble:
    """The model of an ensemble of voters, of which server `sid` has these defects; all of them look for a leader.

    The rules are those of real servers, or of the node.
    """
    view = View(Majority(frozenset(sids)))
    file, tested = File("zoo.cfg", view), Software("tested", defects)
    members = tuple(Member(each, file, FIRST_DISK, software=tested if each == sid else Software()) for each in sids)
    budgets = Budgets(crashes=MANY, restarts=MANY, disconnects=MANY, elections=MANY, writes=WRITES)
    setup = Setup(
        members,
        Grain.ORACLE,
        (Prologue((), settle=False),),
        budgets=budgets,
        zab=ZabRules(
            asynchronous_disk=True, asynchronous_commits=True, hold_commits=is_node, observers_log_first=is_node
        ),
        clients_anywhere=True,
    )
    return Ensemble(sid, setup, ensemble("twin", setup), is_node)


@dataclass(frozen=True)
class Step:
    """An event, and what was seen after it."""

    move: Move
    sight: Sight | None


@dataclass(frozen=True)
class Misfit:
    """The first event after which no candidate explains what was seen, with the states that were possible."""

    step: Step
    outlooks: tuple[Outlook, ...]


@dataclass
class Coverage:
    """How often each kind of event was caused, and each kind of packet seen, with the phase of the server."""

    events: Counter[tuple[str, ...]] = field(default_factory=Counter)
    packets: Counter[tuple[str, ...]] = field(default_factory=Counter)


BASE = {
    ServerAction.CLIENT_WRITE: 3.0,
    ServerAction.CRASH: 0.2,
    ServerAction.DISCONNECT: 0.8,
    HOLD: 0.5,
    RELEASE: 1.0,
}
USUAL = 8.0
SLOWER = 4.0


def event_text(move: Move) -> str:
    """An event in one line, as a saved run has it."""
    return f"{move.action} {move.arguments!r}"


def explained_by(
    sid: Sid, sids: tuple[Sid, ...], steps: Sequence[Step], defects: Sequence[Variant]
) -> tuple[Variant, ...] | None:
    """The fewest of these known defects with which all steps fit, at most two; None without such defects."""
    for count in (1, 2):
        for chosen in combinations(defects, count):
            if _fits(build(sid, sids, frozenset(chosen)), steps):
                return chosen
    return None


def _fits(ensemble: Ensemble, steps: Sequence[Step]) -> bool:
    candidates = Candidates(ensemble, [ensemble.model.initial()])
    for step in steps:
        outlooks = candidates.outlooks(step.move)
        if not outlooks:
            return False
        if step.sight is None:
            candidates.rows = list(dict.fromkeys(outlook.row for outlook in outlooks))
        elif not candidates.fit(outlooks, step.sight):
            return False
        candidates.note_role()
    return True


class Episode:
    """One life of the ensemble, from new disks."""

    def __init__(self, ensemble: Ensemble, subject: Subject, coverage: Coverage, choice: random.Random) -> None:
        self.ensemble, self.subject, self.coverage, self.choice = ensemble, subject, coverage, choice
        self.candidates = Candidates(ensemble, [ensemble.model.initial()])
        self.steps: list[Step] = []
        subject.begin(ensemble, FIRST_DISK)

    def repeat(self, text: str) -> Misfit | None:
        """Follow the event of a saved run. Raises ServerError if it is not possible here."""
        deadline = time.monotonic() + SECONDS
        while True:
            for move in self._possible():
                if event_text(move) == text:
                    return self.follow(move)
            if time.monotonic() > deadline:
                raise ServerError(f"event {len(self.steps) + 1} of the saved run is not possible here: {text}")
            time.sleep(POLL_SECONDS)

    def take(self) -> Misfit | None:
        """Choose the next event, and follow it."""
        moves = list(self._possible())
        keys = [self._key(move) for move in moves]
        weights = [self._weight(move, key) for move, key in zip(moves, keys, strict=True)]
        place = self.choice.choices(range(len(moves)), weights)[0]
        self.coverage.events[keys[place]] += 1
        return self.follow(moves[place])

    def follow(self, move: Move) -> Misfit | None:
        """Cause an event, look, and keep the candidates that explain what is seen."""
        candidates = self.candidates
        before = candidates.rows[0]
        outlooks = candidates.outlooks(move)
        after = candidates.after(move)[0]
        ending = frozenset(peer for outlook in outlooks for peer, packet in outlook.emitted if packet is None)
        self.subject.cause(move, after, ending)
        sight = (
            self.subject.look(outlooks) if self._concerns(before, outlooks) or move.action in (HOLD, RELEASE) else None
        )
        step = Step(move, sight)
        self.steps.append(step)
        if sight is None:
            candidates.rows = list(dict.fromkeys(outlook.row for outlook in outlooks))
        elif not candidates.fit(outlooks, sight):
            return Misfit(step, tuple(outlooks))
        candidates.note_role()
        for _, packet in sight.emitted if sight is not None else ():
            if packet is not None:
                self.coverage.packets[name_of(packet), self.phase] += 1
        return None

    def _weight(self, move: Move, key: tuple[str, ...]) -> float:
        base = BASE.get(move.action, USUAL)
        if move.action == ServerAction.CRASH and move.arguments[0] == self.ensemble.sid:
            base /= SLOWER  # a process starts in a second, and other events take milliseconds
        return base * (1 + 5 / (1 + self.coverage.events[key]))

    @property
    def phase(self) -> str:
        """The role and the phase of the server under test."""
        server = self.ensemble.server(self.candidates.rows[0])
        if server.zab is None:
            return "looking" if server.runs else "down"
        role = "leader" if isinstance(server.zab, Leader) else "learner"
        return f"{role} {server.zab.phase.name}"

    def _concerns(self, before: Row, outlooks: list[Outlook]) -> bool:
        """Whether an event concerns the server under test."""
        ensemble = self.ensemble
        if any(outlook.emitted or outlook.vote for outlook in outlooks):
            return True
        after = outlooks[0].row
        return ensemble.server(before) is not ensemble.server(after) and ensemble.server(before) != ensemble.server(
            after
        )

    def _possible(self) -> Iterator[Move]:
        row, sid = self.candidates.rows[0], self.ensemble.sid
        clients = self.subject.has_clients
        for move in self.ensemble.moves(row):
            if clients or move.action != ServerAction.CLIENT_WRITE or move.arguments[0] != sid:
                yield move
        server = self.ensemble.server(row)
        if server.zab is not None and any(isinstance(item, Append) for item in server.zab.queue):
            zxids = self.subject.waiting()
            if zxids:
                yield self.ensemble.write(zxids)
        if clients and server.zab is not None and server.zab.serves:
            yield Move(RELEASE if self.candidates.held else HOLD, (sid,), ())

    def _key(self, move: Move) -> tuple[str, ...]:
        sid = self.ensemble.sid
        match move.action:
            case ServerAction.RECEIVE:
                source, reader, packet = move.arguments
                role = "tested reads" if reader == sid else "tested sent" if source == sid else "other"
                return (move.action, role, name_of(packet), self.phase)
            case ServerAction.ELECT:
                leader, members = move.arguments
                role = "leads" if leader == sid else "follows" if sid in members else "other"
                return (move.action, role, self.phase)
        own = sid in move.arguments
        return (move.action, "tested" if own else "other", self.phase)
