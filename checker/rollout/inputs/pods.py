"""The host names of the pods of a StatefulSet; a part that an input does not state is left open.

Pod N of a StatefulSet has the name NAME-N, and the host name NAME-N.SERVICE.NAMESPACE.svc.cluster.local; some charts
write the first parts only. A values file states neither the release nor the namespace. Then the words RELEASE and
NAMESPACE stand for them: in capitals, so that no real name is equal to them. If the other input of a roll-out states
the names, they are taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

RELEASE, NAMESPACE = "RELEASE", "NAMESPACE"
OPEN = (RELEASE, NAMESPACE)
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
        return f"{self.stateful_set}-{ordinal}.{self.service}.{self.namespace}.{self.domain}".rstrip(".")

    @property
    def is_open(self) -> bool:
        """Whether a part of the names is not known."""
        return any(word in self.host(0) for word in OPEN)

    def names_in(self, hosts: Mapping[int, str]) -> dict[str, str] | None:
        """What RELEASE and NAMESPACE stand for, if these are the hosts of the pods with these ordinals.

        None without any host, and if one does not have the form of these names.
        """
        found: list[dict[str, str]] = []
        for ordinal, host in hosts.items():
            match = re.fullmatch(self._pattern(ordinal), host)
            if match is None:
                return None
            found.append(match.groupdict())
        return found[0] if found and all(each == found[0] for each in found) else None

    def _pattern(self, ordinal: int) -> str:
        """A regular expression for the host of a pod, with a group for each word that is open."""
        parts = re.split(f"({'|'.join(OPEN)})", self.host(ordinal))
        return "".join(
            re.escape(part) if part not in OPEN else f"(?P={part})" if part in parts[:n] else f"(?P<{part}>{NAME})"
            for n, part in enumerate(parts)
        )
