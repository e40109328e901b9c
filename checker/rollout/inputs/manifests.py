"""Kubernetes manifests: a StatefulSet of ZooKeeper, or a workload for each server, with the ConfigMaps they refer to.

    a ConfigMap with the key zoo.cfg, in a volume of the workload    that zoo.cfg; the images write none then
    ZOO_SERVERS, ZOOKEEPER_SERVERS, ZK_REPLICAS, --servers=3         the zoo.cfg that the image writes (`images`)

Rules of this module:

- A workload is ZooKeeper's by the name of an image, by a variable with the servers, or by the command that starts one.
- Variables are looked up in the file and in its ConfigMaps (`configMapKeyRef`, `envFrom`). Secrets are never needed.
- A workload counts if its `apiVersion` and `kind` are those of Kubernetes. Other controllers, as those of OpenKruise,
  restart pods in their own ways.
- A default of Kubernetes is used where a key is missing (one replica), and `Folder.taken` says so. It also names every
  key that was not read.

Sources: Kubernetes, "StatefulSets" and "Running ZooKeeper, A Distributed System Coordinator".
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from checker.rollout.inputs.documents import COPY_FROM_POD, YamlValue, input_error
from checker.rollout.inputs.folders import Folder, sids_in, state_of, with_volumes
from checker.rollout.inputs.images import ContainerImage, ImageError, ZooCfg, image_config, variables_of
from checker.rollout.inputs.kubernetes import mounted_volume, variables, way_of_working
from checker.rollout.inputs.platform import NAMESPACE, MemberList, PodHosts
from spec.config import ConfigError
from spec.quorum import Sid
from spec.text import integer

WORKLOADS = {"StatefulSet": "apps", "Deployment": "apps", "Pod": ""}
"""The kinds of workloads that are servers, each with the group of its `apiVersion`."""
NO_SERVERS = ("Job", "CronJob")
NAMES = re.compile(r"zookeeper|k8szk", re.IGNORECASE)
STARTS = re.compile(r"zkServer|start-zookeeper|QuorumPeerMain|zkGenConfig")
SERVERS = ("ZOO_SERVERS", "ZOOKEEPER_SERVERS", "ZK_REPLICAS")
IDS = ("ZOO_MY_ID", "ZOO_SERVER_ID", "ZOOKEEPER_SERVER_ID", "ZK_SERVER_ID")
REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
ZOO_CFG = "zoo.cfg"


@dataclass(frozen=True)
class _Workload:
    """A StatefulSet, Deployment or Pod, and its container of ZooKeeper with its variables and its command."""

    kind: str
    value: YamlValue
    pod: YamlValue
    container: YamlValue
    env: Mapping[str, str]
    command: str

    @property
    def name(self) -> str:
        """The kind and the name, as kubectl writes them."""
        return f"{self.kind}/{self.value.word('metadata.name', '?')}"

    @property
    def place(self) -> YamlValue:
        """The variable with the servers, or else the container."""
        places = {variable.name: variable.place for variable in variables(self.container)}
        return next((places[name] for name in SERVERS if name in places), self.container)

    @property
    def sid(self) -> Sid | None:
        """The id that a variable states."""
        return integer(next((self.env[name] for name in IDS if name in self.env), ""), 0, 999_999_999)

    def complete(self, state: Folder, sids: Collection[Sid], image: ContainerImage | None) -> Folder:
        """A state with the volumes of these servers, and with the keys and variables that were not read.

        With a zoo.cfg that is mounted, `image` is None: it reads no variable then.
        """
        claims = self.value.listed("spec.volumeClaimTemplates")
        volumes = {sid: mounted_volume(self.pod, self.container, claims, state.servers[sid].config) for sid in sids}
        used = {*SERVERS, *IDS, *([] if image is None else variables_of(image))}
        names = {*self.env, *(variable.word("name") for variable in self.container.listed("env"))} - used
        passed = [name for name in sorted(names) if image is None or not name.startswith("ZOO_CFG_")]
        state = with_volumes(state, volumes)
        unread = (
            (f"variables of {self.name} that say nothing here", passed),
            (f"not read of {self.name}", [*self.value.unread]),
        )
        sentences = (f"{heading}: {', '.join(keys)}" for heading, keys in unread if keys)
        return replace(state, taken=(*state.taken, *sentences))


def read_manifests(documents: list[YamlValue], path: str) -> Folder:
    """The state that manifests describe. Raises ConfigError."""
    maps = {document.word("metadata.name"): document for document in documents if kind_of(document) == "ConfigMap"}
    candidates = (_workload(document, maps) for document in documents if kind_of(document) not in NO_SERVERS)
    workloads = [workload for workload in candidates if workload is not None]
    for workload in workloads:
        version = workload.value.word("apiVersion", "?")
        if WORKLOADS.get(workload.kind) != version.rpartition("/")[0]:
            problem = f"the {workload.kind} of {version} has a controller that is not known here"
            raise workload.value.error(problem, COPY_FROM_POD)
    if not workloads:
        kinds = ", ".join(dict.fromkeys(kind for document in documents if (kind := kind_of(document)))) or "nothing"
        problem = f"nothing in it ({kinds}) has a container with an image, a command or variables of ZooKeeper"
        raise input_error(path, problem, "give the StatefulSet, and the ConfigMap with its zoo.cfg if it has one")
    if len(workloads) == 1 and workloads[0].kind == "StatefulSet":
        return _of_stateful_set(workloads[0], maps, path)
    if any(workload.sid is None for workload in workloads):
        names = ", ".join(workload.name for workload in workloads)
        problem = f"there are several workloads of ZooKeeper ({names}), and not each states its id"
        raise input_error(path, problem, "give one StatefulSet alone, or set ZOO_MY_ID for each workload")
    return _of_workloads(workloads, maps, path)


def kind_of(value: YamlValue) -> str:
    """The kind of a resource; empty if it states none, or no `apiVersion`."""
    return value.word("kind") if value.is_mapping and value.word("apiVersion") else ""


def _workload(value: YamlValue, maps: Mapping[str, YamlValue]) -> _Workload | None:
    kind = kind_of(value)
    try:
        pod = value.get("spec" if kind == "Pod" else "spec.template.spec")
        containers = pod.listed("containers") if pod is not None else []
    except ConfigError:
        if kind in WORKLOADS:
            raise
        return None
    for container in containers:
        env, image = _environment(container, maps), container.word("image")
        command = " ".join(word.text for key in ("command", "args") for word in container.listed(key))
        by_name = NAMES.search(image) and not re.search("exporter|operator", image)
        if pod and (by_name or STARTS.search(command) or any(name in env for name in SERVERS)):
            return _Workload(kind, value, pod, container, env, command)
    return None


def _environment(container: YamlValue, maps: Mapping[str, YamlValue]) -> dict[str, str]:
    """The variables whose values are in the file or in a ConfigMap. Raises ConfigError if that is not given."""
    env: dict[str, str] = {}
    for entry in container.listed("envFrom"):
        if (name := entry.word("configMapRef.name")) in maps:
            env |= maps[name].texts("data")
    for entry in container.listed("env"):
        if (source := entry.get("valueFrom.configMapKeyRef")) is not None:
            env |= _referred(entry.word("name"), source, maps)
    for variable in variables(container):
        env[variable.name] = REFERENCE.sub(lambda found: env.get(found[1], found[0]), variable.value)
        if variable.name in SERVERS and (unknown := REFERENCE.search(env[variable.name])):
            right = "write its value out, or give the rendered manifests"
            raise variable.place.error(f"{unknown[0]} is not set by a value in this file", right)
    return env


def _referred(name: str, source: YamlValue, maps: Mapping[str, YamlValue]) -> dict[str, str]:
    """The value of a variable that a ConfigMap has. Raises ConfigError if the servers are in one that is not given."""
    where, key = source.word("name"), source.word("key")
    data = maps[where].get("data") if where in maps else None
    if data is not None and (value := data.child(key)) is not None:
        return {name: "" if value.is_null else value.text}
    if name in SERVERS and where and key:
        problem = f"{name} is in the ConfigMap {where}, key {key}, which is not in the input"
        raise source.error(problem, "add this ConfigMap to the file, or to the folder")
    return {}


def _zoo_cfg(workload: _Workload, maps: Mapping[str, YamlValue], hosts: PodHosts | None) -> ZooCfg:
    config_map = _mounted(workload, maps)
    if config_map is not None:
        data, name = config_map.texts("data"), config_map.word("metadata.name")
        sids = sids_in("\n".join(data.values()))
        if not sids:
            problem = "this zoo.cfg has no server.N line, and the images write none into a zoo.cfg that is mounted"
            place = config_map.get("data")
            raise ((place and place.child(ZOO_CFG)) or config_map).error(problem, "write the server.N lines into it")
        origin, how = f"{config_map.file} (ConfigMap {name}, {ZOO_CFG})", f"the zoo.cfg of ConfigMap {name}"
        listing = MemberList(config_map=name)
        return ZooCfg(data[ZOO_CFG], tuple(sorted(sids)), how, None, data, origin, listing)
    try:
        return image_config(workload.env, workload.command, hosts)
    except ImageError as error:
        raise workload.place.error(f"{error.name or workload.name}: {error.what}", error.right) from None


def _mounted(workload: _Workload, maps: Mapping[str, YamlValue]) -> YamlValue | None:
    """The ConfigMap with the zoo.cfg of a workload. Raises ConfigError if it is mounted and not in the input."""
    names = {
        volume.word("name"): source
        for volume in workload.pod.listed("volumes")
        if (source := volume.get("configMap.name")) is not None
    }
    for source in names.values():
        data = maps[source.text].get("data") if source.text in maps else None
        if data is not None and ZOO_CFG in data.keys:
            return maps[source.text]
    for mount in workload.container.listed("volumeMounts"):
        volume, files = mount.word("name"), (mount.word("subPath"), mount.word("mountPath"))
        if volume in names and any(file.endswith(ZOO_CFG) for file in files):
            name = names[volume].text
            problem = f"the zoo.cfg is in the ConfigMap {name}, which is not in the input"
            raise names[volume].error(problem, f"add it: kubectl get configmap {name} -o yaml")
    return None


def _of_stateful_set(workload: _Workload, maps: Mapping[str, YamlValue], path: str) -> Folder:
    value = workload.value
    replicas_value, start = value.get("spec.replicas"), value.get("spec.ordinals.start")
    replicas = 1 if replicas_value is None else replicas_value.number()
    if replicas_value is not None and not replicas:
        raise replicas_value.error("there is no pod", "write the number of servers")
    if start is not None and start.number():
        raise start.error("the ordinals of the pods do not begin at 0", "this is not supported: leave ordinals out")
    count = "replicas is not in it, and the default is 1" if replicas_value is None else f"replicas is {replicas}"
    service, hosts = value.word("spec.serviceName"), None
    if service:
        hosts = PodHosts(value.word("metadata.name"), service, value.word("metadata.namespace", NAMESPACE))
    source = _zoo_cfg(workload, maps, hosts)
    how = f"ids and addresses as {source.how} states them" if source.image is None else source.how
    ids = [name for name in IDS if name in workload.env]
    if ids and replicas > 1 and not re.search("|".join(ids), workload.command):
        right = "derive it from the ordinal of the pod in the command that starts the server"
        raise workload.place.error(f"{ids[0]} is {workload.env[ids[0]]} for each of {replicas} pods", right)
    sids = source.sids
    pods = [n + 1 for n in range(replicas)] if 1 in sids else sids[:replicas]
    for sid in pods if len(pods) == replicas else range(1, replicas + 1):
        if sid not in sids:
            names = ", ".join(map(str, sids))
            problem = f"there are {replicas} pods, and the list of servers ({names}) lacks server {sid}"
            raise (replicas_value or value).error(problem, "list every server, or ask for fewer pods")
    sentences = [f"{workload.name} in {value.file}: {count}; {how}"]
    if idle := [str(sid) for sid in sids if sid not in pods]:
        sentence = f"no pod has the id of server {', '.join(idle)}, which the list names"
        sentences.append(f"{sentence}: --down {','.join(idle)} says so")
    listing = source.listing
    if listing.variable in {variable.name for variable in variables(workload.container)}:
        listing = listing._replace(container=workload.container.word("name"))
    ordinals = {sid: ordinal for ordinal, sid in enumerate(pods)}
    working = replace(way_of_working(value, workload.container, ordinals), listing=listing)
    open_hosts = hosts if source.image is ContainerImage.SCRIPT else None
    texts = (source.of(sid, path) for sid in sids)
    state = state_of(path, texts, sentences, working=working, hosts=open_hosts)
    return workload.complete(state, state.servers, source.image)


def _of_workloads(workloads: list[_Workload], maps: Mapping[str, YamlValue], path: str) -> Folder:
    owned: dict[Sid, tuple[_Workload, ZooCfg]] = {}
    for workload in workloads:
        assert workload.sid is not None
        if workload.sid in owned:
            problem = f"{workload.name} is server {workload.sid}, and another workload too"
            raise workload.container.error(problem, "give each its own id")
        owned[workload.sid] = workload, _zoo_cfg(workload, maps, None)
    causes = [f"{work.name} for server {sid} (by its variable); {source.how}" for sid, (work, source) in owned.items()]
    owned = dict(sorted(owned.items()))
    texts = (source.of(sid, f"{work.value.file} ({work.name})") for sid, (work, source) in owned.items())
    state = state_of(path, texts, causes)
    for sid, (work, source) in owned.items():
        state = work.complete(state, [sid], source.image)
    return state
