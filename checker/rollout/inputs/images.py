"""The zoo.cfg that a container image writes when it starts, from its environment or its command line.

    LIBRARY    the image `zookeeper` of the Docker library: ZOO_SERVERS="server.1=zk-0.zk:2888:3888;2181 ..."
    BITNAMI    the image `bitnami/zookeeper`: ZOO_SERVERS="zk-0.zk:2888:3888::1 ..."
    CONFLUENT  the image `confluentinc/cp-zookeeper`: ZOOKEEPER_SERVERS="zk-0.zk:2888:3888;zk-1.zk:2888:3888"
    SCRIPT     the scripts of the Kubernetes documentation and of incubator/zookeeper: ZK_REPLICAS, or --servers=3

Rules of this module:

- An id comes from the list of servers, if that states it, else it is the position in the list, or the ordinal of the
  pod plus one. `ImageConfig.how` says which.
- A default of an image is written like a given value.
- The images of Bitnami and Confluent, and the scripts, write no `server` line, or no use is made of it, if there is one
  server only: then it runs standalone.

Sources: `docker-entrypoint.sh` of the Docker library's image; `libzookeeper.sh` (`zookeeper_generate_conf`) and
`zookeeper-env.sh` of bitnami/containers; `zookeeper.properties.template` of confluentinc/cp-docker-images;
`start-zookeeper` of kow3ns/kubernetes-zookeeper; `config-script.yaml` of helm/charts, incubator/zookeeper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from checker.rollout.inputs.pods import PodHosts
from spec.quorum import Sid
from spec.text import integer, required_integer

YES = ("yes", "true", "1")


class ContainerImage(Enum):
    """A kind of image, by the variable that states its servers."""

    LIBRARY = "the image zookeeper of the Docker library"
    BITNAMI = "the image bitnami/zookeeper"
    CONFLUENT = "the image confluentinc/cp-zookeeper"
    SCRIPT = "the start script of the Kubernetes documentation"


class ImageError(Exception):
    """A value that an image does not accept; `name` is the variable or flag, empty if none states the servers."""

    def __init__(self, name: str, what: str, right: str) -> None:
        super().__init__(f"{name}: {what}; {right}")
        self.name, self.what, self.right = name, what, right


@dataclass(frozen=True)
class ImageConfig:
    """The zoo.cfg that an image writes, the ids of its servers, and where they come from."""

    text: str
    sids: tuple[Sid, ...]
    image: ContainerImage
    how: str


@dataclass(frozen=True)
class _Key:
    """A key of zoo.cfg, the variable with its value, and the default of the image; without one it may be left out."""

    key: str
    name: str
    default: str | None = None
    switch: tuple[str, str] | None = None


TRUE_FALSE = ("true", "false")
KEYS: Mapping[ContainerImage, tuple[_Key, ...]] = {
    ContainerImage.LIBRARY: (
        _Key("dataDir", "ZOO_DATA_DIR", "/data"),
        _Key("dataLogDir", "ZOO_DATA_LOG_DIR", "/datalog"),
        _Key("tickTime", "ZOO_TICK_TIME", "2000"),
        _Key("initLimit", "ZOO_INIT_LIMIT", "5"),
        _Key("syncLimit", "ZOO_SYNC_LIMIT", "2"),
        _Key("autopurge.snapRetainCount", "ZOO_AUTOPURGE_SNAPRETAINCOUNT", "3"),
        _Key("autopurge.purgeInterval", "ZOO_AUTOPURGE_PURGEINTERVAL", "0"),
        _Key("maxClientCnxns", "ZOO_MAX_CLIENT_CNXNS", "60"),
        _Key("standaloneEnabled", "ZOO_STANDALONE_ENABLED", "true"),
        _Key("admin.enableServer", "ZOO_ADMINSERVER_ENABLED", "true"),
        _Key("4lw.commands.whitelist", "ZOO_4LW_COMMANDS_WHITELIST"),
    ),
    ContainerImage.BITNAMI: (
        _Key("tickTime", "ZOO_TICK_TIME", "2000"),
        _Key("initLimit", "ZOO_INIT_LIMIT", "10"),
        _Key("syncLimit", "ZOO_SYNC_LIMIT", "5"),
        _Key("preAllocSize", "ZOO_PRE_ALLOC_SIZE", "65536"),
        _Key("snapCount", "ZOO_SNAPCOUNT", "100000"),
        _Key("dataDir", "", "/bitnami/zookeeper/data"),
        _Key("dataLogDir", "ZOO_DATA_LOG_DIR"),
        _Key("clientPort", "ZOO_PORT_NUMBER", "2181"),
        _Key("maxCnxns", "ZOO_MAX_CNXNS", "0"),
        _Key("maxClientCnxns", "ZOO_MAX_CLIENT_CNXNS", "60"),
        _Key("reconfigEnabled", "ZOO_RECONFIG_ENABLED", "no", TRUE_FALSE),
        _Key("quorumListenOnAllIPs", "ZOO_LISTEN_ALLIPS_ENABLED", "no", TRUE_FALSE),
        _Key("autopurge.purgeInterval", "ZOO_AUTOPURGE_INTERVAL", "0"),
        _Key("autopurge.snapRetainCount", "ZOO_AUTOPURGE_RETAIN_COUNT", "3"),
        _Key("4lw.commands.whitelist", "ZOO_4LW_COMMANDS_WHITELIST", "srvr, mntr"),
        _Key("maxSessionTimeout", "ZOO_MAX_SESSION_TIMEOUT", "40000"),
        _Key("admin.serverPort", "ZOO_ADMIN_SERVER_PORT_NUMBER", "8080"),
        _Key("admin.enableServer", "ZOO_ENABLE_ADMIN_SERVER", "no", TRUE_FALSE),
        _Key("client.secure", "ZOO_TLS_CLIENT_ENABLE", None, ("true", "")),
        _Key("sslQuorum", "ZOO_TLS_QUORUM_ENABLE", None, ("true", "")),
        _Key("quorum.auth.enableSasl", "ZOO_ENABLE_QUORUM_AUTH", None, ("true", "")),
        _Key("requireClientAuthScheme", "ZOO_ENABLE_AUTH", None, ("sasl", "")),
        _Key("peerType", "ZOO_PEER_TYPE"),
    ),
    ContainerImage.CONFLUENT: (
        _Key("dataDir", "", "/var/lib/zookeeper/data"),
        _Key("dataLogDir", "", "/var/lib/zookeeper/log"),
        _Key("clientPort", "ZOOKEEPER_CLIENT_PORT", "2181"),
        _Key("tickTime", "ZOOKEEPER_TICK_TIME"),
        _Key("initLimit", "ZOOKEEPER_INIT_LIMIT"),
        _Key("syncLimit", "ZOOKEEPER_SYNC_LIMIT"),
        _Key("maxClientCnxns", "ZOOKEEPER_MAX_CLIENT_CNXNS"),
        _Key("autopurge.snapRetainCount", "ZOOKEEPER_AUTOPURGE_SNAP_RETAIN_COUNT"),
        _Key("autopurge.purgeInterval", "ZOOKEEPER_AUTOPURGE_PURGE_INTERVAL"),
        _Key("quorumListenOnAllIPs", "ZOOKEEPER_QUORUM_LISTEN_ON_ALL_IPS"),
    ),
    ContainerImage.SCRIPT: (
        _Key("clientPort", "ZK_CLIENT_PORT", "2181"),
        _Key("dataDir", "ZK_DATA_DIR", "/var/lib/zookeeper/data"),
        _Key("dataLogDir", "ZK_DATA_LOG_DIR", "/var/lib/zookeeper/log"),
        _Key("tickTime", "ZK_TICK_TIME", "2000"),
        _Key("initLimit", "ZK_INIT_LIMIT", "10"),
        _Key("syncLimit", "ZK_SYNC_LIMIT", "5"),
        _Key("maxClientCnxns", "ZK_MAX_CLIENT_CNXNS", "60"),
        _Key("minSessionTimeout", "ZK_MIN_SESSION_TIMEOUT"),
        _Key("maxSessionTimeout", "ZK_MAX_SESSION_TIMEOUT"),
        _Key("autopurge.snapRetainCount", "ZK_SNAP_RETAIN_COUNT", "3"),
        _Key("autopurge.purgeInterval", "ZK_PURGE_INTERVAL", "0"),
    ),
}
INCUBATOR = {"ZK_DATA_DIR": "/data", "ZK_DATA_LOG_DIR": "/data/log"}
"""The defaults of the script of incubator/zookeeper that differ."""
BY_SCRIPT = ("ZK_SERVER_PORT", "ZK_ELECTION_PORT")
FLAG = re.compile(r"--([a-z_]+)=(\S+)")
ENTRY = re.compile(r"[^\s:;,]+:[0-9]+:[0-9]+(?::observer|:participant)?(?:::(?P<sid>[0-9]{1,9}))?")
LIBRARY_ENTRY = re.compile(r"server\.([0-9]{1,9})=(\S+)")


def image_config(env: Mapping[str, str], command: str, hosts: PodHosts | None) -> ImageConfig:
    """The zoo.cfg that an image writes from its variables and its command line. Raises ImageError.

    `hosts` are the names of the pods, for images that make the list of servers from a number.
    """
    if "start-zookeeper" in command or "--servers=" in command:
        flags = {f"ZK_{name.upper()}": value for name, value in FLAG.findall(command)}
        return _script({**flags, "ZK_REPLICAS": flags.get("ZK_SERVERS", "1")}, hosts, "--servers")
    if "ZK_REPLICAS" in env:
        return _script({**(INCUBATOR if "config-scripts" in command else {}), **env}, hosts, "ZK_REPLICAS")
    if servers := env.get("ZOOKEEPER_SERVERS", "").strip(";"):
        return _confluent(env, servers)
    servers = env.get("ZOO_SERVERS", "").strip()
    if "server." in servers:
        how = "ids and addresses as ZOO_SERVERS states them"
        return _config(ContainerImage.LIBRARY, env, _library_servers(servers), how)
    if servers:
        return _bitnami(env, servers)
    right = "set ZOO_SERVERS, or mount a ConfigMap with a zoo.cfg that has server.N lines"
    raise ImageError("", "no variable and no flag states the servers of the ensemble", right)


def variables_of(image: ContainerImage) -> frozenset[str]:
    """The names of the variables that an image reads."""
    return frozenset((*(each.name for each in KEYS[image]), *BY_SCRIPT, "ZOO_CFG_EXTRA"))


def _confluent(env: Mapping[str, str], servers: str) -> ImageConfig:
    found: dict[Sid, str] = {}
    for position, entry in enumerate(servers.split(";"), start=1):
        if not ENTRY.fullmatch(entry.strip()):
            right = "write HOST:2888:3888;HOST:2888:3888"
            raise ImageError("ZOOKEEPER_SERVERS", f"{entry[:60]!r} is no server", right)
        found[position] = entry.strip()
    return _config(ContainerImage.CONFLUENT, env, found, "the id of each is its position in ZOOKEEPER_SERVERS")


def _library_servers(servers: str) -> dict[Sid, str]:
    found: dict[Sid, str] = {}
    for entry in servers.split():
        match = LIBRARY_ENTRY.fullmatch(entry)
        if match is None:
            raise ImageError("ZOO_SERVERS", f"{entry[:60]!r} is no server", "write server.1=HOST:2888:3888;2181")
        found[_new(required_integer(match[1]), found, "ZOO_SERVERS")] = match[2]
    return found


def _bitnami(env: Mapping[str, str], servers: str) -> ImageConfig:
    client = env.get("ZOO_PORT_NUMBER") or "2181"
    found: dict[Sid, str] = {}
    jumps = "::" in servers
    for position, entry in enumerate(re.split(r"[;, ]+", servers), start=1):
        match = ENTRY.fullmatch(entry)
        if match is None or bool(match["sid"]) is not jumps:
            raise ImageError(
                "ZOO_SERVERS", f"{entry[:60]!r} is no server", "write HOST:2888:3888::1, with an id for each"
            )
        sid = required_integer(match["sid"]) if jumps else position
        found[_new(sid, found, "ZOO_SERVERS")] = f"{entry.partition('::')[0]};{client}"
    how = "ids and addresses as ZOO_SERVERS states them" if jumps else "the id of each is its position in ZOO_SERVERS"
    return _config(ContainerImage.BITNAMI, {**env, "ZOO_PORT_NUMBER": client}, found, how)


def _script(env: Mapping[str, str], hosts: PodHosts | None, name: str) -> ImageConfig:
    count = env["ZK_REPLICAS"].strip()
    number = integer(count, 1, 99)
    if number is None:
        raise ImageError(name, f"{count[:40]!r} is not a number of servers", "write a number of servers, such as 3")
    if hosts is None:
        raise ImageError(name, "the names of the pods are not known", "give the StatefulSet with its serviceName")
    ports = env.get("ZK_SERVER_PORT", "2888"), env.get("ZK_ELECTION_PORT", "3888")
    servers = {n: ":".join((hosts.host(n - 1), *ports)) for n in range(1, number + 1)}
    how = f"{name} is {count}; the id of a pod is its ordinal plus one"
    return _config(ContainerImage.SCRIPT, env, servers, how)


def _new(sid: Sid, found: Mapping[Sid, str], name: str) -> Sid:
    if sid in found:
        raise ImageError(name, f"server {sid} is in it twice", "write each id once")
    return sid


def _config(image: ContainerImage, env: Mapping[str, str], servers: Mapping[Sid, str], how: str) -> ImageConfig:
    lines = [*_settings(image, env), *_extra(image, env)]
    if len(servers) > 1 or image is ContainerImage.LIBRARY:
        lines += [f"server.{sid}={server}" for sid, server in sorted(servers.items())]
    return ImageConfig("\n".join(lines) + "\n", tuple(sorted(servers)), image, how)


def _settings(image: ContainerImage, env: Mapping[str, str]) -> Iterator[str]:
    """The lines of zoo.cfg for the variables of an image."""
    for each in KEYS[image]:
        value = env.get(each.name) or each.default
        if value is not None and each.switch is not None:
            value = each.switch[0 if value.casefold() in YES else 1]
        if value:
            yield f"{each.key}={value}"


def _extra(image: ContainerImage, env: Mapping[str, str]) -> Iterator[str]:
    """The lines for keys that an image passes on as they are."""
    if image is ContainerImage.LIBRARY:
        yield from env.get("ZOO_CFG_EXTRA", "").split()
    if image is ContainerImage.BITNAMI:
        for name in sorted(name for name in env if name.startswith("ZOO_CFG_")):
            yield f"{name.removeprefix('ZOO_CFG_').replace('_', '.')}={env[name]}"
