"""The table of crashes: a change of the members against the position of a SIGKILL, as steps that any ensemble can take.

Rules of this module:

- A row is a change, a server, and a position: a point between the request and the activation, named by what the server
  has on its disk. The position is reached by packets that are held and by log writes that wait.
- `row` carries out the same steps at real servers (`measured`) and at the model (`computed`), so both halves have the
  same rows, columns and words, and can be compared cell by cell.
- After the kill nothing is held, and the others settle; then the killed server starts again.

Source: `Leader.propose`, `tryToCommit`; `Follower.processPacket`; `QuorumPeer.setLastSeenQuorumVerifier`,
`setQuorumVerifier`; `Learner.syncWithLeader`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from harness.reproduce.proxies import Way
from spec.quorum import Sid
from spec.txn import make_zxid

LEADER, FOLLOWER, JOINER = 3, 1, 4
MEMBERS, LEARNERS, ALL = (1, 2, 3), (1, 2, 4), (1, 2, 3, 4)
ZXID = make_zxid(1, 1)
"""The zxid of the reconfiguration, which is the version of its view: the first transaction of the first epoch."""
TABLE_NAME = "crashes"
COLUMNS = ("change", "position", "killed", "its log, active file, .next", "the others then", "it, after its restart",
           "all agree")  # fmt: skip
EXITS = "exits"
"""The cell of a server that cannot start again: its process ends with code 1."""


@dataclass(frozen=True)
class Change:
    """A reconfiguration of {1, 2, 3}, led by 3, while 4 follows without a vote."""

    name: str
    join: tuple[Sid, ...] = ()
    leave: tuple[Sid, ...] = ()


JOINS = Change("4 joins", (JOINER,))
FOLLOWER_LEAVES = Change("4 replaces follower 1", (JOINER,), (FOLLOWER,))
LEADER_LEAVES = Change("4 replaces leader 3", (JOINER,), (LEADER,))
CHANGES = (JOINS, FOLLOWER_LEAVES, LEADER_LEAVES)


class CrashStage(Protocol):
    """An ensemble that waits for a change, whose packets and log writes can be held."""

    def hold(self, sids: Iterable[Sid], way: Way) -> None:
        """Hold the packets between these learners and leader 3 in one direction."""

    def free(self, sids: Iterable[Sid], way: Way) -> None:
        """Let held packets arrive, and later ones pass."""

    def close_log(self, sid: Sid) -> None:
        """Let the log writes of a server wait."""

    def ask(self) -> None:
        """Ask leader 3 for the change."""

    def wait_next(self, sid: Sid) -> None:
        """Wait until a server has `.next` and asks for its log write."""

    def wait_logged(self, sids: Iterable[Sid]) -> None:
        """Wait until these servers have the transaction in their logs."""

    def wait_active(self, sids: Iterable[Sid]) -> None:
        """Wait until the files of these servers name the new view as the active one."""

    def kill(self, victim: Sid) -> str:
        """Kill a server, with the packets to and from it; return its log, active file and `.next`."""

    def go_on(self, victim: Sid) -> str:
        """Hold nothing any more; return the configuration that the others agree on."""

    def restart(self, victim: Sid) -> tuple[str, bool] | None:
        """Start the killed server again; its configuration with `.next`, and whether all servers agree. None if it
        cannot start.
        """


@dataclass(frozen=True)
class Position:
    """A point of a reconfiguration at which one server is killed; `of_change` says for which changes it exists."""

    name: str
    victim: Sid
    reach: Callable[[CrashStage], None]
    of_change: Callable[[Change], bool] = lambda _: True


def _leader_waits(stage: CrashStage) -> None:
    stage.hold(LEARNERS, Way.DOWN)
    stage.close_log(LEADER)
    stage.ask()
    stage.wait_next(LEADER)


def _leader_alone(stage: CrashStage) -> None:
    stage.hold(LEARNERS, Way.DOWN)
    stage.ask()
    stage.wait_logged([LEADER])


def _proposed(stage: CrashStage) -> None:
    stage.hold(LEARNERS, Way.UP)
    stage.ask()
    stage.wait_logged(ALL)


def _committed(stage: CrashStage) -> None:
    _proposed(stage)
    stage.hold(LEARNERS, Way.DOWN)
    stage.free(LEARNERS, Way.UP)
    stage.wait_active([LEADER])


def _follower_first(stage: CrashStage) -> None:
    _committed(stage)
    stage.free([FOLLOWER], Way.DOWN)
    stage.wait_active([FOLLOWER])


def _everywhere(stage: CrashStage) -> None:
    stage.ask()
    stage.wait_logged(ALL)
    stage.wait_active(ALL)


def _without(victim: Sid) -> Callable[[CrashStage], None]:
    def reach(stage: CrashStage) -> None:
        stage.hold(LEARNERS, Way.UP)
        stage.hold([victim], Way.DOWN)
        stage.ask()
        stage.wait_logged(sid for sid in ALL if sid != victim)

    return reach


def _log_waits(victim: Sid) -> Callable[[CrashStage], None]:
    def reach(stage: CrashStage) -> None:
        stage.hold(LEARNERS, Way.UP)
        stage.close_log(victim)
        stage.ask()
        stage.wait_next(victim)

    return reach


def _active_log_waits(victim: Sid) -> Callable[[CrashStage], None]:
    def reach(stage: CrashStage) -> None:
        stage.close_log(victim)
        stage.ask()
        stage.wait_active(ALL)

    return reach


def _keeps_leader(change: Change) -> bool:
    """Whether the leader stays. If it leaves, each learner ends its part, which waits for its log."""
    return LEADER not in change.leave


def _of_learner(role: str, sid: Sid) -> Iterator[Position]:
    yield Position(f"{role} has nothing, the others have logged", sid, _without(sid))
    yield Position(f"{role} has `.next`, its log write waits", sid, _log_waits(sid))
    yield Position(f"{role} has logged, no ACK has arrived", sid, _proposed)
    yield Position(f"{role} has acknowledged, not activated", sid, _committed)
    yield Position(f"{role} has activated, its log write waits", sid, _active_log_waits(sid), _keeps_leader)
    yield Position(f"{role} has activated and logged, all others too", sid, _everywhere)


POSITIONS = (
    Position("leader has `.next`, its log write waits, nothing sent", LEADER, _leader_waits),
    Position("only the leader has `.next` and the log record", LEADER, _leader_alone),
    Position("all have both, no ACK has arrived", LEADER, _proposed),
    Position("committed at the leader, nothing sent", LEADER, _committed),
    Position("activated by the leader and 1", LEADER, _follower_first),
    Position("activated everywhere", LEADER, _everywhere),
    *_of_learner("follower", FOLLOWER),
    *_of_learner("joiner", JOINER),
)
CRASHES = tuple((change, position) for change in CHANGES for position in POSITIONS if position.of_change(change))
"""The rows of the table."""


def row(change: Change, position: Position, stage: CrashStage) -> tuple[str, ...]:
    """Kill a server at a position, and start it again: the cells of `COLUMNS`."""
    position.reach(stage)
    disk = stage.kill(position.victim)
    outcome = stage.go_on(position.victim)
    ended = stage.restart(position.victim)
    after, agree = (EXITS, "-") if ended is None else (ended[0], "yes" if ended[1] else "no")
    return change.name, position.name, str(position.victim), disk, outcome, after, agree


def disk_cell(logged: bool, active: str, following: str) -> str:
    """The cell about the disk of the killed server."""
    return f"{'logged' if logged else 'not logged'}, {active}, {following}"


def after_cell(config: str, following: str) -> str:
    """The cell about the killed server after its restart."""
    return f"{config}, .next {following}"
