"""The volume with the data of a server: whether it survives the pod.

A pod that is restarted is deleted and made again. What lies in an `emptyDir`, or in the container itself, is lost then.
The server starts with an empty disk under its old id. Rules of this module:

- The directories are `dataDir` and `dataLogDir`. The volume of a directory is the mount with the longest path that
  contains it. Data in a directory without a mount lies in the container.
- Claims survive a pod, and so do volumes of a node or of the network. A volume without a source is an `emptyDir`.
- A default of an operator is used where a key is missing, and the sentence says so.

Sources: Kubernetes, "Volumes" (`emptyDir`), "Ephemeral Volumes", "StatefulSets" (Stable Storage); Strimzi,
`SingleVolumeStorage`; pravega/zookeeper-operator, `withDefaults`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from checker.rollout.inputs.documents import YamlValue
from spec.config import Config
from spec.quorum import Sid

LOST_WITH_THE_POD = frozenset(
    {"emptyDir", "ephemeral", "csi", "gitRepo", "configMap", "secret", "downwardAPI", "projected"}
)
"""The sources of volumes that are made for one pod."""
NOT_SOURCES = frozenset({"name"})


@dataclass(frozen=True)
class DataVolume:
    """The volume with the data of a server, and where that is stated. `survives`: a restarted pod finds it again."""

    survives: bool
    because: str

    @property
    def sentence(self) -> str:
        """The volume in words."""
        end = "survives its pod" if self.survives else "is lost with its pod"
        return f"the data of a server {end} ({self.because})"


def lost_with_pods(path: str, volumes: Mapping[Sid, DataVolume]) -> Iterator[str]:
    """A warning for each volume of an input that is lost with its pod, with the servers that have it."""
    lost: dict[str, list[Sid]] = {}
    for sid, volume in sorted(volumes.items()):
        if not volume.survives:
            lost.setdefault(volume.sentence, []).append(sid)
    for sentence, sids in lost.items():
        named = f"server{'s' * (len(sids) > 1)} {', '.join(map(str, sids))}"
        yield f"{path}: {named}: {sentence}; every restart is a start with an empty disk under an old id"


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
    directories = dict.fromkeys(each for each in (config.data_dir, config.data_log_dir) if each)
    sources = {
        volume.word("name"): next((key for key in volume.keys if key not in NOT_SOURCES), "emptyDir")
        for volume in pod.listed("volumes")
    }
    sources |= {claim.word("metadata.name"): "volumeClaimTemplates" for claim in claims}
    found = [_volume(PurePosixPath(directory), container.listed("volumeMounts"), sources) for directory in directories]
    return min(found, key=lambda each: each.survives, default=None)


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
