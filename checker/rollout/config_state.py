"""One state of an ensemble in a roll-out: the configuration file of every member, and what the files say of addresses.

Rules of this module:

- Files have the names that scenarios use, such as before.cfg, step-1.cfg and after.cfg.
- A machine may have another name in the new files (`with_same_machines`). Its configuration then has the old name, and
  so has the text for scenarios (`modelled_texts`). The text of the file stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import cached_property

from msgspec.structs import replace

from checker.rollout.inputs.folders import Folder, ServerFiles, addresses_of, line_of
from spec.config import Config, ConfigError, Problem, ServerAddress
from spec.config.server_line import bracketed
from spec.quorum import Sid, View
from spec.quorum.addresses import WILDCARDS

SERVER_LINE = re.compile(r"^[ \t\f]*server\..*", re.MULTILINE)
DYNAMIC = re.compile(r"^([ \t\f]*dynamicConfigFile[ \t\f]*[=:]?[ \t\f]*)(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class ConfigState:
    """One state of the ensemble, its files named by its label, and by the server where they differ.

    `servers` are the files as they were read. `given` is False for files that were written here.
    """

    label: str
    servers: Mapping[Sid, ServerFiles]
    given: bool = True
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def view(self) -> View:
        """The view that all members have."""
        return next(iter(self.servers.values())).view

    @cached_property
    def files(self) -> Mapping[Sid, str]:
        """The name of each member's file."""
        shared = len({(files.text, files.dynamic) for files in self.servers.values()}) == 1
        return {sid: f"{self.label}.cfg" if shared else f"{self.label}-{sid}.cfg" for sid in self.servers}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The text of every file by its name."""
        texts: dict[str, str] = {}
        for sid, files in self.servers.items():
            name, version = self.files[sid], files.config.version
            texts[name] = files.text
            if files.dynamic is not None:
                beside = f"{name}.dynamic" + (f".{version:x}" if version else "")
                texts[name] = DYNAMIC.sub(lambda match, beside=beside: match[1] + beside, files.text)  # type: ignore[misc]
                texts[beside] = files.dynamic
        return texts

    @cached_property
    def modelled_texts(self) -> Mapping[str, str]:
        """The texts with one name for each machine, in the lines that name servers."""
        if not self.names:
            return self.texts
        hosts = {bracketed(host): bracketed(name) for host, name in self.names.items()}
        host = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, hosts))})(?![\w.-])", re.IGNORECASE)

        def line(given: re.Match[str]) -> str:
            return host.sub(lambda match: hosts[match[0].lower()], given[0])

        return {name: SERVER_LINE.sub(line, text) for name, text in self.texts.items()}

    @cached_property
    def members(self) -> frozenset[Sid]:
        """The servers that this state has."""
        return frozenset(self.files)

    def addresses(self, sid: Sid) -> frozenset[ServerAddress]:
        """The peer addresses of a server by all files, without wildcards unless there is nothing else."""
        return self._addresses.get(sid, frozenset())

    @cached_property
    def _addresses(self) -> Mapping[Sid, frozenset[ServerAddress]]:
        return addresses_of(self.servers)

    def hosts(self, sid: Sid) -> frozenset[str]:
        """The hosts of a server by all files, without wildcards."""
        return frozenset(address.host for address in self.addresses(sid)) - WILDCARDS

    def accepts_every_host(self, sid: Sid) -> bool:
        """Whether a server listens on every address of its machine, by its own file."""
        config = self.servers[sid].config
        line = config.server(sid)
        addresses = line.addresses if line is not None else ()
        return config.listens_on_all_ips or any(address.host in WILDCARDS for address in addresses)

    @cached_property
    def agreed(self) -> bool:
        """Whether all files have the same peer address for each server. The host in its own file may be a wildcard."""
        tables = {
            owner: {line.sid: line.addresses for line in files.config.servers} for owner, files in self.servers.items()
        }
        for sid in self.members:
            by_others = {addresses.get(sid) for owner, addresses in tables.items() if owner != sid}
            by_all = {addresses.get(sid) for addresses in tables.values()}
            ports = {tuple((a.quorum_port, a.election_port) for a in addresses or ()) for addresses in by_all}
            if len(by_others) > 1 or len(ports) > 1:
                return False
        return True

    def readdressed(self, new: ConfigState) -> tuple[Sid, ...]:
        """The servers with other addresses in a new state, ascending; a standalone server has none for peers."""
        if self.view.standalone or new.view.standalone:
            return ()
        return tuple(sid for sid in sorted(self.members & new.members) if self.addresses(sid) != new.addresses(sid))

    def moved(self, new: ConfigState) -> tuple[Sid, ...]:
        """The servers without a common host in this state and a new one, ascending; also those that run standalone.

        The file of a standalone server need not name its host. Then the host is taken as unchanged.
        """
        hosts = ((sid, self.hosts(sid), new.hosts(sid)) for sid in sorted(self.members & new.members))
        return tuple(sid for sid, before, after in hosts if before and after and before.isdisjoint(after))


def side_of(folder: Folder, label: str) -> ConfigState:
    """The state that a folder describes."""
    return ConfigState(label, folder.servers, names=folder.names)


def with_same_machines(old: Folder, new: Folder) -> Folder:
    """The new state with the old names of its hosts: the hosts of a server are one machine in both states.

    Raises ConfigError where that cannot be.
    """
    before, after = side_of(old, "before"), side_of(new, "after")
    names: dict[str, str] = {}
    problems, sentences = [], dict[str, None]()
    for sid in before.moved(after):
        files, name = new.servers[sid], min(before.hosts(sid))
        if reason := _no_renaming(sid, before, after, names):
            right = "leave --same-machines out, or give each machine names of its own"
            problems.append(Problem(files.origin, line_of(files.members, sid), reason, right))
        for host in sorted(after.hosts(sid)):
            names[host] = name
            sentences[f"{host} is {name}, the machine of server {sid} under another name (--same-machines)"] = None
    if problems:
        raise ConfigError(tuple(problems))
    servers = {sid: changed(files, config=with_names(files.config, names)) for sid, files in new.servers.items()}
    return changed(new, servers=servers, names=names, taken=(*new.taken, *sentences))


def _no_renaming(sid: Sid, before: ConfigState, after: ConfigState, names: Mapping[str, str]) -> str:
    """The reason why the new hosts of a server cannot be names of its old machine; empty if there is none."""
    mine = before.hosts(sid)
    if len(before.addresses(sid)) > 1 or len(after.addresses(sid)) > 1:
        return f"server {sid} has several addresses, and nothing says which of them are the same"
    for host in sorted(after.hosts(sid)):
        owners = [owner for owner in sorted(before.members) if host in before.hosts(owner)]
        if owners:
            return f"{host} is the host of server {sid} here, and that of server {owners[0]} in the old files"
        if names.get(host) not in (None, *mine):
            return f"{host} is one host here, and in the old files it is {names[host]} and {min(mine)}"
        if host not in names and not mine.isdisjoint(names.values()):
            return f"{min(mine)} is one host in the old files, and several here"
    for host in sorted(mine):
        owners = [owner for owner in sorted(after.members) if host in after.hosts(owner) - before.hosts(owner)]
        if owners:
            return f"{host} was the host of server {sid}, and is that of server {owners[0]} here"
    return ""


def with_names(config: Config, names: Mapping[str, str]) -> Config:
    """A configuration with these names of hosts."""
    lines = (
        replace(line, addresses=tuple(replace(a, host=names.get(a.host.lower(), a.host)) for a in line.addresses))
        for line in config.servers
    )
    return replace(config, servers=tuple(lines)) if names else config
