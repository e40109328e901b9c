"""The settings that a node reads from its zoo.cfg in addition to the membership: limits, addresses, files, operators'
ports.

Rules this module keeps:

- Keys and defaults are ZooKeeper's. A key that ZooKeeper would turn into a system property `zookeeper.<key>` is read
  here under its bare name.
- If the file has no address for clients, the AdminServer or the metrics, the node listens there on loopback;
  ZooKeeper would listen on all interfaces.
- A key that asks for TLS at the AdminServer is an error, never ignored.
- `quorate.existsNeedsRead=false` makes exists answer as it did before 3.8.4: it returned the Stat of any znode to every
  client.
- An invalid number is an error that names the file and the key, and it is reported before the node starts.

Source: `QuorumPeerConfig.parseProperties`, `ZooKeeperServer`, `SyncRequestProcessor` (snapCount); `JettyAdminServer`,
`AdminServerFactory`, `PrometheusMetricsProvider.configure`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from refimpl.clients.auth import has_sasl_provider, super_users
from refimpl.clients.settings import ClientSettings
from refimpl.system import system
from refimpl.tls import PLAIN, PeerSecurity
from spec.config import Address, Config, ConfigError, Ensemble, Problem, ServerLine
from spec.config.dynamic_files import view_with_text
from spec.config.problems import is_true
from spec.config.server_line import ANY_ADDRESS
from spec.quorum import Sid, View, majority_view
from spec.text import INT, integer, required_integer
from spec.tree.options import Options

_Read = TypeVar("_Read")
LOOPBACK = "127.0.0.1"
_SAFER = {
    "quorum.auth.enableSasl": "SASL between servers",
    "requireClientAuthScheme": "a scheme for all clients (ZooKeeper itself passes this key over)",
}
"""The feature that keys with these prefixes request, unless their value is false."""

_INSTEAD = {"requireClientAuthScheme": "write sessionRequireClientSASLAuth=true, or enforce.auth.enabled and .schemes"}


PROMETHEUS = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
WITHOUT_PORT = frozenset(
    {
        "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider",
        "org.apache.zookeeper.metrics.impl.NullMetricsProvider",
    }
)
"""The providers that open no port."""
_WITHOUT_TLS = ("admin.portUnification", "admin.forceHttps", "admin.needClientAuth")


class AdminError(ValueError):
    """A setting of the AdminServer or of the metrics is invalid; the message names the key, the fault, the remedy."""


class AdminSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses of both ports, None for a port that is not opened; `idle` is in milliseconds."""

    admin: Address | None = None
    url: str = "/commands"
    idle: int = 30_000
    metrics: Address | None = None

    @classmethod
    def of(cls, properties: dict[str, str]) -> "AdminSettings":
        """Read the keys of zoo.cfg. Raises AdminError."""
        for key in _WITHOUT_TLS:
            if is_true(properties, key):
                raise AdminError(f"{key}=true: TLS at the AdminServer is not supported; put a TLS proxy before it")
        admin = None
        if is_true(properties, "admin.enableServer", otherwise="true"):
            port = _admin_number(properties, "admin.serverPort", 8080)
            admin = Address(properties.get("admin.serverAddress", LOOPBACK), port)
        url = properties.get("admin.commandURL", "/commands").rstrip("/")
        if not url.startswith("/"):
            raise AdminError(f"admin.commandURL={url}: not a path; write one such as /commands")
        provider = properties.get("metricsProvider.className")
        if provider is not None and provider not in WITHOUT_PORT and provider != PROMETHEUS:
            raise AdminError(f"metricsProvider.className={provider}: no such provider; write {PROMETHEUS}")
        metrics = None
        if provider == PROMETHEUS:
            port = _admin_number(properties, "metricsProvider.httpPort", 7000)
            metrics = Address(properties.get("metricsProvider.httpHost", LOOPBACK), port)
        idle = _admin_number(properties, "admin.idleTimeout", 30_000, most=(1 << 31) - 1, least=1)
        return cls(admin=admin, url=url, idle=idle, metrics=metrics)


def _admin_number(properties: dict[str, str], key: str, default: int, most: int = 65535, least: int = 0) -> int:
    text = properties.get(key)
    number = default if text is None else integer(text, *INT)
    if number is None or not least <= number <= most:
        raise AdminError(f"{key}={text}: not a number from {least} to {most}; write one")
    return number


class Settings(msgspec.Struct, frozen=True):
    """The settings of a node; times are in milliseconds, sizes in bytes.

    - `distributed`: whether there is an ensemble; without one `sid` is 0, as in ZooKeeper.
    - `digests`: whether digests of the tree are written and compared (`digest.enabled`).
    - `read_only`: whether the server answers reads while it has no leader (`readonlymode.enabled`);
      `local_sessions`: whether it may then open sessions that only it knows (`localSessionsEnabled`).
    - `last_seen`: the configuration in `zoo.cfg.dynamic.next`, if it is later than that of `view`.
    """

    config: Config
    sid: Sid
    distributed: bool
    view: View
    tick_time: int
    init_time: int
    sync_time: int
    data_dir: Path
    log_dir: Path
    clients: ClientSettings
    snap_count: int
    preallocation: int
    purge_interval: int
    snapshots_kept: int
    container_check: int
    jute_maxbuffer: int
    options: Options
    security: PeerSecurity = PLAIN
    admin: AdminSettings = AdminSettings()
    digests: bool = True
    trusts_empty: bool = False
    read_only: bool = False
    local_sessions: bool = False
    last_seen: View | None = None

    def peer(self, sid: Sid) -> ServerLine | None:
        """The `server.N` line of a server."""
        return self.config.server(sid)

    @property
    def reconfigurable(self) -> bool:
        """Whether dynamic reconfiguration is enabled."""
        return self.config.reconfig_enabled


def settings_of(config: Config) -> Settings:
    """The settings of a node with this complete configuration. Raises ConfigError."""
    properties = dict(config.properties)
    problems: list[Problem] = []

    def number(key: str, default: int, least: int) -> int:
        text = properties.get(key)
        if text is None:
            return default
        value = integer(text, *INT)
        if value is None or value < least:
            problems.append(Problem(config.file, 0, f"{key}: {text!r} will not do", f"write a number from {least} on"))
            return default
        return value

    problems += _unsupported(config)
    security = _valid(lambda: PeerSecurity.of(properties), PLAIN, config, problems)
    clients = _valid(lambda: _client_settings(config, properties), ClientSettings(), config, problems)
    sid = config.myid if config.distributed and config.myid is not None else 0
    settings = Settings(
        config=config,
        sid=sid,
        distributed=config.distributed,
        view=view_with_text(Ensemble(config.servers, config.view)) if config.distributed else majority_view([sid]),
        tick_time=config.tick_time,
        init_time=config.init_time,
        sync_time=config.sync_time,
        data_dir=system().path(config.data_dir or "."),
        log_dir=system().path(config.data_log_dir or config.data_dir or "."),
        clients=clients,
        snap_count=number("snapCount", 100_000, 2),
        preallocation=number("preAllocSize", 65_536, 0) << 10,
        purge_interval=number("autopurge.purgeInterval", 0, 0) * 3_600_000,
        snapshots_kept=number("autopurge.snapRetainCount", 3, 3),
        container_check=number("znode.container.checkIntervalMs", 60_000, 1),
        jute_maxbuffer=clients.max_buffer,
        digests=is_true(properties, "digest.enabled", otherwise="true"),
        trusts_empty=is_true(properties, "snapshot.trust.empty"),
        read_only=config.distributed and is_true(properties, "readonlymode.enabled"),
        local_sessions=is_true(properties, "localSessionsEnabled"),
        options=Options(
            extended_types=is_true(properties, "extendedTypesEnabled"),
            skip_acl=properties.get("skipACL", "no") == "yes",
            super_digest=properties.get("DigestAuthenticationProvider.superDigest", ""),
            exists_needs_read=is_true(properties, "quorate.existsNeedsRead", otherwise="true"),
            max_multi_read=clients.max_buffer,
            enforce_quota=is_true(properties, "enforceQuota"),
            sasl=has_sasl_provider(properties),
            super_users=super_users(properties),
            any_sasl_user=properties.get("letAnySaslUserDoX", ""),
        ),
        security=security,
        admin=_valid(lambda: AdminSettings.of(properties), AdminSettings(), config, problems),
    )
    if config.client is None and "secureClientPort" not in properties:
        problems.append(Problem(config.file, 0, "clientPort is missing", "add clientPort=2181"))
    if problems:
        raise ConfigError(tuple(problems))
    return settings


def _unsupported(config: Config) -> list[Problem]:
    """The keys that request a security feature which this server does not have; each is an error, not ignored."""
    problems = []
    for key, value in config.properties:
        feature = next((feature for start, feature in _SAFER.items() if key.startswith(start)), None)
        if feature is not None and value.lower() != "false":
            remedy = _INSTEAD.get(key, "remove the line")
            problems.append(Problem(config.file, 0, f"{key}={value}: {feature} is not supported", remedy))
    return problems


def _valid(read: Callable[[], _Read], otherwise: _Read, config: Config, problems: list[Problem]) -> _Read:
    """The settings that `read` returns. An invalid value is added to `problems`, and `otherwise` is used.

    The ValueError that it raises then has the remedy after a semicolon, or none.
    """
    try:
        return read()
    except ValueError as error:
        problem, _, right = str(error).partition("; ")
        problems.append(Problem(config.file, 0, problem, right or "correct that key"))
        return otherwise


def _client_settings(config: Config, properties: dict[str, str]) -> ClientSettings:
    secure = properties.get("secureClientPort")
    host = properties.get("secureClientPortAddress", LOOPBACK)
    return ClientSettings.of(config, _listening(config), Address(host, required_integer(secure)) if secure else None)


def _listening(config: Config) -> Address | None:
    """The address of the client port; loopback if the file names no host for it."""
    if config.client is None:
        return None
    anywhere = config.client.host == ANY_ADDRESS and not config.client_host_named
    return Address(LOOPBACK, config.client.port) if anywhere else config.client
