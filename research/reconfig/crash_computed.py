"""The table of crashes as the model computes it: the specification with the defects of a release, step by step.

Rules of this module:

- The ensemble is a model of the checker, and every step is one of its moves. Until the kill the next move is the most
  urgent one, as in a history: packets arrive, disks write, servers elect. Moves of held packets and of waiting logs
  are left out.
- After the kill, and after the restart, all runs to rest are explored: every order of moves, every election. A cell has
  every outcome, joined by `or`. Left out are runs that use up their elections, unless all of them do.
- Packets of the killed server are lost with it, as they are at the proxies.
- The specification has one value for the view that a server has seen last. A real server has it twice, in memory and
  in the file `.next`, which differ after a start: 3.9.5 reads the file and deletes it. So the file is kept here, from
  the changes of the value, and a server starts with what the file has. The variant `last-seen-forgotten` is not used.

Source: `QuorumPeerMain.runFromConfig`; `QuorumPeer.setQuorumVerifier`, `setLastSeenQuorumVerifier`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from checker.engine import Move
from checker.engine.model import Row
from checker.engine.semantics import successors
from checker.kit.actions import FAULTS
from checker.models.ensemble import Budgets, File, Grain, Member, PlannedReconfig, Prologue, Setup, ensemble
from checker.models.ensemble.actions import SETTLING, ServerAction, urgency
from checker.models.ensemble.setup import server_name
from checker.models.ensemble.status import is_serving
from harness.reproduce.proxies import Way
from research.reconfig.crash_table import (
    ALL,
    COLUMNS,
    CRASHES,
    JOINER,
    LEADER,
    MEMBERS,
    TABLE_NAME,
    ZXID,
    Change,
    after_cell,
    disk_cell,
    row,
)
from research.reconfig.facts import FactTable
from spec.quorum import MembershipChange, Sid, View, majority_view
from spec.releases import Release, defects_of
from spec.server import Server
from spec.txn import make_zxid
from spec.variants import Variant
from spec.zab.state import ZabRules

RELEASE = Release(3, 9, 5)
ELECTIONS = 4
MOST_STEPS = 1_000  # a position needs about thirty
MOST_SITUATIONS = 20_000  # the largest of the shipped rows has 1,500
NO_SERVICE = "no service"


class StuckError(Exception):
    """A position that the model does not reach, or runs that do not come to rest."""


def computed(defects: Iterable[Variant] | None = None) -> FactTable:
    """The table, with a row for each of `CRASHES`; by default with the defects of 3.9.5. Raises StuckError."""
    chosen = frozenset(defects_of(RELEASE) if defects is None else defects)
    return FactTable(TABLE_NAME, COLUMNS, tuple(row(*crash, _ModelStage(crash[0], chosen)) for crash in CRASHES))


def cell_differences(model: FactTable, other: FactTable, source: str) -> tuple[str, ...]:
    """A line for each cell in which another table differs from the model's; `source` says where that one is from."""
    if len(model.rows) != len(other.rows):
        return (f"the model has {len(model.rows)} rows, and {source} {len(other.rows)}",)
    return tuple(
        f"{mine[0]}, {mine[1]}, {column}: the model has {cell}; {source} {two}"
        for mine, theirs in zip(model.rows, other.rows, strict=True)
        for column, cell, two in zip(model.columns, mine, theirs, strict=True)
        if cell != two
    )


def setup_of(change: Change, defects: frozenset[Variant]) -> Setup:
    """{1, 2, 3} with an established leader, and 4, which follows without a vote and asks to join."""
    old = File("zoo.cfg", majority_view(MEMBERS, version=make_zxid(1)))
    members = [Member(sid, old) for sid in MEMBERS]
    members.append(Member(JOINER, File("zoo.cfg of the joiner", majority_view(ALL))))
    variants = defects - {Variant.LAST_SEEN_FORGOTTEN}
    request = MembershipChange(voters=frozenset(change.join), leaving=frozenset(change.leave))
    return Setup(
        tuple(members),
        Grain.ORACLE,
        (Prologue(MEMBERS), Prologue((JOINER,))),
        (PlannedReconfig(request),),
        Budgets(crashes=1, restarts=1, disconnects=1, elections=ELECTIONS),
        variants=variants,
        zab=ZabRules(variants=variants),
        discovery_in_one_step=True,
    )


@dataclass(frozen=True)
class Situation:
    """A state of the model, and the view in each server's file `.next`, in the order of `ALL`; None for no file."""

    row: Row
    files: tuple[View | None, ...]


class _ModelStage:
    """A model that waits for a change (`CrashStage`). Every method raises StuckError if its condition never holds."""

    def __init__(self, change: Change, defects: frozenset[Variant]) -> None:
        self._model = ensemble(change.name, setup_of(change, defects))
        self._forgets = Variant.LAST_SEEN_FORGOTTEN in defects
        self._at = [Situation(self._model.initial(), (None,) * len(ALL))]
        self._held: set[tuple[Sid, Sid]] = set()
        self._closed: set[Sid] = set()

    def hold(self, sids: Iterable[Sid], way: Way) -> None:
        self._held |= {_ends(sid, way) for sid in sids}

    def free(self, sids: Iterable[Sid], way: Way) -> None:
        self._held -= {_ends(sid, way) for sid in sids}

    def close_log(self, sid: Sid) -> None:
        self._closed.add(sid)

    def ask(self) -> None:
        self._take(lambda move: not isinstance(move.action, ServerAction), "the leader accepts the change")

    def wait_next(self, sid: Sid) -> None:
        self._until(lambda at: _file(at, sid) is not None, f"server {sid} has .next")

    def wait_logged(self, sids: Iterable[Sid]) -> None:
        waited = tuple(sids)
        self._until(lambda at: all(_logged(self._server(at, sid)) for sid in waited), f"{waited} have logged")

    def wait_active(self, sids: Iterable[Sid]) -> None:
        waited = tuple(sids)
        self._until(
            lambda at: all(self._server(at, sid).view.version == ZXID for sid in waited), f"{waited} have activated"
        )

    def kill(self, victim: Sid) -> str:
        """Drop the connection of a learner, and crash the server. Nothing of a dead leader arrives any more."""
        if victim != LEADER:
            self._fire(lambda move: move.action == ServerAction.DISCONNECT and set(move.arguments) == {victim, LEADER})
        crash = (ServerAction.CRASH, (victim,))
        self._take(lambda move: (move.action, move.arguments) == crash, f"server {victim} crashes")
        (situation,) = self._at
        server = self._server(situation, victim)
        return disk_cell(_logged(server), f".dynamic.{server.view.version:x}", brief(_file(situation, victim)))

    def go_on(self, victim: Sid) -> str:
        """All runs until no move is left, without the packets of the dead server."""
        self._closed.clear()
        self._held = {(victim, sid) for sid in ALL}
        return self._at_rest([sid for sid in ALL if sid != victim])

    def restart(self, victim: Sid) -> tuple[str, bool] | None:
        """Start the server with what its file has, and all runs until no move is left."""
        self._held.clear()
        self._at = [self._read_file(situation, victim) for situation in self._at]
        if not self._fire(lambda move: move.action == ServerAction.RESTART):
            return None
        self._at_rest(ALL)
        cells = {after_cell(self._config(end, [victim]), brief(_file(end, victim))) for end in self._at}
        agree = all(len({self._config(situation, [sid]) for sid in ALL}) == 1 for situation in self._at)
        return " or ".join(sorted(cells)), agree

    # The steps of the model.

    def _server(self, at: Situation, sid: Sid) -> Server:
        server = at.row[self._model.index[server_name(sid)]]
        assert isinstance(server, Server)
        return server

    def _config(self, at: Situation, sids: Iterable[Sid]) -> str:
        servers = [self._server(at, sid) for sid in sids]
        configs = dict.fromkeys(brief(server.view) if is_serving(server) else NO_SERVICE for server in servers)
        return " and ".join(configs)

    def _after(self, at: Situation, row: Row) -> Situation:
        """The situation after a step: an activation deletes a `.next` that is equal, and a view seen last writes it."""
        files = list(at.files)
        reached = Situation(row, at.files)
        for place, sid in enumerate(ALL):
            before, after = self._server(at, sid), self._server(reached, sid)
            if before.view != after.view:
                files[place] = after.last_seen
            elif before.last_seen != after.last_seen:
                files[place] = after.last_seen or after.view
        return Situation(row, tuple(files))

    def _read_file(self, at: Situation, sid: Sid) -> Situation:
        """The situation in which the server of a process that starts has seen what its file has; 3.9.5 deletes it."""
        server, file = self._server(at, sid), _file(at, sid)
        later = file if file is not None and file.version > server.view.version else None
        place = self._model.index[server_name(sid)]
        row = (*at.row[:place], replace(server, last_seen=later), *at.row[place + 1 :])
        return Situation(
            row, tuple(None if member == sid else _file(at, member) for member in ALL) if self._forgets else at.files
        )

    def _fire(self, wanted: Callable[[Move], bool]) -> bool:
        reached = []
        for situation in self._at:
            rows = (after for move, after in successors(self._model, situation.row) if wanted(move))
            reached += [self._after(situation, row) for row in list(rows)[:1]]
        if reached and len(reached) != len(self._at):
            raise StuckError("a step is possible in one run, and not in another")
        self._at = reached or self._at
        return bool(reached)

    def _take(self, wanted: Callable[[Move], bool], what: str) -> None:
        if not self._fire(wanted):
            raise StuckError(f"the model has no step in which {what}")

    def _steps(self, at: Situation) -> Iterator[tuple[Move, Situation]]:
        for move, after in successors(self._model, at.row):
            if self._is_free(move):
                yield move, self._after(at, after)

    def _is_free(self, move: Move) -> bool:
        if move.action == ServerAction.RECEIVE:
            return move.arguments[:2] not in self._held
        if move.action == ServerAction.SYNC:
            return move.arguments[0] not in self._closed
        return move.action in SETTLING

    def _until(self, reached: Callable[[Situation], bool], what: str) -> None:
        (situation,) = self._at
        for _ in range(MOST_STEPS):
            if reached(situation):
                self._at = [situation]
                return
            possible = list(self._steps(situation))
            if not possible:
                break
            situation = min(possible, key=lambda each: urgency(each[0]))[1]
        raise StuckError(f"in the model this is never so: {what}")

    def _at_rest(self, sids: Iterable[Sid]) -> str:
        """Explore all runs until no move is left, and return every configuration that these servers then show."""
        reached_so_far, open_ends = set(self._at), list(self._at)
        at_rest: list[Situation] = []
        used_up: list[Situation] = []
        while open_ends:
            situation = open_ends.pop()
            reached = [after for _, after in self._steps(situation)]
            new = set(reached) - reached_so_far
            reached_so_far |= new
            open_ends += new
            if not reached:
                elections = situation.row[self._model.index[FAULTS]].left.elections
                (at_rest if elections else used_up).append(situation)
            if len(reached_so_far) > MOST_SITUATIONS:
                raise StuckError(f"more than {MOST_SITUATIONS} situations")
        self._at = at_rest or used_up
        servers = tuple(sids)
        return " or ".join(sorted({self._config(situation, servers) for situation in self._at}))


def _file(at: Situation, sid: Sid) -> View | None:
    return at.files[ALL.index(sid)]


def _logged(server: Server) -> bool:
    return any(txn.zxid == ZXID for txn in server.durable.txns)


def _ends(sid: Sid, way: Way) -> tuple[Sid, Sid]:
    """The source and the reader of packets between a learner and leader 3."""
    return (sid, LEADER) if way is Way.UP else (LEADER, sid)


def brief(view: View | None) -> str:
    """A view in one line, as `harness.reproduce.by_hand.servers.brief` writes a configuration; `-` for no view."""
    if view is None:
        return "-"
    names = ", ".join(map(str, sorted(view.voters)))
    if observers := sorted(view.members - view.voters):
        names += f" + observer {', '.join(map(str, observers))}"
    return f"{view.version:#x}: {{{names}}}"
