"""The shared part of a configuration: servers, groups, weights and version.

It is in `zoo.cfg`, or in the file named by `dynamicConfigFile`, and servers exchange it as text in elections. This
module reads all three forms, and writes the text.

Rules:

- A file that ZooKeeper refuses has an error. A probable mistake in a file that ZooKeeper accepts is a warning: a weight
  without effect, a negative weight, an observer with a weight in a group, several addresses of one server, one address
  of several servers.
- Some mistakes end in an uncaught exception in ZooKeeper. They are errors here, too. So are weights whose sum wraps
  around in ZooKeeper, where a single server may then be a quorum.

Sources: `QuorumPeerConfig.parseDynamicConfig`, `QuorumHierarchical.parse` and `computeGroupWeight`,
`QuorumMaj.toString`, `QuorumHierarchical.toString`, `QuorumPeer.configFromString`. `parseDynamicConfig` does not
compare the addresses of servers; only a reconfiguration (`PrepRequestProcessor`) calls
`QuorumServer.checkAddressDuplicate`, which refuses equal ones.
"""

from collections.abc import Iterator, Mapping

import msgspec

from spec.config.problems import Findings, java_split
from spec.config.properties import Property, last_of_each, read_properties
from spec.config.server_line import (
    ANY_ADDRESS,
    Address,
    BadServerLineError,
    LearnerType,
    ServerLine,
    parse_server,
    render_server,
)
from spec.quorum import Hierarchical, Majority, QuorumSystem, Sid, View, hierarchical
from spec.quorum.addresses import is_loopback
from spec.quorum.systems import sums_fit
from spec.text import LONG, integer

_GROUP_FORM = "write group.N=1:2:3, the ids of its servers between colons"
_WEIGHT_FORM = "write weight.N=W, the id of a server and a whole number"
_SERVER_FORM = "write server.N=..., N being the number in that server's myid file"


class Ensemble(msgspec.Struct, frozen=True):
    """The servers in ascending order of their ids, and their view."""

    servers: tuple[ServerLine, ...]
    view: View

    def client_of(self, sid: Sid | None) -> Address | None:
        """Return the client address in the line of a server; None without a line, or without an address in it."""
        return next((server.client for server in self.servers if server.sid == sid), None)


def parse_ensemble(text: str, file: str = "config", standalone_enabled: bool = True) -> Ensemble:
    """Parse the text from an election message, as `render_ensemble` writes it (`QuorumPeer.configFromString`).

    Only the keys `server.`, `group.`, `weight.` and `version` are valid. Raises ConfigError.
    """
    findings = Findings()
    properties = last_of_each(read_properties(text, file, findings), file, findings)
    reject_unrecognised(properties, file, findings)
    version = read_version(properties, file, findings)
    ensemble = read_ensemble(properties, file, findings, standalone_enabled, version)
    findings.warnings()
    return ensemble


def render_ensemble(ensemble: Ensemble) -> str:
    """Return the text of an ensemble as `QuorumVerifier.toString` writes it, in ascending order of the ids."""
    return f"{render_servers(ensemble)}\n{render_version(ensemble.view.version)}"


def render_version(version: int) -> str:
    """Return the line of a version."""
    return f"version={version % (1 << 64):x}"


def render_servers(ensemble: Ensemble) -> str:
    """Return the lines of the servers, groups and weights."""
    lines = [f"server.{server.sid}={render_server(server)}" for server in ensemble.servers]
    quorums = ensemble.view.quorums
    if isinstance(quorums, Hierarchical):
        lines += [f"group.{gid}={':'.join(map(str, servers))}" for gid, servers in quorums.groups]
        lines += [f"weight.{sid}={weight}" for sid, weight in quorums.weights]
    return "\n".join(lines)


def is_ensemble_key(key: str) -> bool:
    """Return whether a key belongs to the ensemble; as in ZooKeeper, the prefix decides."""
    return key.startswith(("server.", "group", "weight"))


def reject_unrecognised(properties: Mapping[str, Property], file: str, findings: Findings) -> None:
    """Add an error for each key that is invalid in a dynamic file (`QuorumPeerConfig.parseDynamicConfig`)."""
    for key, prop in properties.items():
        if not is_ensemble_key(key) and key != "version":
            problem = f"unrecognised parameter {key}"
            findings.error(file, prop.line, problem, "move it to the static file, zoo.cfg")


def read_version(properties: Mapping[str, Property], file: str, findings: Findings) -> int:
    """Return the version of the configuration, a hexadecimal number; 0 if it is missing."""
    prop = properties.get("version")
    if prop is None:
        return 0
    version = integer(prop.value, *LONG, base=16)
    if version is None:
        problem = f"version {prop.value!r} is not a hexadecimal number"
        findings.error(file, prop.line, problem, "write it like version=100000003")
    return version or 0


def read_ensemble(
    properties: Mapping[str, Property],
    file: str,
    findings: Findings,
    standalone_enabled: bool,
    version: int,
) -> Ensemble:
    """Read the ensemble from the properties. The result is valid only if `findings` has no error afterwards."""
    servers, lines = _read_servers(properties, file, findings)
    if any(key.startswith(("group", "weight")) for key in properties):
        quorums: QuorumSystem = _HierarchyReader(properties, file, findings, servers, lines).read()
    else:
        quorums = Majority(_of_type(servers, LearnerType.PARTICIPANT))
    # A hierarchy with errors may lack voters, but no observer is among its voters.
    view = View(quorums, _of_type(servers, LearnerType.OBSERVER), version)
    ensemble = Ensemble(tuple(servers[sid] for sid in sorted(servers)), view)
    _check_participants(ensemble, file, findings, standalone_enabled)
    return ensemble


def _of_type(servers: Mapping[Sid, ServerLine], learner_type: LearnerType) -> frozenset[Sid]:
    return frozenset(sid for sid, server in servers.items() if server.learner_type is learner_type)


def _read_servers(
    properties: Mapping[str, Property], file: str, findings: Findings
) -> tuple[dict[Sid, ServerLine], dict[Sid, int]]:
    servers: dict[Sid, ServerLine] = {}
    lines: dict[Sid, int] = {}
    for key, prop in properties.items():
        if not key.startswith("server."):
            continue
        sid = integer(key.removeprefix("server."), *LONG)
        if sid is None:
            findings.error(file, prop.line, f"{key} does not name a server by its number", _SERVER_FORM)
        elif sid in servers:
            problem = f"{key} is server {sid} once more, and ZooKeeper may take either line"
            findings.error(file, prop.line, problem, "keep one of the lines")
        else:
            server = _read_server(sid, prop, file, findings)
            servers[sid] = server or _guessed(sid, prop.value)
            lines[sid] = prop.line
    # Only one of two servers can listen at an address.
    for sid, name, address, owner in shared_addresses(servers):
        problem = f"server.{sid}: the {name} {address} is also an address of server.{owner} (line {lines[owner]})"
        findings.warn(file, lines[sid], problem, "only one server can listen there: change the host or the port")
    return servers, lines


def shared_addresses(servers: Mapping[Sid, ServerLine]) -> Iterator[tuple[Sid, str, Address, Sid]]:
    """The servers that have an address of a server before them: the port's name, the address, and that other server."""
    owners: dict[Address, Sid] = {}
    for sid, server in servers.items():
        for name, address in _listening(server):
            owner = owners.setdefault(address, sid)
            if owner != sid:
                yield sid, name, address, owner
                break


def _listening(server: ServerLine) -> Iterator[tuple[str, Address]]:
    """The addresses of a server by name, without those that are equal on different hosts.

    These are wildcards, and the loopback address for clients beside another one for peers.
    """
    peers_by_loopback = all(is_loopback(address.host) for address in server.addresses)
    for address in server.addresses:
        yield "quorum port", Address(address.host.lower(), address.quorum_port)
        yield "election port", Address(address.host.lower(), address.election_port)
    for name, client in (("client port", server.client), ("secure client port", server.secure_client)):
        if client is None or client.host in (ANY_ADDRESS, "::"):
            continue
        if peers_by_loopback or not is_loopback(client.host):
            yield name, Address(client.host.lower(), client.port)


def _read_server(sid: Sid, prop: Property, file: str, findings: Findings) -> ServerLine | None:
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


def _guessed(sid: Sid, value: str) -> ServerLine:
    """Make a server for an invalid line, so that it causes no further errors."""
    observes = "observer" in value.lower()
    return ServerLine(sid, (), LearnerType.OBSERVER if observes else LearnerType.PARTICIPANT)


def _check_participants(ensemble: Ensemble, file: str, findings: Findings, standalone_enabled: bool) -> None:
    """Check the number of voters, as `parseDynamicConfig` does."""
    if findings.broken:
        return
    voters = [s for s in ensemble.servers if s.learner_type is LearnerType.PARTICIPANT]
    watched = len(ensemble.servers) > len(voters)
    if not voters and not standalone_enabled:
        findings.error(file, 0, "standaloneEnabled=false and no participant", "add server.N lines")
    elif len(voters) <= 1 and standalone_enabled and watched:
        problem = f"observers with {len(voters)} participant{'s' * (not voters)}"
        findings.error(file, 0, problem, "add participants, or set standaloneEnabled=false if there is one")
    elif voters and not ensemble.view.contains_quorum(ensemble.view.voters):
        findings.warn(file, 0, "all voters together are not a quorum", "give weights above zero")


class _HierarchyReader:
    """Reads groups and weights (`QuorumHierarchical.parse`)."""

    def __init__(
        self,
        properties: Mapping[str, Property],
        file: str,
        findings: Findings,
        servers: Mapping[Sid, ServerLine],
        lines: Mapping[Sid, int],
    ) -> None:
        self._properties = properties
        self._file = file
        self._findings = findings
        self._servers = servers
        self._lines = lines
        self._groups: dict[int, list[Sid]] = {}
        self._grouped: dict[Sid, Property] = {}
        self._weights: dict[Sid, int] = {}
        self._weight_lines: dict[Sid, Property] = {}

    def read(self) -> Hierarchical:
        for key, prop in self._properties.items():
            if key.startswith("group"):
                self._read_group(prop)
            elif key.startswith("weight"):
                self._read_weight(prop)
        for sid, server in self._servers.items():
            if server.learner_type is LearnerType.PARTICIPANT and sid not in self._grouped:
                right = f"add {sid} to a group.N line, or remove all groups and weights"
                self._findings.error(self._file, self._lines[sid], f"server {sid} votes and is in no group", right)
        for gid, servers in self._groups.items():
            if not sums_fit(self._weights.get(sid, 1) for sid in servers):
                heaviest = max(servers, key=lambda sid: abs(self._weights.get(sid, 1)))
                problem = f"the weights of group {gid} add up to more than 64 bits, and ZooKeeper's sum wraps around"
                self._error(self._weight_lines[heaviest], problem, "divide the weights by a common number")
                # A quorum system without these weights stands for the invalid one, so that reading can go on.
                self._weights = {sid: weight for sid, weight in self._weights.items() if sid not in servers}
        silent = frozenset(sid for sid, prop in self._grouped.items() if self._is_silent(sid, prop))
        return hierarchical(self._groups, self._weights, silent)

    def _error(self, prop: Property, what: str, right: str) -> None:
        self._findings.error(self._file, prop.line, f"{prop.key}: {what}", right)

    def _warn(self, prop: Property, what: str, right: str) -> None:
        self._findings.warn(self._file, prop.line, f"{prop.key}: {what}", right)

    def _number_in(self, prop: Property, form: str) -> int | None:
        """Parse the part of the key after its first dot; as in ZooKeeper, the whole key if it has no dot."""
        number = integer(prop.key[prop.key.find(".") + 1 :], *LONG)
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
            self._place(integer(text, *LONG), text, gid, prop)
        # ZooKeeper counts such a group, and no set of servers can win it.
        if not java_split(prop.value, ":"):
            self._error(prop, "the group has no server", _GROUP_FORM)

    def _place(self, sid: Sid | None, text: str, gid: int, prop: Property) -> None:
        if sid is None:
            self._error(prop, f"{text!r} is not the id of a server", _GROUP_FORM)
        elif sid in self._grouped:
            earlier = self._grouped[sid]
            problem = f"server {sid} is already in {earlier.key} (line {earlier.line})"
            self._error(prop, problem, "put each server in one group")
        else:
            self._groups[gid].append(sid)
            self._grouped[sid] = prop

    def _read_weight(self, prop: Property) -> None:
        sid = self._number_in(prop, _WEIGHT_FORM)
        weight = integer(prop.value, *LONG)
        if weight is None:
            self._error(prop, f"weight {prop.value!r} is not a whole number", _WEIGHT_FORM)
        if sid is None or weight is None:
            return
        if sid in self._weights:
            self._error(prop, f"a weight for server {sid} once more", "keep one line for each server")
        self._weights[sid] = weight
        self._weight_lines[sid] = prop
        if weight < 0:
            problem = "with a negative weight two quorums need not share a server"
            self._warn(prop, problem, "write a weight of 0 or more")
        if sid not in self._servers:
            self._warn(prop, f"there is no server.{sid}", "remove the weight, or add the server")

    def _is_silent(self, sid: Sid, prop: Property) -> bool:
        """Return whether a server in a group never votes. ZooKeeper requires an explicit weight for such a server."""
        server = self._servers.get(sid)
        if server is not None and server.learner_type is LearnerType.PARTICIPANT:
            return False
        problem = f"server {sid} is an observer" if server else f"server {sid} has no server.{sid} line"
        if sid in self._weights:
            self._warn(prop, f"{problem}, so its weight counts in the total and never for a quorum", _REMOVE)
        else:
            self._error(prop, f"{problem} and no weight", _REMOVE)
        return True


_REMOVE = "remove it from the group"
