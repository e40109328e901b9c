"""A server: it passes events from clock, network and disk to the step functions, and carries out their effects.

Rules this module keeps:

- It makes no decisions about the protocol. Every occurrence becomes an event of `spec.server.step`; an event that is
  impossible now waits (a packet) or is ignored (a late timer). `EffectExecutor` carries out the effects.
- One piece of work is finished, with all its effects in order, before the next begins: new work is queued meanwhile
  (`submit`).
- A step is in the journal before any of its output leaves the process: sockets are written after the work, not
  during it.

Source: `QuorumPeer.run`, `ZooKeeperServer`; `docs/explanation-node.md`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from msgspec.structs import replace as with_fields

from refimpl.clients.backend import Frontend
from refimpl.clients.read_only import ReadOnlyService
from refimpl.disk.files import DataError, TruncationError
from refimpl.disk.storage import Storage
from refimpl.disk.txn_buffer import TxnBuffer
from refimpl.effect_executor import EffectExecutor
from refimpl.journal import Journal
from refimpl.listening import ListenError
from refimpl.membership import Membership
from refimpl.peers.ports import ElectionPort, QuorumPort
from refimpl.replica import Replica
from refimpl.roles import LeaderRole, LearnerRole
from refimpl.settings import Settings
from refimpl.tree import Tree
from refimpl.wire.txn import TxnEncoder
from spec import server as spec_server
from spec.effects import Connect, Disconnect, Effects, Persist
from spec.election.messages import LeaderLost, QuorumLost, Start
from spec.election.state import ElectionRules
from spec.election.vote import ServerState
from spec.server import Event, Server, Steps
from spec.zab.events import StartAlone, Synced
from spec.zab.state import EnterEpoch, Leader, Learner, ZabRules
from spec.zab.timeouts import Resignation

logger = logging.getLogger("quorate.node")

RULES = ElectionRules()
ZAB = ZabRules(asynchronous_disk=True, hold_commits=True, observers_log_first=True)


class Node:
    """One running server; `failed` is called, once, when its disk can no longer be trusted."""

    def __init__(
        self,
        settings: Settings,
        server: Server,
        replica: Replica,
        storage: Storage,
        clients: Frontend,
        journal: Journal | None,
        failed: Callable[[str], None],
        membership: Membership | None = None,
    ) -> None:
        self.settings, self.server = settings, server
        self.role: LeaderRole | LearnerRole | None = None
        self.election_port: ElectionPort | None = None
        self.quorum_port: QuorumPort | None = None
        self._replica, self._storage, self._clients = replica, storage, clients
        self._journal, self._failed = journal, failed
        self._zab_rules = with_fields(ZAB, first_version=settings.reconfigurable)
        self._work: deque[Callable[[], object]] = deque()
        self._working = self._stopped = False
        self.below_snapshot = False
        """Whether it has stopped because its leader lacks transactions of its only snapshot."""
        self._read_only = (
            ReadOnlyService(replica, clients, settings.tick_time, local_sessions=settings.local_sessions)
            if settings.read_only
            else None
        )
        self._executor = EffectExecutor(self, replica, storage, membership, self._flush_journal)
        storage.start(self._synced, self._disk_failed)

    # Work, one piece at a time.

    def submit(self, work: Callable[[], object]) -> None:
        """Does this now, or after the work in progress."""
        if self._stopped:
            return
        self._work.append(work)
        if self._working:
            return
        self._working = True
        try:
            while self._work:
                self._work.popleft()()
            self._flush_journal()
            self._storage.release()
        except ListenError as error:
            self._stop_working(str(error))
        except TruncationError as error:
            self.below_snapshot = error.below_snapshot
            self._stop_working(str(error))
        except (OSError, DataError) as error:
            self._disk_failed(error)
        except Exception:
            # The state is not to be trusted, so nothing may follow from it.
            logger.exception("server %d: a defect of this program", self.server.sid)
            self._stop_working("a defect of this program; its log says where, please report it")
        finally:
            self._working = False

    def _flush_journal(self) -> None:
        if self._journal is not None:
            self._journal.flush()

    def start(self) -> None:
        """Boots: looks for a leader, or serves if there is no ensemble."""
        if self._journal is not None:
            self._journal.begin(self.server, RULES, self._zab_rules)
        if self.quorum_port is None:
            self.submit(lambda: self.run(StartAlone()))
        else:
            logger.info("server %d is LOOKING", self.server.sid)
            if self._read_only is not None:
                self._read_only.looking()
            self.submit(lambda: self.run(Start(self.server.view)))

    def stop(self) -> None:
        """Stops in order: no further work begins, and the disk completes its work."""
        self._stopped = True
        self._executor.stop()
        if self._read_only is not None:
            self._read_only.end()
        if self.role is not None:
            self.role.end()
            self.role = None
            self._clients.end()
        self._storage.stop()

    def run(self, event: Event) -> bool:
        """Runs one event as part of the work in progress; returns False if it is impossible now."""
        return self.run_all((event,)) == 1

    def run_all(self, events: Sequence[Event]) -> int:
        """Runs several events in order, up to the first one that is impossible now; returns the number before it."""
        place = 0
        while place < len(events):
            steps = spec_server.step_all(self.server, events[place:], RULES, self._zab_rules)
            if steps is None:
                break
            handled = events[place : place + len(steps.effects)]
            self._adopt(steps, handled)
            place += len(handled)
        return place

    def _adopt(self, steps: Steps, events: Sequence[Event]) -> None:
        """Adopts steps: first the state, then all effects in order, then the consequences of the new state."""
        before, after = self.server, self._trimmed(steps.state)
        self.server = after
        *earlier, concluding = steps.effects
        if self._journal is not None:
            for event, effects in zip(events, earlier, strict=False):
                self._journal.handled(event, effects)
            self._journal.handled(events[-1], concluding, after.durable)
        last, rest = _parted(before, after, concluding)
        for effects in (*earlier, last):
            self._executor.carry_out(effects)
        if rest is not None:
            self._complete_writes(before, steps)
            self._role_changed(before, after)
            self._executor.carry_out(rest)
        self._follow_up(before, after)

    def _trimmed(self, server: Server) -> Server:
        """The server with the part of its log that stays in memory."""
        log = server.durable.log
        buffer = (log if isinstance(log, TxnBuffer) else TxnBuffer(log)).trimmed(
            self._replica.zxid, self._storage.log_bytes
        )
        return server if buffer is log else with_fields(server, durable=with_fields(server.durable, log=buffer))

    def _follow_up(self, before: Server, after: Server) -> None:
        zab = after.zab
        if zab is None:
            return
        if zab.serves and self.role is None:
            self._begin_to_serve(zab)
        if zab.queue and type(zab.queue[0]) is EnterEpoch and (before.zab is None or before.zab.queue != zab.queue):
            self.submit(lambda: self.run(Synced()))  # it is first in the queue, and WriteEpochs has completed it
        if self.quorum_port is not None and self.quorum_port.is_waiting:
            self.submit(self.quorum_port.retry)

    # Roles.

    def _complete_writes(self, before: Server, steps: Steps) -> None:
        """The role has ended in order, and the disk completes its work."""
        writes = any(type(effect) is Persist for effects in steps.effects for effect in effects)
        if before.zab is not None and (before.zab.queue or writes):
            self._flush_journal()
            self._storage.flush()

    def _role_changed(self, before: Server, after: Server) -> None:
        if self._read_only is not None:
            self._read_only.end()
        if isinstance(before.zab, Learner) and before.zab.tree is not None:
            self._executor.reload()  # its synchronisation was incomplete, and the tree is ahead of the disk
        if self.role is not None:
            self.role.end()
            self.role = None
            self._replica.forget_proposals()
            self._clients.end()
        state = after.election.state if after.election is not None else ServerState.LEADING
        if state is ServerState.LOOKING:
            self._executor.begin_election()
            if self._read_only is not None:
                self._read_only.looking()
        logger.info("server %d is %s%s", after.sid, state.name, _whom(after))
        if self.quorum_port is not None:
            self.quorum_port.role_changed(after.zab)

    def _begin_to_serve(self, zab: Leader | Learner) -> None:
        kind = LeaderRole if isinstance(zab, Leader) else LearnerRole
        self.role = kind(self, self.settings, self._replica, self._storage, self._clients)
        logger.info("server %d serves in epoch %d, last zxid 0x%x", self.server.sid, zab.epoch, self._replica.zxid)
        self._clients.begin(self.role)

    def lose_leader(self) -> bool:
        """The connection with the leader is lost, or has been silent for too long."""
        return self.run(LeaderLost())

    def resign(self, reason: Resignation) -> bool:
        """Gives up leading."""
        logger.warning("server %d gives up leading: %s", self.server.sid, _sentence(reason, self.server.zab))
        return self.run(QuorumLost())

    # Calls of the role and of the quorum port (`Core`, `QuorumCore`).

    @property
    def last_applied(self) -> int:
        """The zxid of the last transaction applied to the tree."""
        return self._replica.zxid

    @property
    def encoder(self) -> TxnEncoder:
        """Encodes transactions, for the log and for learners."""
        return self._storage.encoder

    def revalidate(self, session: int, timeout: int) -> None:
        """Asks the leader whether a session is alive."""
        assert self.quorum_port is not None  # only a learner asks
        self.quorum_port.revalidate(session, timeout)

    def install_snapshot(self, tree: Tree, zxid: int) -> None:
        """Replaces the tree with that of the leader."""
        self._replica.replace(tree, zxid)

    def tree_at(self, zxid: int) -> Tree:
        """Returns the tree for a snapshot with this zxid."""
        return self._executor.tree_at(zxid)

    # The disk.

    def _synced(self, count: int) -> None:
        self.submit(lambda: self.run_all((Synced(),) * count))

    def _disk_failed(self, error: OSError | DataError) -> None:
        self._stop_working(f"the disk failed ({error}), and what it holds is not certain")

    def _stop_working(self, why: str) -> None:
        """Does and acknowledges nothing from now on; the process must end."""
        self._work.clear()
        self._stopped = True
        logger.error("server %d steps down: %s", self.server.sid, why)
        self._clients.end()
        self._failed(why)


def _parted(before: Server, after: Server, effects: Effects) -> tuple[Effects, Effects | None]:
    """The effects of the part that ran before, and those after its end; None if it goes on.

    A part ends with its connections. A follower that follows another leader, or with another role, without an election
    has a new part too.
    """
    is_same = type(before.zab) is type(after.zab)
    if is_same and not (isinstance(before.zab, Learner) and any(type(effect) is Connect for effect in effects)):
        return effects, None
    end = next((place for place, effect in enumerate(effects) if type(effect) is Disconnect), 0)
    return effects[:end], effects[end:]


def _whom(server: Server) -> str:
    zab = server.zab
    return f" (leader {zab.leader})" if isinstance(zab, Learner) else ""


def _sentence(reason: Resignation, zab: Leader | Learner | None) -> str:
    if reason is Resignation.PHASE_TIMEOUT and isinstance(zab, Leader):
        return f"no quorum for {zab.phase.name} within initLimit"
    return reason.value
