"""A whole server: its files, its configuration, and the running parts of the protocol.

Rules of this module:

- A server consists of its disk (`view`, `durable`) and its running parts: `election`, which is None while the process
  does not run, and after a decision `zab`, a leader or a learner. A server without an ensemble runs `zab` alone. A
  crash keeps the disk and drops the running parts completely.
- Parts do not know each other. When an election decides, the other part begins. When that part gives up, it ends in
  order and a new election begins. This module carries out everything that concerns both.
- An effect on the server itself, such as `Configure`, is carried out here and also passed on, since a node has a file
  to write.
- Without `ZabRules` a server has only its election.
- A server whose log cannot be written ends its part and looks for a leader. Until its process ends it writes nothing:
  a part that has to write ends instead, before it acknowledges anything.

Source: `QuorumPeer.run`, `ZooKeeperServer.shutdown`, `LearnerZooKeeperServer.shutdownComponents`. For a full disk:
`SyncRequestProcessor.run`, `ZooKeeperServerListenerImpl.notifyStopping`, `Learner.isRunning`, `Leader.isRunning`.
"""

from typing import TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Configure, Disconnect, Effect, Persist, ServerStep, Step, WriteEpochs
from spec.election import fast_leader_election
from spec.election.messages import ElectionEvent, EpochBegun, LeaderLost, QuorumLost, Start
from spec.election.state import Election, ElectionRules, Peer
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, View
from spec.variants import Variant
from spec.zab import disk, leader, learner
from spec.zab.events import LogFailed, StartAlone, SyncedLate, ZabEvent
from spec.zab.leader_sync import history_of
from spec.zab.state import Append, Leader, Learner, LearnerPhase, StaleMemory, ZabResult, ZabRules

__all__ = ["Durable", "Event", "Server", "Summary", "crash", "start", "step", "summary"]

Event: TypeAlias = ElectionEvent | ZabEvent
_ZAB_EVENTS: tuple[type, ...] = get_args(ZabEvent)
LOOKING, FOLLOWING, LEADING, OBSERVING = ServerState


class Server(msgspec.Struct, frozen=True):
    """One server. `view` is its own configuration; `election` is None while it does not run, or runs alone.

    `disk_full`: its log could not be written. A crash forgets this: space is made before the process starts again.
    """

    sid: Sid
    view: View
    durable: Durable = Durable()
    election: Election | None = None
    zab: Leader | Learner | None = None
    remains: StaleMemory = StaleMemory()
    disk_full: bool = False

    @property
    def peer(self) -> Peer:
        """The part of the server that its protocol parts read."""
        return Peer(self.sid, self.view, self.durable, self.remains.tree)


class Summary(msgspec.Struct, frozen=True):
    """The view of a server that the election oracle, and invariants about elections, may use.

    - `state` and `round` are None and 0 while the server does not run.
    - `leader` is the server that a decided server follows or observes, or the server itself if it leads; None
      otherwise.
    - `vote` is the decided vote, and for a LOOKING server the vote with which it **entered** its election. Later
      changes of its proposal are left out, because an oracle abstracts from them.
    - `format_zxid` is the vote that a LOOKING server announces to a server outside its view; None otherwise.
    """

    sid: Sid
    running: bool
    state: ServerState | None
    leader: Sid | None
    round: int
    vote: Vote
    told: Vote | None
    view: View


def step(
    server: Server,
    event: Event,
    rules: ElectionRules = fast_leader_election.DEFAULT_RULES,
    zab: ZabRules | None = None,
) -> ServerStep[Server] | None:
    """Handle one event of one server; None if it is impossible in this state.

    See `fast_leader_election.step`, `leader.step` and `learner.step`. With `zab`, a decided server leads or follows;
    without it, the server has only the election.
    """
    if isinstance(event, _ZAB_EVENTS):
        return None if zab is None else _zab_step(server, event, rules, zab)  # type: ignore[arg-type]
    if isinstance(event, LeaderLost | QuorumLost) and server.zab is not None and zab is not None:
        fits = isinstance(event, QuorumLost) is isinstance(server.zab, Leader)
        return _give_up(server, rules, zab) if fits else None
    done = _election_step(server, event, rules)  # type: ignore[arg-type]
    return done if done is None or zab is None else _begun(server, done, rules, zab)


def start(
    server: Server,
    view: View | None = None,
    rules: ElectionRules = fast_leader_election.DEFAULT_RULES,
    zab: ZabRules | None = None,
) -> ServerStep[Server] | None:
    """Boot with another file, or with the current one; None if the server runs already or the file leaves it out."""
    return step(server, Start(server.view if view is None else view), rules, zab)


def crash(server: Server, zab: ZabRules | None = None) -> Server | None:
    """The server after a crash: its disk unchanged, and nothing running. None if no election part runs."""
    if server.election is None:
        return None
    durable = server.durable
    if zab is not None and Variant.TORN_RECORD in zab.variants and server.zab is not None:
        durable = disk.torn(durable, server.zab.queue)
    return Server(server.sid, server.view, durable)


def summary(server: Server) -> Summary:
    """The projection of a server that the election oracle reads."""
    election = server.election
    entered = server.peer.initial_vote
    if election is None:
        return Summary(server.sid, False, None, None, 0, entered, None, server.view)
    looking = election.state is LOOKING
    return Summary(
        sid=server.sid,
        running=True,
        state=election.state,
        leader=None if looking else election.vote.leader,
        round=election.round,
        vote=entered if looking else election.vote,
        told=election.told,
        view=server.view,
    )


# The election, and the parts that begin and end with it.


def _election_step(server: Server, event: ElectionEvent, rules: ElectionRules) -> ServerStep[Server] | None:
    done = fast_leader_election.step(server.peer, server.election, event, rules)
    if done is None:
        return None
    view = event.view if isinstance(event, Start) else server.view
    for effect in done.effects:
        if isinstance(effect, Configure):
            view = effect.view
    return Step(replace(server, view=view, election=done.state), done.effects)


def _begun(before: Server, done: ServerStep[Server], rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    """Start to lead or to follow, if the election has just decided."""
    after = done.state
    looked = before.election is None or before.election.state is LOOKING
    if not looked or after.election is None or after.election.state is LOOKING:
        return done
    if after.election.state is LEADING:
        begun = leader.begin(after.peer, zab)
    else:
        begun = learner.begin(after.peer, after.election.vote.leader)
    if _needs_full_disk(after, begun):
        looking = _election_step(after, QuorumLost(), rules)
        return None if looking is None else Step(looking.state, (*done.effects, *looking.effects))
    return _entered(after, begun, done.effects)


def _give_up(server: Server, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    """End the part in order: the sync thread completes its queue, connections are closed, and an election begins.

    None if that is impossible: beyond the last round, or while a learner handles NEWLEADER.
    """
    part, leads = server.zab, isinstance(server.zab, Leader)
    if part is None or (isinstance(part, Learner) and not learner.may_leave(part)):
        return None
    durable, remains = _shut_down(server, zab)
    closed = replace(server, durable=durable, zab=None, remains=remains)
    looking = _election_step(closed, QuorumLost() if leads else LeaderLost(), rules)
    if looking is None:
        return None
    gone = Disconnect(None if isinstance(part, Leader) else part.leader)
    return Step(looking.state, (gone, *looking.effects))


def _shut_down(server: Server, zab: ZabRules) -> tuple[Durable, StaleMemory]:
    """The disk after the shutdown, and the state that two variants leave in memory."""
    part, durable = server.zab, server.durable
    remains = server.remains
    if isinstance(part, Learner) and Variant.QUEUE_SURVIVES_SHUTDOWN in zab.variants:
        left = tuple(each.txn for each in part.queue if isinstance(each, Append))
        return durable, replace(remains, queue=(*remains.queue, *left))
    assert part is not None
    flushed = disk.flushed(durable, part.queue)
    if Variant.TREE_BEHIND_LOG in zab.variants:
        tree = _tree_of(server)
        remains = replace(remains, tree=None if tree is None or tree >= flushed.last_zxid else tree)
    return flushed, remains


def _tree_of(server: Server) -> int | None:
    """The zxid of the tree of a server that shuts down: its last applied transaction, or the kept tree's before it
    serves.
    """
    part = server.zab
    if part is None or not part.serves:
        return server.remains.tree
    if isinstance(part, Leader):
        applied = history_of(server.durable, part).applied
        return applied[-1].zxid if applied else server.durable.snapshot
    return part.delivered


# Leading and following.


def _zab_step(server: Server, event: ZabEvent, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    if isinstance(event, SyncedLate):
        return _synced_late(server)
    if isinstance(event, StartAlone):
        return _start_alone(server)
    if isinstance(event, LogFailed):
        return _log_failed(server, rules, zab)
    done: ZabResult | None = None
    if isinstance(server.zab, Leader):
        done = leader.step(server.peer, server.zab, event, zab)
    elif isinstance(server.zab, Learner):
        done = learner.step(server.peer, server.zab, event, zab)
    if done is None:
        return None
    if _needs_full_disk(server, done):
        return _give_up(server, rules, zab)
    if done.state is not None:
        return _entered(server, done, ())
    lost = _give_up(replace(server, durable=done.durable), rules, zab)
    return None if lost is None else Step(lost.state, (*done.effects, *lost.effects))


def _log_failed(server: Server, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    """End the part without its disk queue, so that no write in it is acknowledged. None if nothing is being written."""
    if server.zab is None or not server.zab.queue:
        return None
    return _give_up(replace(server, zab=replace(server.zab, queue=()), disk_full=True), rules, zab)


def _needs_full_disk(server: Server, done: ZabResult) -> bool:
    """Whether a step writes to a disk that is full: each acknowledgement of a proposal or an epoch follows a write."""
    if not server.disk_full:
        return False  # first, since the comparison below costs time on every step of a node
    return done.durable != server.durable or any(isinstance(each, Persist | WriteEpochs) for each in done.effects)


def _start_alone(server: Server) -> ServerStep[Server] | None:
    """Serve immediately, because a server without an ensemble has no election. None if it runs already."""
    if server.election is not None or server.zab is not None:
        return None
    done = leader.alone(server.peer)
    return Step(replace(server, zab=done.state), done.effects)


def _entered(server: Server, done: ZabResult, effects: tuple[Effect, ...]) -> ServerStep[Server]:
    """The server with the new state of its part; from BROADCAST on, its vote contains the new epoch."""
    after = replace(server, durable=done.durable, zab=done.state)
    serves = done.state is not None and done.state.serves
    if done.state is not None and serves and not (server.zab is not None and server.zab.serves):
        begun = fast_leader_election.step(after.peer, after.election, EpochBegun(done.state.epoch))
        assert begun is not None
        after = replace(after, election=begun.state)
    if after.remains.tree is not None and (serves or _is_synced(done.state)):
        after = replace(after, remains=replace(after.remains, tree=None))
    return Step(after, (*effects, *done.effects))


def _is_synced(part: Leader | Learner | None) -> bool:
    return isinstance(part, Learner) and part.phase is LearnerPhase.SYNCED


def _synced_late(server: Server) -> ServerStep[Server] | None:
    """ZOOKEEPER-4712: a sync thread continues to write, regardless of the current state of its server."""
    if server.election is None or not server.remains.queue:
        return None
    txn, *others = server.remains.queue
    remains = replace(server.remains, queue=tuple(others))
    return Step(replace(server, durable=server.durable.appended(txn), remains=remains))
