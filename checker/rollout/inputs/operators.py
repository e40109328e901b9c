"""Resources of operators for Kubernetes: the `Kafka` of Strimzi with its ZooKeeper, and pravega's `ZookeeperCluster`.

Both operators write the zoo.cfg themselves, with `reconfigEnabled=true`, and change the membership by `reconfig`. Their
text is repeated here, with the values of the resource. A key that the operator sets is not taken from the
resource. Rules:

- The id of a pod is its ordinal plus one (pravega: plus OFFSET).
- All servers are participants: an observer is one only until its pod is ready.

Sources: Strimzi, `zookeeper_config_generator.sh`, `zookeeper_run.sh`, `KafkaResources`; pravega/zookeeper-operator,
`zookeepercluster_types.go` (`withDefaults`), `generators.go` (`makeZkConfigString`), `zookeeperStart.sh`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from checker.rollout.inputs.documents import YamlValue
from checker.rollout.inputs.folders import Folder, ServerText, state_of, with_volumes
from checker.rollout.inputs.kubernetes import typed_volume, variables
from checker.rollout.inputs.working import NAMESPACE, Operator, PodHosts, WayOfWorking
from spec.text import required_integer

MOST = 255
STRIMZI = (
    "dataDir=/var/lib/zookeeper/data 4lw.commands.whitelist=* standaloneEnabled=false reconfigEnabled=true "
    "secureClientPort=2181 sslQuorum=true"
)
STRIMZI_DEFAULTS = {"tickTime": "2000", "initLimit": "5", "syncLimit": "2", "autopurge.purgeInterval": "1"}
"""The keys with a default (`ZookeeperConfiguration`)."""
PRAVEGA_WORDS = "4lw.commands.whitelist=cons, envi, conf, crst, srvr, stat, mntr, ruok"
PRAVEGA = "dataDir=/data standaloneEnabled=false reconfigEnabled=true skipACL=yes"
PRAVEGA_DEFAULTS = (
    "initLimit=10 tickTime=2000 syncLimit=2 globalOutstandingLimit=1000 preAllocSize=65536 snapCount=10000 "
    "commitLogCount=500 snapSizeLimitInKb=4194304 maxCnxns=0 maxClientCnxns=60 minSessionTimeout= maxSessionTimeout= "
    "quorumListenOnAllIPs=false autoPurgeSnapRetainCount=3 autoPurgePurgeInterval=1"
)
PRAVEGA_VALUES = dict(pair.split("=") for pair in PRAVEGA_DEFAULTS.split())
"""The keys of `spec.config` with their defaults (`ZookeeperConfig`); the session time-outs depend on tickTime."""
TICKS = {"minSessionTimeout": 2, "maxSessionTimeout": 20}
PORTS = {"client": 2181, "quorum": 2888, "leader-election": 3888}


def read_kafka(resource: YamlValue, path: str) -> Folder:
    """The state of the ZooKeeper that Strimzi runs for a Kafka. Raises ConfigError."""
    name = resource.required("metadata.name", "write the name of the resource").text
    zookeeper = resource.get("spec.zookeeper")
    if zookeeper is None:
        problem = f"the Kafka {name} has no spec.zookeeper: it runs without ZooKeeper (KRaft)"
        raise resource.error(problem, "name a resource with spec.zookeeper.replicas")
    given = zookeeper.required("replicas", "write replicas: 3")
    namespace = resource.word("metadata.namespace", NAMESPACE)
    hosts = PodHosts(f"{name}-zookeeper", f"{name}-zookeeper-nodes", namespace, "svc")
    keys = STRIMZI_DEFAULTS | zookeeper.texts("config")
    fixed = {line.partition("=")[0] for line in STRIMZI.split()}
    lines = [*STRIMZI.split(), *(f"{key}={value}" for key, value in keys.items() if key not in fixed)]
    sids = _sids(given)
    lines += [f"server.{sid}={hosts.host(sid - 1)}:2888:3888:participant;127.0.0.1:12181" for sid in sids]
    how = f"spec.zookeeper.replicas is {len(sids)}; the id of a pod is its ordinal plus one"
    state = _state(path, f"Kafka {name} (Strimzi) in {resource.file}: {how}", lines, sids, Operator.STRIMZI, hosts)
    return with_volumes(state, dict.fromkeys(state.servers, typed_volume(zookeeper, "storage.type")))


def read_zookeeper_cluster(resource: YamlValue, path: str) -> Folder:
    """The state of a ZookeeperCluster of pravega's operator. Raises ConfigError."""
    name = resource.required("metadata.name", "write the name of the resource").text
    given = resource.get("spec.replicas")
    pod = resource.get("spec.pod")
    offsets = (variable.place for variable in (variables(pod) if pod else ()) if variable.name == "OFFSET")
    first = next((place.number(quoted=True) for place in offsets), 1)
    sids = range(first, first + 3) if given is None else _sids(given, first)
    domain = resource.word("spec.kubernetesClusterDomain", "cluster.local")
    hosts = PodHosts(name, f"{name}-headless", resource.word("metadata.namespace", NAMESPACE), f"svc.{domain}")
    ports = {key: _port(resource, key, default) for key, default in PORTS.items()}
    lines = [PRAVEGA_WORDS, *PRAVEGA.split(), *_pravega_keys(resource)]
    address = f"{ports['quorum']}:{ports['leader-election']}:participant;{ports['client']}"
    lines += [f"server.{sid}={hosts.host(sid - first)}:{address}" for sid in sids]
    counted = "replicas is not in it, and the operator's default is 3" if given is None else f"replicas is {len(sids)}"
    how = f"{counted}; the id of a pod is its ordinal plus {first}"
    state = _state(path, f"ZookeeperCluster {name} in {resource.file}: {how}", lines, sids, Operator.PRAVEGA, hosts)
    return with_volumes(state, dict.fromkeys(state.servers, typed_volume(resource, "spec.storageType", "persistence")))


def _port(resource: YamlValue, name: str, default: int) -> int:
    ports = (port.get("containerPort") for port in resource.listed("spec.ports") if port.word("name") == name)
    return next((port.number() for port in ports if port is not None), default)


def _pravega_keys(resource: YamlValue) -> Iterator[str]:
    """The lines for `spec.config`; a value of 0 means the default, as in Go."""
    given = {key: resource.word(f"spec.config.{key}") for key in PRAVEGA_VALUES}
    values = {key: value if given[key] in ("", "0") else given[key] for key, value in PRAVEGA_VALUES.items()}
    ticks = resource.get("spec.config.tickTime")
    tick = ticks.number() if ticks is not None and ticks.number() else required_integer(PRAVEGA_VALUES["tickTime"])
    for key, value in values.items():
        name = re.sub("^autoPurge(.)", lambda match: f"autopurge.{match[1].lower()}", key)
        yield f"{name}={value or tick * TICKS[key]}"
    for key, value in resource.texts("spec.config.additionalConfig").items():
        yield f"{key}={value}"


def _sids(given: YamlValue, first: int = 1) -> range:
    count = given.number()
    if not 1 <= count <= MOST:
        raise given.error(f"{count} servers", f"write a number from 1 to {MOST}")
    return range(first, first + count)


def _state(path: str, taken: str, lines: list[str], sids: range, operator: Operator, hosts: PodHosts) -> Folder:
    text = "\n".join(lines) + "\n"
    texts = [ServerText(sid, path, text, written=False) for sid in sids]
    return state_of(path, texts, [taken], working=WayOfWorking(operator=operator), hosts=hosts)
