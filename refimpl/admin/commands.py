"""The commands of the AdminServer: each answers with the fields that ZooKeeper 3.9 has, as JSON.

Rules this module keeps:

- Every answer has `command`, the first name of the command, and `error`, which is null after success. An unknown
  command, and a server that does not serve, are an error with status 200, as in ZooKeeper.
- A field that this server has no figure for is left out (docs/reference-node.md lists them).
- Values of keys that name a password or a digest are not shown.

Source: `Commands`, `CommandBase`, `JettyAdminServer.CommandServlet`, `JsonOutputter`; `ConsCommand`, `WatchCommand`,
`WatchesByPathCommand`, `WatchSummaryCommand`; `NIOServerCnxn.getConnectionInfo`; `LeaderCommand`, `VotingViewCommand`,
`ZabStateCommand`, `SyncedObserverConsCommand`, `InitialConfigurationCommand`; `QuorumPeer.getLeaderAddress`.
"""

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from refimpl.admin.http import HTML, JSON, HttpAnswer, HttpRequest
from refimpl.admin.view import HIDDEN, SECRET, AdminView
from refimpl.clients.backend import Backend
from refimpl.clients.connection import Connection
from refimpl.clients.four_letter_words import NOT_SERVING, TRACE_MASK, environment, version_text
from refimpl.disk.files import VERSION_DIRECTORY
from refimpl.disk.snapshot import newest_first
from refimpl.tree import ROOT_AGAIN
from spec.config import ServerLine
from spec.text import LONG, integer
from spec.tree.accounting import VERSION
from spec.txn import counter_of, epoch_of
from spec.zab.state import Leader, Stage


def connections(view: AdminView, full: bool) -> dict[str, Any]:
    """The connections without and with TLS; `full` adds the figures of the session."""
    plain: list[dict[str, Any]] = []
    secure: list[dict[str, Any]] = []
    for connection in view.clients.connections:
        (secure if connection.is_secure else plain).append(_connection(connection, full))
    return {"connections": plain, "secure_connections": secure}


def _connection(connection: Connection, full: bool) -> dict[str, Any]:
    statistics = connection.statistics
    fields: dict[str, Any] = {
        "remote_socket_address": connection.remote,
        "interest_ops": connection.interest(),
        "outstanding_requests": len(connection.waiting),
        "packets_received": statistics.received,
        "packets_sent": statistics.sent,
    }
    if full and connection.session:
        fields |= {
            "session_id": connection.session,
            "last_operation": statistics.operation,
            "established": connection.established,
            "session_timeout": connection.timeout,
            "last_cxid": statistics.cxid,
            "last_zxid": statistics.zxid,
            "last_response_time": statistics.answered_at,
            "last_latency": statistics.last_latency,
            "min_latency": statistics.latency.least,
            "avg_latency": int(statistics.latency.average),
            "max_latency": statistics.latency.greatest,
        }
    return fields


def reset(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """Set the figures of every connection to zero."""
    for connection in view.clients.connections:
        connection.statistics.reset()
    return {}


def watch_summary(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """How many connections watch how many paths."""
    names = ("num_connections", "num_paths", "num_total_watches")
    return dict(zip(names, view.clients.processor.watch_totals(), strict=True))


def watches(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The watched paths of each session."""
    paths: dict[str, list[str]] = {}
    for path, watchers in view.clients.processor.data_watches():
        for watcher in watchers:
            paths.setdefault(str(watcher.session), []).append(path)
    return {"session_id_to_watched_paths": paths}


def watches_by_path(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The sessions that watch each path."""
    sessions = view.clients.processor.data_watches()
    return {"path_to_session_ids": {path: [watcher.session for watcher in watchers] for path, watchers in sessions}}


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
    handlers = zab.handlers if isinstance(zab, Leader) else ()
    serving = [handler for handler in handlers if handler.observer and handler.stage is Stage.SERVING]
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
        "server_addresses": [f"{address.host}:{address.quorum_port}" for address in line.addresses],
        "election_addresses": [f"{address.host}:{address.election_port}" for address in line.addresses],
        "client_address": _client_address(view, line),
        "learner_type": line.learner_type.value,
    }


def _client_address(view: AdminView, line: ServerLine) -> str:
    """The client address of a line; for this server that of the file, as in ZooKeeper."""
    address = line.client
    if address is None and line.sid == view.server.sid:
        address = view.settings.clients.address
    return "" if address is None else str(address)


def zab_state(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The phase of Zab, the last zxid, and the addresses of this server."""
    line = view.membership.servers.get(view.server.sid) if view.membership is not None else None
    if line is None:
        return {"voting": False, "zabstate": view.zab_state}
    zxid = view.backend.last_zxid if view.backend is not None else 0
    return {
        "myid": view.server.sid,
        "is_leader": view.leader == view.server.sid,
        "quorum_address": _addresses([(address.host, address.quorum_port) for address in line.addresses]),
        "election_address": _addresses([(address.host, address.election_port) for address in line.addresses]),
        "client_address": _client_address(view, line),
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


Body: TypeAlias = dict[str, Any]
Query: TypeAlias = Mapping[str, str]


class AdminCommand(NamedTuple):
    """A command: its names, with the shown one first, and its function; `serves` requires a serving server."""

    names: tuple[str, ...]
    run: Callable[[AdminView, Query], Body]
    serves: bool = True


def _serving(run: Callable[[AdminView, Backend], Body]) -> Callable[[AdminView, Query], Body]:
    def with_backend(view: AdminView, _query: Query) -> Body:
        assert view.backend is not None  # `answer_command` has looked
        return run(view, view.backend)

    return with_backend


def _configuration(view: AdminView, _query: Query) -> Body:
    settings, clients = view.settings, view.settings.clients
    return {
        "client_port": clients.address.port if clients.address else -1,
        "data_dir": f"{settings.data_dir}/version-2",
        "data_log_dir": f"{settings.log_dir}/version-2",
        "tick_time": settings.tick_time,
        "max_client_cnxns": clients.max_client_cnxns,
        "min_session_timeout": clients.session_limits.min_session_timeout,
        "max_session_timeout": clients.session_limits.max_session_timeout,
        "server_id": settings.sid,
        "client_port_listen_backlog": -1,
    }


def _directories(_view: AdminView, backend: Backend) -> Body:
    status = backend.status()
    return {"datadir_size": status.data_dir_size, "logdir_size": status.log_dir_size}


def _is_read_only(_view: AdminView, backend: Backend) -> Body:
    return {"read_only": backend.read_only(0) is not None}


def _digests(_view: AdminView, backend: Backend) -> Body:
    digests = [{"zxid": zxid, "digest_version": VERSION, "digest": digest} for zxid, digest in backend.status().digests]
    return {"digests": digests}


def _dump(_view: AdminView, backend: Backend) -> Body:
    """Sessions by the time at which they expire, in milliseconds since 1970, and their ephemeral znodes."""
    tree = backend.tree
    return {
        "expiry_time_to_session_ids": {str(int(when * 1000)): list(ids) for when, ids in backend.status().expiring},
        "session_id_to_ephemeral_paths": {str(owner): list(tree.ephemerals(owner)) for owner in tree.owners()},
    }


def _monitor(view: AdminView, backend: Backend) -> Body:
    return view.figures(backend)


def _server_stats(view: AdminView, backend: Backend) -> Body:
    statistics, status = view.clients.statistics, backend.status()
    body: Body = {
        "version": version_text(),
        "read_only": backend.read_only(0) is not None,
        "server_stats": {
            "packets_sent": statistics.sent,
            "packets_received": statistics.received,
            "provider_null": False,
            "server_state": status.mode,
            "uptime": view.clients.four_letter_words.uptime,
            "outstanding_requests": view.clients.in_process,
            "min_latency": statistics.latency.least,
            "avg_latency": statistics.latency.average,
            "max_latency": statistics.latency.greatest,
            "data_dir_size": status.data_dir_size,
            "log_dir_size": status.log_dir_size,
            "last_processed_zxid": backend.last_zxid,
            "num_alive_client_connections": len(view.clients.connections),
            "auth_failed_count": statistics.auth_failed,
        },
    }
    if status.proposals is not None and view.settings.distributed:
        names = ("last_buffer_size", "min_buffer_size", "max_buffer_size")
        body["proposal_stats"] = dict(zip(names, status.proposals, strict=True))
    return body | {"node_count": len(backend.tree) + ROOT_AGAIN}


def _stats(view: AdminView, backend: Backend) -> Body:
    return _server_stats(view, backend) | connections(view, full=False)


def _reset_statistics(view: AdminView, _query: Query) -> Body:
    view.clients.statistics.reset()
    return {}


def _last_snapshot(view: AdminView, _query: Query) -> Body:
    """The zxid of the newest snapshot in hexadecimal, and the time of its file in seconds since 1970."""
    zxid, newest = next(newest_first(view.settings.data_dir / VERSION_DIRECTORY), (0, None))
    if newest is None:
        return {"zxid": "ffffffffffffffff", "timestamp": -1}
    return {"zxid": f"{zxid:x}", "timestamp": int(newest.stat().st_mtime)}


def _set_trace_mask(_view: AdminView, query: Query) -> Body:
    """This server does not trace: it reads the mask, and repeats it."""
    text = query.get("traceMask")
    if text is None:
        return {"error": "setTraceMask requires long traceMask argument"}
    mask = integer(text, *LONG)
    if mask is None:
        return {"error": f"setTraceMask requires long traceMask argument, got {text}"}
    return {"tracemask": mask}


def _system_properties(view: AdminView, _query: Query) -> Body:
    """The keys of zoo.cfg that ZooKeeper turns into system properties."""
    return {
        f"zookeeper.{key}": HIDDEN if SECRET.search(key) else value
        for key, value in sorted(view.settings.config.properties)
    }


COMMANDS = (
    AdminCommand(("connection_stat_reset", "crst"), reset),
    AdminCommand(("configuration", "conf", "config"), _configuration),
    AdminCommand(("connections", "cons"), lambda view, _: connections(view, full=True)),
    AdminCommand(("hash",), _serving(_digests)),
    AdminCommand(("dirs",), _serving(_directories)),
    AdminCommand(("dump",), _serving(_dump)),
    AdminCommand(("environment", "env", "envi"), lambda _view, _query: environment(), serves=False),
    AdminCommand(("get_trace_mask", "gtmk"), lambda _view, _query: {"tracemask": TRACE_MASK}, serves=False),
    AdminCommand(("initial_configuration", "icfg"), initial_configuration),
    AdminCommand(("is_read_only", "isro"), _serving(_is_read_only)),
    AdminCommand(("last_snapshot", "lsnp"), _last_snapshot),
    AdminCommand(("leader", "lead"), leader),
    AdminCommand(("monitor", "mntr"), _serving(_monitor)),
    AdminCommand(("observer_connection_stat_reset", "orst"), lambda _view, _query: {}),
    AdminCommand(("observers", "obsr"), observers),
    AdminCommand(("ruok",), lambda _view, _query: {}),
    AdminCommand(("server_stats", "srvr"), _serving(_server_stats)),
    AdminCommand(("set_trace_mask", "stmk"), _set_trace_mask, serves=False),
    AdminCommand(("stat_reset", "srst"), _reset_statistics),
    AdminCommand(("stats", "stat"), _serving(_stats)),
    AdminCommand(("system_properties", "sysp"), _system_properties, serves=False),
    AdminCommand(("voting_view",), voting_view),
    AdminCommand(("watch_summary", "wchs"), watch_summary),
    AdminCommand(("watches", "wchc"), watches),
    AdminCommand(("watches_by_path", "wchp"), watches_by_path),
    AdminCommand(("zabstate",), zab_state),
)
NOT_OFFERED = frozenset({"snapshot", "snap", "restore", "rest"})
_BY_NAME = {name: command for command in COMMANDS for name in command.names}


def answer_command(view: AdminView, url: str, request: HttpRequest) -> HttpAnswer:
    """The answer to a request of the AdminServer; `url` is the path before the commands."""
    if request.path.rstrip("/") == url:
        names = sorted(command.names[0] for command in COMMANDS)
        return HttpAnswer(200, HTML, "".join(f'<a href="{url}/{name}">{name}</a>\n<br/>\n' for name in names).encode())
    if not request.path.startswith(f"{url}/"):
        return HttpAnswer(404, HTML, f"no such page; the commands are at {html.escape(url)}\n".encode())
    name = request.path[len(url) + 1 :]
    if name in NOT_OFFERED:
        return _json({"command": name, "error": "this server does not offer the command"}, 501)
    command = _BY_NAME.get(name)
    if command is None:
        return _json({"command": name, "error": f"Unknown command: {name}"})
    if command.serves and view.backend is None:
        return _json({"command": command.names[0], "error": NOT_SERVING.rstrip("\n")})
    return _json({"command": command.names[0], "error": None} | command.run(view, request.query))


def _json(body: Body, status: int = 200) -> HttpAnswer:
    """An answer with `command` and `error` last, as in ZooKeeper."""
    last = {name: body.pop(name) for name in ("command", "error")}
    return HttpAnswer(status, JSON, msgspec.json.format(msgspec.json.encode(body | last), indent=2))
