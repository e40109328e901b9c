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

The resources of operators are read here, too: the `Kafka` of Strimzi with its ZooKeeper, and pravega's
`ZookeeperCluster`. Both operators write the zoo.cfg themselves, with `reconfigEnabled=true`, and change the membership
by `reconfig`. Their text is repeated here, with the values of the resource. A key that the operator sets is not taken
from the resource. Rules:

- The id of a pod is its ordinal plus one (pravega: plus OFFSET).
- All servers are participants: an observer is one only until its pod is ready.

Sources: Strimzi, `zookeeper_config_generator.sh`, `zookeeper_run.sh`, `KafkaResources`; pravega/zookeeper-operator,
`zookeepercluster_types.go` (`withDefaults`), `generators.go` (`makeZkConfigString`), `zookeeperStart.sh`.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import PurePosixPath
from typing import NamedTuple, TypeVar

from checker.printable import nearest
from checker.rollout.inputs.documents import YamlValue
from checker.rollout.inputs.folders import Folder, ServerText, state_of, with_volumes
from checker.rollout.inputs.platform import (
    NAMESPACE,
    DataVolume,
    Operator,
    PodHosts,
    PodManagement,
    Readiness,
    UpdateStrategy,
    WayOfWorking,
)
from spec.config import Config
from spec.quorum import Sid
from spec.text import required_integer

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
    stated = {"podManagementPolicy": pods, "updateStrategy": updates}
    return WayOfWorking(
        PodManagement.ORDERED_READY if pods is None else _named(pods, PodManagement),
        UpdateStrategy.ROLLING_UPDATE if updates is None else _named(updates, UpdateStrategy),
        0 if partition is None else partition.number(),
        assumed=tuple(key for key, value in stated.items() if value is None),
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
    value = resource.get(key)
    if value is None:
        return DataVolume(default != "ephemeral", f"{key} is {default}, the default") if default else None
    return DataVolume(value.text.casefold() != "ephemeral", f"{value.path} is {value.text}")


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


MOST = 255
STRIMZI = (
    "dataDir=/var/lib/zookeeper/data 4lw.commands.whitelist=* standaloneEnabled=false reconfigEnabled=true "
    "secureClientPort=2181 sslQuorum=true"
)
STRIMZI_DEFAULTS = {"tickTime": "2000", "initLimit": "5", "syncLimit": "2", "autopurge.purgeInterval": "1"}
"""The keys with a default (`ZookeeperConfiguration`)."""
PRAVEGA_WORDS = "4lw.commands.whitelist=cons, envi, conf, crst, srvr, stat, mntr, ruok"
PRAVEGA = "dataDir=/data standaloneEnabled=false reconfigEnabled=true skipACL=yes"
PRAVEGA_DEFAULTS = (
    "initLimit=10 tickTime=2000 syncLimit=2 globalOutstandingLimit=1000 preAllocSize=65536 snapCount=10000 "
    "commitLogCount=500 snapSizeLimitInKb=4194304 maxCnxns=0 maxClientCnxns=60 minSessionTimeout= maxSessionTimeout= "
    "quorumListenOnAllIPs=false autoPurgeSnapRetainCount=3 autoPurgePurgeInterval=1"
)
PRAVEGA_VALUES = dict(pair.split("=") for pair in PRAVEGA_DEFAULTS.split())
"""The keys of `spec.config` with their defaults (`ZookeeperConfig`); the session time-outs depend on tickTime."""
TICKS = {"minSessionTimeout": 2, "maxSessionTimeout": 20}
PORTS = {"client": 2181, "quorum": 2888, "leader-election": 3888}


def read_kafka(resource: YamlValue, path: str) -> Folder:
    """The state of the ZooKeeper that Strimzi runs for a Kafka. Raises ConfigError."""
    name = resource.required("metadata.name", "write the name of the resource").text
    zookeeper = resource.get("spec.zookeeper")
    if zookeeper is None:
        problem = f"the Kafka {name} has no spec.zookeeper: it runs without ZooKeeper (KRaft)"
        raise resource.error(problem, "name a resource with spec.zookeeper.replicas")
    replicas = zookeeper.required("replicas", "write replicas: 3")
    namespace = resource.word("metadata.namespace", NAMESPACE)
    hosts = PodHosts(f"{name}-zookeeper", f"{name}-zookeeper-nodes", namespace, "svc")
    keys = STRIMZI_DEFAULTS | zookeeper.texts("config")
    fixed = {line.partition("=")[0] for line in STRIMZI.split()}
    lines = [*STRIMZI.split(), *(f"{key}={value}" for key, value in keys.items() if key not in fixed)]
    sids = _sids(replicas)
    lines += [f"server.{sid}={hosts.host(sid - 1)}:2888:3888:participant;127.0.0.1:12181" for sid in sids]
    how = f"spec.zookeeper.replicas is {len(sids)}; the id of a pod is its ordinal plus one"
    state = _state(path, f"Kafka {name} (Strimzi) in {resource.file}: {how}", lines, sids, Operator.STRIMZI, hosts)
    return with_volumes(state, dict.fromkeys(state.servers, typed_volume(zookeeper, "storage.type")))


def read_zookeeper_cluster(resource: YamlValue, path: str) -> Folder:
    """The state of a ZookeeperCluster of pravega's operator. Raises ConfigError."""
    name = resource.required("metadata.name", "write the name of the resource").text
    replicas = resource.get("spec.replicas")
    pod = resource.get("spec.pod")
    offsets = (variable.place for variable in (variables(pod) if pod else ()) if variable.name == "OFFSET")
    first = next((place.number(quoted=True) for place in offsets), 1)
    sids = range(first, first + 3) if replicas is None else _sids(replicas, first)
    domain = resource.word("spec.kubernetesClusterDomain", "cluster.local")
    hosts = PodHosts(name, f"{name}-headless", resource.word("metadata.namespace", NAMESPACE), f"svc.{domain}")
    ports = {key: _port(resource, key, default) for key, default in PORTS.items()}
    lines = [PRAVEGA_WORDS, *PRAVEGA.split(), *_pravega_keys(resource)]
    address = f"{ports['quorum']}:{ports['leader-election']}:participant;{ports['client']}"
    lines += [f"server.{sid}={hosts.host(sid - first)}:{address}" for sid in sids]
    count = "replicas is not in it, and the operator's default is 3" if replicas is None else f"replicas is {len(sids)}"
    how = f"{count}; the id of a pod is its ordinal plus {first}"
    state = _state(path, f"ZookeeperCluster {name} in {resource.file}: {how}", lines, sids, Operator.PRAVEGA, hosts)
    return with_volumes(state, dict.fromkeys(state.servers, typed_volume(resource, "spec.storageType", "persistence")))


def _port(resource: YamlValue, name: str, default: int) -> int:
    ports = (port.get("containerPort") for port in resource.listed("spec.ports") if port.word("name") == name)
    return next((port.number() for port in ports if port is not None), default)


def _pravega_keys(resource: YamlValue) -> Iterator[str]:
    """The lines for `spec.config`; a value of 0 means the default, as in Go."""
    stated = {key: resource.word(f"spec.config.{key}") for key in PRAVEGA_VALUES}
    values = {key: value if stated[key] in ("", "0") else stated[key] for key, value in PRAVEGA_VALUES.items()}
    ticks = resource.get("spec.config.tickTime")
    tick = ticks.number() if ticks is not None and ticks.number() else required_integer(PRAVEGA_VALUES["tickTime"])
    for key, value in values.items():
        name = re.sub("^autoPurge(.)", lambda match: f"autopurge.{match[1].lower()}", key)
        yield f"{name}={value or tick * TICKS[key]}"
    for key, value in resource.texts("spec.config.additionalConfig").items():
        yield f"{key}={value}"


def _sids(given: YamlValue, first: int = 1) -> range:
    count = given.number()
    if not 1 <= count <= MOST:
        raise given.error(f"{count} servers", f"write a number from 1 to {MOST}")
    return range(first, first + count)


def _state(path: str, taken: str, lines: list[str], sids: range, operator: Operator, hosts: PodHosts) -> Folder:
    text = "\n".join(lines) + "\n"
    texts = [ServerText(sid, path, text, written=False) for sid in sids]
    return state_of(path, texts, [taken], working=WayOfWorking(operator=operator), hosts=hosts)
