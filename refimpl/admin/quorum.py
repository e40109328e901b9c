"""The commands about the ensemble: its leader, its voters, and the phase of this server.

Source: `LeaderCommand`, `VotingViewCommand`, `ZabStateCommand`, `SyncedObserverConsCommand`,
`InitialConfigurationCommand`; `QuorumPeer.getLeaderAddress`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refimpl.admin.view import AdminView
from spec.config import ServerLine
from spec.txn import counter_of, epoch_of
from spec.zab.state import Leader, Stage


def leader(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """Whether this server leads, and the leader's id and host; a standalone server has no leader."""
    if view.membership is None:
        return {"error": "server is not initialized"}
    sid = view.leader
    line = view.membership.servers.get(sid) if sid is not None else None
    host = line.addresses[0].host if line is not None else ""
    return {"is_leader": sid == view.server.sid, "leader_id": -1 if sid is None else sid, "leader_ip": host}


def initial_configuration(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The file of a standalone server as it was at its start; null for a member of an ensemble, as in ZooKeeper."""
    return {"initial_configuration": view.first_file if view.membership is None else None}


def observers(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The observers that a leader serves; a learner serves none."""
    zab = view.server.zab
    found = zab.handlers if isinstance(zab, Leader) else ()
    serving = [handler for handler in found if handler.observer and handler.stage is Stage.SERVING]
    return {
        "synced_observers": len(serving),
        "observers": [{"sid": handler.sid, "last_zxid": handler.last_zxid} for handler in serving],
    }


def voting_view(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The voters with their addresses."""
    servers = view.membership.servers if view.membership is not None else {}
    voters = sorted(view.server.view.voters)
    return {"current_config": {str(sid): _member(view, servers[sid]) for sid in voters if sid in servers}}


def _member(view: AdminView, line: ServerLine) -> dict[str, Any]:
    return {
        "server_addresses": [f"{each.host}:{each.quorum_port}" for each in line.addresses],
        "election_addresses": [f"{each.host}:{each.election_port}" for each in line.addresses],
        "client_address": _client_address(view, line),
        "learner_type": line.learner_type.value,
    }


def _client_address(view: AdminView, line: ServerLine) -> str:
    """The client address of a line; for this server that of the file, as in ZooKeeper."""
    found = line.client
    if found is None and line.sid == view.server.sid:
        found = view.settings.clients.address
    return "" if found is None else str(found)


def zab_state(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The phase of Zab, the last zxid, and the addresses of this server."""
    own = view.membership.servers.get(view.server.sid) if view.membership is not None else None
    if own is None:
        return {"voting": False, "zabstate": view.zab_state}
    zxid = view.backend.last_zxid if view.backend is not None else 0
    return {
        "myid": view.server.sid,
        "is_leader": view.leader == view.server.sid,
        "quorum_address": _addresses([(each.host, each.quorum_port) for each in own.addresses]),
        "election_address": _addresses([(each.host, each.election_port) for each in own.addresses]),
        "client_address": _client_address(view, own),
        "voting": view.server.sid in view.server.view.voters,
        "last_zxid": f"0x{zxid:x}",
        "zab_epoch": epoch_of(zxid),
        "zab_counter": counter_of(zxid),
        "zabstate": view.zab_state,
    }


def _addresses(found: list[tuple[str, int]]) -> dict[str, Any]:
    """The fields of `MultipleAddresses`, without those for which it tries to reach an address."""
    texts = [f"{host}:{port}" for host, port in found]
    return {
        "empty": not found,
        "all_addresses": texts,
        "wildcard_addresses": [f"0.0.0.0:{port}" for _, port in found],
        "all_ports": [port for _, port in found],
        "all_host_strings": [host for host, _ in found],
        "one": texts[0] if texts else "",
    }
