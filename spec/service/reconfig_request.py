"""A leader prepares a `reconfig` request: the transaction that changes the configuration, or the error for its client.

Rules of this module:

- The checks have ZooKeeper's order, since a client sees which of two faults is reported: enabled, session, an ensemble,
  no other reconfiguration, the version, the members, two voters, a synced quorum, and the ACL last.
- The transaction replaces the data of `/zookeeper/config`. The version of the configuration is the zxid of the
  proposal, so the transaction is prepared for one zxid.
- A refusal is a transaction too, `ErrorTxn`.
- An incremental request names servers that leave, by id, and servers that join, by their lines. Those that leave are
  removed first. Only a majority system can be changed in this way. Other requests replace the whole configuration.
- A member keeps its addresses for peers. ZooKeeper allows another address, and moves the leadership if it is that of
  the leader; here such a server leaves first, and joins again by a second request.
- A joiner has a client address in its line, and no address of another member. Loopback addresses are not compared,
  because test clusters share them.

Source: `PrepRequestProcessor.pRequest2Txn` (case reconfig), `Leader.isQuorumSynced`,
`QuorumServer.checkAddressDuplicate`, `StringUtils.split`.
"""

import msgspec
from msgspec.structs import replace

from spec.config.dynamic_files import LONGEST_CONFIGURATION, ensemble_in, versioned_text, view_with_text
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
from spec.election.state import Peer
from spec.quorum import Majority, Reconfiguration, Sid, View
from spec.quorum.addresses import is_loopback
from spec.text import LONG, excerpt, integer
from spec.tree.checks import Asker, RefusedError, check_acl, check_session, existing
from spec.tree.data import Perms
from spec.tree.options import Options
from spec.tree.paths import CONFIG
from spec.tree.replies import Code
from spec.tree.requests import Reconfig, Request
from spec.tree.store import Store
from spec.tree.txns import Change, ErrorTxn, ReconfigTxn
from spec.zab.reconfiguration import Refused, refusal_of, refusal_of_all
from spec.zab.state import Leader


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


ANY_VERSION = -1
_CODES = {
    Refused.DISABLED: Code.RECONFIG_DISABLED,
    Refused.IN_PROGRESS: Code.RECONFIG_IN_PROGRESS,
    Refused.NOT_A_MAJORITY_SYSTEM: Code.BAD_ARGUMENTS,
    Refused.TOO_FEW_VOTERS: Code.BAD_ARGUMENTS,
    Refused.NO_SYNCED_QUORUM: Code.NEW_CONFIG_NO_QUORUM,
}


class Prepared(msgspec.Struct, frozen=True):
    """The value to propose, and the reason of a refusal for the log of the server: a short line, empty without one."""

    value: Change | Reconfiguration
    reason: str = ""


def prepare(
    peer: Peer, leader: Leader, tree: Store, request: Request, now: int, checked: Code, options: Options
) -> Prepared:
    """Prepare a request that reaches the leader at `now`, in milliseconds, for its next zxid.

    `checked` is the verdict of the session tracker, and `tree` shows all outstanding transactions.
    """
    asker = Asker(request.session, request.auth, checked, options, tree)
    assert isinstance(request.record, Reconfig)
    try:
        view = _view(peer, leader, tree, request.record, asker)
    except RefusedError as refused:
        return Prepared(
            Change(request.session, request.cxid, now, ErrorTxn(refused.code)),
            excerpt(refused.reason.partition("\n")[0]),
        )
    txn = ReconfigTxn(CONFIG, versioned_text(view).encode(), -1)
    return Prepared(Reconfiguration(view, Change(request.session, request.cxid, now, txn)))


def _view(peer: Peer, leader: Leader, tree: Store, asked: Reconfig, asker: Asker) -> View:
    of_all = refusal_of_all(peer)
    if of_all is Refused.DISABLED:
        raise RefusedError(_CODES[of_all])
    check_session(asker)
    _refuse_if(of_all)
    if asked.cur_config_id not in (ANY_VERSION, peer.view.version):
        raise RefusedError(Code.BAD_VERSION, f"the configuration has version {peer.view.version:x}")
    zxid = leader.last_proposed + 1
    try:
        view = requested_view(
            ensemble_in(peer.view), asked.joining_servers, asked.leaving_servers, asked.new_members, zxid
        )
    except BadMembersError as error:
        raise RefusedError(Code.BAD_ARGUMENTS, str(error)) from None
    except UnreadableMembersError as error:
        raise RefusedError(Code.MARSHALLING_ERROR, str(error)) from None
    _refuse_if(refusal_of(peer, leader, view))
    check_acl(existing(tree, CONFIG), Perms.WRITE, asker)
    return view


def _refuse_if(reason: Refused | None) -> None:
    if reason is not None:
        raise RefusedError(_CODES[reason], reason.value)
