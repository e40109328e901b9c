"""The commands about the connections of clients and their watches.

Source: `ConsCommand`, `WatchCommand`, `WatchesByPathCommand`, `WatchSummaryCommand`; `NIOServerCnxn.getConnectionInfo`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refimpl.admin.view import AdminView
from refimpl.clients.connection import Connection


def connections(view: AdminView, full: bool) -> dict[str, Any]:
    """The connections without and with TLS; `full` adds the figures of the session."""
    plain: list[dict[str, Any]] = []
    secure: list[dict[str, Any]] = []
    for connection in view.clients.connections:
        (secure if connection.is_secure else plain).append(_connection(connection, full))
    return {"connections": plain, "secure_connections": secure}


def _connection(connection: Connection, full: bool) -> dict[str, Any]:
    statistics = connection.statistics
    found: dict[str, Any] = {
        "remote_socket_address": connection.remote,
        "interest_ops": connection.interest(),
        "outstanding_requests": len(connection.waiting),
        "packets_received": statistics.received,
        "packets_sent": statistics.sent,
    }
    if full and connection.session:
        found |= {
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
    return found


def reset(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """Sets the figures of every connection to zero."""
    for connection in view.clients.connections:
        connection.statistics.reset()
    return {}


def watch_summary(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """How many connections watch how many paths."""
    names = ("num_connections", "num_paths", "num_total_watches")
    return dict(zip(names, view.clients.processor.watch_totals(), strict=True))


def watches(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The watched paths of each session."""
    found: dict[str, list[str]] = {}
    for path, watchers in view.clients.processor.data_watches():
        for watcher in watchers:
            found.setdefault(str(watcher.session), []).append(path)
    return {"session_id_to_watched_paths": found}


def watches_by_path(view: AdminView, _query: Mapping[str, str]) -> dict[str, Any]:
    """The sessions that watch each path."""
    found = view.clients.processor.data_watches()
    return {"path_to_session_ids": {path: [each.session for each in watchers] for path, watchers in found}}
