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

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from checker.rollout.inputs.documents import YamlValue, input_error
from checker.rollout.inputs.folders import Folder
from checker.rollout.inputs.foreign import COPY_FROM_POD
from checker.rollout.inputs.generated import ServerText, state_of, with_volumes
from checker.rollout.inputs.images import ContainerImage, ImageConfig, ImageError, image_config, variables_of
from checker.rollout.inputs.kubernetes import check_pods, idle, sids_in, variables, way_of_working
from checker.rollout.inputs.pods import NAMESPACE, PodHosts
from checker.rollout.inputs.volumes import DataVolume, mounted_volume
from spec.config import Config, ConfigError
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
        name = self.value.get("metadata.name")
        return f"{self.kind}/{name.text if name is not None else '?'}"

    @property
    def place(self) -> YamlValue:
        """The variable with the servers, or else the container."""
        listed = self.container.get("env")
        places = {each.name: each.place for each in variables(listed)}
        return next((places[name] for name in SERVERS if name in places), self.container)

    def volume(self, config: Config) -> DataVolume | None:
        """The volume with the data of a server. Raises ConfigError."""
        return mounted_volume(self.pod, self.container, self.value.get("spec.volumeClaimTemplates"), config)


def read_manifests(documents: list[YamlValue], path: str) -> Folder:
    """The state that manifests describe. Raises ConfigError."""
    maps = {_name(each): each for each in documents if _kind(each) == "ConfigMap"}
    workloads = [found for each in documents if _kind(each) not in NO_SERVERS for found in _workloads(each, maps)]
    for each in workloads:
        _check_controller(each)
    if not workloads:
        kinds = ", ".join(dict.fromkeys(kind for each in documents if (kind := _kind(each)))) or "nothing"
        what = f"there is no StatefulSet of ZooKeeper in it, only {kinds}"
        raise input_error(path, what, "give the StatefulSet, and the ConfigMap with its zoo.cfg if it has one")
    sets = [each for each in workloads if each.kind == "StatefulSet"]
    if len(workloads) == 1 and sets:
        return _of_stateful_set(workloads[0], maps, path)
    if any(_own_id(each) is None for each in workloads):
        listed = ", ".join(each.name for each in workloads)
        what = f"there are several workloads of ZooKeeper ({listed}), and not each states its id"
        raise input_error(path, what, "give one StatefulSet alone, or set ZOO_MY_ID for each workload")
    return _of_workloads(workloads, maps, path)


def _check_controller(workload: _Workload) -> None:
    """Raises ConfigError for a workload that is not one of Kubernetes itself."""
    version = workload.value.get("apiVersion")
    group = version.text.rpartition("/")[0] if version is not None else ""
    if WORKLOADS.get(workload.kind) != group:
        what = f"the {workload.kind} of {version.text if version else '?'} has a controller that is not known here"
        raise workload.value.error(what, COPY_FROM_POD)


def _kind(value: YamlValue) -> str:
    kind = value.get("kind") if value.is_mapping else None
    return kind.text if kind is not None else ""


def _name(value: YamlValue) -> str:
    name = value.get("metadata.name")
    return name.text if name is not None else ""


# The workloads.


def _workloads(value: YamlValue, maps: Mapping[str, YamlValue]) -> Iterator[_Workload]:
    """A workload, if one of its containers runs ZooKeeper."""
    try:
        pod = value.get("spec") if _kind(value) == "Pod" else value.get("spec.template.spec")
        containers = pod.get("containers") if pod is not None else None
    except ConfigError:
        if _kind(value) in WORKLOADS:
            raise
        return
    if pod is None or containers is None:
        return
    for container in containers.items:
        env, command = _environment(container, maps), _command(container)
        image = container.get("image")
        by_name = image is not None and NAMES.search(image.text) and not re.search("exporter|operator", image.text)
        if by_name or STARTS.search(command) or any(name in env for name in SERVERS):
            yield _Workload(_kind(value), value, pod, container, env, command)
            return


def _command(container: YamlValue) -> str:
    lists = (container.get(key) for key in ("command", "args"))
    return " ".join(item.text for each in lists if each is not None for item in each.items)


def _environment(container: YamlValue, maps: Mapping[str, YamlValue]) -> dict[str, str]:
    """The variables whose values are in the file or in a ConfigMap. Raises ConfigError if that is not given."""
    env: dict[str, str] = {}
    whole = container.get("envFrom")
    for each in whole.items if whole is not None else ():
        if (name := each.get("configMapRef.name")) is not None and name.text in maps:
            data = maps[name.text].get("data")
            env |= {key: _entry(maps[name.text], key) for key in (data.keys if data is not None else ())}
    listed = container.get("env")
    for each in listed.items if listed is not None else ():
        name, source = each.get("name"), each.get("valueFrom.configMapKeyRef")
        if name is not None and source is not None:
            env |= _referred(name.text, source, maps)
    for variable in variables(listed):
        env[variable.name] = REFERENCE.sub(lambda found: env.get(found[1], found[0]), variable.value)
        if variable.name in SERVERS and (unknown := REFERENCE.search(env[variable.name])):
            right = "write its value out, or give the rendered manifests"
            raise variable.place.error(f"{unknown[0]} is not set by a value in this file", right)
    return env


def _referred(name: str, source: YamlValue, maps: Mapping[str, YamlValue]) -> dict[str, str]:
    """The value of a variable that a ConfigMap has. Raises ConfigError if the servers are in one that is not given."""
    where, key = source.get("name"), source.get("key")
    if where is None or key is None:
        return {}
    data = maps[where.text].get("data") if where.text in maps else None
    if data is not None and key.text in data.keys:
        return {name: _entry(maps[where.text], key.text)}
    if name in SERVERS:
        what = f"{name} is in the ConfigMap {where.text}, key {key.text}, which is not in the input"
        raise source.error(what, "add this ConfigMap to the file, or to the folder")
    return {}


def _entry(config_map: YamlValue, key: str) -> str:
    """A value of a ConfigMap, whose keys may have dots in them."""
    data = config_map.get("data")
    value = data.child(key) if data is not None else None
    return "" if value is None else value.text


# The zoo.cfg.


def _mounted(workload: _Workload, maps: Mapping[str, YamlValue]) -> YamlValue | None:
    """The ConfigMap with the zoo.cfg of a workload. Raises ConfigError if it is mounted and not in the input."""
    volumes, mounts = workload.pod.get("volumes"), workload.container.get("volumeMounts")
    names: dict[str, YamlValue] = {}
    for each in volumes.items if volumes is not None else ():
        if (called := each.get("name")) is not None and (source := each.get("configMap.name")) is not None:
            names[called.text] = source
    for source in names.values():
        data = maps[source.text].get("data") if source.text in maps else None
        if data is not None and ZOO_CFG in data.keys:
            return maps[source.text]
    for mount in mounts.items if mounts is not None else ():
        volume, files = mount.get("name"), (mount.get("subPath"), mount.get("mountPath"))
        for file in files:
            if volume is not None and volume.text in names and file is not None and file.text.endswith(ZOO_CFG):
                name = names[volume.text].text
                what = f"the zoo.cfg is in the ConfigMap {name}, which is not in the input"
                raise names[volume.text].error(what, f"add it: kubectl get configmap {name} -o yaml")
    return None


def _texts(config_map: YamlValue, sids: list[Sid]) -> list[ServerText]:
    """The zoo.cfg in a ConfigMap, for these servers."""
    data = config_map.get("data")
    beside = {key: _entry(config_map, key) for key in (data.keys if data is not None else ())}
    origin = f"{config_map.file} (ConfigMap {_name(config_map)}, {ZOO_CFG})"
    return [ServerText(sid, origin, beside[ZOO_CFG], beside=beside) for sid in sids]


def _listed(config_map: YamlValue) -> frozenset[Sid]:
    """The servers of all files in a ConfigMap, at least one. Raises ConfigError."""
    data = config_map.get("data")
    listed = sids_in("\n".join(_entry(config_map, key) for key in (data.keys if data is not None else ())))
    if not listed:
        what = "this zoo.cfg has no server.N line, and the images write none into a zoo.cfg that is mounted"
        place = data.child(ZOO_CFG) if data is not None else None
        raise (place or config_map).error(what, "write the server.N lines into it")
    return listed


def _image_config(workload: _Workload, hosts: PodHosts | None) -> ImageConfig:
    try:
        return image_config(workload.env, workload.command, hosts)
    except ImageError as error:
        what = f"{error.name}: {error.what}" if error.name else f"{workload.name}: {error.what}"
        raise workload.place.error(what, error.right) from None


# One StatefulSet, or a workload for each server.


def _of_stateful_set(workload: _Workload, maps: Mapping[str, YamlValue], path: str) -> Folder:
    value = workload.value
    given, start = value.get("spec.replicas"), value.get("spec.ordinals.start")
    replicas = 1 if given is None else given.number()
    if not replicas:
        assert given is not None
        raise given.error("there is no pod", "write the number of servers")
    if start is not None and start.number():
        raise start.error("the ordinals of the pods do not begin at 0", "this is not supported: leave ordinals out")
    counted = "replicas is not in it, and the default is 1" if given is None else f"replicas is {replicas}"
    config_map = _mounted(workload, maps)
    hosts = _hosts(value)
    if config_map is not None:
        listed, open_hosts, image = sorted(_listed(config_map)), None, None
        texts, how = (
            _texts(config_map, listed),
            f"ids and addresses as the zoo.cfg of ConfigMap {_name(config_map)} states them",
        )
    else:
        config = _image_config(workload, hosts)
        listed, how, image = list(config.sids), f"{config.image.value}: {config.how}", config.image
        texts = [ServerText(sid, path, config.text, written=False) for sid in listed]
        open_hosts = hosts if config.image is ContainerImage.SCRIPT else None
    own = [name for name in IDS if name in workload.env]
    if own and replicas > 1 and not re.search("|".join(own), workload.command):
        right = "derive it from the ordinal of the pod in the command that starts the server"
        raise workload.place.error(f"{own[0]} is {workload.env[own[0]]} for each of {replicas} pods", right)
    pods = [n + 1 for n in range(replicas)] if 1 in listed else listed[:replicas]
    check_pods(given or value, listed, pods if len(pods) == replicas else range(1, replicas + 1))
    taken = [f"{workload.name} in {value.file}: {counted}; {how}"]
    if without := idle(listed, pods):
        taken.append(without)
    ordinals = {sid: ordinal for ordinal, sid in enumerate(pods) if sid in listed}
    working = way_of_working(value, workload.container, ordinals)
    state = state_of(path, texts, taken, working=working, hosts=open_hosts)
    state = with_volumes(state, {sid: workload.volume(each.config) for sid, each in state.servers.items()})
    return replace(state, taken=(*state.taken, *_unread(workload, image)))


def _unread(workload: _Workload, image: ContainerImage | None) -> Iterator[str]:
    """The keys and variables of a workload that were not read. With a zoo.cfg that is mounted the image reads none."""
    used = {*SERVERS, *IDS, *([] if image is None else variables_of(image))}
    listed = workload.container.get("env")
    elsewhere = (name.text for each in (listed.items if listed is not None else ()) if (name := each.get("name")))
    names = sorted({*workload.env, *elsewhere} - used)
    if passed := [name for name in names if image is None or not name.startswith("ZOO_CFG_")]:
        yield f"variables of {workload.name} that say nothing here: {', '.join(passed)}"
    if keys := [*workload.value.unread]:
        yield f"not read of {workload.name}: {', '.join(keys)}"


def _hosts(value: YamlValue) -> PodHosts | None:
    service, namespace = value.get("spec.serviceName"), value.get("metadata.namespace")
    if service is None:
        return None
    return PodHosts(_name(value), service.text, NAMESPACE if namespace is None else namespace.text)


def _own_id(workload: _Workload) -> Sid | None:
    given = next((workload.env[name] for name in IDS if name in workload.env), "")
    return integer(given, 0, 999_999_999)


def _of_workloads(workloads: list[_Workload], maps: Mapping[str, YamlValue], path: str) -> Folder:
    """The state of workloads; each of them is one server."""
    texts: dict[Sid, ServerText] = {}
    named: dict[Sid, _Workload] = {}
    images: dict[Sid, ContainerImage | None] = {}
    taken = []
    for each in workloads:
        sid = _own_id(each)
        assert sid is not None
        if sid in texts:
            raise each.container.error(f"{each.name} is server {sid}, and another workload too", "give each its own id")
        named[sid] = each
        config_map = _mounted(each, maps)
        if config_map is not None:
            _listed(config_map)
            [texts[sid]], how = _texts(config_map, [sid]), f"the zoo.cfg of ConfigMap {_name(config_map)}"
            images[sid] = None
        else:
            config = _image_config(each, None)
            texts[sid] = ServerText(sid, f"{each.value.file} ({each.name})", config.text, written=False)
            how, images[sid] = f"{config.image.value}: {config.how}", config.image
        taken.append(f"{each.name} for server {sid} (by its variable); {how}")
    state = state_of(path, [texts[sid] for sid in sorted(texts)], taken)
    state = with_volumes(state, {sid: named[sid].volume(each.config) for sid, each in state.servers.items()})
    unread = (sentence for sid in sorted(named) for sentence in _unread(named[sid], images[sid]))
    return replace(state, taken=(*state.taken, *unread))
