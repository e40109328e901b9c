"""Reads and writes the value of a `server.N` line.

    host:quorumPort:electionPort[:role][|host:quorumPort:electionPort[:role]]...[;[clientHost:]clientPort]

Rules this module keeps:

- As lenient and as strict as ZooKeeper: blanks around a role are accepted and blanks around a port are not;
  `;` opens the client's address, and a second `;` that of the secure client port.
- Names are not resolved. ZooKeeper resolves them when it connects, so an unknown host is no error here.
- Several addresses of one server have no order in ZooKeeper. Here they are sorted, so equal means the same.

Sources: `QuorumPeer.QuorumServer.initializeWithAddressString`, `QuorumServer.toString`,
`ConfigUtils.getHostAndPort`.
"""

from enum import Enum

import msgspec

from spec.config.problems import WHITE, java_integer, java_split
from spec.quorum import Sid

FORM = "write host:quorumPort:electionPort[:participant|observer][;[clientAddress:]clientPort]"
ANY_ADDRESS = "0.0.0.0"


class LearnerType(Enum):
    """Whether a server votes (`QuorumPeer.LearnerType`)."""

    PARTICIPANT = "participant"
    OBSERVER = "observer"


class Address(msgspec.Struct, frozen=True, order=True):
    """A host, by name or literal, and a port from 0 to 65535."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


class ServerAddress(msgspec.Struct, frozen=True, order=True):
    """Where one server listens for its peers: the quorum port carries Zab, the election port the votes."""

    host: str
    quorum_port: int
    election_port: int

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.quorum_port}:{self.election_port}"


class Server(msgspec.Struct, frozen=True):
    """One `server.N` line (`QuorumPeer.QuorumServer`).

    `client` and `secure_client` are the addresses the line itself gives to clients, if it does.
    """

    sid: Sid
    addresses: tuple[ServerAddress, ...]
    learner_type: LearnerType = LearnerType.PARTICIPANT
    client: Address | None = None
    secure_client: Address | None = None


class BadServerLineError(ValueError):
    """A `server.N` value that ZooKeeper refuses: what is wrong, and what would be right."""

    def __init__(self, what: str, right: str = FORM) -> None:
        super().__init__(what)
        self.what = what
        self.right = right


def parse_server(sid: Sid, value: str) -> Server:
    """The server a value describes; raises BadServerLineError for the first thing that is wrong with it."""
    # What stands after a third semicolon is ignored by ZooKeeper too.
    parts = [*java_split(value, ";"), "", "", ""][:3]
    entries = [_parse_entry(text) for text in java_split(parts[0], "|")]
    if not entries:
        raise BadServerLineError(f"{value!r} has no address")
    roles = {role for _, role in entries if role is not None}
    if len(roles) > 1:
        raise BadServerLineError("the addresses of one server have different roles", "give them the same role")
    return Server(
        sid,
        tuple(sorted({address for address, _ in entries})),
        roles.pop() if roles else LearnerType.PARTICIPANT,
        _parse_client(parts[1]),
        _parse_client(parts[2]),
    )


def render_server(server: Server) -> str:
    """The value as `QuorumServer.toString` writes it: the role is always named, hosts are in order."""
    text = "|".join(map(str, server.addresses)) + f":{server.learner_type.value}"
    if server.client is not None:
        text += f";{server.client}"
    if server.secure_client is not None:
        text += f"{'' if server.client else ';'};{server.secure_client}"
    return text


def bracketed(host: str) -> str:
    """The host as it stands before a port: an IPv6 literal in brackets, anything else as it is."""
    return f"[{host}]" if ":" in host else host


def parse_role(text: str) -> LearnerType | None:
    """The role a word names, in any case and with blanks around it; None for any other word."""
    word = text.strip(WHITE).lower()
    return next((role for role in LearnerType if role.value == word), None)


def _parse_entry(text: str) -> tuple[ServerAddress, LearnerType | None]:
    parts = _host_and_ports(text)
    if len(parts) not in (3, 4):
        raise BadServerLineError(f"{text!r} has {len(parts)} parts where 3 or 4 are expected")
    address = ServerAddress(parts[0], _port(parts[1], "quorum port"), _port(parts[2], "election port"))
    if address.quorum_port == address.election_port:
        right = "give the two different ports"
        raise BadServerLineError(f"quorum port and election port are both {address.quorum_port}", right)
    if len(parts) == 3:
        return address, None
    role = parse_role(parts[3])
    if role is None:
        raise BadServerLineError(f"unknown peer type {parts[3]!r}", "write participant or observer")
    return address, role


def _parse_client(text: str) -> Address | None:
    if not text:
        return None
    parts = _host_and_ports(text)
    if len(parts) not in (1, 2):
        raise BadServerLineError(f"the client address {text!r} is neither a port nor host:port")
    host = parts[0] if len(parts) == 2 else ANY_ADDRESS
    return Address(host, _port(parts[-1], "client port"))


def _host_and_ports(text: str) -> list[str]:
    """The parts between colons; brackets hold an IPv6 literal together (`ConfigUtils.getHostAndPort`)."""
    if not text.startswith("["):
        return java_split(text, ":")
    end = text.find("]")
    if end < 0:
        raise BadServerLineError(f"{text!r} opens a bracket and does not close it", "write [address]:port")
    if end + 2 == len(text):
        raise BadServerLineError(f"{text!r} has no port after the colon", "write [address]:port")
    host = text[1:end]
    return [host, *java_split(text[end + 2 :], ":")] if end + 2 < len(text) else [host]


def _port(text: str, name: str) -> int:
    port = java_integer(text)
    if port is None or not 0 <= port <= 65535:
        hint = " without blanks" if text.strip(WHITE) != text else ""
        raise BadServerLineError(f"{name} {text!r} is no port", f"write a number from 0 to 65535{hint}")
    return port
