"""Reads the `zoo.cfg` of one server: its settings, and its view of the ensemble.

Rules:

- Text in, values out. The caller supplies the text of the dynamic file, and names are not resolved.
- A key is valid if ZooKeeper accepts it. ZooKeeper makes a system property `zookeeper.<key>` of an unknown key, so
  `Config.properties` holds it.
- With `complete=False`, missing keys and files (dataDir, initLimit, syncLimit, myid) are not errors. This is for
  comparisons of files, and for excerpts in scenarios.
- A file has at most `LONGEST` characters, far above any real one: the time for a larger one has no useful bound.

Sources: `QuorumPeerConfig.parse`, `parseProperties`, `setupQuorumPeerConfig`, `checkValidity`, and
`QuorumPeer.start` for a myid outside the server list.
"""

import ipaddress
from collections.abc import Callable

import msgspec

from spec.config.ensemble import (
    Ensemble,
    is_ensemble_key,
    read_ensemble,
    read_version,
    reject_unrecognised,
)
from spec.config.problems import Findings, Problem, is_true
from spec.config.properties import last_of_each, read_properties
from spec.config.server_line import ANY_ADDRESS, Address, LearnerType, ServerLine, parse_role
from spec.config.settings import Settings
from spec.quorum import Addresses, Sid, View, addresses_of, standalone_view
from spec.text import LONG, integer

Read = Callable[[str], str | None]
"""Returns the text of the file with that name, or None. `dict.get` is an example."""

Locate = Callable[[str], str]
"""Returns the path of the file with that name on this machine, for errors."""

LONGEST = 256 * 1024
"""The limit for a zoo.cfg or a dynamic file, in characters."""


class Config(msgspec.Struct, frozen=True):
    """The configuration of one server.

    `tick_time` and the session time-outs are in milliseconds; `init_limit` and `sync_limit` in ticks, 0 when
    not set. `client_host_named` is true if clientPortAddress is set. `version` is the version in the files; that of
    the view is 0 unless reconfiguration is enabled. `properties` holds every other key with its value, in the order of
    the file.
    """

    file: str
    servers: tuple[ServerLine, ...]
    view: View
    version: int
    myid: Sid | None
    peer_type: LearnerType
    tick_time: int
    init_limit: int
    sync_limit: int
    min_session_timeout: int
    max_session_timeout: int
    data_dir: str | None
    data_log_dir: str | None
    client: Address | None
    client_host_named: bool
    standalone_enabled: bool
    reconfig_enabled: bool
    dynamic_config_file: str | None
    properties: tuple[tuple[str, str], ...]
    warnings: tuple[Problem, ...]

    @property
    def init_time(self) -> int:
        """The limit for a follower to connect and synchronise, in milliseconds."""
        return self.tick_time * self.init_limit

    @property
    def sync_time(self) -> int:
        """The limit for the silence of a follower, in milliseconds."""
        return self.tick_time * self.sync_limit

    @property
    def distributed(self) -> bool:
        """Whether the server is a member of an ensemble (`isDistributed`); otherwise it runs standalone."""
        return not self.standalone_enabled or len(self.view.voters) > 1

    @property
    def effective_view(self) -> View:
        """The view with which the server runs: that of the file, or the server alone if it runs standalone.

        A standalone server needs neither a myid nor a `server.N` line (`ZooKeeperServerMain`); without both its id
        is 0.
        """
        if self.distributed:
            return self.view
        return standalone_view(self.myid if self.myid is not None else min(self.view.voters, default=0))

    @property
    def listens_on_all_ips(self) -> bool:
        """Whether the peer ports are bound on every address of the machine (`quorumListenOnAllIPs`)."""
        return is_true(dict(self.properties), "quorumListenOnAllIPs")

    @property
    def peer_addresses(self) -> Addresses:
        """The hosts and peer ports of all servers."""
        servers = {
            server.sid: {(address.host, address.quorum_port, address.election_port) for address in server.addresses}
            for server in self.servers
        }
        return addresses_of(servers, self.listens_on_all_ips)

    @property
    def ensemble(self) -> Ensemble:
        """The shared part of the configuration, with the version in the files."""
        return Ensemble(self.servers, msgspec.structs.replace(self.view, version=self.version))

    def server(self, sid: Sid) -> ServerLine | None:
        """Return the `server.N` line of a server, or None."""
        return next((server for server in self.servers if server.sid == sid), None)


def parse_zoo_cfg(
    text: str,
    file: str = "zoo.cfg",
    myid: str | None = None,
    read: Read | None = None,
    complete: bool = True,
    locate: Locate | None = None,
) -> Config:
    """Parse a `zoo.cfg` for the server whose `myid` file has the given text.

    `read` returns the text of the file in `dynamicConfigFile`, and `locate` its path for errors; by default errors have
    the name from the file. `zoo.cfg.dynamic.next` is ignored. Raises ConfigError with all errors, in the order of the
    lines.
    """
    findings = Findings()
    if _is_too_large(text, file, findings):
        findings.warnings()  # raises
    properties = last_of_each(read_properties(text, file, findings), file, findings)
    settings = Settings(properties, file, findings)
    standalone = settings.boolean("standaloneEnabled", True)
    dynamic = settings.text("dynamicConfigFile")
    if dynamic is None:
        version = read_version(properties, file, findings)
        ensemble = read_ensemble(properties, file, findings, standalone, version)
    else:
        for key, prop in properties.items():
            if is_ensemble_key(key):
                right = "move it to the file that dynamicConfigFile names"
                findings.error(file, prop.line, f"{key} is set outside dynamicConfigFile", right)
        ensemble = _read_dynamic(dynamic, settings, read, locate or str, standalone)
    sid = _read_myid(myid, settings)
    config = _assemble(settings, ensemble, sid, standalone, dynamic)
    _check_complete(config, settings, complete)
    _check_membership(config, settings, complete)
    warnings = findings.warnings()
    return msgspec.structs.replace(config, warnings=warnings)


def version_in_name(name: str) -> int:
    """Return the hexadecimal version at the end of the name of a dynamic file (`zoo.cfg.dynamic.100000003`), or 0."""
    _, dot, suffix = name.rpartition(".")
    return (integer(suffix, *LONG, base=16) or 0) if dot else 0


def _is_too_large(text: str, file: str, findings: Findings) -> bool:
    if len(text) > LONGEST:
        findings.error(file, 0, f"the file has {len(text):,} characters", f"the limit is {LONGEST:,}")
    return len(text) > LONGEST


def _read_dynamic(name: str, settings: Settings, read: Read | None, locate: Locate, standalone: bool) -> Ensemble:
    """Read the ensemble of a dynamic file. Only the name of the file has its version."""
    findings = settings.findings
    text = read(name) if read is not None else None
    if text is None:
        prop = settings.get("dynamicConfigFile")
        line = prop.line if prop else 0
        findings.error(settings.file, line, f"no such file: {name}", "name a file that can be read")
        return read_ensemble({}, name, Findings(), True, 0)
    file = locate(name)
    if _is_too_large(text, file, findings):
        return read_ensemble({}, file, Findings(), True, 0)
    properties = last_of_each(read_properties(text, file, findings), file, findings)
    reject_unrecognised(properties, file, findings)
    if "version" in properties:
        right = "remove the line: the version is the end of the file's name"
        findings.error(file, properties["version"].line, "version is set in a dynamic file", right)
    return read_ensemble(properties, file, findings, standalone, version_in_name(name))


def _read_myid(text: str | None, settings: Settings) -> Sid | None:
    """Parse the number on the first line of `myid`; blanks around it are an error (`setupMyId`)."""
    if text is None:
        return None
    first = text.replace("\r", "\n").split("\n")[0]
    sid = integer(first, *LONG)
    if sid is None:
        problem = f"{first[:40]!r} is not a number"
        settings.findings.error("myid", 1, problem, "write the server's number alone, without blanks")
    return sid


def _assemble(settings: Settings, ensemble: Ensemble, sid: Sid | None, standalone: bool, dynamic: str | None) -> Config:
    reconfig = settings.boolean("reconfigEnabled", False)
    tick = settings.integer("tickTime", 3000)
    data_dir = settings.text("dataDir")
    view = ensemble.view if reconfig else msgspec.structs.replace(ensemble.view, version=0)
    return Config(
        file=settings.file,
        servers=ensemble.servers,
        view=view,
        version=ensemble.view.version,
        myid=sid,
        peer_type=_peer_type(settings, ensemble, sid),
        tick_time=tick,
        init_limit=settings.integer("initLimit", 0),
        sync_limit=settings.integer("syncLimit", 0),
        min_session_timeout=_or_ticks(settings.integer("minSessionTimeout", -1), 2 * tick),
        max_session_timeout=_or_ticks(settings.integer("maxSessionTimeout", -1), 20 * tick),
        data_dir=data_dir,
        data_log_dir=settings.text("dataLogDir") or data_dir,
        client=_client_address(settings, ensemble, sid),
        client_host_named=settings.text("clientPortAddress") is not None,
        standalone_enabled=standalone,
        reconfig_enabled=reconfig,
        dynamic_config_file=dynamic,
        properties=settings.others(),
        warnings=(),
    )


def _or_ticks(milliseconds: int, otherwise: int) -> int:
    """Return a session time-out, or the default of ZooKeeper if it is -1 or not set."""
    return otherwise if milliseconds == -1 else milliseconds


def _peer_type(settings: Settings, ensemble: Ensemble, sid: Sid | None) -> LearnerType:
    """Return the role of this server; the server list overrides `peerType`."""
    prop = settings.get("peerType")
    peer_type = parse_role(prop.value) if prop else LearnerType.PARTICIPANT
    if prop and peer_type is None:
        settings.error("peerType", f"unknown peer type {prop.value!r}", "write participant or observer")
    if sid is None:
        return peer_type or LearnerType.PARTICIPANT
    role = LearnerType.OBSERVER if sid in ensemble.view.observers else LearnerType.PARTICIPANT
    if prop and peer_type not in (None, role):
        settings.warn("peerType", f"server {sid} is {role.value} in the server list, which counts", "say the same")
    return role


def _client_address(settings: Settings, ensemble: Ensemble, sid: Sid | None) -> Address | None:
    """Return the client address: that of the `server.N` line, otherwise clientPort (`setupClientPort`)."""
    port = settings.port("clientPort")
    host = settings.text("clientPortAddress")
    if host is not None and settings.get("clientPort") is None:
        settings.error("clientPortAddress", "set while clientPort is not", "add clientPort")
    static = Address(host or ANY_ADDRESS, port) if port is not None else None
    line = ensemble.client_of(sid)
    if static and line and not _agree(static, line):
        key = "clientPort" if static.port != line.port else "clientPortAddress"
        settings.error(
            key,
            f"{static} differs from {line} in the line server.{sid}",
            "write the same address in both places",
        )
    return line or static


def _agree(static: Address, own: Address) -> bool:
    """Return whether two addresses may be equal; a name may resolve to any literal."""
    if static.port != own.port or static.host == own.host:
        return static.port == own.port
    try:
        address = ipaddress.ip_address(static.host)
        return address.is_unspecified or address == ipaddress.ip_address(own.host)
    except ValueError:
        return True


def _check_complete(config: Config, settings: Settings, complete: bool) -> None:
    """Check for the keys that `parseProperties` and `checkValidity` require."""
    if config.tick_time == 0:
        settings.error("tickTime", "tickTime is 0", "write the length of a tick in milliseconds")
    if config.min_session_timeout > config.max_session_timeout:
        key = "minSessionTimeout" if settings.get("minSessionTimeout") else "maxSessionTimeout"
        problem = f"session time-outs from {config.min_session_timeout} to {config.max_session_timeout} ms"
        settings.error(key, problem, "minSessionTimeout must not be the larger one")
    if not complete:
        return
    if config.data_dir is None:
        settings.error("dataDir", "dataDir is not set", "name the directory of snapshots and myid")
    if config.distributed and config.init_limit == 0:
        settings.error("initLimit", "initLimit is not set", "write a number of ticks above 0")
    if config.distributed and config.sync_limit == 0:
        settings.error("syncLimit", "syncLimit is not set", "write a number of ticks above 0")


def _check_membership(config: Config, settings: Settings, complete: bool) -> None:
    """Check that a member of an ensemble has a myid in the server list (`QuorumPeer.start`)."""
    findings = settings.findings
    if not config.distributed or findings.broken:
        return
    if config.myid is None:
        if complete:
            findings.error("myid", 0, "the file is missing", "write the server's number into dataDir/myid")
    elif config.server(config.myid) is None:
        sids = ", ".join(str(server.sid) for server in config.servers)
        problem = f"server {config.myid} is not in the server list of {config.file}"
        findings.error("myid", 1, problem, f"write one of {sids}, or add server.{config.myid}")
