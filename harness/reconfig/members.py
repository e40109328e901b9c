"""The names, ports and configuration lines of servers that a reconfiguration adds, removes and changes.

A reconfiguration gives all servers one text, so the ports of a server must be the same for every reader. A server is
therefore named: `zk3` is 127.0.0.1 for server 3 itself, and the address of a proxy for every other server. The Java
option `jdk.net.hosts.file` gives each process its table of names.

Rules of this module:

- All addresses are loopback addresses (127.0.0.0/8). The addresses of proxies contain a number that is drawn for each
  run, so that two runs on one machine do not meet.
- `Members.plain` replaces the drawn ports in a text by fixed ones of the same length, so that two runs can be compared.

Source: `QuorumPeer.QuorumServer.toString`; `java.net.InetAddress` (jdk.net.hosts.file).
"""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.processes import LOOPBACK, free_ports
from spec.quorum import Sid
from spec.text import required_integer

PARTICIPANT, OBSERVER = "participant", "observer"
Roles = Mapping[Sid, str]
"""The members of a configuration, each with its role."""


@dataclass(frozen=True)
class NamedMember:
    """One server with its three ports; every port has five digits."""

    sid: Sid
    client_port: int
    quorum_port: int
    election_port: int

    def line(self, role: str = PARTICIPANT) -> str:
        """The line of this server in a configuration, as ZooKeeper writes it."""
        peer = f"zk{self.sid}:{self.quorum_port}:{self.election_port}"
        return f"server.{self.sid}={peer}:{role};{LOOPBACK}:{self.client_port}"


class Members:
    """The servers of one run, by id."""

    def __init__(self, sids: Iterable[Sid]) -> None:
        self.sids = tuple(sids)
        ports = iter(free_ports(3 * len(self.sids)))
        self._members = {sid: NamedMember(sid, next(ports), next(ports), next(ports)) for sid in self.sids}
        # The common generator is unsuitable: a test may have given it a fixed seed.
        self._net = random.SystemRandom().randrange(64, 250)

    def __getitem__(self, sid: Sid) -> NamedMember:
        return self._members[sid]

    def host(self, reader: Sid, sid: Sid) -> str:
        """The address of a server for a reader."""
        return LOOPBACK if reader == sid else f"127.{self._net}.{reader}.{sid}"

    def proxy_hosts(self) -> dict[tuple[Sid, Sid], str]:
        """The address of the proxy of each ordered pair."""
        return {(one, other): self.host(one, other) for one in self.sids for other in self.sids if one != other}

    def hosts_file(self, reader: Sid) -> str:
        """The table of names of a server."""
        return "".join(f"{self.host(reader, sid)} zk{sid}\n" for sid in self.sids)

    def lines(self, roles: Roles | Iterable[Sid]) -> list[str]:
        """The lines of a configuration, in the order of the ids. Without roles every server is a participant."""
        named = roles if isinstance(roles, Mapping) else dict.fromkeys(roles, PARTICIPANT)
        return [self._members[sid].line(role) for sid, role in sorted(named.items())]

    def plain(self, text: str) -> str:
        """A text with the ports 2181N, 2888N and 3888N in place of those of server N."""
        for sid, member in self._members.items():
            for port, fixed in (
                (member.client_port, 21810),
                (member.quorum_port, 28880),
                (member.election_port, 38880),
            ):
                text = re.sub(rf"\b{port}\b", str(fixed + sid), text)
        return text


def voters_of(config: str) -> tuple[Sid, ...]:
    """The participants of a configuration text, ascending."""
    return _with_role(config, PARTICIPANT)


def observers_of(config: str) -> tuple[Sid, ...]:
    """The observers of a configuration text, ascending."""
    return _with_role(config, OBSERVER)


def version_of(config: str) -> int:
    """The version of a configuration text; 0 if it has none."""
    found = re.search(r"^version=([0-9a-f]+)$", config, re.MULTILINE)
    return required_integer(found[1], base=16) if found else 0


def _with_role(config: str, role: str) -> tuple[Sid, ...]:
    return tuple(sorted(int(sid) for sid in re.findall(rf"^server\.(\d+)=.*:{role}(?:;.*)?$", config, re.MULTILINE)))


def brief(config: str) -> str:
    """A configuration in one line: version, participants, observers."""
    names = ", ".join(map(str, voters_of(config)))
    if observers := observers_of(config):
        names += f" + observer {', '.join(map(str, observers))}"
    return f"{version_of(config):#x}: {{{names}}}" if version_of(config) else f"{{{names}}}"
