"""Writes a server's `zoo.cfg` and `myid` from a description of the ensemble, and reads the text of a configuration.

Rules of this module:

- A view is the configuration of one server; two servers of one ensemble may have different views.
- The data directory is in the directory of the file, and is kept when the file is written again.
- The keys of `extra` replace the keys with default values that have the same names.

Source: ZooKeeper Administrator's Guide; `QuorumPeerConfig.parseProperties`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.processes import LOOPBACK, free_ports
from spec.quorum import Sid
from spec.text import required_integer

PARTICIPANT, OBSERVER = "participant", "observer"


@dataclass(frozen=True)
class Member:
    """One server: its id, its ports, whether it is an observer, and the host by which others know it."""

    sid: int
    client_port: int
    quorum_port: int
    election_port: int
    observer: bool = False
    host: str = LOOPBACK

    @property
    def line(self) -> str:
        """The `server.N` line of this member."""
        role = OBSERVER if self.observer else PARTICIPANT
        return f"server.{self.sid}={self.host}:{self.quorum_port}:{self.election_port}:{role}"

    @property
    def dynamic_line(self) -> str:
        """The line in a dynamic file. `reconfig` needs its client address, and another address is another member."""
        return f"{self.line};{LOOPBACK}:{self.client_port}"


def members(sids: tuple[int, ...], observers: frozenset[int] = frozenset()) -> tuple[Member, ...]:
    """Members of these ids on free ports."""
    ports = iter(free_ports(3 * len(sids)))
    return tuple(Member(sid, next(ports), next(ports), next(ports), sid in observers) for sid in sids)


@dataclass(frozen=True)
class View:
    """The content of a `zoo.cfg`: the members, the times (a tick in milliseconds, limits in ticks), further keys.

    With `standalone` no `server.N` line is written, and the server runs without Zab. With a `version` the members are
    in a dynamic file, and `reconfig` may change them; 0 is that of a server which is new to the ensemble.
    """

    members: tuple[Member, ...]
    tick_time: int = 500
    init_limit: int = 20
    sync_limit: int = 10
    extra: Mapping[str, str] = field(default_factory=dict)
    standalone: bool = False
    version: int | None = None

    @property
    def dynamic_name(self) -> str:
        """The name of the dynamic file. Source: `QuorumPeerConfig.getVersionFromFilename`."""
        return f"zoo.cfg.dynamic.{self.version:x}" if self.version else "zoo.cfg.dynamic"

    @property
    def is_dynamic(self) -> bool:
        """Whether the members are in a dynamic file."""
        return self.version is not None

    @property
    def member_lines(self) -> list[str]:
        """The lines of the members, as `zoo.cfg` or the dynamic file has them."""
        return [member.dynamic_line if self.is_dynamic else member.line for member in self.members]

    @property
    def config(self) -> str:
        """The configuration as servers send it. Source: `QuorumMaj.toString`."""
        return "\n".join((*self.member_lines, f"version={self.version or 0:x}"))

    def text(self, member: Member, data: Path) -> str:
        """The text of the file for one member."""
        keys = {
            "tickTime": self.tick_time,
            "initLimit": self.init_limit,
            "syncLimit": self.sync_limit,
            "dataDir": data,
            "clientPort": member.client_port,
            "clientPortAddress": LOOPBACK,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": 0,
        }
        if not self.standalone:
            keys["standaloneEnabled"] = "false"
        if self.is_dynamic:
            keys |= {"reconfigEnabled": "true", "dynamicConfigFile": data.parent / self.dynamic_name}
        lines = [f"{key}={value}" for key, value in (keys | dict(self.extra)).items()]
        if member.observer and not self.is_dynamic:
            lines.append("peerType=observer")
        if not self.standalone and not self.is_dynamic:
            lines += self.member_lines
        return "\n".join(lines) + "\n"


def write_zoo_cfg(view: View, member: Member, directory: Path) -> Path:
    """Write `zoo.cfg`, the dynamic file, and `data/myid` into a server's directory; return the path of `zoo.cfg`."""
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    (data / "myid").write_text(f"{member.sid}\n", encoding="ascii")
    file = directory / "zoo.cfg"
    file.write_text(view.text(member, data), encoding="utf-8")
    if view.is_dynamic:
        lines = "\n".join(view.member_lines) + "\n"
        (directory / view.dynamic_name).write_text(lines, encoding="utf-8")
    return file


NEXT = "zoo.cfg.dynamic.next"
"""The file with the configuration that a server has seen last, if that is not its active one."""


def dynamic_file_of(zoo_cfg: str) -> str:
    """The name of the dynamic file in the text of a `zoo.cfg`; empty without one."""
    match = re.search(r"^dynamicConfigFile=.*/([^/\n]+)$", zoo_cfg, re.MULTILINE)
    return match[1] if match else ""


def active_config(directory: Path) -> str | None:
    """The active configuration in the files of a server, with its version; None while they are being written."""
    try:
        name = dynamic_file_of((directory / "zoo.cfg").read_text("utf-8"))
        lines = (directory / name).read_text("utf-8")
    except OSError:
        return None
    return f"{lines}\nversion={name.removeprefix('zoo.cfg.dynamic').removeprefix('.') or 0}"


def brief(config: str) -> str:
    """A configuration in one line: version, participants, observers."""
    return in_brief(version_of(config), voters_of(config), observers_of(config))


def in_brief(version: int, voters: Iterable[Sid], observers: Iterable[Sid]) -> str:
    """The line of `brief` for these members."""
    names = ", ".join(map(str, sorted(voters)))
    if watching := sorted(observers):
        names += f" + observer {', '.join(map(str, watching))}"
    return f"{version:#x}: {{{names}}}" if version else f"{{{names}}}"


def voters_of(config: str) -> tuple[Sid, ...]:
    """The participants of a configuration text, ascending."""
    return _with_role(config, PARTICIPANT)


def observers_of(config: str) -> tuple[Sid, ...]:
    """The observers of a configuration text, ascending."""
    return _with_role(config, OBSERVER)


def version_of(config: str) -> int:
    """The version of a configuration text; 0 if it has none."""
    match = re.search(r"^version=([0-9a-f]+)$", config, re.MULTILINE)
    return required_integer(match[1], base=16) if match else 0


def _with_role(config: str, role: str) -> tuple[Sid, ...]:
    return tuple(sorted(int(sid) for sid in re.findall(rf"^server\.(\d+)=.*:{role}(?:;.*)?$", config, re.MULTILINE)))
