"""The display of a service: a lane for the leader, each server and each client, short captions, and messages.

Rules of this module:

- A field is present only while it has information: an empty set of watches and an empty queue are omitted.
- A tree omits the initial znodes that are unchanged. A znode is shown as its data, followed by `@1` if it is ephemeral
  and owned by a session of client 1.
- A request of a lost connection is in flight until it arrives late. It is lost when the client is connected again.
- Where servers do not lag, requests arrive at `leader`, which represents the whole service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from checker.engine import Model, Move, Row
from checker.job import DiagramEvent, Json
from checker.models.service.client_connection import ClientConnection, ConnectionState
from checker.models.service.messages import (
    Commit,
    ConnectionClosed,
    DeliverMessage,
    DeliverRequest,
    RefuseSession,
    ServerMessage,
    ServiceAction,
)
from checker.models.service.observations import READS
from checker.models.service.scripts import ScriptPosition
from checker.models.service.servers import LaggingServer
from checker.models.service.setup import (
    LEADER,
    ServiceSetup,
    client_name,
    client_of,
    library_name,
    link_name,
    server_name,
    watches_name,
)
from checker.present import wording
from checker.present.generic import Changes, changes, operation_on, without
from spec.client import Library
from spec.tree.data import Kind, Record, kind_of
from spec.tree.store import FrozenStore

Fields = dict[str, Json]
_STATES = {
    ConnectionState.UP: "connected",
    ConnectionState.DOWN: "disconnected",
    ConnectionState.OVER: "session expired",
    ConnectionState.OPENING: "opening a session",
    ConnectionState.GONE: "gone",
}


class ServicePresenter:
    """The presenter of a service whose clients run scripts. See `checker.job.Presenter`."""

    def __init__(self, model: Model, setup: ServiceSetup) -> None:
        self._model, self._setup = model, setup
        self._first: FrozenStore = model.columns[model.index[LEADER]].initial.store

    def _value(self, row: Row, column: str) -> Any:
        return row[self._model.index[column]]

    # Lanes.

    def lanes(self, row: Row) -> dict[str, Fields]:
        """The leader, the servers and the clients."""
        leader = self._value(row, LEADER)
        lanes: dict[str, Fields] = {LEADER: {"zxid": leader.zxid, **self._tree(leader.store)}}
        for server in self._setup.server_ids:
            fields = self._server(row, server)
            if fields or self._setup.lag:
                lanes[server_name(server)] = fields
        for client in self._setup.client_ids:
            lanes[client_name(client)] = self._client(row, client)
        return lanes

    def _tree(self, store: FrozenStore) -> Fields:
        former = dict(self._first.nodes)
        new = {
            path: (znode.data or b"").decode(errors="backslashreplace") + _owner(znode.ephemeral_owner)
            for path, znode in store.nodes
            if path not in former or former[path].mzxid != znode.mzxid
        }
        removed = [path for path in former if store.node(path) is None]
        return {**({"tree": new} if new else {}), **({"gone": removed} if removed else {})}

    def _server(self, row: Row, server: int) -> Fields:
        fields: Fields = {}
        if self._setup.lag:
            replica: LaggingServer = self._value(row, server_name(server))
            fields |= {"zxid": replica.zxid, **self._tree(replica.store)}
            if replica.pending:
                fields["pending"] = [_pending(change) for change in replica.pending]
        watching = self._value(row, watches_name(server))
        if watching:
            watches = sorted((client, path, kind.value) for client, kind, path in watching)
            fields["watches"] = [f"client {client}: {kind} of {path}" for client, path, kind in watches]
        return fields

    def _client(self, row: Row, client: int) -> Fields:
        link: ClientConnection = self._value(row, link_name(client))
        fields: Fields = {"state": _STATES[link.state]}
        if link.server is not None:
            fields["at"] = server_name(link.server)
        if self._setup.has_library:
            library: Library = self._value(row, library_name(client))
            if library.seen:
                fields["seen"] = library.seen
            if library.watches:
                fields["waits for"] = [f"{kind.value} of {path}" for kind, path in sorted(library.watches, key=repr)]
        position: ScriptPosition = self._value(row, client_name(client))
        if position.outstanding:
            fields["unanswered"] = [wording.request(record) for record in position.outstanding]
        return fields

    # Captions.

    def caption(self, move: Move) -> str:
        """One sentence with the actor and the action."""
        arguments = move.arguments
        if isinstance(operation_on(link_name(arguments[0]), move), RefuseSession):
            return f"server {arguments[1]} tells client {arguments[0]} that its session is over"
        if move.action in _CAPTIONS:
            return _CAPTIONS[move.action](*arguments)
        return ServiceAction(move.action).worded(client_name(arguments[0]))

    # Diagrams.

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The arrivals and losses of a step, then its note, then the sent messages."""
        ends: list[DiagramEvent] = []
        sends: list[DiagramEvent] = []
        for client in self._setup.client_ids:
            name = link_name(client)
            old, new = self._value(before, name), self._value(after, name)
            if old is not new:
                changed = traffic(old, new, operation_on(name, move))
                ends += self._left(client_name(client), self._at(old), changed)
                sends += self._sent(client_name(client), self._at(new), changed)
        for server in self._setup.server_ids if self._setup.lag else ():
            name = server_name(server)
            commits = without(self._commits(before, name), self._commits(after, name))
            applies = operation_on(name, move) == ServiceAction.APPLY
            for text in map(_committed, commits):
                applied = DiagramEvent("deliver", name, text, peer=LEADER)
                ends.append(applied if applies else DiagramEvent("lost", LEADER, text, peer=name))
            new = map(_committed, without(self._commits(after, name), self._commits(before, name)))
            sends += [DiagramEvent("send", LEADER, text, peer=name) for text in new]
        return (*ends, *self._noted(move), *sends)

    def _commits(self, row: Row, name: str) -> list[Commit]:
        """The transactions on their way to a server, each without the client that waits for it."""
        return [replace(change, origin=None) for change in self._value(row, name).pending if isinstance(change, Commit)]

    def _at(self, link: ClientConnection) -> str:
        return server_name(link.server) if self._setup.lag and link.server is not None else LEADER

    def _left(self, name: str, server: str, changed: Traffic) -> Iterator[DiagramEvent]:
        """The messages that arrived or were lost; the server of a late request is unknown."""
        requests, late, messages = changed
        for record in map(wording.request, requests.arrived):
            yield DiagramEvent("deliver", server, record, peer=name)
        for record in map(wording.request, late.arrived):
            yield DiagramEvent("note", LEADER, f"{name}'s {record} arrives late")
            yield DiagramEvent("late", name, record)
        yield from (DiagramEvent("lost", name, wording.request(item), peer=server) for item in requests.lost)
        yield from (DiagramEvent("deliver", name, wording.message(item), peer=server) for item in messages.arrived)
        yield from (DiagramEvent("lost", server, wording.message(item), peer=name) for item in messages.lost)
        yield from (DiagramEvent("lost", name, wording.request(item)) for item in late.lost)

    def _sent(self, name: str, server: str, changed: Traffic) -> Iterator[DiagramEvent]:
        yield from (DiagramEvent("send", name, wording.request(item), peer=server) for item in changed.requests.sent)
        yield from (DiagramEvent("send", server, wording.message(item), peer=name) for item in changed.messages.sent)

    def _noted(self, move: Move) -> Iterable[DiagramEvent]:
        if move.action == ServiceAction.CRASH:
            yield DiagramEvent("crash", client_name(move.arguments[0]), "crash")
        elif isinstance(move.action, ServiceAction) and move.action.traits.noted:
            yield DiagramEvent("note", client_name(move.arguments[0]), self.caption(move))


class Traffic(NamedTuple):
    """The changes of a client's connection; `late` are its requests of a lost connection, which may still arrive."""

    requests: Changes[Record]
    late: Changes[Record]
    messages: Changes[ServerMessage]


def traffic(old: ClientConnection, new: ClientConnection, operation: Any) -> Traffic:
    """The traffic of a step with this operation on the connection; None if another connection takes the step."""
    up = down = stray = None
    match operation:
        case DeliverRequest(place):
            up = place
        case ServiceAction.ARRIVE_LATE:
            stray = 0
        case DeliverMessage(place):
            down = place
    late = changes(old.stray, new.stray, stray)
    requests = changes(old.up, new.up, up)
    requests = requests._replace(lost=without(requests.lost, late.sent))  # a lost connection leaves writes on their way
    return Traffic(requests, late, changes(old.down, new.down, down))


def _owner(owner: int) -> str:
    return f" @{client_of(owner)}" if kind_of(owner) is Kind.EPHEMERAL else ""


def _pending(each: Any) -> str:
    return _committed(each) if isinstance(each, Commit) else f"sync of client {each.origin.client}"


def _committed(commit: Commit) -> str:
    return f"{commit.zxid}: {wording.transaction(commit.change)}"


def _hears(client: int, server: int, said: Any) -> str:
    if isinstance(said, ConnectionClosed):
        return f"client {client} finds its connection closed by server {server}"
    return f"client {client} hears from server {server}: {wording.message(said)}"


def _applies(server: int, first: Any) -> str:
    return f"server {server} applies {_pending(first)}"


_CAPTIONS: dict[str, Callable[..., str]] = {
    "ask": lambda c, record: f"client {c} asks: {wording.request(record)}",
    ServiceAction.ARRIVE: lambda c, k, record: (
        f"server {k} {'reads for' if isinstance(record, READS) else 'takes from'} client {c}: {wording.request(record)}"
    ),
    ServiceAction.ARRIVE_LATE: lambda c, record: (
        f"client {c}'s {wording.request(record)}, of a lost connection, arrives late"
    ),
    ServiceAction.APPLY: _applies,
    ServiceAction.DELIVER: _hears,
    ServiceAction.DISCONNECT: lambda c, k: f"client {c} loses its connection to server {k}",
    ServiceAction.RECONNECT: lambda c, k: f"client {c} connects to server {k} with its session",
    ServiceAction.OPEN: lambda c, k: f"client {c} asks server {k} for a new session",
    ServiceAction.LAPSE: lambda c: f"the session of client {c}, which is gone, expires",
}
