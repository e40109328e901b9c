"""The parts of Kubernetes objects: variables, the way of working of a StatefulSet, and the volume with the data.

A pod without a readinessProbe is ready as soon as its container runs. A server answers `ruok` and opens its client
port while it still looks for a leader. The answers to `srvr`, `mntr` and `stat` have a mode only when it serves. So a
probe is SERVING if it looks for the mode, or searches one of these answers. Every other one is ALIVE.

A pod that is restarted is deleted and made again. What lies in an `emptyDir`, or in the container itself, is lost then.
The server starts with an empty disk under its old id. The directories are `dataDir` and `dataLogDir`. The volume of a
directory is the mount with the longest path that contains it. Claims survive a pod, and so do volumes of a node or of
the network. A volume without a source is an `emptyDir`.

Sources: Kubernetes, "StatefulSets", "Configure Liveness, Readiness and Startup Probes", "Volumes" (`emptyDir`),
"Ephemeral Volumes"; ZooKeeper's Administrator's Guide, "The Four Letter Words"; `zkServer.sh`, `status`; Strimzi,
`SingleVolumeStorage`; pravega/zookeeper-operator, `withDefaults`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import PurePosixPath
from typing import NamedTuple, TypeVar

from checker.printable import nearest
from checker.rollout.inputs.documents import YamlValue
from checker.rollout.inputs.working import DataVolume, PodManagement, Readiness, UpdateStrategy, WayOfWorking
from spec.config import Config
from spec.quorum import Sid

SERVES = re.compile(r"\bMode\b|zkServer\.sh\s+status|\b(?:srvr|mntr|stat)\b.*grep", re.DOTALL)
"""A command that looks for what only a server that serves answers."""
LOST_WITH_THE_POD = frozenset(
    {"emptyDir", "ephemeral", "csi", "gitRepo", "configMap", "secret", "downwardAPI", "projected"}
)
"""The sources of volumes that are made for one pod."""
Named = TypeVar("Named", bound=Enum)


class Variable(NamedTuple):
    """A variable of a container with its value in the file; None if it comes from elsewhere."""

    name: str
    value: str
    place: YamlValue


def variables(container: YamlValue) -> Iterator[Variable]:
    """The variables of a container (`env`) that have a value in the file itself."""
    for variable in container.listed("env"):
        if (name := variable.word("name")) and (value := variable.get("value")) is not None:
            yield Variable(name, value.text, value)


def way_of_working(stateful_set: YamlValue, container: YamlValue, ordinals: Mapping[Sid, int]) -> WayOfWorking:
    """The way of working of a StatefulSet with this container of ZooKeeper, and these pods. Raises ConfigError."""
    pods, updates = stateful_set.get("spec.podManagementPolicy"), stateful_set.get("spec.updateStrategy.type")
    partition = stateful_set.get("spec.updateStrategy.rollingUpdate.partition")
    given = {"podManagementPolicy": pods, "updateStrategy": updates}
    return WayOfWorking(
        PodManagement.ORDERED_READY if pods is None else _named(pods, PodManagement),
        UpdateStrategy.ROLLING_UPDATE if updates is None else _named(updates, UpdateStrategy),
        0 if partition is None else partition.number(),
        assumed=tuple(key for key, value in given.items() if value is None),
        readiness=_readiness(container.get("readinessProbe")),
        stateful_set=stateful_set.word("metadata.name"),
        namespace=stateful_set.word("metadata.namespace"),
        ordinals=ordinals,
    )


def _readiness(probe: YamlValue | None) -> Readiness:
    if probe is None:
        return Readiness.NONE
    command = " ".join(word.text for word in probe.listed("exec.command"))
    return Readiness.SERVING if SERVES.search(command) and "ruok" not in command else Readiness.ALIVE


def _named(value: YamlValue, kind: type[Named]) -> Named:
    names = {str(member.value): member for member in kind}
    if value.text not in names:
        raise value.error(f"{value.text[:40]!r} is unknown", nearest(value.text, names))
    return names[value.text]


def typed_volume(resource: YamlValue, key: str, default: str = "") -> DataVolume | None:
    """The volume by the type of a storage (`ephemeral`); None if neither the resource nor a default states it."""
    given = resource.get(key)
    if given is None:
        return DataVolume(default != "ephemeral", f"{key} is {default}, the default") if default else None
    return DataVolume(given.text.casefold() != "ephemeral", f"{given.path} is {given.text}")


def mounted_volume(pod: YamlValue, container: YamlValue, claims: list[YamlValue], config: Config) -> DataVolume | None:
    """The volume of a pod with the data of a server; None if its zoo.cfg names no directory. Raises ConfigError.

    `claims` are the templates of a StatefulSet. Of two volumes it is the one that does not survive.
    """
    directories = dict.fromkeys(path for path in (config.data_dir, config.data_log_dir) if path)
    sources = {
        volume.word("name"): next((key for key in volume.keys if key != "name"), "emptyDir")
        for volume in pod.listed("volumes")
    }
    sources |= {claim.word("metadata.name"): "volumeClaimTemplates" for claim in claims}
    volumes = (_volume(PurePosixPath(path), container.listed("volumeMounts"), sources) for path in directories)
    return min(volumes, key=lambda volume: volume.survives, default=None)


def _volume(directory: PurePosixPath, mounts: list[YamlValue], sources: Mapping[str, str]) -> DataVolume:
    """The volume with a directory. Raises ConfigError for a mount of an unknown volume."""
    places = [(PurePosixPath(place), mount) for mount in mounts if (place := mount.word("mountPath"))]
    over = [(place, mount) for place, mount in places if directory.is_relative_to(place)]
    if not over:
        return DataVolume(survives=False, because=f"no volume is mounted at {directory}")
    _, mount = max(over, key=lambda pair: len(pair[0].parts))
    name = mount.word("name")
    if name not in sources:
        problem = f"the volume {name} is mounted at {directory}, and it is not in the input"
        raise mount.error(problem, "add it to volumes or to volumeClaimTemplates")
    return DataVolume(sources[name] not in LOST_WITH_THE_POD, f"{directory} is in the volume {name}: {sources[name]}")
