"""The client port's settings in zoo.cfg, with ZooKeeper's defaults.

Rules this module keeps:

- The keys are ZooKeeper's. There `globalOutstandingLimit`, `4lw.commands.whitelist` and `nio.sessionlessCnxnTimeout`
  are system properties that zoo.cfg can set, and `jute.maxbuffer` is one that only the command line can set.
- An invalid value is an error that names the key, the value and the remedy.
Source: `QuorumPeerConfig.parseProperties`, `NIOServerCnxnFactory.configure`, `FourLetterCommands`,
`ZooKeeperServer.dumpConf`, `QuorumZooKeeperServer.dumpConf`.
"""

import msgspec

from refimpl.clients.auth import AuthSettings
from refimpl.tls import TlsSettings
from spec.config.server_line import Address, LearnerType
from spec.config.zoo_cfg import Config
from spec.service.handshake import Limits
from spec.text import INT, integer

DEFAULT_WORDS = frozenset({"srvr"})


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The client port's settings. Times are in milliseconds, sizes in bytes; a limit of 0 means unlimited.

    `max_waiting` and `max_waiting_bytes` bound the waiting requests of one connection; beyond them reading from the
    client pauses. `max_unsent` bounds the bytes that a client has not read, `max_unsent_in_all` those of all clients,
    and `max_watch_bytes` the paths that one watches; beyond them the client, or the slowest one, is disconnected.
    ZooKeeper has no such bounds. `large_request_max_bytes` bounds the waiting requests of all connections: each may
    then have one. ZooKeeper counts only those above `largeRequestThreshold`, none by default, and disconnects the
    client.
    `conf` are the lines of the word `conf`, without the members.
    """

    address: Address | None = None
    secure_address: Address | None = None
    tls: TlsSettings | None = None
    auth: AuthSettings = AuthSettings()
    server_id: int = 0
    tick_time: int = 3000
    session_limits: Limits = Limits(6000, 60000)
    max_client_cnxns: int = 60
    max_cnxns: int = 0
    max_buffer: int = 0xFFFFF
    connect_timeout: int = 10_000
    global_outstanding_limit: int = 1000
    max_waiting: int = 1000
    max_waiting_bytes: int = 4 * 1024 * 1024
    large_request_max_bytes: int = 100 * 1024 * 1024
    max_unsent: int = 64 * 1024 * 1024
    max_unsent_in_all: int = 128 * 1024 * 1024
    max_watch_bytes: int = 64 * 1024 * 1024
    words: frozenset[str] = DEFAULT_WORDS
    conf: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Config, address: Address | None, secure_address: Address | None = None) -> "ClientSettings":
        """The settings of a port at these addresses. Raises ValueError for an invalid value."""
        properties = dict(config.properties)
        return cls(
            address=address,
            secure_address=secure_address,
            tls=TlsSettings.of(properties) if secure_address else None,
            auth=AuthSettings.of(properties),
            server_id=config.myid or 0,
            tick_time=config.tick_time,
            session_limits=Limits(config.min_session_timeout, config.max_session_timeout),
            max_client_cnxns=_number(properties, "maxClientCnxns", 60),
            max_cnxns=_number(properties, "maxCnxns", 0),
            max_buffer=_number(properties, "jute.maxbuffer", 0xFFFFF, least=1024),
            connect_timeout=_number(properties, "nio.sessionlessCnxnTimeout", 10_000, least=1),
            global_outstanding_limit=_number(properties, "globalOutstandingLimit", 1000, least=1),
            large_request_max_bytes=_number(properties, "largeRequestMaxBytes", 100 * 1024 * 1024, least=1),
            max_watch_bytes=_number(properties, "quorate.maxWatchBytes", 64 * 1024 * 1024, least=1),
            words=whitelist(properties.get("4lw.commands.whitelist", "")),
            conf=tuple(_conf(config, properties, address, secure_address)),
        )


def whitelist(text: str) -> frozenset[str]:
    """The words that are answered: those listed, all for `*`, and `srvr` always, since zkServer.sh needs it."""
    return frozenset(word.strip() for word in text.split(",") if word.strip()) | DEFAULT_WORDS


def _number(properties: dict[str, str], key: str, default: int, least: int = 0) -> int:
    text = properties.get(key)
    if text is None:
        return default
    # jute.maxbuffer is read with Integer.getInteger, which accepts 0x.
    number = integer(text[2:], *INT, base=16) if text.lower().startswith("0x") else integer(text, *INT)
    if number is None or number < least:
        raise ValueError(f"{key}={text}: not a whole number of at least {least}")
    return number


def _conf(config: Config, properties: dict[str, str], address: Address | None, secure: Address | None) -> list[str]:
    """The output of the word `conf`, without the two lines with the sizes of the directories."""
    lines = [
        f"clientPort={address.port if address else -1}",
        f"secureClientPort={secure.port if secure else -1}",
        f"dataDir={config.data_dir}/version-2",
        f"dataLogDir={config.data_log_dir or config.data_dir}/version-2",
        f"tickTime={config.tick_time}",
        f"maxClientCnxns={_number(properties, 'maxClientCnxns', 60)}",
        f"minSessionTimeout={config.min_session_timeout}",
        f"maxSessionTimeout={config.max_session_timeout}",
        f"clientPortListenBacklog={properties.get('clientPortListenBacklog', '-1')}",
        f"serverId={config.myid or 0}",
    ]
    me = config.server(config.myid) if config.distributed and config.myid is not None else None
    if me is None:
        return lines
    lines += [
        f"initLimit={config.init_limit}",
        f"syncLimit={config.sync_limit}",
        "electionAlg=3",
        "electionPort=" + "|".join(str(address.election_port) for address in me.addresses),
        "quorumPort=" + "|".join(str(address.quorum_port) for address in me.addresses),
        f"peerType={int(config.peer_type is LearnerType.OBSERVER)}",
    ]
    return lines
