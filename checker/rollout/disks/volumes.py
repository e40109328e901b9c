"""The disks with which servers restart because their volumes are lost with their pods.

A restart of a pod deletes it. So a server restarts with an empty disk where its volume does not survive the pod, before
the change or after it. A new server starts with an empty disk anyway, and a server that goes starts no more.
"""

from __future__ import annotations

from collections.abc import Collection

from checker.rollout.disks.hazards import DiskHazard, Disks
from checker.rollout.inputs.folders import Folder
from spec.quorum import Sid


def with_lost_volumes(old: Folder, new: Folder, disks: Disks, spared: Collection[Sid] = ()) -> Disks:
    """The given disks, and an empty one for each server to restart whose volume is lost.

    `spared` are servers that are not restarted.
    """
    lost = {sid for state in (old, new) for sid, volume in state.volumes.items() if not volume.survives}
    restarted = (old.servers.keys() & new.servers.keys() & lost).difference(spared)
    return {**dict.fromkeys(sorted(restarted), DiskHazard.EMPTY), **disks}
