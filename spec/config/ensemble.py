"""The part of a configuration all servers ought to share: servers, groups, weights and version.

ZooKeeper keeps it in `zoo.cfg` itself, or in the file that `dynamicConfigFile` names, and gossips it as text
while it elects. All three are read here, and the text is written here.

Rules this module keeps:

- What ZooKeeper refuses is an error. What it starts with although it can hardly be meant is a warning: a
  weight without effect, a negative weight, an observer that weighs in a group, several addresses.
- ZooKeeper meets some mistakes with an exception nobody catches. They are errors like the others here.

Sources: `QuorumPeerConfig.parseDynamicConfig`, `QuorumHierarchical.parse` and `computeGroupWeight`,
`QuorumMaj.toString`, `QuorumHierarchical.toString`, `QuorumPeer.configFromString`.
"""

from collections.abc import Mapping

import msgspec

from spec.config.problems import Findings, java_integer, java_split
from spec.config.properties import Property, last_of_each, read_properties
from spec.config.server_line import BadServerLineError, LearnerType, Server, parse_server, render_server
from spec.quorum import Hierarchical, Majority, QuorumSystem, Sid, View, hierarchical

_GROUP_FORM = "write group.N=1:2:3, the ids of its servers between colons"
_WEIGHT_FORM = "write weight.N=W, the id of a server and a whole number"
_SERVER_FORM = "write server.N=..., N being the number in that server's myid file"


class Ensemble(msgspec.Struct, frozen=True):
    """The servers in ascending order of their ids, and the view they make."""

    servers: tuple[Server, ...]
    view: View


def parse_ensemble(text: str, file: str = "config", standalone_enabled: bool = True) -> Ensemble:
    """Reads the text servers gossip, as `render_ensemble` writes it (`QuorumPeer.configFromString`).

    Nothing but `server.`, `group.`, `weight.` and `version` may stand in it. Raises ConfigError.
    """
    findings = Findings()
    properties = last_of_each(read_properties(text, file, findings), file, findings)
    reject_unrecognised(properties, file, findings)
    version = read_version(properties, file, findings)
    ensemble = read_ensemble(properties, file, findings, standalone_enabled, version)
    findings.warnings()
    return ensemble


def render_ensemble(ensemble: Ensemble) -> str:
    """The text of an ensemble as `QuorumVerifier.toString` writes it, in ascending order of the ids."""
    lines = [f"server.{server.sid}={render_server(server)}" for server in ensemble.servers]
    quorums = ensemble.view.quorums
    if isinstance(quorums, Hierarchical):
        lines += [f"group.{gid}={':'.join(map(str, servers))}" for gid, servers in quorums.groups]
        lines += [f"weight.{sid}={weight}" for sid, weight in quorums.weights]
    lines.append(f"version={ensemble.view.version % (1 << 64):x}")
    return "\n".join(lines)


def is_ensemble_key(key: str) -> bool:
    """Whether a key belongs to the ensemble; like ZooKeeper, by how it begins."""
    return key.startswith(("server.", "group", "weight"))


def reject_unrecognised(properties: Mapping[str, Property], file: str, findings: Findings) -> None:
    """Notes every key that may not stand in a dynamic file (`QuorumPeerConfig.parseDynamicConfig`)."""
    for key, prop in properties.items():
        if not is_ensemble_key(key) and key != "version":
            what = f"unrecognised parameter {key}"
            findings.error(file, prop.line, what, "move it to the static file, zoo.cfg")


def read_version(properties: Mapping[str, Property], file: str, findings: Findings) -> int:
    """The configuration's version, written in hexadecimal; 0 when there is none."""
    prop = properties.get("version")
    if prop is None:
        return 0
    version = java_integer(prop.value, bits=64, base=16)
    if version is None:
        what = f"version {prop.value!r} is not a hexadecimal number"
        findings.error(file, prop.line, what, "write it like version=100000003")
    return version or 0


def read_ensemble(
    properties: Mapping[str, Property],
    file: str,
    findings: Findings,
    standalone_enabled: bool,
    version: int,
) -> Ensemble:
    """The ensemble the properties describe. Use it only if `findings` holds no error afterwards."""
    servers = _read_servers(properties, file, findings)
    if any(key.startswith(("group", "weight")) for key in properties):
        quorums: QuorumSystem = _HierarchyReader(properties, file, findings, servers).read()
    else:
        quorums = Majority(_of_type(servers, LearnerType.PARTICIPANT))
    # A hierarchy with errors may lack voters; an observer is still never among its voters.
    view = View(quorums, _of_type(servers, LearnerType.OBSERVER), version)
    ensemble = Ensemble(tuple(servers[sid] for sid in sorted(servers)), view)
    _check_participants(ensemble, file, findings, standalone_enabled)
    return ensemble


def _of_type(servers: Mapping[Sid, Server], learner_type: LearnerType) -> frozenset[Sid]:
    return frozenset(sid for sid, server in servers.items() if server.learner_type is learner_type)


def _read_servers(properties: Mapping[str, Property], file: str, findings: Findings) -> dict[Sid, Server]:
    servers: dict[Sid, Server] = {}
    for key, prop in properties.items():
        if not key.startswith("server."):
            continue
        sid = java_integer(key.removeprefix("server."), bits=64)
        if sid is None:
            findings.error(file, prop.line, f"{key} does not name a server by its number", _SERVER_FORM)
        elif sid in servers:
            what = f"{key} is server {sid} once more, and ZooKeeper may take either line"
            findings.error(file, prop.line, what, "keep one of the lines")
        else:
            server = _read_server(sid, prop, file, findings)
            servers[sid] = server or _guessed(sid, prop.value)
    return servers


def _read_server(sid: Sid, prop: Property, file: str, findings: Findings) -> Server | None:
    try:
        server = parse_server(sid, prop.value)
    except BadServerLineError as error:
        findings.error(file, prop.line, f"{prop.key}: {error.what}", error.right)
        return None
    if len(server.addresses) > 1:
        right = "start with -Dzookeeper.multiAddress.enabled=true (the key in zoo.cfg comes too late)"
        findings.warn(file, prop.line, f"{prop.key}: ZooKeeper refuses several addresses by default", right)
    if any(not address.host for address in server.addresses):
        findings.warn(file, prop.line, f"{prop.key}: an empty host means the loopback address", "name the host")
    return server


def _guessed(sid: Sid, value: str) -> Server:
    """What a broken line still says: that there is such a server. It saves errors that only follow."""
    observes = "observer" in value.lower()
    return Server(sid, (), LearnerType.OBSERVER if observes else LearnerType.PARTICIPANT)


def _check_participants(ensemble: Ensemble, file: str, findings: Findings, standalone_enabled: bool) -> None:
    """The rules of `parseDynamicConfig` about how many servers vote."""
    if findings.broken:
        return
    voters = [s for s in ensemble.servers if s.learner_type is LearnerType.PARTICIPANT]
    watched = len(ensemble.servers) > len(voters)
    if not voters and not standalone_enabled:
        findings.error(file, 0, "standaloneEnabled=false and no participant", "add server.N lines")
    elif len(voters) <= 1 and standalone_enabled and watched:
        what = f"observers with {len(voters)} participant{'s' * (not voters)}"
        findings.error(file, 0, what, "add participants, or set standaloneEnabled=false if there is one")
    elif voters and not ensemble.view.contains_quorum(ensemble.view.voters):
        findings.warn(file, 0, "all voters together are no quorum", "give weights above zero")


class _HierarchyReader:
    """Reads groups and weights (`QuorumHierarchical.parse`), noting what is wrong with them."""

    def __init__(
        self, properties: Mapping[str, Property], file: str, findings: Findings, servers: Mapping[Sid, Server]
    ) -> None:
        self._properties = properties
        self._file = file
        self._findings = findings
        self._servers = servers
        self._groups: dict[int, list[Sid]] = {}
        self._grouped: dict[Sid, Property] = {}
        self._weights: dict[Sid, int] = {}

    def read(self) -> Hierarchical:
        for key, prop in self._properties.items():
            if key.startswith("group"):
                self._read_group(prop)
            elif key.startswith("weight"):
                self._read_weight(prop)
        self._check_voters()
        silent = frozenset(sid for sid, prop in self._grouped.items() if self._is_silent(sid, prop))
        return hierarchical(self._groups, self._weights, silent)

    def _error(self, prop: Property, what: str, right: str) -> None:
        self._findings.error(self._file, prop.line, f"{prop.key}: {what}", right)

    def _warn(self, prop: Property, what: str, right: str) -> None:
        self._findings.warn(self._file, prop.line, f"{prop.key}: {what}", right)

    def _number_in(self, prop: Property, form: str) -> int | None:
        """What stands behind the first dot of the key; the whole key if there is none, as in ZooKeeper."""
        number = java_integer(prop.key[prop.key.find(".") + 1 :], bits=64)
        if number is None:
            self._error(prop, "no number after the dot", form)
        return number

    def _read_group(self, prop: Property) -> None:
        gid = self._number_in(prop, _GROUP_FORM)
        if gid is None:
            return
        if gid in self._groups:
            self._error(prop, f"group {gid} once more", "keep one line for each group")
            return
        self._groups[gid] = []
        for text in java_split(prop.value, ":"):
            self._place(java_integer(text, bits=64), text, gid, prop)
        # ZooKeeper counts such a group among the groups, where nobody can ever win it.
        if not java_split(prop.value, ":"):
            self._error(prop, "the group has no server", _GROUP_FORM)

    def _place(self, sid: Sid | None, text: str, gid: int, prop: Property) -> None:
        if sid is None:
            self._error(prop, f"{text!r} is not the id of a server", _GROUP_FORM)
        elif sid in self._grouped:
            earlier = self._grouped[sid]
            what = f"server {sid} is already in {earlier.key} (line {earlier.line})"
            self._error(prop, what, "put each server in one group")
        else:
            self._groups[gid].append(sid)
            self._grouped[sid] = prop

    def _read_weight(self, prop: Property) -> None:
        sid = self._number_in(prop, _WEIGHT_FORM)
        weight = java_integer(prop.value, bits=64)
        if weight is None:
            self._error(prop, f"weight {prop.value!r} is not a whole number", _WEIGHT_FORM)
        if sid is None or weight is None:
            return
        if sid in self._weights:
            self._error(prop, f"a weight for server {sid} once more", "keep one line for each server")
        self._weights[sid] = weight
        if weight < 0:
            what = "with a negative weight two quorums need not share a server"
            self._warn(prop, what, "write a weight of 0 or more")
        if sid not in self._servers:
            self._warn(prop, f"there is no server.{sid}", "remove the weight, or add the server")

    def _check_voters(self) -> None:
        for sid, server in self._servers.items():
            if server.learner_type is LearnerType.PARTICIPANT and sid not in self._grouped:
                line = next(p.line for k, p in self._properties.items() if _names(k, sid))
                right = f"add {sid} to a group.N line, or remove all groups and weights"
                self._findings.error(self._file, line, f"server {sid} votes and is in no group", right)

    def _is_silent(self, sid: Sid, prop: Property) -> bool:
        """Whether a grouped server never votes. ZooKeeper needs an explicit weight for such a server."""
        server = self._servers.get(sid)
        if server is not None and server.learner_type is LearnerType.PARTICIPANT:
            return False
        what = f"server {sid} is an observer" if server else f"server {sid} has no server.{sid} line"
        if sid in self._weights:
            self._warn(prop, f"{what}, so its weight counts in the total and never for a quorum", _REMOVE)
        else:
            self._error(prop, f"{what} and no weight", _REMOVE)
        return True


_REMOVE = "remove it from the group"


def _names(key: str, sid: Sid) -> bool:
    return key.startswith("server.") and java_integer(key.removeprefix("server."), bits=64) == sid
