"""A whole server: its files, its configuration, and the running parts of the protocol.

Rules of this module:

- A server consists of its disk (`view`, `durable`) and its running parts: `election`, and after a decision `zab`, a
  leader or a learner. A standalone server has no election and runs `zab` alone. Without both parts the process does not
  run. A crash keeps the disk and drops the running parts completely.
- Parts do not know each other. When an election decides, the other part begins. When that part gives up, it ends in
  order and a new election begins. This module carries out everything that concerns both.
- An effect on the server itself, `Configure` or `ConfigureNext`, is carried out here and also passed on, since a node
  has a file to write.
- A reconfiguration names the leader of the new view. A server that has to change its role or its leader then does so
  without an election.
- The file decides whether a server starts with an election or standalone. One that starts with an election, after a
  life alone, has the epochs that its disk then gives it.
- Without `ZabRules` a server has only its election; a standalone one serves, and nothing happens to it.
- A server whose log cannot be written ends its part and looks for a leader. Until its process ends it writes nothing:
  a part that has to write ends instead, before it acknowledges anything.

Source: `QuorumPeer.run`, `ZooKeeperServer.shutdown`, `LearnerZooKeeperServer.shutdownComponents`. For a full disk:
`SyncRequestProcessor.run`, `ZooKeeperServerListenerImpl.notifyStopping`, `Learner.isRunning`, `Leader.isRunning`.
"""

from collections.abc import Sequence
from typing import TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from spec import standalone
from spec.durable import Durable
from spec.effects import Configure, ConfigureNext, Disconnect, Effects, Observe, Persist, ServerStep, Step, WriteEpochs
from spec.election import fast_leader_election
from spec.election.messages import ElectionEvent, EpochBegun, LeaderLost, QuorumLost, Start
from spec.election.state import Election, ElectionRules, Peer, Summary
from spec.election.vote import ServerState, Vote, is_observer
from spec.quorum import Sid, View, seen_after_activation, seen_beside
from spec.txn import Txn
from spec.variants import Variant
from spec.zab import disk, leader, learner, memory
from spec.zab.events import LogFailed, Restored, StartAlone, SyncedLate, Undone, ZabEvent
from spec.zab.leader_broadcast import ServingLeader
from spec.zab.learner_broadcast import ServingLearner
from spec.zab.state import Leader, Learner, StaleMemory, ZabResult, ZabRules

__all__ = ["Durable", "Event", "Server", "Steps", "crash", "start", "step", "step_all", "summary", "tree_at_rest"]

Event: TypeAlias = ElectionEvent | ZabEvent
_ZAB_EVENTS = frozenset(get_args(ZabEvent))
_OF_THE_PROCESS = frozenset({SyncedLate, StartAlone, LogFailed, Restored})
"""The events of `ZabEvent` that no leader and no learner handles."""
LOOKING, FOLLOWING, LEADING, OBSERVING = ServerState


class Server(msgspec.Struct, frozen=True):
    """One server. `view` is its own configuration; `election` is None while it does not run, or runs standalone.

    - `last_seen`: the configuration that it has seen last, where its version is not that of `view`: the file
      `.dynamic.next`. `next_deleted`: a start has deleted that file, so the next start forgets it (variants only).
    - `disk_full`: its log could not be written. A crash forgets this: space is made before the process starts again.
    - `defects`: the known defects of its release, where the servers of an ensemble run different releases. Whoever
      calls `step` adds them to the variants of the rules.
    """

    sid: Sid
    view: View
    durable: Durable = Durable()
    election: Election | None = None
    zab: Leader | Learner | None = None
    remains: StaleMemory = StaleMemory()
    disk_full: bool = False
    defects: frozenset[Variant] = frozenset()
    last_seen: View | None = None
    next_deleted: bool = False

    @property
    def runs(self) -> bool:
        """Whether its process runs."""
        return self.election is not None or self.zab is not None

    @property
    def runs_standalone(self) -> bool:
        """Whether it serves alone, without an election."""
        return self.election is None and self.zab is not None

    @property
    def peer(self) -> Peer:
        """The part of the server that its protocol parts read."""
        remains = self.remains
        return Peer(self.sid, self.view, self.durable, remains.tree, remains.unlogged, remains.unlisted, self.last_seen)


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
    if type(event) in _ZAB_EVENTS:
        return None if zab is None else _zab_step(server, event, rules, zab)  # type: ignore[arg-type]
    if isinstance(event, Start):
        if server.runs:
            return None
        if event.view.standalone:
            return _start_alone(replace(server, view=event.view)) if server.sid in event.view.members else None
        if zab is not None:
            server = replace(server, durable=server.durable.with_epochs())
    if isinstance(event, LeaderLost | QuorumLost) and server.zab is not None and zab is not None:
        fits = isinstance(event, QuorumLost) is isinstance(server.zab, Leader)
        return _give_up(server, rules, zab) if fits else None
    result = _election_step(server, event, rules)  # type: ignore[arg-type]
    return result if result is None or zab is None else _begun(server, result, rules, zab)


class Steps(msgspec.Struct, frozen=True):
    """The outcome of several events: the state after all of them, and the effects of each one, in order."""

    state: Server
    effects: tuple[Effects, ...]


def step_all(server: Server, events: Sequence[Event], rules: ElectionRules, zab: ZabRules) -> Steps | None:
    """Handle the first of these events, and with it those that follow while it serves; None if it is impossible.

    The outcome is that of `step` for each, without the states in between: a part that serves handles events one after
    another (`ServingLeader`, `ServingLearner`), until one concerns the rest of the server.
    """
    effects, serving = _served(server, events, zab) if len(events) > 1 else ([], None)
    if serving is None:
        last = step(server, events[0], rules, zab)
    else:
        result = serving.result(effects[-1])
        # A part that ends completes the queue that these events have left, and not that of the beginning.
        present = replace(server, zab=serving.part) if result.state is None else server
        last = _adopted(present, result, rules, zab)
    if last is None:  # the last event is impossible, beyond the last round of elections
        return step_all(server, events[: len(effects) - 1], rules, zab) if len(effects) > 1 else None
    return Steps(last.state, (*effects[:-1], last.effects))


def _served(
    server: Server, events: Sequence[Event], zab: ZabRules
) -> tuple[list[Effects], ServingLeader | ServingLearner | None]:
    """The effects of the events that a serving part handles one after another, and the part; None without any."""
    part, effects = server.zab, list[Effects]()
    if part is None or not part.serves or server.disk_full:
        return effects, None
    serving: ServingLeader | ServingLearner = (
        ServingLeader(server.peer, part, zab) if isinstance(part, Leader) else ServingLearner(server.peer, part, zab)
    )
    for event in events:
        of_event = None if serving.is_over else serving.handle(event)
        if of_event is None:
            break
        effects.append(of_event)
    return effects, serving if effects else None


def start(
    server: Server,
    view: View | None = None,
    rules: ElectionRules = fast_leader_election.DEFAULT_RULES,
    zab: ZabRules | None = None,
) -> ServerStep[Server] | None:
    """Boot with another file, or with the current one; None if the server runs already or the file leaves it out.

    A file without an ensemble starts a standalone server (`QuorumPeerMain.initializeAndRun`).
    """
    return step(server, Start(server.view if view is None else view), rules, zab)


def crash(server: Server, zab: ZabRules | None = None) -> Server | None:
    """The server after a crash: its disk unchanged, and nothing running. None if it does not run."""
    if not server.runs:
        return None
    durable = server.durable
    if zab is not None and Variant.TORN_RECORD in zab.variants and server.zab is not None:
        durable = disk.torn(durable, server.zab.queue)
    return stopped(server, memory.lost_files(durable, server.remains))


def stopped(server: Server, durable: Durable) -> Server:
    """The server with this disk, while its process does not run."""
    return Server(
        server.sid,
        server.view,
        durable,
        defects=server.defects,
        last_seen=server.last_seen,
        next_deleted=server.next_deleted,
    )


def tree_at_rest(server: Server) -> tuple[Txn, ...] | None:
    """The transactions of a server that serves, if no request, packet or disk operation waits there; else None."""
    part = server.zab
    if part is None or not part.serves or part.queue or part.commits or part.syncs:
        return None
    if part.outstanding if isinstance(part, Leader) else part.pending:
        return None
    return tuple(server.durable.txns)


def summary(server: Server) -> Summary:
    """The projection of a server that the election oracle reads."""
    election = server.election
    entered = server.peer.initial_vote
    if election is None:
        return Summary(server.sid, False, None, None, 0, entered, None, server.view, server.last_seen)
    looking = election.state is LOOKING
    return Summary(
        sid=server.sid,
        running=True,
        state=election.state,
        leader=None if looking else election.vote.leader,
        round=election.round,
        vote=entered if looking else election.vote,
        announced=election.announced,
        view=server.view,
        last_seen=server.last_seen,
    )


# The election, and the parts that begin and end with it.


def _election_step(server: Server, event: ElectionEvent, rules: ElectionRules) -> ServerStep[Server] | None:
    result = fast_leader_election.step(server.peer, server.election, event, rules)
    if result is None:
        return None
    if isinstance(event, Start):
        last_seen = None if event.view != server.view or server.next_deleted else server.last_seen
        # 3.9.5 deletes `.dynamic.next` at the first start, and has forgotten it at the second (`last-seen-forgotten`).
        deleted = last_seen is not None and Variant.LAST_SEEN_FORGOTTEN in rules.variants
        server = replace(server, view=event.view, last_seen=last_seen, next_deleted=deleted)
    return Step(replace(_configured(server, result.effects), election=result.state), result.effects)


def _configured(server: Server, effects: Effects) -> Server:
    """The server after the effects that change its configuration (`spec.zab.reconfiguration`)."""
    for effect in effects:
        # Not `isinstance`: it asks the metaclass about each effect of another class, on every step.
        if type(effect) is Configure:
            last_seen = seen_after_activation(effect.view, server.last_seen)
            deleted = server.next_deleted and last_seen is not None
            server = replace(server, view=effect.view, last_seen=last_seen, next_deleted=deleted)
        elif type(effect) is ConfigureNext:
            server = replace(server, last_seen=seen_beside(server.view, effect.view), next_deleted=False)
    return server


def _begun(before: Server, done: ServerStep[Server], rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    """Start to lead or to follow, if the election has just decided."""
    after, election = done.state, done.state.election
    looked = before.election is None or before.election.state is LOOKING
    if not looked or election is None or election.state is LOOKING:
        return done
    if election.state is LEADING:
        if after.remains.unlogged:
            durable, remains = memory.saved(after.durable, after.remains)
            after = replace(after, durable=durable, remains=remains)
        start = leader.begin(after.peer, zab)
    else:
        start = learner.begin(after.peer, election.vote.leader)
    if after.disk_full and _needs_disk(after, start):
        looking = _election_step(after, QuorumLost(), rules)
        return None if looking is None else Step(looking.state, (*done.effects, *looking.effects))
    return _entered(after, start, (*done.effects, *start.effects))


def _give_up(server: Server, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    """End the part in order: the sync thread completes its queue, connections are closed, and an election begins.

    None if that is impossible: beyond the last round, or while a learner handles NEWLEADER.
    """
    part, leads = server.zab, isinstance(server.zab, Leader)
    if part is None or (isinstance(part, Learner) and not learner.may_leave(part)):
        return None
    if isinstance(part, Leader) and part.successor is not None:
        return _change_leader(server, part.successor, zab)
    closed = _closed(server, part, zab)
    looking = _election_step(closed, QuorumLost() if leads else LeaderLost(), rules)
    return None if looking is None else Step(looking.state, (_disconnected(part), *looking.effects))


def _closed(server: Server, part: Leader | Learner, zab: ZabRules) -> Server:
    durable, remains = memory.shut_down(server.durable, part, server.remains, zab)
    return replace(server, durable=durable, zab=None, remains=remains)


def _disconnected(part: Leader | Learner) -> Disconnect:
    return Disconnect(None if isinstance(part, Leader) else part.leader)


def _change_leader(server: Server, successor: Sid, zab: ZabRules) -> ServerStep[Server]:
    """End the part in order, and follow or lead as the new configuration says, without an election.

    The vote of the server names the new leader with an epoch that equals no other (`updateVote`, `updateServerState`).
    """
    part, election = server.zab, server.election
    assert part is not None and election is not None  # only a part that runs in an ensemble is reconfigured
    closed = _closed(server, part, zab)
    state = LEADING if successor == server.sid else OBSERVING if is_observer(server.sid, server.view) else FOLLOWING
    vote = Vote(successor, server.peer.last_zxid, -1)
    start = leader.begin(closed.peer, zab) if state is LEADING else learner.begin(closed.peer, successor)
    changed = replace(closed, election=replace(election, state=state, round=0, vote=vote))
    return _entered(changed, start, (_disconnected(part), *start.effects))


# Leading and following.


def _zab_step(server: Server, event: ZabEvent, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    part, result = server.zab, None
    if type(event) in _OF_THE_PROCESS:
        return _process_step(server, event, rules, zab)
    if isinstance(part, Leader):
        of_part = standalone if server.runs_standalone else leader
        result = of_part.step(server.peer, part, event, zab)
    elif part is not None:
        result = learner.step(server.peer, part, event, zab)
    return None if result is None else _adopted(server, result, rules, zab)


def _adopted(server: Server, result: ZabResult, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    """The server with the result of its part, which may end the part or give it a successor."""
    server = _configured(server, result.effects)
    if server.disk_full and _needs_disk(server, result):
        return _give_up(server, rules, zab)
    if result.exits:
        part = server.zab
        assert part is not None  # it has handled the event
        server = replace(server, zab=replace(part, queue=()), remains=StaleMemory())
    if result.state is None:
        lost = _give_up(replace(server, durable=result.durable), rules, zab)
        return None if lost is None else Step(lost.state, (*result.effects, *lost.effects))
    entered = _entered(server, result, result.effects)
    if result.successor is None:
        return entered
    changed = _change_leader(entered.state, result.successor, zab)
    return replace(changed, effects=(*result.effects, *changed.effects))


def _process_step(server: Server, event: ZabEvent, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    if isinstance(event, SyncedLate):
        return _synced_late(server)
    if isinstance(event, Restored):
        return _restored(server, event.txns, zab)
    return _start_alone(server) if isinstance(event, StartAlone) else _log_failed(server, rules, zab)


def _log_failed(server: Server, rules: ElectionRules, zab: ZabRules) -> ServerStep[Server] | None:
    """End the part without its disk queue, so that no write in it is acknowledged. None if nothing is being written."""
    part = server.zab
    if part is None or not part.queue:
        return None
    if server.runs_standalone:
        return Step(stopped(server, server.durable))  # its process ends
    failed = replace(server, zab=replace(part, queue=()))
    if Variant.DISK_ERROR_KEEPS_TREE in zab.variants:
        return _give_up(replace(failed, remains=memory.after_disk_error(part, server.remains, zab)), rules, zab)
    return _give_up(replace(failed, disk_full=True), rules, zab)


def _restored(server: Server, txns: tuple[Txn, ...], zab: ZabRules) -> ServerStep[Server] | None:
    """Replace the tree by that of a snapshot. None while something waits: the guide has clients stopped before."""
    tree = tree_at_rest(server)
    if tree is None:
        return None
    durable, remains = memory.restored(server.durable, txns, server.remains, zab)
    undone = tuple(txn for txn in tree if txn not in txns)
    effects = (Observe(Undone(server.sid, undone)),) if undone else ()
    return Step(replace(server, durable=durable, remains=remains), effects)


def _needs_disk(server: Server, result: ZabResult) -> bool:
    """Whether a step writes to the disk: each acknowledgement of a proposal or an epoch follows a write."""
    writes = any(isinstance(effect, Persist | WriteEpochs) for effect in result.effects)
    return writes or result.durable != server.durable


def _start_alone(server: Server) -> ServerStep[Server] | None:
    """Serve immediately, because a server without an ensemble has no election. None if it runs already."""
    if server.runs:
        return None
    result = standalone.begin(server.peer)
    return Step(replace(server, zab=result.state), result.effects)


def _entered(server: Server, result: ZabResult, effects: Effects) -> ServerStep[Server]:
    """The server with the new state of its part; from BROADCAST on, its vote contains the new epoch."""
    before, part = server.zab, result.state
    after = replace(server, durable=result.durable, zab=part, remains=memory.after_step(server.remains, part))
    if part is not None and part.serves and not (before is not None and before.serves and before.epoch == part.epoch):
        voted = fast_leader_election.step(after.peer, after.election, EpochBegun(part.epoch))
        assert voted is not None
        after = replace(after, election=voted.state)
    return Step(after, effects)


def _synced_late(server: Server) -> ServerStep[Server] | None:
    """ZOOKEEPER-4712: a sync thread continues to write, regardless of the current state of its server."""
    if server.election is None or not server.remains.queue:
        return None
    txn, *queue = server.remains.queue
    unlogged = tuple(unwritten for unwritten in server.remains.unlogged if unwritten != txn)
    tree = memory.tree_after_late_write(server.remains.tree, server.peer.last_zxid, server.zab, txn)
    remains = replace(server.remains, queue=tuple(queue), unlogged=unlogged, tree=tree)
    # A second record of a transaction changes nothing when the log is read.
    durable = server.durable if txn in server.durable.log else server.durable.appended(txn)
    return Step(replace(server, durable=durable, remains=remains))
