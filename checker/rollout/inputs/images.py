"""The zoo.cfg that a container image writes when it starts, from its environment or its command line.

    LIBRARY    the image `zookeeper` of the Docker library: ZOO_SERVERS="server.1=zk-0.zk:2888:3888;2181 ..."
    BITNAMI    the image `bitnami/zookeeper`: ZOO_SERVERS="zk-0.zk:2888:3888::1 ..."
    CONFLUENT  the image `confluentinc/cp-zookeeper`: ZOOKEEPER_SERVERS="zk-0.zk:2888:3888;zk-1.zk:2888:3888"
    SCRIPT     the scripts of the Kubernetes documentation and of incubator/zookeeper: ZK_REPLICAS, or --servers=3

Rules of this module:

- An id comes from the list of servers, if that states it, else it is the position in the list, or the ordinal of the
  pod plus one. `ZooCfg.how` says which.
- A default of an image is written like a given value.
- The images of Bitnami and Confluent, and the scripts, write no `server` line, or no use is made of it, if there is one
  server only: then it runs standalone.

Sources: `docker-entrypoint.sh` of the Docker library's image; `libzookeeper.sh` (`zookeeper_generate_conf`) and
`zookeeper-env.sh` of bitnami/containers; `zookeeper.properties.template` of confluentinc/cp-docker-images;
`start-zookeeper` of kow3ns/kubernetes-zookeeper; `config-script.yaml` of helm/charts, incubator/zookeeper.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import PurePosixPath
from typing import NamedTuple

from checker.rollout.inputs.folders import ServerText
from checker.rollout.inputs.platform import NOT_LISTED, MemberList, PodHosts
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


class ZooCfg(NamedTuple):
    """The zoo.cfg of a container, the ids of its servers, and where they come from.

    `image` writes it; None if it is mounted, from `origin`, with the texts of the files `beside` it.
    """

    text: str
    sids: tuple[Sid, ...]
    how: str
    image: ContainerImage | None = None
    beside: Mapping[str, str] = {}
    origin: str = ""
    listing: MemberList = NOT_LISTED

    def of(self, sid: Sid, origin: str) -> ServerText:
        """The text for a server; `origin` is that of a text which an image writes."""
        return ServerText(sid, self.origin or origin, self.text, self._read, written=self.image is None)

    def _read(self, name: str) -> str | None:
        return self.beside.get(PurePosixPath(name).name)


class _Key(NamedTuple):
    """A key of zoo.cfg, its variable, the default of the image, and the values of a switch that is on, and off."""

    key: str
    name: str
    default: str
    on: str
    off: str


KEY = re.compile(r"([^\s=]+)=(\w*)(?::([^\s?]*))?(?:\?(\w+)/(\w*))?")
_TABLE = {
    ContainerImage.LIBRARY: (
        "dataDir=ZOO_DATA_DIR:/data dataLogDir=ZOO_DATA_LOG_DIR:/datalog tickTime=ZOO_TICK_TIME:2000 "
        "initLimit=ZOO_INIT_LIMIT:5 syncLimit=ZOO_SYNC_LIMIT:2 "
        "autopurge.snapRetainCount=ZOO_AUTOPURGE_SNAPRETAINCOUNT:3 "
        "autopurge.purgeInterval=ZOO_AUTOPURGE_PURGEINTERVAL:0 maxClientCnxns=ZOO_MAX_CLIENT_CNXNS:60 "
        "standaloneEnabled=ZOO_STANDALONE_ENABLED:true admin.enableServer=ZOO_ADMINSERVER_ENABLED:true "
        "4lw.commands.whitelist=ZOO_4LW_COMMANDS_WHITELIST"
    ),
    ContainerImage.BITNAMI: (
        "tickTime=ZOO_TICK_TIME:2000 initLimit=ZOO_INIT_LIMIT:10 syncLimit=ZOO_SYNC_LIMIT:5 "
        "preAllocSize=ZOO_PRE_ALLOC_SIZE:65536 snapCount=ZOO_SNAPCOUNT:100000 dataDir=:/bitnami/zookeeper/data "
        "dataLogDir=ZOO_DATA_LOG_DIR clientPort=ZOO_PORT_NUMBER:2181 maxCnxns=ZOO_MAX_CNXNS:0 "
        "maxClientCnxns=ZOO_MAX_CLIENT_CNXNS:60 reconfigEnabled=ZOO_RECONFIG_ENABLED:no?true/false "
        "quorumListenOnAllIPs=ZOO_LISTEN_ALLIPS_ENABLED:no?true/false "
        "autopurge.purgeInterval=ZOO_AUTOPURGE_INTERVAL:0 autopurge.snapRetainCount=ZOO_AUTOPURGE_RETAIN_COUNT:3 "
        "4lw.commands.whitelist=ZOO_4LW_COMMANDS_WHITELIST:srvr,mntr maxSessionTimeout=ZOO_MAX_SESSION_TIMEOUT:40000 "
        "admin.serverPort=ZOO_ADMIN_SERVER_PORT_NUMBER:8080 admin.enableServer=ZOO_ENABLE_ADMIN_SERVER:no?true/false "
        "client.secure=ZOO_TLS_CLIENT_ENABLE?true/ sslQuorum=ZOO_TLS_QUORUM_ENABLE?true/ "
        "quorum.auth.enableSasl=ZOO_ENABLE_QUORUM_AUTH?true/ requireClientAuthScheme=ZOO_ENABLE_AUTH?sasl/ "
        "peerType=ZOO_PEER_TYPE"
    ),
    ContainerImage.CONFLUENT: (
        "dataDir=:/var/lib/zookeeper/data dataLogDir=:/var/lib/zookeeper/log clientPort=ZOOKEEPER_CLIENT_PORT:2181 "
        "tickTime=ZOOKEEPER_TICK_TIME initLimit=ZOOKEEPER_INIT_LIMIT syncLimit=ZOOKEEPER_SYNC_LIMIT "
        "maxClientCnxns=ZOOKEEPER_MAX_CLIENT_CNXNS autopurge.snapRetainCount=ZOOKEEPER_AUTOPURGE_SNAP_RETAIN_COUNT "
        "autopurge.purgeInterval=ZOOKEEPER_AUTOPURGE_PURGE_INTERVAL "
        "quorumListenOnAllIPs=ZOOKEEPER_QUORUM_LISTEN_ON_ALL_IPS"
    ),
    ContainerImage.SCRIPT: (
        "clientPort=ZK_CLIENT_PORT:2181 dataDir=ZK_DATA_DIR:/var/lib/zookeeper/data "
        "dataLogDir=ZK_DATA_LOG_DIR:/var/lib/zookeeper/log tickTime=ZK_TICK_TIME:2000 initLimit=ZK_INIT_LIMIT:10 "
        "syncLimit=ZK_SYNC_LIMIT:5 maxClientCnxns=ZK_MAX_CLIENT_CNXNS:60 minSessionTimeout=ZK_MIN_SESSION_TIMEOUT "
        "maxSessionTimeout=ZK_MAX_SESSION_TIMEOUT autopurge.snapRetainCount=ZK_SNAP_RETAIN_COUNT:3 "
        "autopurge.purgeInterval=ZK_PURGE_INTERVAL:0"
    ),
}
"""For each image KEY=VARIABLE for each key of zoo.cfg that it writes, then :DEFAULT, and ?YES/NO for a switch."""
KEYS = {image: tuple(_Key(*parts) for parts in KEY.findall(text)) for image, text in _TABLE.items()}
INCUBATOR = {"ZK_DATA_DIR": "/data", "ZK_DATA_LOG_DIR": "/data/log"}
"""The defaults of the script of incubator/zookeeper that differ."""
BY_SCRIPT = ("ZK_SERVER_PORT", "ZK_ELECTION_PORT")
FLAG = re.compile(r"--([a-z_]+)=(\S+)")
ENTRY = r"(?P<server>[^\s:;,]+:[0-9]+:[0-9]+(?::observer|:participant)?)"
BY_POSITION, WITH_ID = re.compile(f"{ENTRY}(?P<sid>)"), re.compile(f"{ENTRY}::(?P<sid>[0-9]{{1,9}})")
OF_LIBRARY = re.compile(r"server\.(?P<sid>[0-9]{1,9})=(?P<server>\S+)")


def image_config(env: Mapping[str, str], command: str, hosts: PodHosts | None) -> ZooCfg:
    """The zoo.cfg that an image writes from its variables and its command line. Raises ImageError.

    `hosts` are the names of the pods, for images that make the list of servers from a number.
    """
    if "start-zookeeper" in command or "--servers=" in command:
        flags = {f"ZK_{name.upper()}": value for name, value in FLAG.findall(command)}
        return _script({**flags, "ZK_REPLICAS": flags.get("ZK_SERVERS", "1")}, hosts, "--servers")
    if "ZK_REPLICAS" in env:
        return _script({**(INCUBATOR if "config-scripts" in command else {}), **env}, hosts, "ZK_REPLICAS")
    if servers := env.get("ZOOKEEPER_SERVERS", "").strip(";"):
        right, how = "write HOST:2888:3888;HOST:2888:3888", "the id of each is its position in ZOOKEEPER_SERVERS"
        members = _servers("ZOOKEEPER_SERVERS", servers.split(";"), BY_POSITION, right)
        return _config(ContainerImage.CONFLUENT, env, members, how, MemberList("ZOOKEEPER_SERVERS", "{server}", ";"))
    servers = env.get("ZOO_SERVERS", "").strip()
    stated = "ids and addresses as ZOO_SERVERS states them"
    if "server." in servers:
        members = _servers("ZOO_SERVERS", servers.split(), OF_LIBRARY, "write server.1=HOST:2888:3888;2181")
        listing = MemberList("ZOO_SERVERS", "server.{sid}={server}")
        return _config(ContainerImage.LIBRARY, env, members, stated, listing)
    if servers:
        client, jumps = env.get("ZOO_PORT_NUMBER") or "2181", "::" in servers
        entries, right = re.split(r"[;, ]+", servers), "write HOST:2888:3888::1, with an id for each"
        members = _servers("ZOO_SERVERS", entries, WITH_ID if jumps else BY_POSITION, right)
        members = {sid: f"{server};{client}" for sid, server in members.items()}
        how = stated if jumps else "the id of each is its position in ZOO_SERVERS"
        listing = MemberList("ZOO_SERVERS", "{server}::{sid}" if jumps else "{server}")
        return _config(ContainerImage.BITNAMI, {**env, "ZOO_PORT_NUMBER": client}, members, how, listing)
    right = "set ZOO_SERVERS, or mount a ConfigMap with a zoo.cfg that has server.N lines"
    raise ImageError("", "no variable and no flag states the servers of the ensemble", right)


def variables_of(image: ContainerImage) -> frozenset[str]:
    """The names of the variables that an image reads."""
    return frozenset((*(key.name for key in KEYS[image]), *BY_SCRIPT, "ZOO_CFG_EXTRA"))


def _servers(name: str, entries: list[str], form: re.Pattern[str], right: str) -> dict[Sid, str]:
    """The servers in a list, by the ids in it, or else by their positions. Raises ImageError."""
    servers: dict[Sid, str] = {}
    for position, entry in enumerate(entries, start=1):
        match = form.fullmatch(entry.strip())
        if match is None:
            raise ImageError(name, f"{entry[:60]!r} is no server", right)
        sid = required_integer(match["sid"]) if match["sid"] else position
        if sid in servers:
            raise ImageError(name, f"server {sid} is in it twice", "write each id once")
        servers[sid] = match["server"]
    return servers


def _script(env: Mapping[str, str], hosts: PodHosts | None, name: str) -> ZooCfg:
    count = env["ZK_REPLICAS"].strip()
    number = integer(count, 1, 99)
    if number is None:
        raise ImageError(name, f"{count[:40]!r} is not a number of servers", "write a number of servers, such as 3")
    if hosts is None:
        raise ImageError(name, "the names of the pods are not known", "give the StatefulSet with its serviceName")
    ports = env.get("ZK_SERVER_PORT", "2888"), env.get("ZK_ELECTION_PORT", "3888")
    servers = {n: ":".join((hosts.host(n - 1), *ports)) for n in range(1, number + 1)}
    how = f"{name} is {count}; the id of a pod is its ordinal plus one"
    return _config(ContainerImage.SCRIPT, env, servers, how, MemberList(name))


def _config(
    image: ContainerImage, env: Mapping[str, str], servers: Mapping[Sid, str], how: str, listing: MemberList
) -> ZooCfg:
    lines = [*_settings(image, env)]
    if len(servers) > 1 or image is ContainerImage.LIBRARY:
        lines += [f"server.{sid}={server}" for sid, server in sorted(servers.items())]
    return ZooCfg("\n".join(lines) + "\n", tuple(sorted(servers)), f"{image.value}: {how}", image, listing=listing)


def _settings(image: ContainerImage, env: Mapping[str, str]) -> Iterator[str]:
    """The lines of zoo.cfg for the variables of an image, and for the keys that it passes on as they are."""
    for key in KEYS[image]:
        value = env.get(key.name) or key.default.replace(",", ", ")
        if value and key.on:
            value = key.on if value.casefold() in YES else key.off
        if value:
            yield f"{key.key}={value}"
    if image is ContainerImage.LIBRARY:
        yield from env.get("ZOO_CFG_EXTRA", "").split()
    if image is ContainerImage.BITNAMI:
        for name in sorted(name for name in env if name.startswith("ZOO_CFG_")):
            yield f"{name.removeprefix('ZOO_CFG_').replace('_', '.')}={env[name]}"
