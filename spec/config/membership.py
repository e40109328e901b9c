"""The configuration that a client requests by `reconfig`, computed from the present one.

Rules of this module:

- An incremental request names servers that leave, by id, and servers that join, by their lines. Those that leave are
  removed first. Only a majority system can be changed in this way.
- A request with new members replaces the whole configuration.
- A member keeps its addresses for peers. ZooKeeper allows another address, and moves the leadership if it is that of
  the leader; here such a server leaves first, and joins again by a second request.
- A joiner has a client address in its line, and no address of another member. Loopback addresses are not compared,
  because test clusters share them.

Source: `PrepRequestProcessor.pRequest2Txn` (case reconfig), `QuorumServer.checkAddressDuplicate`,
`StringUtils.split`.
"""

from msgspec.structs import replace

from spec.config.dynamic_files import LONGEST_CONFIGURATION, view_with_text
from spec.config.ensemble import Ensemble, parse_ensemble
from spec.config.problems import WHITE, ConfigError
from spec.config.server_line import (
    ANY_ADDRESS,
    Address,
    BadServerLineError,
    LearnerType,
    ServerLine,
    parse_server,
)
from spec.quorum import Majority, Sid, View
from spec.quorum.addresses import is_loopback
from spec.text import LONG, integer


class BadMembersError(ValueError):
    """Members that ZooKeeper refuses with BadArguments; the message names the mistake."""


class UnreadableMembersError(ValueError):
    """An id that is not a number, which ZooKeeper refuses with MarshallingError."""


def requested_view(present: Ensemble, joining: str, leaving: str, members: str, version: int) -> View:
    """The requested configuration, with this version and its text.

    Lists are separated by commas. Raises BadMembersError and UnreadableMembersError.
    """
    if (size := len(joining) + len(leaving) + len(members)) > LONGEST_CONFIGURATION:
        raise BadMembersError(f"the lists have {size:,} characters; the limit is {LONGEST_CONFIGURATION:,}")
    ensemble = _replaced(members) if members else _changed(present, joining, leaving)
    before = {server.sid: server.addresses for server in present.servers}
    for server in ensemble.servers:
        if before.get(server.sid, server.addresses) != server.addresses:
            problem = f"server {server.sid} has another address; remove it, and add it again by a second request"
            raise BadMembersError(problem)
    try:
        return replace(view_with_text(ensemble), version=version)
    except ConfigError as error:
        raise BadMembersError(str(error)) from None


def _replaced(members: str) -> Ensemble:
    try:
        return parse_ensemble(members.replace(",", "\n"), "the new members", standalone_enabled=False)
    except ConfigError as error:
        raise BadMembersError(str(error)) from None


def _changed(present: Ensemble, joining: str, leaving: str) -> Ensemble:
    if not isinstance(present.view.quorums, Majority):
        raise BadMembersError("groups and weights cannot be changed incrementally; send all new members")
    servers = {server.sid: server for server in present.servers}
    for text in _listed(leaving):
        servers.pop(_sid(text), None)
    owners = {address: server.sid for server in servers.values() for address in _addresses(server)}
    for text in _listed(joining):
        server = _joiner(text)
        for address in sorted(_addresses(server)):
            if (owner := owners.get(address, server.sid)) != server.sid:
                raise BadMembersError(f"server {server.sid} has the address {address} of server {owner}")
        for address in _addresses(servers[server.sid]) if server.sid in servers else ():
            owners.pop(address, None)
        owners.update(dict.fromkeys(_addresses(server), server.sid))
        servers[server.sid] = server
    members = tuple(servers[sid] for sid in sorted(servers))
    by_role = {role: frozenset(server.sid for server in members if server.learner_type is role) for role in LearnerType}
    return Ensemble(members, View(Majority(by_role[LearnerType.PARTICIPANT]), by_role[LearnerType.OBSERVER]))


def _listed(text: str) -> list[str]:
    return [part for text_of_part in text.split(",") if (part := text_of_part.strip(WHITE))]


def _sid(text: str) -> Sid:
    sid = integer(text, *LONG)
    if sid is None:
        raise UnreadableMembersError(f"{text[:40]!r} is not the id of a server")
    return sid


def _joiner(text: str) -> ServerLine:
    key, *values = [part.strip(WHITE) for part in text.split("=")]
    if len(values) != 1:
        raise BadMembersError(f"{text[:80]!r} is not a server; write server.N=host:quorumPort:electionPort;clientPort")
    try:
        server = parse_server(_sid(key.rpartition(".")[2]), values[0])
    except BadServerLineError as error:
        raise BadMembersError(f"{key}: {error.what}; {error.right}") from None
    if server.client is None:
        raise BadMembersError(f"{key} has no client address; write it behind a semicolon")
    return server


def _addresses(server: ServerLine) -> frozenset[Address]:
    addresses = [
        Address(address.host, port)
        for address in server.addresses
        for port in (address.quorum_port, address.election_port)
    ]
    if server.client is not None:
        addresses.append(server.client)
    return frozenset(address for address in addresses if address.host != ANY_ADDRESS and not is_loopback(address.host))
