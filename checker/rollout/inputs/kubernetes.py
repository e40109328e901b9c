"""The parts of Kubernetes objects: variables, the way of working of a StatefulSet, ids of servers and of pods.

A pod without a readinessProbe is ready as soon as its container runs. A server answers `ruok` and opens its client
port while it still looks for a leader. The answers to `srvr`, `mntr` and `stat` have a mode only when it serves. So a
probe is SERVING if it looks for the mode, or searches one of these answers. Every other one is ALIVE.

Sources: Kubernetes, "StatefulSets", "Configure Liveness, Readiness and Startup Probes"; ZooKeeper's Administrator's
Guide, "The Four Letter Words"; `zkServer.sh`, `status`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple, TypeVar

from checker.printable import nearest
from checker.rollout.inputs.documents import YamlValue
from checker.rollout.inputs.working import PodManagement, Readiness, UpdateStrategy, WayOfWorking
from spec.quorum import Sid

SERVER = re.compile(r"^[ \t\f]*server\.(\d{1,9})[ \t\f]*[=: \t]", re.MULTILINE)
SERVES = re.compile(r"\bMode\b|zkServer\.sh\s+status|\b(?:srvr|mntr|stat)\b.*grep", re.DOTALL)
"""A command that looks for what only a server that serves answers."""
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
    names = {str(each.value): each for each in kind}
    if value.text not in names:
        raise value.error(f"{value.text[:40]!r} is unknown", nearest(value.text, names))
    return names[value.text]


def sids_in(text: str) -> frozenset[Sid]:
    """The ids of the `server.N` lines of a zoo.cfg."""
    return frozenset(int(sid) for sid in SERVER.findall(text))
