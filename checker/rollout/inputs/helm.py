"""The values file of a Helm chart: the environment that the chart gives to its containers, and so their zoo.cfg.

    bitnami/zookeeper         replicaCount, minServerId, containerPorts, tickTime, configuration, ... (6.x to 13.x)
    incubator/zookeeper       servers, or replicaCount with env.ZK_*
    confluent cp-zookeeper    servers, tickTime, ...

The values may also be below the key `zookeeper` or `cp-zookeeper`, for a chart that has one of these as a part.
Rules of this module:

- A chart is recognised by keys that only it has. Values with nothing but `replicaCount` are taken as Bitnami's.
- A default of the chart is used where the file leaves a key out, and `Folder.taken` names the defaults that matter: the
  number of servers, the way of working, and the volume with the data.
- The release and the namespace are not in a values file; `pods` has words that stand for them.

Sources: bitnami/charts, `bitnami/zookeeper` 13.8.8, `values.yaml`, `templates/statefulset.yaml`, and `_names.tpl` of
`bitnami/common`; helm/charts, `incubator/zookeeper`, `values.yaml` and `templates/config-script.yaml`;
confluentinc/cp-helm-charts, `charts/cp-zookeeper`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from checker.rollout.inputs.documents import YamlValue
from checker.rollout.inputs.folders import Folder
from checker.rollout.inputs.generated import ServerText, state_of, with_volumes
from checker.rollout.inputs.images import ImageConfig, ImageError, image_config
from checker.rollout.inputs.kubernetes import check_pods, idle, sids_in, variables, way_of_working
from checker.rollout.inputs.pods import NAMESPACE, RELEASE, PodHosts
from checker.rollout.inputs.volumes import switched_volume
from checker.rollout.inputs.working import PodManagement, UpdateStrategy, WayOfWorking
from spec.quorum import Sid

BITNAMI_KEYS = frozenset(
    {
        *("minServerId", "listenOnAllIPs", "fourlwCommandsWhitelist", "zooServers", "autopurge", "configuration"),
        *("existingConfigmap", "containerPorts", "allowAnonymousLogin", "maxSessionTimeout", "dataLogDir"),
        *("preAllocSize", "snapCount", "jvmFlags", "namespaceOverride", "usePasswordFiles", "clusterDomain"),
    }
)
INCUBATOR_KEYS = frozenset({"tickTimeMs", "initTicks", "terminationGracePeriodSeconds", "exporters", "jobs"})
PARTS = ("zookeeper", "cp-zookeeper")
"""The keys of other charts with the values of a ZooKeeper chart below them."""
MOST = 255
"""The largest number of servers that is read."""


@dataclass(frozen=True)
class _Chart:
    """A chart: its name, how its values become variables (variable, keys, default), and its way of working."""

    name: str
    count: str
    replicas: int
    variables: tuple[tuple[str, str, str], ...]
    pods: PodManagement
    updates: UpdateStrategy
    domain: str = "svc.cluster.local"


BITNAMI = _Chart(
    "bitnami/zookeeper",
    "replicaCount",
    1,
    (
        ("ZOO_DATA_LOG_DIR", "dataLogDir", ""),
        ("ZOO_PORT_NUMBER", "containerPorts.client service.port", "2181"),
        ("ZOO_TICK_TIME", "tickTime", "2000"),
        ("ZOO_INIT_LIMIT", "initLimit", "10"),
        ("ZOO_SYNC_LIMIT", "syncLimit", "5"),
        ("ZOO_PRE_ALLOC_SIZE", "preAllocSize", "65536"),
        ("ZOO_SNAPCOUNT", "snapCount", "100000"),
        ("ZOO_MAX_CLIENT_CNXNS", "maxClientCnxns", "60"),
        ("ZOO_4LW_COMMANDS_WHITELIST", "fourlwCommandsWhitelist", "srvr, mntr, ruok"),
        ("ZOO_LISTEN_ALLIPS_ENABLED", "listenOnAllIPs", "no"),
        ("ZOO_AUTOPURGE_INTERVAL", "autopurge.purgeInterval", "1"),
        ("ZOO_AUTOPURGE_RETAIN_COUNT", "autopurge.snapRetainCount", "10"),
        ("ZOO_MAX_SESSION_TIMEOUT", "maxSessionTimeout", "40000"),
        ("ZOO_TLS_CLIENT_ENABLE", "tls.client.enabled", ""),
        ("ZOO_TLS_QUORUM_ENABLE", "tls.quorum.enabled", ""),
        ("ZOO_ENABLE_AUTH", "auth.client.enabled auth.enabled", ""),
        ("ZOO_ENABLE_QUORUM_AUTH", "auth.quorum.enabled", ""),
    ),
    PodManagement.PARALLEL,
    UpdateStrategy.ROLLING_UPDATE,
)
INCUBATOR = _Chart(
    "incubator/zookeeper",
    "replicaCount",
    3,
    (
        ("ZK_DATA_DIR", "env.ZK_DATA_DIR", "/data"),
        ("ZK_DATA_LOG_DIR", "env.ZK_DATA_LOG_DIR", "/data/log"),
        ("ZK_CLIENT_PORT", "env.ZK_CLIENT_PORT clientPort", "2181"),
        ("ZK_SERVER_PORT", "env.ZK_SERVER_PORT serverPort", "2888"),
        ("ZK_ELECTION_PORT", "env.ZK_ELECTION_PORT leaderElectionPort", "3888"),
        ("ZK_TICK_TIME", "env.ZK_TICK_TIME tickTimeMs", "2000"),
        ("ZK_INIT_LIMIT", "env.ZK_INIT_LIMIT initTicks", "10"),
        ("ZK_SYNC_LIMIT", "env.ZK_SYNC_LIMIT syncTicks", "10"),
        ("ZK_MAX_CLIENT_CNXNS", "env.ZK_MAX_CLIENT_CNXNS clientCnxns", "60"),
        ("ZK_SNAP_RETAIN_COUNT", "env.ZK_SNAP_RETAIN_COUNT snapRetain", "3"),
        ("ZK_PURGE_INTERVAL", "env.ZK_PURGE_INTERVAL purgeHours", "0"),
    ),
    PodManagement.ORDERED_READY,
    UpdateStrategy.ROLLING_UPDATE,
)
CONFLUENT = _Chart(
    "confluent cp-zookeeper",
    "servers",
    3,
    (
        ("ZOOKEEPER_CLIENT_PORT", "clientPort", "2181"),
        ("ZOOKEEPER_TICK_TIME", "tickTime", "2000"),
        ("ZOOKEEPER_INIT_LIMIT", "initLimit", "10"),
        ("ZOOKEEPER_SYNC_LIMIT", "syncLimit", "5"),
        ("ZOOKEEPER_MAX_CLIENT_CNXNS", "maxClientCnxns", "60"),
        ("ZOOKEEPER_AUTOPURGE_SNAP_RETAIN_COUNT", "autoPurgeSnapRetainCount", "3"),
        ("ZOOKEEPER_AUTOPURGE_PURGE_INTERVAL", "autoPurgePurgeInterval", "24"),
    ),
    PodManagement.ORDERED_READY,
    UpdateStrategy.ROLLING_UPDATE,
    domain="",
)


def read_values(document: YamlValue, path: str) -> Folder:
    """The state that a values file describes. Raises ConfigError."""
    values = _part(document)
    chart = _chart(values)
    if chart is None:
        what = f"its keys ({', '.join(document.keys[:8]) or 'none'}) are of no chart that is known here"
        right = (
            "name values of bitnami/zookeeper or incubator/zookeeper (replicaCount: 3), or of cp-zookeeper (servers: "
            "3), or the rendered manifests: helm template ... > rendered.yaml"
        )
        raise document.error(what, right)
    count, counted = _count(values, chart)
    hosts = _hosts(values, chart)
    working = _working(values, chart)
    by_file = _configuration(values) if chart is BITNAMI else None
    first = _number(values, "minServerId", 1) if chart is BITNAMI else 1
    pods = range(first, first + count)
    if by_file is not None:
        texts, how = _texts_of(by_file, pods), f"{by_file.path} is its zoo.cfg; {_ids(first)}"
    else:
        config = _generated(values, chart, count, hosts, first)
        given = values.get("zooServers") if chart is BITNAMI else None
        check_pods(given or values.get(chart.count) or values, config.sids, pods)
        texts = [ServerText(sid, path, config.text, written=False) for sid in config.sids]
        how = config.how if given else _ids(first)
    taken = [f"{path}: values of the chart {chart.name}, {counted}; {how}"]
    if without := idle([each.sid for each in texts], pods):
        taken.append(without)
    state = state_of(path, texts, taken, working=working, hosts=None if by_file else hosts)
    volume = switched_volume(values, "persistence.enabled")
    return with_volumes(state, dict.fromkeys(state.servers, volume))


def _part(document: YamlValue) -> YamlValue:
    """The values of the ZooKeeper chart: the whole document, or the part of another chart."""
    for name in PARTS:
        part = document.get(name) if name in document.keys else None
        if part is not None and part.is_mapping and _chart(part) is not None:
            enabled = part.get("enabled")
            if enabled is not None and not enabled.yes():
                raise enabled.error("this part is switched off", "name values with a ZooKeeper that is switched on")
            return part
    return document


def _chart(values: YamlValue) -> _Chart | None:
    keys = set(values.keys)
    if "servers" in keys:
        return INCUBATOR if keys & INCUBATOR_KEYS else CONFLUENT
    env = values.get("env") if "env" in keys else None
    if keys & INCUBATOR_KEYS or (env is not None and any(key.startswith(("ZK_", "ZOO_")) for key in env.keys)):
        return INCUBATOR
    return BITNAMI if "replicaCount" in keys or keys & BITNAMI_KEYS else None


def _count(values: YamlValue, chart: _Chart) -> tuple[int, str]:
    """The number of servers, and where it comes from."""
    given = values.get("servers") or values.get(chart.count)
    if given is None:
        return chart.replicas, f"{chart.count} is not in it, and the chart's default is {chart.replicas}"
    count = given.number(quoted=True)
    if not 1 <= count <= MOST:
        raise given.error(f"{count} servers", f"write a number from 1 to {MOST}")
    return count, f"{given.path} is {count}"


def _number(values: YamlValue, keys: str, default: int) -> int:
    given = next((value for key in keys.split() if (value := values.get(key))), None)
    return default if given is None else given.number(quoted=True)


def _ids(first: Sid) -> str:
    return f"the id of a pod is its ordinal plus {first}, unless its volume has another myid"


def _hosts(values: YamlValue, chart: _Chart) -> PodHosts:
    full, namespace, domain = (values.get(key) for key in ("fullnameOverride", "namespaceOverride", "clusterDomain"))
    name = full.text if full is not None and full.text else RELEASE
    tail = f"svc.{domain.text}" if domain is not None and chart is BITNAMI else chart.domain
    return PodHosts(name, f"{name}-headless", namespace.text if namespace and namespace.text else NAMESPACE, tail)


def _generated(values: YamlValue, chart: _Chart, count: int, hosts: PodHosts, first: Sid) -> ImageConfig:
    """The zoo.cfg by the variables that the chart sets."""
    env = {name: _text(values, keys) or default for name, keys, default in chart.variables}
    servers = [hosts.host(n) for n in range(count)]
    if chart is BITNAMI:
        follower = _number(values, "containerPorts.follower service.followerPort", 2888)
        election = _number(values, "containerPorts.election service.electionPort", 3888)
        listed = [f"{host}:{follower}:{election}::{first + n}" for n, host in enumerate(servers)]
        env["ZOO_SERVERS"] = _text(values, "zooServers") or " ".join(listed)
        env |= {each.name: each.value for each in variables(values.get("extraEnvVars")) if each.name.startswith("ZOO_")}
    elif chart is CONFLUENT:
        ports = f"{_number(values, 'serverPort', 2888)}:{_number(values, 'leaderElectionPort', 3888)}"
        env["ZOOKEEPER_SERVERS"] = ";".join(f"{host}:{ports}" for host in servers)
    else:
        env["ZK_REPLICAS"] = str(count)
    try:
        return image_config({name: value for name, value in env.items() if value}, "", hosts)
    except ImageError as error:
        place = values.get("zooServers") or values
        raise place.error(f"{error.name}: {error.what}", error.right) from None


def _text(values: YamlValue, keys: str) -> str:
    """The first of some values that is in the file; empty if none is."""
    return next((value.text for key in keys.split() if (value := values.get(key)) is not None), "")


def _configuration(values: YamlValue) -> YamlValue | None:
    """The zoo.cfg in the values, if there is one. Raises ConfigError if it lies elsewhere."""
    elsewhere = values.get("existingConfigmap")
    if elsewhere is not None and elsewhere.text:
        name = elsewhere.text
        right = f"give the rendered manifests together with this ConfigMap (kubectl get configmap {name} -o yaml)"
        raise elsewhere.error(f"the zoo.cfg is in the ConfigMap {name}, which is not in this file", right)
    given = values.get("configuration") or values.get("config")
    return given if given is not None and given.text.strip() else None


def _texts_of(value: YamlValue, pods: Collection[Sid]) -> list[ServerText]:
    """The zoo.cfg in the values, for each pod."""
    text = value.text
    listed = sids_in(text)
    if not listed and len(pods) > 1:
        what = "this zoo.cfg has no server.N line, and the image of Bitnami writes none into a zoo.cfg that is given"
        raise value.error(what, "write the server.N lines into it, or leave it out")
    if listed:
        check_pods(value, listed, pods)
    return [ServerText(sid, f"{value.file} ({value.path})", text) for sid in sorted(listed or set(pods))]


def _working(values: YamlValue, chart: _Chart) -> WayOfWorking:
    pods, updates = values.get("podManagementPolicy"), values.get("updateStrategy")
    if updates is not None and updates.is_mapping:
        updates = updates.get("type")
    partition = values.get("rollingUpdatePartition") or _partition(values)
    return way_of_working(pods, updates, partition, (chart.pods, chart.updates))


def _partition(values: YamlValue) -> YamlValue | None:
    strategy = values.get("updateStrategy")
    return strategy.get("rollingUpdate.partition") if strategy is not None and strategy.is_mapping else None
