"""The host names of the pods of a StatefulSet; a namespace that an input does not state is left open.

Pod N of a StatefulSet has the name NAME-N, and the host name NAME-N.SERVICE.NAMESPACE.svc.cluster.local. Rendered
manifests often state no namespace. Then the word NAMESPACE stands for it: in capitals, so that no real name is equal to
it. If the other input of a roll-out states the name, it is taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NAMESPACE = "NAMESPACE"
NAME = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"


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
        """What NAMESPACE stands for, if these are the hosts of the pods with these ordinals.

        None without any host, and if one does not have the form of these names.
        """
        names: set[str | None] = set()
        for ordinal, host in hosts.items():
            before, _, after = self.host(ordinal).partition(NAMESPACE)
            match = re.fullmatch(f"{re.escape(before)}({NAME}){re.escape(after)}", host, re.IGNORECASE)
            names.add(match[1] if match else None)
        return names.pop() if len(names) == 1 else None
