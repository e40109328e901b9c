"""The display of a service: a lane for the leader, each server and each client, short captions, and messages.

Rules of this module:

- A field is present only while it has information: an empty set of watches and an empty queue are omitted.
- A tree omits the initial znodes that are unchanged. A znode is shown as its data, followed by `@1` if it is ephemeral
  and owned by a session of client 1.
- A request of a lost connection is in flight until it arrives late. It is lost when the client is connected again.
- Where servers do not lag, requests arrive at `leader`, which represents the whole service.

`fields` returns the fields of the columns that the caller of the service adds for a client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from checker.engine import Model, Move, Row
from checker.job import DiagramEvent, Json
from checker.models.service.client_connection import ClientConnection, ConnectionState, may_change
from checker.models.service.messages import Commit, ConnectionClosed, RefuseSession
from checker.models.service.observations import READS
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
from spec.client.library import Library
from spec.tree.data import Kind, kind_of
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
    """The presenter of a service. See `checker.job.Presenter`."""

    def __init__(
        self,
        model: Model,
        setup: ServiceSetup,
        fields: Callable[[int, Row], Mapping[str, Json]] = lambda _client, _row: {},
    ) -> None:
        self._model, self._setup, self._fields = model, setup, fields
        self._first: FrozenStore = model.columns[model.index[LEADER]].initial.store

    def _value(self, row: Row, column: str) -> Any:
        return row[self._model.index[column]]

    # Lanes.

    def lanes(self, row: Row) -> dict[str, Fields]:
        """The leader, the servers and the clients."""
        leader = self._value(row, LEADER)
        lanes: dict[str, Fields] = {LEADER: {"zxid": leader.zxid, **self._tree(leader.store)}}
        for server in self._setup.server_ids:
            shown = self._server(row, server)
            if shown or self._setup.lag:
                lanes[server_name(server)] = shown
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
        gone = [path for path in former if store.node(path) is None]
        return {**({"tree": new} if new else {}), **({"gone": gone} if gone else {})}

    def _server(self, row: Row, server: int) -> Fields:
        fields: Fields = {}
        if self._setup.lag:
            replica: LaggingServer = self._value(row, server_name(server))
            fields |= {"zxid": replica.zxid, **self._tree(replica.store)}
            if replica.pending:
                fields["pending"] = [_pending(each) for each in replica.pending]
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
        return {**fields, **self._fields(client, row)}

    # Captions.

    def caption(self, move: Move) -> str:
        """One sentence with the actor and the action."""
        words = _WORDS.get(move.action)
        if words is None:
            return " ".join([move.action, *map(str, move.arguments)])
        if move.action == "reconnect" and any(isinstance(send.operation, RefuseSession) for send in move.sends):
            return f"server {move.arguments[1]} tells client {move.arguments[0]} that its session is over"
        return str(words(*move.arguments))

    # Pictures.

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The arrivals and losses of a step, then its note, then the sent messages."""
        left: list[DiagramEvent] = []
        sent: list[DiagramEvent] = []
        for client in self._setup.client_ids:
            old, new = self._value(before, link_name(client)), self._value(after, link_name(client))
            if old is not new:
                left += self._arrived(client, old, new, move)
                sent += self._sent(client, old, new)
        for server in self._setup.server_ids if self._setup.lag else ():
            name = server_name(server)
            old, new = self._commits(before, name), self._commits(after, name)
            for each in (old - new).elements():
                applied = DiagramEvent("deliver", name, each, peer=LEADER)
                left.append(applied if move.action == "apply" else DiagramEvent("lost", LEADER, each, peer=name))
            sent += [DiagramEvent("send", LEADER, each, peer=name) for each in (new - old).elements()]
        return (*left, *self._noted(move), *sent)

    def _commits(self, row: Row, name: str) -> Counter[str]:
        return Counter(_committed(each) for each in self._value(row, name).pending if _is_of_all(each))

    def _at(self, link: ClientConnection) -> str:
        return server_name(link.server) if self._setup.lag and link.server is not None else LEADER

    def _arrived(self, client: int, old: ClientConnection, new: ClientConnection, move: Move) -> Iterator[DiagramEvent]:
        mine = bool(move.arguments) and move.arguments[0] == client
        name, server = client_name(client), self._at(old)
        if mine and move.action == "arrive":
            yield DiagramEvent("deliver", server, wording.request(move.arguments[2]), peer=name)
        elif mine and move.action == "arrive late":
            yield DiagramEvent("note", LEADER, f"{name}'s {wording.request(move.arguments[1])} arrives late")
            yield DiagramEvent("late", name, wording.request(move.arguments[1]))
        elif len(new.up) < len(old.up):
            kept = Counter(map(wording.request, new.stray))
            lost = Counter(map(wording.request, old.up)) - (kept if may_change(old.up) else Counter())
            yield from (DiagramEvent("lost", name, each, peer=server) for each in lost.elements())
        if mine and move.action == "deliver":
            yield DiagramEvent("deliver", name, wording.message(move.arguments[2]), peer=server)
        elif new.server is None and old.down:
            yield from (DiagramEvent("lost", server, wording.message(each), peer=name) for each in old.down)
        if not (mine and move.action == "arrive late"):
            dropped = Counter(map(wording.request, old.stray)) - Counter(map(wording.request, new.stray))
            yield from (DiagramEvent("lost", name, each) for each in dropped.elements())

    def _sent(self, client: int, old: ClientConnection, new: ClientConnection) -> Iterator[DiagramEvent]:
        name = client_name(client)
        if len(new.up) > len(old.up):
            yield DiagramEvent("send", name, wording.request(new.up[-1]), peer=self._at(new))
        had, has = Counter(map(wording.message, old.down)), Counter(map(wording.message, new.down))
        order = {wording.message(each): place for place, each in enumerate(new.down)}
        for text in sorted((has - had).elements(), key=order.__getitem__):
            yield DiagramEvent("send", self._at(new), text, peer=name)

    def _noted(self, move: Move) -> Iterable[DiagramEvent]:
        if move.action == "crash":
            yield DiagramEvent("crash", client_name(move.arguments[0]), "crash")
        elif move.action in _NOTED:
            yield DiagramEvent("note", client_name(move.arguments[0]), self.caption(move))


def scripted_fields(model: Model) -> Callable[[int, Row], Mapping[str, Json]]:
    """The fields of a client that runs a script: its requests without a reply."""

    def fields(client: int, row: Row) -> Fields:
        standing = row[model.index[client_name(client)]]
        waits = [wording.request(record) for record in standing.outstanding]
        return {"unanswered": waits} if waits else {}

    return fields


def _owner(owner: int) -> str:
    """The client that owns an ephemeral znode."""
    return f" @{client_of(owner)}" if kind_of(owner) is Kind.EPHEMERAL else ""


def _pending(each: Any) -> str:
    return _committed(each) if isinstance(each, Commit) else f"sync of client {each.origin.client}"


def _committed(commit: Commit) -> str:
    return f"{commit.zxid}: {wording.transaction(commit.change)}"


def _is_of_all(each: Any) -> bool:
    """Whether a pending item is a transaction of the leader."""
    return isinstance(each, Commit)


_NOTED = frozenset({"disconnect", "reconnect", "open", "expire", "lapse"})


def _hears(client: int, server: int, said: Any) -> str:
    if isinstance(said, ConnectionClosed):
        return f"client {client} finds its connection closed by server {server}"
    return f"client {client} hears from server {server}: {wording.message(said)}"


def _applies(server: int, first: Any) -> str:
    return f"server {server} applies {_pending(first)}"


_WORDS: dict[str, Callable[..., str]] = {
    "ask": lambda c, record: f"client {c} asks: {wording.request(record)}",
    "arrive": lambda c, k, record: (
        f"server {k} {'reads for' if isinstance(record, READS) else 'takes from'} client {c}: {wording.request(record)}"
    ),
    "arrive late": lambda c, record: f"client {c}'s {wording.request(record)}, of a lost connection, arrives late",
    "apply": _applies,
    "deliver": _hears,
    "disconnect": lambda c, k: f"client {c} loses its connection to server {k}",
    "reconnect": lambda c, k: f"client {c} connects to server {k} with its session",
    "open": lambda c, k: f"client {c} asks server {k} for a new session",
    "expire": lambda c: f"the session of client {c} expires",
    "lapse": lambda c: f"the session of client {c}, which is gone, expires",
    "crash": lambda c: f"client {c} crashes",
}
