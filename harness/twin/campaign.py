"""Episodes of a twin: events are chosen at random, rare ones first, and each is followed in all candidates.

Rules of this module:

- An episode begins with new disks, since logs grow. A misfit ends it.
- The choice depends only on the seed and on the sights.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from msgspec.structs import replace

from checker.engine import Move
from checker.engine.model import Row
from checker.models.ensemble.actions import Budgets, ServerAction
from checker.models.ensemble.build import ensemble
from checker.models.ensemble.setup import File, Grain, Member, PlannedReconfig, Prologue, Setup, Software
from harness.processes import POLL_SECONDS, ServerError
from harness.twin.candidates import (
    GATES,
    HOLD,
    HOLD_READER,
    RELEASE,
    RELEASE_READER,
    Candidates,
    Ensemble,
    Outlook,
    Sight,
)
from harness.twin.coverage import Coverage
from harness.twin.subject import SECONDS, Subject
from spec.durable import Durable
from spec.quorum import MembershipChange, Sid, View, majority_view
from spec.txn import Txn, format_zxid, make_zxid
from spec.variants import Variant
from spec.zab.packets import name_of
from spec.zab.state import Append, Leader, Learner, ZabRules

FIRST_DISK = Durable(1, 1, 0, (Txn(make_zxid(1) + 1, format_zxid(make_zxid(1) + 1)),))
"""The disk of a server at the beginning, unless it is new: one epoch, with one transaction."""
MANY = 1 << 20
CHANGES = 8
"""How often a role changes to another one and back in one episode, at most."""
WRITES = 40
"""The writes of clients in one episode."""
SYNCS = 10


@dataclass(frozen=True)
class Cast:
    """The servers of an episode; if `is_new`, the one under test begins with an empty disk.

    `changing` is a server whose role `reconfig` changes, from voter to observer and back.
    """

    view: View
    is_new: bool = False
    changing: Sid | None = None

    @property
    def file(self) -> File:
        """The file of every server. Its version makes `reconfig` possible."""
        return File("zoo.cfg", self.view if self.changing is None else replace(self.view, version=make_zxid(1)))

    @property
    def plan(self) -> tuple[PlannedReconfig, ...]:
        """The changes of the role, one after the other."""
        if self.changing is None:
            return ()
        one = frozenset({self.changing})
        voting, observing = PlannedReconfig(MembershipChange(one)), PlannedReconfig(MembershipChange(observers=one))
        return ((observing, voting) if self.view.is_voter(self.changing) else (voting, observing)) * CHANGES


def casts(sid: Sid, count: int) -> tuple[Cast, ...]:
    """The casts of `count` voters with server `sid` under test, each as often as an episode shall have it.

    They have no observer, or one more server, which observes in the place of a voter: itself, or the one under test.
    In two of them `reconfig` changes the role of the server that was added.
    """
    plain, added = frozenset(range(1, count + 1)), count + 1
    voting, observing = majority_view(plain), majority_view(plain - {sid} | {added}, {sid})
    beside = majority_view(plain, {added})
    new = Cast(voting, is_new=True), Cast(observing, is_new=True)
    reconfigured = Cast(beside, changing=added), Cast(observing, changing=added)
    return (Cast(voting), Cast(voting), Cast(beside), Cast(observing), *new, *reconfigured)


def build(sid: Sid, cast: Cast, defects: frozenset[Variant] = frozenset(), *, is_node: bool = False) -> Ensemble:
    """The model of an ensemble, of which server `sid` has these defects; all of its servers look for a leader.

    The rules are those of real servers, or of the node.
    """
    disk = Durable() if cast.is_new else FIRST_DISK
    file, tested = cast.file, Software("tested", defects)
    members = tuple(
        Member(member, file, FIRST_DISK) if member != sid else Member(member, file, disk, software=tested)
        for member in sorted(cast.view.members)
    )
    budgets = Budgets(crashes=MANY, restarts=MANY, disconnects=MANY, elections=MANY, writes=WRITES, syncs=SYNCS)
    setup = Setup(
        members,
        Grain.ORACLE,
        (Prologue((), settle=False),),
        cast.plan,
        budgets=budgets,
        zab=ZabRules(
            asynchronous_disk=True,
            asynchronous_commits=True,
            hold_commits=is_node,
            observers_log_first=is_node,
            sees_early=not is_node,
        ),
        clients_anywhere=True,
    )
    return Ensemble(sid, setup, ensemble("twin", setup), is_node)


@dataclass(frozen=True)
class Step:
    """An event, and the sight after it."""

    move: Move
    sight: Sight | None


@dataclass(frozen=True)
class Misfit:
    """The first event whose sight no candidate explains, with the states that were possible."""

    step: Step
    outlooks: tuple[Outlook, ...]


RECONFIG = "reconfig"
"""The kind of each change of a role; in the model each change of its plan has another name."""
BASE = {
    ServerAction.CLIENT_WRITE: 3.0,
    ServerAction.CLIENT_SYNC: 0.5,
    ServerAction.CRASH: 0.1,
    ServerAction.DISCONNECT: 0.2,
    HOLD: 0.5,
    RELEASE: 1.0,
    HOLD_READER: 4.0,
    RELEASE_READER: 1.0,
    RECONFIG: 4.0,
}
OF_CLIENTS = (ServerAction.CLIENT_WRITE, ServerAction.CLIENT_SYNC, RECONFIG)
USUAL = 8.0
SLOWER = 4.0
FARTHER = 2.0
RARITY = 10.0
BIASES = (0.1, 1.0, 1.0, 1.0, 2.0)
"""The factors of one episode: an action at a server is rare there, or usual, or frequent."""


def event_text(move: Move) -> str:
    """An event in one line, as a saved run has it."""
    return f"{move.action} {move.arguments!r}"


def explained_by(
    sid: Sid,
    cast: Cast,
    steps: Sequence[Step],
    defects: Sequence[Variant],
    assumed: frozenset[Variant] = frozenset(),
) -> tuple[Variant, ...] | None:
    """Known defects that explain all steps: one, or two, or a part of all without one that is not needed; else None."""

    def fit(chosen: Sequence[Variant]) -> bool:
        return _fits(build(sid, cast, assumed.union(chosen)), steps)

    for count in (1, 2):
        for chosen in combinations(defects, count):
            if fit(chosen):
                return chosen
    if not fit(defects):
        return None
    needed = list(defects)
    for defect in defects:
        rest = [other for other in needed if other != defect]
        needed = rest if fit(rest) else needed
    return tuple(needed)


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
        self.moves: list[Move] = []  # those of the steps, and the next one while it happens
        self._biases: dict[tuple[object, ...], float] = {}
        subject.begin(ensemble)

    def repeat(self, text: str) -> Misfit | None:
        """Follow the event of a saved run. Raises ServerError if it is not possible here."""
        deadline = time.monotonic() + SECONDS
        while True:
            for move in self._possible():
                if event_text(move) == text and self.candidates.after(move):
                    return self.follow(move)
            if time.monotonic() > deadline:
                raise ServerError(f"event {len(self.steps) + 1} of the saved run is not possible here: {text}")
            time.sleep(POLL_SECONDS)

    def take(self) -> Misfit | None:
        """Choose the next event, and follow it."""
        moves = list(self._possible())
        keys = [self._key(move) for move in moves]
        state = self._abstraction()
        weights = [
            self._weight(move) * (1 + RARITY / (1 + self.coverage.choices[key, state]) ** 0.5)
            for move, key in zip(moves, keys, strict=True)
        ]
        place = self.choice.choices(range(len(moves)), weights)[0]
        while not self.candidates.after(moves[place]):
            weights[place] = 0.0
            place = self.choice.choices(range(len(moves)), weights)[0]
        self.coverage.events[keys[place]] += 1
        self.coverage.choices[keys[place], self._abstraction()] += 1
        return self.follow(moves[place])

    def follow(self, move: Move) -> Misfit | None:
        """Cause an event, look, and keep the candidates that explain the sight."""
        candidates, lingered = self.candidates, self.candidates.lingers
        self.moves.append(move)
        before = candidates.rows[0]
        outlooks = candidates.outlooks(move)
        self.subject.cause(candidates.event(move, outlooks))
        sight = self.subject.look(outlooks) if self._concerns(before, outlooks) or move.action in GATES else None
        step = Step(move, sight)
        self.steps.append(step)
        if sight is None:
            candidates.rows = list(dict.fromkeys(outlook.row for outlook in outlooks))
        elif not candidates.fit(outlooks, sight):
            return Misfit(step, tuple(outlooks))
        candidates.note_role()
        if lingered and not candidates.lingers:
            self.subject.cause(candidates.event(Move(RELEASE_READER, (self.ensemble.sid,), ())))
        for _, packet in sight.emitted if sight is not None else ():
            if packet is not None:
                self.coverage.packets[name_of(packet), self.phase] += 1
        return None

    def _abstraction(self) -> tuple[object, ...]:
        """The part of the state that makes an event rare: waiting proposals, acknowledgements, records and commits."""
        part = self.ensemble.server(self.candidates.rows[0]).zab
        if part is None:
            return ()
        waits = bool(part.queue), bool(part.commits), self.candidates.held
        if not isinstance(part, Leader):
            return (*waits, bool(part.pending))
        acks = {sid for proposal in part.outstanding for sid in proposal.acks}
        return (*waits, bool(part.outstanding), tuple(sorted(acks)), len(part.handlers))

    def _weight(self, move: Move) -> float:
        base = BASE.get(self._kind(move), USUAL)
        if move.action == ServerAction.CRASH and move.arguments[0] == self.ensemble.sid:
            base /= SLOWER  # a start takes a second
        if self.ensemble.sid not in move.arguments:
            base /= FARTHER
        return base * self._bias(move)

    def _bias(self, move: Move) -> float:
        """The factor of this episode for an action at a server, drawn when it is first possible."""
        sids = [argument for argument in move.arguments[:2] if isinstance(argument, int)]
        subject = (self._kind(move), *sids)
        if subject not in self._biases:
            self._biases[subject] = self.choice.choice(BIASES)
        return self._biases[subject]

    @property
    def phase(self) -> str:
        """The role and the phase of the server under test."""
        server = self.ensemble.server(self.candidates.rows[0])
        if server.zab is None:
            return "looking" if server.runs else "down"
        role = "leader" if isinstance(server.zab, Leader) else "learner"
        return f"{role} {server.zab.phase.name}"

    @property
    def is_over(self) -> bool:
        """Whether the server under test has left records to the sync thread of an earlier part (ZOOKEEPER-4712).

        The thread keeps the lock of the log until they are written, and it may die by its first ACK instead.
        """
        return any(self.ensemble.server(row).remains.queue for row in self.candidates.rows)

    def _concerns(self, before: Row, outlooks: list[Outlook]) -> bool:
        """Whether an event concerns the server under test."""
        ensemble = self.ensemble
        if any(outlook.emitted or outlook.vote for outlook in outlooks):
            return True
        old, new = ensemble.server(before), ensemble.server(outlooks[0].row)
        return old is not new and old != new

    def _possible(self) -> Iterator[Move]:
        row, sid = self.candidates.rows[0], self.ensemble.sid
        clients = self.subject.has_clients
        for move in self.ensemble.moves(row):
            if move.action == ServerAction.CLIENT_SYNC and not isinstance(
                self.ensemble.server(row, move.arguments[0]).zab, Learner
            ):
                continue  # a leader's answer is no packet
            if clients or self._kind(move) not in OF_CLIENTS or move.arguments[0] != sid:
                yield move
        server = self.ensemble.server(row)
        if server.zab is not None and any(isinstance(item, Append) for item in server.zab.queue):
            zxids = self.subject.waiting()
            if zxids:
                yield self.ensemble.write(zxids)
        if clients and server.zab is not None and server.zab.serves:
            yield Move(RELEASE if self.candidates.held else HOLD, (sid,), ())
        if clients and (self.candidates.lingers or self.candidates.first_record):
            yield Move(RELEASE_READER if self.candidates.lingers else HOLD_READER, (sid,), ())

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
        return (self._kind(move), "tested" if own else "other", self.phase)

    def _kind(self, move: Move) -> str:
        """The action of a move, with one name for all changes of a role."""
        return RECONFIG if move.action in self.ensemble.setup.planned else str(move.action)
