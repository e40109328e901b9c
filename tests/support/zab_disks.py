"""A model of Zab's disks that shares nothing with the program: servers, epochs, logs, and acknowledged writes.

A step starts an epoch with a quorum, synchronises a follower record by record, proposes, or replicates. Before 3.9.3 a
follower may write its epoch before the records (ZOOKEEPER-4643); both orders occur. A write is acknowledged as soon as
a quorum of the epoch has it. A crash is the end of a run, or a server that takes part in another epoch.

Source: Zab (DSN 2011), phases 1 to 3; written from the paper, not from `spec`.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

Txn = tuple[int, int]
"""Epoch and counter."""
Log = tuple[Txn, ...]


class ModelDisk(NamedTuple):
    """A server's disk, and the epoch with which it is being synchronised (0: none)."""

    accepted: int
    current: int
    log: Log
    syncing: int = 0


class Reign(NamedTuple):
    """An epoch: its leader, the history with which it begins, and the servers that have all of that."""

    epoch: int
    leader: int
    initial: Log
    synced: frozenset[int]


class ModelState(NamedTuple):
    """All disks, the reigns, and the acknowledged writes."""

    disks: tuple[ModelDisk, ...]
    reigns: tuple[Reign, ...] = ()
    acknowledged: frozenset[Txn] = frozenset()


def first(servers: int) -> ModelState:
    """Empty disks."""
    return ModelState((ModelDisk(0, 0, ()),) * servers)


def majority(servers: int) -> Callable[[frozenset[int]], bool]:
    """The plain majorities."""
    return lambda group: 2 * len(group) > servers


def steps(
    state: ModelState, is_quorum: Callable[[frozenset[int]], bool], epochs: int, writes: int
) -> Iterator[ModelState]:
    """Yield the next states, up to this number of epochs, and of writes in each."""
    disks = state.disks
    servers = range(len(disks))
    for size in range(1, len(disks) + 1):
        for group in map(frozenset, combinations(servers, size)):
            if is_quorum(group) and not any(is_quorum(group - {server}) for server in group):
                yield from _elections(state, group, epochs)
    for reign in state.reigns:
        leader = disks[reign.leader]
        if leader.accepted != reign.epoch:
            continue
        if is_quorum(reign.synced) and sum(txn[0] == reign.epoch for txn in leader.log) < writes:
            counter = sum(txn[0] == reign.epoch for txn in leader.log) + 1
            yield _counted(
                _changed(state, reign.leader, leader._replace(log=(*leader.log, (reign.epoch, counter)))), is_quorum
            )
        for server in servers:
            disk = disks[server]
            if server == reign.leader or disk.accepted > reign.epoch:
                continue
            if server in reign.synced and disk.accepted == reign.epoch:
                if len(disk.log) < len(leader.log):
                    log = leader.log[: len(disk.log) + 1]
                    yield _counted(_changed(state, server, disk._replace(log=log)), is_quorum)
            elif disk.syncing == reign.epoch:
                yield _counted(_synchronised(state, reign, server), is_quorum)
            else:
                shared = next(
                    (place for place, pair in enumerate(zip(disk.log, leader.log, strict=False)) if pair[0] != pair[1]),
                    min(len(disk.log), len(leader.log)),
                )
                begun = disk._replace(accepted=reign.epoch, log=disk.log[:shared], syncing=reign.epoch)
                yield _changed(state, server, begun)
                yield _changed(state, server, begun._replace(current=reign.epoch))


def _elections(state: ModelState, group: frozenset[int], epochs: int) -> Iterator[ModelState]:
    def rank(server: int) -> tuple[int, Txn]:
        disk = state.disks[server]
        return disk.current, disk.log[-1] if disk.log else (0, 0)

    epoch = max(state.disks[server].accepted for server in group) + 1
    # A server of an epoch that others began without it hears a higher number; so two epochs never have one number.
    epoch = max([epoch, *(reign.epoch + 1 for reign in state.reigns)])
    if epoch > epochs:
        return
    best = max(map(rank, group))
    for leader in group:
        # A leader without an acknowledged write is the defect itself, and loses it long before a disk is lost.
        if rank(leader) != best or not state.acknowledged <= set(state.disks[leader].log):
            continue
        disks = list(state.disks)
        for server in group:
            disks[server] = disks[server]._replace(accepted=epoch, syncing=0)
        disks[leader] = disks[leader]._replace(current=epoch)
        reign = Reign(epoch, leader, disks[leader].log, frozenset({leader}))
        yield ModelState(tuple(disks), (*state.reigns, reign), state.acknowledged)


def _changed(state: ModelState, server: int, disk: ModelDisk) -> ModelState:
    return state._replace(disks=(*state.disks[:server], disk, *state.disks[server + 1 :]))


def _synchronised(state: ModelState, reign: Reign, server: int) -> ModelState:
    """One record more of the first history, or the end of the synchronisation."""
    disk = state.disks[server]
    if len(disk.log) < len(reign.initial):
        return _changed(state, server, disk._replace(log=reign.initial[: len(disk.log) + 1]))
    ended = _changed(state, server, disk._replace(current=reign.epoch, syncing=0))
    reigns = tuple(
        other._replace(synced=other.synced | {server}) if other.epoch == reign.epoch else other
        for other in state.reigns
    )
    return ended._replace(reigns=reigns)


def _counted(state: ModelState, is_quorum: Callable[[frozenset[int]], bool]) -> ModelState:
    """Acknowledge all that a quorum of a reign has."""
    acknowledged = set(state.acknowledged)
    for reign in state.reigns:
        members = frozenset(
            server
            for server in reign.synced
            if state.disks[server].accepted == state.disks[server].current == reign.epoch
        )
        if state.disks[reign.leader].accepted != reign.epoch or not is_quorum(members):
            continue
        acknowledged.update(reign.initial)
        for txn in state.disks[reign.leader].log:
            if is_quorum(frozenset(server for server in members if txn in state.disks[server].log)):
                acknowledged.add(txn)
    return state._replace(acknowledged=frozenset(acknowledged))
