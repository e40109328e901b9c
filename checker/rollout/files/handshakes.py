"""TLS and SASL between servers along a roll-out: which servers refuse each other while some have the new file.

Rules of this module:

- A server connects by TLS if `sslQuorum` is true. It accepts TLS if `sslQuorum` or `portUnification` is true, and plain
  connections unless `sslQuorum` is true without `portUnification`.
- A server that connects proves who it is if `quorum.auth.learnerRequireSasl` is true, which needs a server with
  `quorum.auth.enableSasl`. With `quorum.auth.serverRequireSasl` a server refuses every connection without such a proof.
- Two servers talk if each can connect to the other: an election needs one direction, and following the other one.
- Certificates and credentials are not read. So this finds servers that cannot talk, and never shows that they can.

Source: `QuorumCnxManager.initiateConnection`, `Learner.createSocket`, `Leader.createServerSocket`,
`UnifiedServerSocket`, `SaslQuorumAuthServer.authenticate`, `SaslQuorumAuthLearner.authenticate`; ZooKeeper
Administrator's Guide, "Upgrading existing nonTLS cluster with no downtime".
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

from checker.rollout.files.differences import states
from checker.rollout.inputs.folders import ServerFiles, settings
from spec.quorum import Sid

KEYS = (
    "sslQuorum",
    "portUnification",
    "quorum.auth.enableSasl",
    "quorum.auth.learnerRequireSasl",
    "quorum.auth.serverRequireSasl",
)


class Handshake(NamedTuple):
    """The values of `KEYS` in one file: which connections a server makes and accepts; false is the default of all."""

    ssl_quorum: bool = False
    port_unification: bool = False
    knows_sasl: bool = False
    proves_itself: bool = False
    demands_proof: bool = False

    def reaches(self, other: Handshake) -> bool:
        """Whether a server with this file can connect to one with the other file."""
        proved = other.knows_sasl if self.proves_itself else not other.demands_proof
        return proved and (other.port_unification or self.ssl_quorum == other.ssl_quorum)

    def talks_with(self, other: Handshake) -> bool:
        """Whether each can connect to the other."""
        return self.reaches(other) and other.reaches(self)


def _handshake_of(given: ServerFiles) -> Handshake:
    values = settings(given)
    return Handshake(*(values.get(key, "").lower() == "true" for key in KEYS))


def strangers(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> tuple[tuple[Sid, Sid], ...]:
    """The pairs of servers that do not talk in a state of the roll-out: the smaller id first, each pair once.

    A file whose input does not state the keys makes no pair.
    """
    files = [
        (sid, _handshake_of(given))
        for state in (old, new)
        for sid, given in state.items()
        if all(states(given, key) for key in KEYS)
    ]
    kinds = {handshake for _, handshake in files}
    if all(one.talks_with(other) for one in kinds for other in kinds):
        return ()  # most files have one handshake, and there may be hundreds of servers
    pairs = ((one, other) for one, other in product(files, repeat=2) if one[0] < other[0])
    return tuple(sorted({(one[0], other[0]) for one, other in pairs if not one[1].talks_with(other[1])}))
