"""The commands of the AdminServer: each answers with the fields that ZooKeeper 3.9 has, as JSON.

Rules this module keeps:

- Every answer has `command`, the first name of the command, and `error`, which is null after success. An unknown
  command, and a server that does not serve, are an error with status 200, as in ZooKeeper.
- A field that this server has no figure for is left out (docs/reference-node.md lists them).
- Values of keys that name a password or a digest are not shown.

Source: `Commands`, `CommandBase`, `JettyAdminServer.CommandServlet`, `JsonOutputter`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from refimpl.admin import connections, quorum
from refimpl.admin.http import HTML, JSON, HttpAnswer, HttpRequest
from refimpl.admin.view import HIDDEN, SECRET, AdminView
from refimpl.clients.backend import Backend
from refimpl.clients.four_letter_words import NOT_SERVING, ROOT_AGAIN, TRACE_MASK, environment, version_text
from refimpl.disk.files import VERSION_DIRECTORY
from refimpl.disk.snapshot import newest_first
from spec.text import LONG, integer
from spec.tree.accounting.digest import VERSION

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
    found = [{"zxid": zxid, "digest_version": VERSION, "digest": digest} for zxid, digest in backend.status().digests]
    return {"digests": found}


def _dump(_view: AdminView, backend: Backend) -> Body:
    """Sessions by the time at which they expire, in milliseconds since 1970, and their ephemeral znodes."""
    tree = backend.tree
    return {
        "expiry_time_to_session_ids": {str(int(when * 1000)): list(ids) for when, ids in backend.status().expiring},
        "session_id_to_ephemeral_paths": {str(each): list(tree.ephemerals(each)) for each in tree.owners()},
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
    return _server_stats(view, backend) | connections.connections(view, full=False)


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
    AdminCommand(("connection_stat_reset", "crst"), connections.reset),
    AdminCommand(("configuration", "conf", "config"), _configuration),
    AdminCommand(("connections", "cons"), lambda view, _: connections.connections(view, full=True)),
    AdminCommand(("hash",), _serving(_digests)),
    AdminCommand(("dirs",), _serving(_directories)),
    AdminCommand(("dump",), _serving(_dump)),
    AdminCommand(("environment", "env", "envi"), lambda _view, _query: environment(), serves=False),
    AdminCommand(("get_trace_mask", "gtmk"), lambda _view, _query: {"tracemask": TRACE_MASK}, serves=False),
    AdminCommand(("initial_configuration", "icfg"), quorum.initial_configuration),
    AdminCommand(("is_read_only", "isro"), _serving(_is_read_only)),
    AdminCommand(("last_snapshot", "lsnp"), _last_snapshot),
    AdminCommand(("leader", "lead"), quorum.leader),
    AdminCommand(("monitor", "mntr"), _serving(_monitor)),
    AdminCommand(("observer_connection_stat_reset", "orst"), lambda _view, _query: {}),
    AdminCommand(("observers", "obsr"), quorum.observers),
    AdminCommand(("ruok",), lambda _view, _query: {}),
    AdminCommand(("server_stats", "srvr"), _serving(_server_stats)),
    AdminCommand(("set_trace_mask", "stmk"), _set_trace_mask, serves=False),
    AdminCommand(("stat_reset", "srst"), _reset_statistics),
    AdminCommand(("stats", "stat"), _serving(_stats)),
    AdminCommand(("system_properties", "sysp"), _system_properties, serves=False),
    AdminCommand(("voting_view",), quorum.voting_view),
    AdminCommand(("watch_summary", "wchs"), connections.watch_summary),
    AdminCommand(("watches", "wchc"), connections.watches),
    AdminCommand(("watches_by_path", "wchp"), connections.watches_by_path),
    AdminCommand(("zabstate",), quorum.zab_state),
)
NOT_OFFERED = frozenset({"snapshot", "snap", "restore", "rest"})
_BY_NAME = {name: command for command in COMMANDS for name in command.names}


def answer_command(view: AdminView, url: str, request: HttpRequest) -> HttpAnswer:
    """The answer to a request of the AdminServer; `url` is the path before the commands."""
    if request.path.rstrip("/") == url:
        return HttpAnswer(200, HTML, _links(url).encode())
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


def _links(url: str) -> str:
    names = sorted(command.names[0] for command in COMMANDS)
    return "".join(f'<a href="{url}/{name}">{name}</a>\n<br/>\n' for name in names)
