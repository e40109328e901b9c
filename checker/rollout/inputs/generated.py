"""A state of an ensemble from the text of each server's zoo.cfg, wherever the text comes from.

The same checks apply as for files in a folder. A text that an image or an operator would write has no lines that the
user could look up, so an error or a warning in it has the name of its input only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import msgspec

from checker.rollout.inputs.folders import Folder, ServerFiles, addresses_of, check_quorum, check_together
from checker.rollout.inputs.pods import NAMESPACE, PodHosts
from checker.rollout.inputs.volumes import DataVolume
from checker.rollout.inputs.working import WayOfWorking
from spec.config import ConfigError, Problem, parse_zoo_cfg
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS


@dataclass(frozen=True)
class ServerText:
    """The text of a server's zoo.cfg and its origin; `told` as in `ServerFiles`.

    `beside` are the texts of the files in the same folder, by their names: a dynamic file is among them. `written` is
    False for a text that a program would write: its lines are not those of a file.
    """

    sid: Sid
    origin: str
    text: str
    told: frozenset[str] | None = None
    beside: Mapping[str, str] = field(default_factory=dict)
    written: bool = True


def state_of(
    path: str,
    texts: Iterable[ServerText],
    taken: Iterable[str],
    *,
    working: WayOfWorking | None = None,
    leader: Sid | None = None,
    hosts: PodHosts | None = None,
    together: bool = True,
) -> Folder:
    """The state with these files. Raises ConfigError for a file that ZooKeeper refuses.

    `together`: all files must name the same members, and each member must have one.
    """
    problems: list[Problem] = []
    servers: dict[Sid, ServerFiles] = {}
    for text in texts:
        try:
            servers[text.sid] = _server_files(text)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(tuple(dict.fromkeys(problems)))
    if together:
        check_together(list(servers.values()), shared=False)
    sentences = (*taken, *([working.sentence] if working and working.sentence else []))
    return Folder(path, servers, sentences, working, leader, hosts)


def with_volumes(state: Folder, volumes: Mapping[Sid, DataVolume | None]) -> Folder:
    """A state with the volumes of its servers, as far as they are stated, and a sentence for each kind."""
    stated = {sid: volume for sid, volume in volumes.items() if volume is not None}
    sentences = dict.fromkeys(volume.sentence for volume in stated.values())
    return replace(state, volumes={**state.volumes, **stated}, taken=tuple(dict.fromkeys((*state.taken, *sentences))))


def _server_files(given: ServerText) -> ServerFiles:
    def read(name: str) -> str | None:
        return given.beside.get(PurePosixPath(name).name)

    try:
        config = parse_zoo_cfg(given.text, given.origin, f"{given.sid}\n", read, complete=False)
        check_quorum(config)
    except ConfigError as error:
        if given.written:
            raise
        raise ConfigError(
            tuple(Problem(problem.file, 0, problem.what, problem.right) for problem in error.problems)
        ) from None
    if not given.written:
        placed = tuple(Problem(warning.file, 0, warning.what, warning.right) for warning in config.warnings)
        config = msgspec.structs.replace(config, warnings=placed)
    dynamic = None if config.dynamic_config_file is None else read(config.dynamic_config_file)
    return ServerFiles(given.sid, given.origin, given.text, dynamic, config, given.told)


def with_namespace_of(state: Folder, other: Folder) -> Folder:
    """A state with the namespace of the other one, where its own input does not state it.

    It is taken only if the hosts of all servers that both states have are of this form. Otherwise the state stays as it
    is, and its `taken` says that the word stands for a name.
    """
    hosts = state.hosts
    if hosts is None or not hosts.is_open:
        return state
    there = _hosts(other, hosts, state) if other.hosts is None or not other.hosts.is_open else {}
    name = hosts.namespace_in(there)
    if name is None:
        differ = f", and the hosts of {other.path} have another form" if there else ""
        sentence = f"{NAMESPACE} stands for a name that {state.path} does not state{differ}"
        return replace(state, taken=(*state.taken, sentence))
    texts = [
        ServerText(sid, each.origin, each.text.replace(NAMESPACE, name), each.told, written=False)
        for sid, each in state.servers.items()
    ]
    taken = (*state.taken, f"{NAMESPACE} is {name}: the hosts of {other.path} have this name")
    filled = state_of(state.path, texts, taken)
    return replace(filled, working=state.working, leader=state.leader, volumes=state.volumes)


def _hosts(other: Folder, hosts: PodHosts, state: Folder) -> dict[int, str]:
    """The hosts that another state has for the pods of a state, by the ordinal of the pod."""
    found: dict[int, str] = {}
    ordinals = {hosts.host(n).lower(): n for n in range(len(state.view.members))}
    here, there = addresses_of(state.servers), addresses_of(other.servers)
    for sid in sorted(state.view.members & other.view.members):
        ordinal = next((ordinals[at.host] for at in here.get(sid, ()) if at.host in ordinals), None)
        names = sorted(at.host for at in there.get(sid, ()) if at.host not in WILDCARDS)
        if ordinal is not None and names:
            found[ordinal] = names[0]
    return found
