"""Disks that a server must not simply start on: lost ones, old ones, and those of another cluster.

A server that starts with such a disk under an old id has forgotten writes that it acknowledged. Quorums that meet in
that server alone then have nothing in common. A server with a new id never acknowledged anything, so an empty disk and
a disk of an earlier time are no danger under a new id. A restart of a pod deletes it, so a server whose volume does not
survive its pod, before the change or after it, restarts with an empty disk.

Sources: ZooKeeper Administrator's Guide, "Recovery" and "Things to Avoid"; `QuorumPeer.loadDataBase`,
`FastLeaderElection.totalOrderPredicate` (a higher epoch wins), `Learner.syncWithLeader` (TRUNC and SNAP).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from checker.rollout.inputs.folders import Folder
from checker.rollout.orders import RESTART, START, STOP, OrderError, ServerStep, Steps
from checker.rollout.stages import Stage
from checker.symbolic.disjoint import disjoint_quorums
from spec.quorum import Majority, Sid, View


class DiskHazard(Enum):
    """The first disk of a server, by its name on the command line."""

    EMPTY = "empty"  # a lost disk
    STALE = "stale"  # of an earlier time of this ensemble: without the latest writes
    FOREIGN = "foreign"  # of another cluster: another history, of a higher epoch

    @property
    def is_foreign(self) -> bool:
        """Whether the disk has the data of another cluster."""
        return self is DiskHazard.FOREIGN


HAZARD_WORDS = {
    DiskHazard.EMPTY: "an empty disk",
    DiskHazard.STALE: "a stale disk: one of an earlier time, without the latest writes",
    DiskHazard.FOREIGN: "a foreign disk: one of another cluster",
}
"""Each hazard in words."""

Disks = Mapping[Sid, DiskHazard]
"""The servers that start with such a disk."""


def disks_of(given: Iterable[tuple[Sid, DiskHazard]]) -> Disks:
    """The disks of a request. Raises OrderError for a server that is named twice."""
    disks: dict[Sid, DiskHazard] = {}
    for sid, hazard in given:
        if sid in disks:
            raise OrderError(f"--disk names server {sid} twice; name each server once", "disk")
        disks[sid] = hazard
    return disks


def check_disks(disks: Disks, stage: Stage, down: frozenset[Sid]) -> None:
    """Raises OrderError for a disk of a server that is unknown, or that does not start."""
    for sid in sorted(disks):
        if sid not in stage.sids and sid not in stage.old.members:
            members = ", ".join(map(str, stage.sids))
            raise OrderError(f"--disk names server {sid}, which is in neither folder; they have {members}", "disk")
        if sid not in stage.new.members:
            problem = f"server {sid} is to be removed, so nothing starts with its disk"
            raise OrderError(f"{problem}; leave out its --disk", "disk")
        if sid in down:
            problem = f"server {sid} is in --down, so nothing starts with its disk"
            raise OrderError(f"{problem}; name it in one of the two", "disk")


def harmless(stage: Stage, disks: Disks) -> bool:
    """Whether no disk matters where all quorums meet: each belongs to a new id, or to a server that never votes."""
    voters = stage.old.view.voters | stage.new.view.voters
    return all(not hazard.is_foreign and not (sid in stage.running and sid in voters) for sid, hazard in disks.items())


class RemedyKind(Enum):
    """What to do instead of a start with a disk that is a danger."""

    RETURN_LATE = "return late"  # start it with an empty disk once all the others serve and have every committed write
    NEW_ID = "new id"  # remove its id, and then add a server with a new id and an empty disk
    ERASE = "erase"  # it has a new id: erase its disk, and start it with an empty one


@dataclass(frozen=True)
class DiskRemedy:
    """A safe way for some servers; `proved`: the quorums that it needs always meet."""

    kind: RemedyKind
    sids: tuple[Sid, ...]
    proved: bool


def remedies(stage: Stage, disks: Disks, down: frozenset[Sid], *, quorums_meet: bool) -> tuple[DiskRemedy, ...]:
    """The safe ways for the servers with such disks. None without a quorum of the others, which has all writes.

    - A server that returns when all other voters have every committed write is in no quorum without one of these.
    - A server whose id is removed is in no quorum, and a new id never acknowledged anything. Compared are the
      quorums before the removal, after it, and with one new id. Only majorities are compared.

    Raises checker.symbolic.disjoint.UndecidedError.
    """
    foreign = tuple(sorted(sid for sid, hazard in disks.items() if hazard.is_foreign and sid not in stage.running))
    remedies_found = [DiskRemedy(RemedyKind.ERASE, foreign, proved=quorums_meet)] if foreign else []
    lost = tuple(sorted(sid for sid in disks if sid in stage.running and sid in stage.old.view.voters))
    intact = stage.old.view.voters & stage.running - frozenset(lost) - down
    if not lost or not stage.old.view.contains_quorum(intact):
        return tuple(remedies_found)
    remedies_found.append(DiskRemedy(RemedyKind.RETURN_LATE, lost, proved=quorums_meet))
    if isinstance(stage.old.view.quorums, Majority) and len(intact) > 1:
        new = max(stage.old.members | stage.new.members) + 1
        views = [stage.old.view]
        for sid in lost:
            views.append(_majority(views[-1].voters - {sid}))
            views.append(_majority(views[-1].voters | {new + len(views)}))
        proved = all(disjoint_quorums(a, b) is None for a, b in pairwise(views))
        remedies_found.append(DiskRemedy(RemedyKind.NEW_ID, lost, proved))
    return tuple(remedies_found)


def _majority(voters: frozenset[Sid]) -> View:
    return View(Majority(voters))


def with_disks(stage: Stage, steps: Steps, disks: Disks) -> Steps:
    """The steps in which every server with such a disk starts; first, and all together, those without another step.

    One with a foreign disk has not run before. It cannot follow a leader of a lower epoch, and others may wait for it
    in vain. So no step waits where there is such a disk: else a run would end before anything happens.
    """
    movers = {step.sid for step in steps}
    alone = [sid for sid in sorted(disks) if sid not in movers]
    first = [ServerStep(STOP, sid, wait=False) for sid in alone if sid in stage.running]
    first += [ServerStep(START, sid, wait=False) for sid in alone]
    patient = not any(hazard.is_foreign for hazard in disks.values())
    foreign = {sid for sid, hazard in disks.items() if hazard.is_foreign and sid in stage.running}
    merged = []
    for step in (*first, *steps):
        if step.sid in foreign and step.action == STOP:
            continue
        again = step.sid in foreign and step.action == RESTART
        merged.append(ServerStep(START if again else step.action, step.sid, step.wait and patient))
    return tuple(merged)


def with_lost_volumes(old: Folder, new: Folder, disks: Disks, spared: Collection[Sid] = ()) -> Disks:
    """The given disks, and an empty one for each server to restart whose volume is lost.

    `spared` are servers that are not restarted.
    """
    lost = {sid for state in (old, new) for sid, volume in state.volumes.items() if not volume.survives}
    restarted = (old.servers.keys() & new.servers.keys() & lost).difference(spared)
    return {**dict.fromkeys(sorted(restarted), DiskHazard.EMPTY), **disks}
