"""Reads and writes the value of a `server.N` line.

    host:quorumPort:electionPort[:role][|host:quorumPort:electionPort[:role]]...[;[clientHost:]clientPort]

Rules:

- As lenient and as strict as ZooKeeper: blanks around a role are valid and blanks around a port are not; `;` precedes
  the client address, and a second `;` the secure client port.
- Names are not resolved: ZooKeeper resolves them when it connects. A template such as `${HOST}`, and a blank or a
  character that nobody sees, is an error, although ZooKeeper starts with it, because no host has such a name.
- The id -1 is an error: ZooKeeper reads it as that of a server without `myid` (`UNSET_SERVERID`).
- Several addresses of one server have no order in ZooKeeper. They are sorted here, so that equality is well defined.

Sources: `QuorumPeer.QuorumServer.initializeWithAddressString`, `QuorumServer.toString`,
`ConfigUtils.getHostAndPort`.
"""

from enum import Enum

import msgspec

from spec.config.problems import WHITE, java_split, template_in
from spec.quorum import Sid
from spec.text import INT, UNREADABLE, integer

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
    """The address of a server for its peers: the quorum port carries Zab, the election port the votes."""

    host: str
    quorum_port: int
    election_port: int

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.quorum_port}:{self.election_port}"


class ServerLine(msgspec.Struct, frozen=True):
    """One `server.N` line (`QuorumPeer.QuorumServer`).

    `client` and `secure_client` are the client addresses in the line, or None.
    """

    sid: Sid
    addresses: tuple[ServerAddress, ...]
    learner_type: LearnerType = LearnerType.PARTICIPANT
    client: Address | None = None
    secure_client: Address | None = None


class BadServerLineError(ValueError):
    """A `server.N` value that ZooKeeper refuses: the mistake and the correct form."""

    def __init__(self, what: str, right: str = FORM) -> None:
        super().__init__(what)
        self.what = what
        self.right = right


def parse_server(sid: Sid, value: str) -> ServerLine:
    """Parse a value. Raises BadServerLineError for the first mistake in it."""
    if sid == -1:
        raise BadServerLineError("-1 is the id of a server without myid", "give the server another id")
    # ZooKeeper ignores the text after a third semicolon, too.
    template = template_in(value)
    if template is not None:
        raise BadServerLineError(f"the template {template} is not filled in", "write the value instead of the template")
    parts = [*java_split(value, ";"), "", "", ""][:3]
    entries = [_parse_entry(text) for text in java_split(parts[0], "|")]
    if not entries:
        raise BadServerLineError(f"{value!r} has no address")
    roles = {role for _, role in entries if role is not None}
    if len(roles) > 1:
        raise BadServerLineError("the addresses of one server have different roles", "give them the same role")
    return ServerLine(
        sid,
        tuple(sorted({address for address, _ in entries})),
        roles.pop() if roles else LearnerType.PARTICIPANT,
        _parse_client(parts[1]),
        _parse_client(parts[2]),
    )


def render_server(server: ServerLine) -> str:
    """Return the value as `QuorumServer.toString` writes it, with the role, and the hosts in order."""
    text = "|".join(map(str, server.addresses)) + f":{server.learner_type.value}"
    if server.client is not None:
        text += f";{server.client}"
    if server.secure_client is not None:
        text += f"{'' if server.client else ';'};{server.secure_client}"
    return text


def bracketed(host: str) -> str:
    """Return the host in the form before a port: an IPv6 literal in brackets, any other host unchanged."""
    return f"[{host}]" if ":" in host else host


def parse_role(text: str) -> LearnerType | None:
    """Return the role for a word in any case and with blanks around it; None for any other word."""
    word = text.strip(WHITE).lower()
    return next((role for role in LearnerType if role.value == word), None)


def _parse_entry(text: str) -> tuple[ServerAddress, LearnerType | None]:
    parts = _host_and_ports(text)
    if len(parts) not in (3, 4):
        raise BadServerLineError(f"{text!r} is not a server address: {_lacking(parts)}")
    address = ServerAddress(_host(parts[0]), _port(parts[1], "quorum port"), _port(parts[2], "election port"))
    if address.quorum_port == address.election_port:
        right = "give the two different ports"
        raise BadServerLineError(f"quorum port and election port are both {address.quorum_port}", right)
    if len(parts) == 3:
        return address, None
    role = parse_role(parts[3])
    if role is None:
        raise BadServerLineError(f"unknown peer type {parts[3]!r}", "write participant or observer")
    return address, role


def _lacking(parts: list[str]) -> str:
    if len(parts) > 4:
        return f"it has {len(parts)} parts between colons, and 4 is the most"
    if parts == [""]:
        return "the host and both ports are missing"
    ports = ("the quorum port", "the election port")[len(parts) - 1 :]
    return f"{' and '.join(ports)} {'is' if len(ports) == 1 else 'are'} missing"


def _parse_client(text: str) -> Address | None:
    if not text:
        return None
    parts = _host_and_ports(text)
    if len(parts) not in (1, 2):
        raise BadServerLineError(f"the client address {text!r} is neither a port nor host:port")
    host = _host(parts[0]) if len(parts) == 2 else ANY_ADDRESS
    return Address(host, _port(parts[-1], "client port"))


def _host_and_ports(text: str) -> list[str]:
    """Split at colons, but not within the brackets of an IPv6 literal (`ConfigUtils.getHostAndPort`)."""
    if not text.startswith("["):
        return java_split(text, ":")
    end = text.find("]")
    if end < 0:
        raise BadServerLineError(f"{text!r} opens a bracket and does not close it", "write [address]:port")
    if end + 2 == len(text):
        raise BadServerLineError(f"{text!r} has no port after the colon", "write [address]:port")
    host = text[1:end]
    return [host, *java_split(text[end + 2 :], ":")] if end + 2 < len(text) else [host]


def _host(text: str) -> str:
    if " " in text or UNREADABLE.search(text):
        raise BadServerLineError(
            f"the host {text[:60]!r} has a blank or an unreadable character", "write hosts without any"
        )
    return text


def _port(text: str, name: str) -> int:
    port = integer(text, *INT)
    if port is None or not 0 <= port <= 65535:
        hint = " without blanks" if text.strip(WHITE) != text else ""
        raise BadServerLineError(f"{name} {text!r} is not a port", f"write a number from 0 to 65535{hint}")
    return port
