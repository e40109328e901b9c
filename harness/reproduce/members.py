"""The members of an ensemble that can be reconfigured: all servers have one configuration, with names for addresses.

Each server has another table of names: the name of the server itself is the loopback address, and the name of a peer
is the address of the proxy between them.

Source: `java.net.InetAddress` (the property `jdk.net.hosts.file`).
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from harness.processes import LOOPBACK
from harness.zoo_cfg import OBSERVER, Member, members
from spec.quorum import Sid

Roles = Mapping[Sid, str]
"""The members of a configuration, each with its role."""


class Members:
    """The servers of one run, by id; every port has five digits."""

    def __init__(self, sids: Iterable[Sid]) -> None:
        self.sids = tuple(sids)
        self._members = {member.sid: replace(member, host=f"zk{member.sid}") for member in members(self.sids)}
        # The common generator is unsuitable: a test may have given it a fixed seed.
        self._net = random.SystemRandom().randrange(64, 250)

    def __getitem__(self, sid: Sid) -> Member:
        return self._members[sid]

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def host(self, reader: Sid, sid: Sid) -> str:
        """The address of a server for a reader."""
        return LOOPBACK if reader == sid else f"127.{self._net}.{reader}.{sid}"

    def proxy_hosts(self) -> dict[tuple[Sid, Sid], str]:
        """The address of the proxy of each ordered pair."""
        return {(sid, peer): self.host(sid, peer) for sid in self.sids for peer in self.sids if sid != peer}

    def java_option(self, reader: Sid, directory: Path) -> str:
        """Write the table of names into the directory of a server, and return Java's option for it."""
        file = directory / "hosts"
        file.write_text(self.hosts_file(reader), encoding="ascii")
        return f"-Djdk.net.hosts.file={file}"

    def hosts_file(self, reader: Sid) -> str:
        """The table of names of a server."""
        return "".join(f"{self.host(reader, sid)} zk{sid}\n" for sid in self.sids)

    def lines(self, roles: Roles | Iterable[Sid]) -> list[str]:
        """The lines of a configuration, in the order of the ids. Without roles every server is a participant."""
        observers = {sid for sid, role in roles.items() if role == OBSERVER} if isinstance(roles, Mapping) else set()
        return [replace(self._members[sid], observer=sid in observers).dynamic_line for sid in sorted(roles)]

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
