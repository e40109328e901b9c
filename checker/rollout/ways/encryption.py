"""TLS between servers along a roll-out: which servers do not connect with each other while some have the new file.

Rules of this module:

- A server connects by TLS if `sslQuorum` is true. It accepts TLS if `sslQuorum` or `portUnification` is true, and plain
  connections unless `sslQuorum` is true without `portUnification`.
- Two servers talk if each can connect to the other: an election needs one direction, and following the other one.
- Certificates are not read, so this finds servers that cannot talk, and never shows that they can.

Source: `QuorumCnxManager.initiateConnection`, `Learner.createSocket`, `Leader.createServerSocket`,
`UnifiedServerSocket`; ZooKeeper Administrator's Guide, "Upgrading existing nonTLS cluster with no downtime".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from checker.rollout.differences import settings
from checker.rollout.inputs.folders import ServerFiles
from spec.quorum import Sid


@dataclass(frozen=True)
class Encryption:
    """The two keys of one file."""

    ssl_quorum: bool
    port_unification: bool

    def reaches(self, other: Encryption) -> bool:
        """Whether a server with this file can connect to one with the other file."""
        if self.ssl_quorum:
            return other.ssl_quorum or other.port_unification
        return other.port_unification or not other.ssl_quorum

    def talks_with(self, other: Encryption) -> bool:
        """Whether each can connect to the other."""
        return self.reaches(other) and other.reaches(self)


def encryption_of(given: ServerFiles) -> Encryption:
    """The keys of a server's files; false is the default of both."""
    found = settings(given)
    return Encryption(*(found.get(key, "").lower() == "true" for key in ("sslQuorum", "portUnification")))


def strangers(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> tuple[tuple[Sid, Sid], ...]:
    """The pairs of servers that do not talk in a state of the roll-out: the smaller id first, each pair once."""
    files = [(sid, encryption_of(given)) for state in (old, new) for sid, given in state.items()]
    found = {
        (one, other) for one, mine in files for other, theirs in files if one < other and not mine.talks_with(theirs)
    }
    return tuple(sorted(found))
