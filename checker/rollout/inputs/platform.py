"""The platform of the servers as far as an input states it: its way of working, the names of pods, and their volumes.

The way of working is how a platform starts and restarts servers. Its values are those of Kubernetes:
`podManagementPolicy`, `updateStrategy` and the `readinessProbe` of a StatefulSet. Operators for ZooKeeper do a part of
the work themselves, and `operator` names such an operator.

Pod N of a StatefulSet has the name NAME-N, and the host name NAME-N.SERVICE.NAMESPACE.svc.cluster.local. Rendered
manifests often state no namespace. Then the word NAMESPACE stands for it: in capitals, so that no real name is equal to
it. If the other input of a roll-out states the name, it is taken from there.

Sources: Kubernetes, "StatefulSets": Pod Management Policies, Update Strategies, Partitions; Strimzi, `ZooKeeperRoller`
and `ZookeeperScaler`; pravega/zookeeper-operator, `MakeStatefulSet`, `zookeeperStart.sh`, `zookeeperReady.sh`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from spec.quorum import Sid

NAMESPACE = "NAMESPACE"
NAME = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"


class PodManagement(Enum):
    """How a StatefulSet starts pods and removes them: in order, or all together."""

    ORDERED_READY = "OrderedReady"
    PARALLEL = "Parallel"


class UpdateStrategy(Enum):
    """What happens to running pods if the template of a StatefulSet changes."""

    ROLLING_UPDATE = "RollingUpdate"
    ON_DELETE = "OnDelete"


class Readiness(Enum):
    """When a pod counts as ready, by the readinessProbe of its container of ZooKeeper."""

    SERVING = "serving"
    ALIVE = "alive"
    NONE = "none"


class Operator(Enum):
    """A program that restarts servers, and changes the membership, in its own way."""

    STRIMZI = "Strimzi"
    PRAVEGA = "pravega zookeeper-operator"


WORDS: Mapping[Enum, str] = {
    PodManagement.ORDERED_READY: "new pods start one by one, each when the one before is ready",
    PodManagement.PARALLEL: "all new pods start at once",
    UpdateStrategy.ROLLING_UPDATE: (
        "running pods are restarted one by one, the highest ordinal first, each when the one before is ready"
    ),
    UpdateStrategy.ON_DELETE: "a running pod has its new configuration only after somebody has deleted it",
    Readiness.SERVING: "a pod is ready when its server serves (its readinessProbe asks for that)",
    Readiness.ALIVE: (
        "a pod is ready before its server serves (its readinessProbe asks for nothing that only a serving server "
        "answers, as far as the input shows)"
    ),
    Readiness.NONE: "a pod is ready as soon as its container runs (it has no readinessProbe)",
    Operator.STRIMZI: (
        "the Strimzi operator restarts the pods one by one, the leader last, and changes the membership by `reconfig`, "
        "one server after the other"
    ),
    Operator.PRAVEGA: (
        "a new pod adds itself as an observer by `reconfig`, and becomes a voter when it is ready; the StatefulSet is "
        "OrderedReady"
    ),
}


class MemberList(NamedTuple):
    """The place of the servers in the objects of a StatefulSet: a ConfigMap with its zoo.cfg, or a variable.

    `form` is that of a server in the variable of `container`, such as `{server}::{sid}`; empty: it is their number.
    With neither a ConfigMap nor a container no command can change the servers.
    """

    variable: str = ""
    form: str = ""
    separator: str = " "
    container: str = ""
    config_map: str = ""

    def value(self, lines: Mapping[Sid, str]) -> str:
        """The value for some `server.N` lines; empty if it has no ids, and these are not 1 to N."""
        if "{sid}" not in self.form and sorted(lines) != list(range(1, len(lines) + 1)):
            return ""
        bare = "server." not in self.form  # the image adds the client port
        servers = {sid: line.partition(";")[0] if bare else line for sid, line in sorted(lines.items())}
        entries = (self.form.format(sid=sid, server=server) for sid, server in servers.items())
        return self.separator.join(entries) if self.form else str(len(lines))


NOT_LISTED = MemberList()


@dataclass(frozen=True)
class WayOfWorking:
    """The way of working; a value is None if the input does not state it.

    `assumed` are the keys whose value is the default of the platform. A rolling update restarts the pods from the
    ordinal `partition` on. `ordinals` are the ordinals of the pods by their servers, and `listing` is the place where
    the objects have the list of servers.
    """

    pods: PodManagement | None = None
    updates: UpdateStrategy | None = None
    partition: int = 0
    operator: Operator | None = None
    assumed: tuple[str, ...] = ()
    readiness: Readiness | None = None
    stateful_set: str = ""
    namespace: str = ""
    ordinals: Mapping[Sid, int] = field(default_factory=dict)
    listing: MemberList = NOT_LISTED

    @property
    def restarted(self) -> tuple[Sid, ...]:
        """The servers whose pods the controller restarts if the template changes, in its order."""
        if self.updates is not UpdateStrategy.ROLLING_UPDATE:
            return ()
        descending = sorted(self.ordinals, key=lambda sid: -self.ordinals[sid])
        return tuple(sid for sid in descending if self.ordinals[sid] >= self.partition)

    @property
    def by_hand(self) -> tuple[Sid, ...]:
        """The servers whose pods get a new template only if a person acts, ascending.

        With OnDelete a person deletes the pod, and below the partition a person lowers the partition: a pod that is
        deleted there comes back with the old template.
        """
        return tuple(sorted(self.ordinals.keys() - set(self.restarted)))

    @property
    def partition_words(self) -> str:
        """What a rolling update does not restart, in words; empty if it restarts every pod."""
        if not self.partition or self.updates is not UpdateStrategy.ROLLING_UPDATE:
            return ""
        ids = f", those of {', '.join(map(str, self.by_hand))}" if self.by_hand else ""
        return (
            f"pods below ordinal {self.partition}{ids} keep the old configuration, even if they are deleted, until the "
            f"partition is lowered (partition {self.partition})"
        )

    @property
    def sentence(self) -> str:
        """The way of working in words; empty if nothing is known of it."""
        parts = [WORDS[self.operator]] if self.operator is not None else list(self._of_stateful_set())
        return "way of working: " + "; ".join(parts) if parts else ""

    def _of_stateful_set(self) -> Iterator[str]:
        for key, value in (("podManagementPolicy", self.pods), ("updateStrategy", self.updates)):
            if value is not None:
                yield f"{WORDS[value]} ({key} {value.value}{', the default' if key in self.assumed else ''})"
        yield from filter(None, (self.partition_words, self.readiness and WORDS[self.readiness]))


@dataclass(frozen=True)
class PodHosts:
    """The host names of pods: those of a StatefulSet with a headless service."""

    stateful_set: str
    service: str
    namespace: str = NAMESPACE
    domain: str = "svc.cluster.local"

    def host(self, ordinal: int) -> str:
        """The host name of a pod."""
        return f"{self.stateful_set}-{ordinal}.{self.service}.{self.namespace}.{self.domain}"

    @property
    def is_open(self) -> bool:
        """Whether the namespace is not known."""
        return self.namespace == NAMESPACE

    def namespace_in(self, hosts: Mapping[int, str]) -> str | None:
        """The name for NAMESPACE, if these are the hosts of the pods with these ordinals.

        None without any host, and if one does not have the form of these names.
        """
        names: set[str | None] = set()
        for ordinal, host in hosts.items():
            before, _, after = self.host(ordinal).partition(NAMESPACE)
            match = re.fullmatch(f"{re.escape(before)}({NAME}){re.escape(after)}", host, re.IGNORECASE)
            names.add(match[1] if match else None)
        return names.pop() if len(names) == 1 else None


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
        names = f"server{'s' * (len(sids) > 1)} {', '.join(map(str, sids))}"
        yield f"{path}: {names}: {sentence}; every restart is a start with an empty disk under an old id"
