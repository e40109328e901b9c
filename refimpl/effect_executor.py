"""Carries out the effects of steps: bytes to peers, records to the disk, transactions to the tree, timers, files.

Rules of this module:

- Effects are carried out in their order, and none is left out. A fact is only for the journal.
- An effect with an immediate result outside the process (a vote, an epoch file, a cut, a configuration) comes after the
  journal has the step.
- Nothing is decided here. A timer that fires, and a disk that reports, become events of the node.

Source: `docs/explanation-node.md`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from refimpl.disk.storage import Storage
from refimpl.membership import Membership
from refimpl.peers.ports import ElectionPort, QuorumPort
from refimpl.replica import Replica
from refimpl.roles import Core, LeaderRole, LearnerRole
from refimpl.tree import Tree
from spec.effects import (
    Apply,
    Arm,
    Configure,
    ConfigureNext,
    Connect,
    Disarm,
    Disconnect,
    Effects,
    Observe,
    Persist,
    ResetConnections,
    Send,
    Timer,
    Truncate,
    WriteEpochs,
)
from spec.election.messages import Fired, Notification
from spec.election.state import FINALIZE_WAIT, FIRST_NOTIFICATION_TIMEOUT, next_notification_timeout
from spec.quorum import View, change_of
from spec.txn import Txn
from spec.zab.state import Append, TakeSnapshot, logged


class ExecutorCore(Core, Protocol):
    """The node, as the executor of its effects sees it."""

    role: LeaderRole | LearnerRole | None
    election_port: ElectionPort | None
    quorum_port: QuorumPort | None


class EffectExecutor:
    """Carries out effects for a node; `flush_journal` passes its records to the operating system."""

    def __init__(
        self,
        node: ExecutorCore,
        replica: Replica,
        storage: Storage,
        membership: Membership | None,
        flush_journal: Callable[[], None],
    ) -> None:
        self._node, self._replica, self._storage, self._membership = node, replica, storage, membership
        self._flush_journal = flush_journal
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._notification_timeout = FIRST_NOTIFICATION_TIMEOUT
        self._carriers: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            Persist: self._persist,
            Apply: self._apply,
            Arm: lambda effect: self._arm(effect.timer),
            Disarm: lambda effect: self._disarm(effect.timer),
            Connect: lambda effect: self._quorum.connect(effect.leader, effect.first),
            Disconnect: lambda effect: self._quorum.disconnect(effect.peer),
            WriteEpochs: self._write_epochs,
            Truncate: lambda effect: self._truncate(effect.zxid),
            Configure: lambda effect: self._activate(effect.view),
            ConfigureNext: lambda effect: self._see(effect.view),
            ResetConnections: lambda _: self._election.reset(),
        }

    def carry_out(self, effects: Effects) -> None:
        """Carry out effects, in their order. Raises OSError, DataError and ListenError."""
        for effect in effects:
            kind = type(effect)
            if kind is not Observe:
                self._carriers[kind](effect)

    def stop(self) -> None:
        """Stop the timers."""
        for timer in tuple(self._timers):
            self._disarm(timer)

    # Peers.

    @property
    def _quorum(self) -> QuorumPort:
        assert self._node.quorum_port is not None  # a standalone server has no peers
        return self._node.quorum_port

    @property
    def _election(self) -> ElectionPort:
        assert self._node.election_port is not None  # a standalone server has no peers
        return self._node.election_port

    def _send(self, effect: Send) -> None:
        if isinstance(effect.message, Notification):
            self._flush_journal()  # this port writes immediately
            self._election.send(effect.peer, effect.message)
        else:
            self._quorum.send(effect.peer, effect.message)

    # The disk and the tree.

    def _persist(self, effect: Persist) -> None:
        operation = effect.operation
        if type(operation) is Append:
            self._storage.append(operation.txn)
        elif isinstance(operation, TakeSnapshot):
            self._apply_all(operation.txns)
            self._storage.take_snapshot(self._replica.tree, max(self._replica.zxid, operation.snapshot))

    def _apply(self, effect: Apply) -> None:
        self.apply(effect.zxid)

    def apply(self, zxid: int) -> None:
        """Apply the logged transactions up to this zxid that the tree lacks."""
        if zxid <= self._replica.zxid:
            return
        server = self._node.server
        queue = server.zab.queue if server.zab is not None else ()
        if zxid == self._replica.zxid + 1:
            entry = logged(server.durable, queue, zxid)
            if entry is not None:
                self._apply_one(entry)
            return
        newer = [txn for txn in server.durable.txns if self._replica.zxid < txn.zxid <= zxid]
        newer += [item.txn for item in queue if isinstance(item, Append) and self._replica.zxid < item.txn.zxid <= zxid]
        self._apply_all(tuple(newer))

    def _apply_all(self, txns: tuple[Txn, ...]) -> None:
        for txn in txns:
            if txn.zxid > self._replica.zxid:
                self._apply_one(txn)

    def _apply_one(self, txn: Txn) -> None:
        change = change_of(txn.value)
        outcome = self._replica.apply(txn.zxid, change)
        role = self._node.role
        if role is not None:
            role.applied(txn.zxid, change, outcome)
            if self._storage.is_snapshot_due:
                self._storage.snapshot(self._replica.tree, self._replica.zxid, lambda: self._replica.zxid)

    def tree_at(self, zxid: int) -> Tree:
        """Return the tree for a snapshot with this zxid: before it serves, a leader sends its whole log.

        A background snapshot for the disk must hold committed changes only, so another tree is read in that case.
        """
        if self._replica.zxid < zxid and self._node.role is None:
            if self._storage.is_writing_snapshot:
                self.reload()
            else:
                self.apply(zxid)
        return self._replica.tree

    def _write_epochs(self, effect: WriteEpochs) -> None:
        self._flush_journal()
        self._storage.write_epochs(effect.accepted, effect.current)

    def _truncate(self, zxid: int) -> None:
        self._flush_journal()
        self._storage.truncate(zxid)
        if self._replica.zxid > zxid:
            self.reload()

    def _activate(self, view: View) -> None:
        """Make a configuration the active one: in the files, for the sockets, and in `/zookeeper/config`."""
        assert self._membership is not None  # a standalone server has one configuration
        self._flush_journal()
        self._membership.activate(view)
        self._replica.write_configuration()

    def _see(self, view: View) -> None:
        assert self._membership is not None
        self._flush_journal()
        self._membership.see(view)

    def reload(self) -> None:
        """Read the tree from the disk again."""
        loaded = self._storage.load()
        self._replica.replace(loaded.tree, loaded.last_zxid)

    # Timers.

    def begin_election(self) -> None:
        """Start with the shortest time between two votes."""
        self._notification_timeout = FIRST_NOTIFICATION_TIMEOUT

    def _arm(self, timer: Timer) -> None:
        self._disarm(timer)
        seconds = FINALIZE_WAIT if timer is Timer.FINALIZE_WAIT else self._notification_timeout
        self._timers[timer] = self._loop.call_later(seconds, self._fire, timer)

    def _disarm(self, timer: Timer) -> None:
        handle = self._timers.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, timer: Timer) -> None:
        self._timers.pop(timer, None)
        if timer is Timer.NOTIFICATION_TIMEOUT:
            self._notification_timeout = next_notification_timeout(self._notification_timeout)
        self._node.submit(lambda: self._node.run(Fired(timer)))
