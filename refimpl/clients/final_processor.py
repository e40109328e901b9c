"""The answers to requests that do not write, and the watch events for the clients of this server.

This server answers these requests from its own tree, without the ensemble. Rules this module keeps:

- Every decision is made in `spec.tree`: the answer to a read, the watch it leaves, the watchers of an event and the
  clients that are allowed to receive it.
- An answer is computed only when the turn of its request has come, so it shows the tree of that moment.
- A watch belongs to a connection and ends with it.
- A wrong password of SASL is answered after `WRONG_PASSWORD_DELAY`. A client that does not wait for the answer still
  counts for its address meanwhile, so an address has at most `maxClientCnxns` guesses in that time. ZooKeeper answers
  immediately.

Source: `FinalRequestProcessor.processRequest`; `ZooKeeperServer.processPacket` (auth), `processSasl`;
`NIOServerCnxn.process`.
"""

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from refimpl.clients.auth import AuthSettings
from refimpl.clients.connection import Connection, Reply
from refimpl.clients.statistics import ServerStatistics
from refimpl.tree import Tree
from refimpl.wire.client import encode_event
from refimpl.wire.packet import MAX_AUTHINFO
from spec.service.connection import PendingRequest, Route
from spec.service.digest_md5 import evaluate
from spec.text import place_of
from spec.tree.acl import authenticate, permits, sasl_identities
from spec.tree.apply import Event
from spec.tree.checks import RefusedError
from spec.tree.data import Id, Perms, Record
from spec.tree.options import Options
from spec.tree.read import read
from spec.tree.replies import Code, ErrorReply, PathReply, SaslReply
from spec.tree.requests import (
    AddWatch,
    CheckWatches,
    Exists,
    GetChildren,
    GetChildren2,
    GetData,
    Ping,
    RemoveWatches,
    Sasl,
    SetAuth,
    SetWatches,
    SetWatches2,
    Sync,
)
from spec.tree.watches import Watches, watch_of

logger = logging.getLogger("quorate.clients")

WRONG_PASSWORD_DELAY = 1.0
"""Seconds until the answer to a failed SASL authentication."""
_FAILED: dict[Route, Code] = {
    Route.REFUSED: Code.UNIMPLEMENTED,
    Route.UNIMPLEMENTED: Code.UNIMPLEMENTED,
    Route.MALFORMED: Code.MARSHALLING_ERROR,
    Route.UNAUTHENTICATED: Code.SESSION_CLOSED_REQUIRE_SASL_AUTH,
}
_MAY_WATCH = frozenset({Exists, GetData, GetChildren, GetChildren2})


class FinalProcessor:
    """Answers requests and keeps the watches of clients; a watcher is a `Connection`."""

    def __init__(
        self, statistics: ServerStatistics, options: Options, auth: AuthSettings, most_watch_bytes: int
    ) -> None:
        self._statistics = statistics
        self._auth = auth
        self._options, self._most_bytes = options, most_watch_bytes
        self._watches: Watches[Connection] = Watches()
        self._special: dict[type[Record], Callable[[Connection, Any, Tree | None], Reply]] = {
            Ping: _done,
            Sync: _synced,
            SetAuth: self._authenticate,
            Sasl: self._continue_sasl,
            AddWatch: self._add_watch,
            CheckWatches: self._check_watches,
            RemoveWatches: self._remove_watches,
            SetWatches: self._set_watches,
            SetWatches2: self._set_watches,
        }

    def answer(self, connection: Connection, pending: PendingRequest, tree: Tree | None) -> Reply:
        """The answer to a request that does not write, when its turn has come; no tree if the server does not serve.

        A request whose answer fails is refused, and the server goes on (`FinalRequestProcessor.processRequest`).
        """
        try:
            return self._answer(connection, pending, tree)
        except RefusedError as refused:
            logger.warning("%s: %s is refused: %s", connection, type(pending.record).__name__, refused.reason)
            return refused.code, None
        except Exception as error:
            logger.error("%s: its %s is refused: %s", connection, type(pending.record).__name__, place_of(error))  # noqa: TRY400 - one line
            return Code.MARSHALLING_ERROR, None

    def _answer(self, connection: Connection, pending: PendingRequest, tree: Tree | None) -> Reply:
        record = pending.record
        if record is None or pending.route in _FAILED:
            return _FAILED[pending.route], None
        special = self._special.get(type(record))
        if special is not None:
            return special(connection, record, tree)
        if tree is None:
            return Code.CONNECTION_LOSS, None
        code, reply = read(tree, record, connection.session, pending.auth, self._options)
        if type(record) in _MAY_WATCH and record.watch:  # type: ignore[attr-defined]
            kind = watch_of(record, code)
            if kind is not None:
                self._watches.add(kind, record.path, connection)  # type: ignore[attr-defined]
                self._bound(connection)
        return code, reply

    def fire(self, events: Iterable[Event]) -> None:
        """Send events to their watchers, except to clients that are not allowed to read the znode of the event."""
        if self._watches.is_empty:
            return
        for event in events:
            notified = self._watches.fire(event)
            if not notified:
                continue
            packet = encode_event(event)
            for connection in (watcher for watcher, _, _ in notified):
                if permits(event.acl, Perms.READ, connection.auth, self._options):
                    connection.send(packet)

    def forget(self, connection: Connection) -> None:
        """Remove the watches of a connection that has ended."""
        self._watches.forget(connection)

    @property
    def watches(self) -> int:
        """The number of watches of all kinds."""
        return len(self._watches)

    def _authenticate(self, connection: Connection, request: SetAuth, _tree: Tree | None) -> Reply:
        gained = authenticate(request.scheme, request.auth, connection.address, self._options)
        if gained is None:
            self._statistics.auth_failed += 1
            return Code.AUTH_FAILED, None
        return (Code.OK if _add(connection, gained) else Code.AUTH_FAILED), None

    def _continue_sasl(self, connection: Connection, request: Sasl, _tree: Tree | None) -> Reply:
        """Continue the SASL exchange of a connection; without users an empty answer says that it goes nowhere."""
        passwords = self._auth.passwords
        if passwords is None:
            return Code.OK, SaslReply(None)
        step = evaluate(connection.sasl, request.token or b"", secrets.token_urlsafe(30), passwords)
        connection.sasl = step.state
        if step.token is not None and (
            step.user is None or _add(connection, sasl_identities(step.user, self._options))
        ):
            return Code.OK, SaslReply(step.token)
        logger.warning("%s: not authenticated by SASL: %s", connection, step.reason)
        self._statistics.auth_failed += 1
        connection.hold(WRONG_PASSWORD_DELAY)
        if "sasl" in self._auth.required:
            return Code.SESSION_CLOSED_REQUIRE_SASL_AUTH, SaslReply(None)
        return (Code.OK if self._auth.keeps_failed else Code.AUTH_FAILED), SaslReply(None)

    def _add_watch(self, connection: Connection, request: AddWatch, _tree: Tree | None) -> Reply:
        code = self._watches.add_watch(request, connection)
        self._bound(connection)
        return code, ErrorReply(Code.OK) if code is Code.OK else None

    def _check_watches(self, connection: Connection, request: CheckWatches, _tree: Tree | None) -> Reply:
        return self._watches.check(request, connection), None

    def _remove_watches(self, connection: Connection, request: RemoveWatches, _tree: Tree | None) -> Reply:
        return self._watches.remove(request, connection), None

    def _set_watches(self, connection: Connection, request: SetWatches | SetWatches2, tree: Tree | None) -> Reply:
        if tree is None:
            return Code.CONNECTION_LOSS, None
        for _, event, path in self._watches.set_watches(tree, request, connection):
            znode = tree.node(path)
            if znode is None or permits(znode.acl, Perms.READ, connection.auth, self._options):
                connection.send(encode_event(Event(event, path)))
        self._bound(connection)
        return Code.OK, None

    def _bound(self, connection: Connection) -> None:
        """Disconnect a client that watches too much; `quorate.maxWatchBytes` is the bound."""
        if self._watches.size(connection) > self._most_bytes:
            connection.refuse(f"its watches take more than {self._most_bytes} bytes (quorate.maxWatchBytes)")

    def data_watches(self) -> Iterator[tuple[str, tuple[Connection, ...]]]:
        """Each path with data watches, and its watchers, for the commands `wchs`, `wchc` and `wchp`."""
        return self._watches.data_watches()

    def watch_totals(self) -> tuple[int, int, int]:
        """The numbers of connections with data watches, of watched paths, and of these watches, for `wchs`."""
        watches = tuple(self.data_watches())
        watchers = {watcher for _, group in watches for watcher in group}
        return len(watchers), len(watches), sum(len(group) for _, group in watches)


def _add(connection: Connection, gained: tuple[Id, ...]) -> bool:
    """Add identities to a connection; return False, and add none, if they are too many.

    A leader would end the connection with this server, which would affect every client here.
    """
    auth = tuple(dict.fromkeys((*connection.auth, *gained)))
    if sum(8 + 4 * (len(identity.scheme) + len(identity.id)) for identity in auth) > MAX_AUTHINFO:
        return False
    connection.auth = auth
    return True


def _done(_connection: Connection, _request: Record, _tree: Tree | None) -> Reply:
    return Code.OK, None


def _synced(_connection: Connection, request: Sync, _tree: Tree | None) -> Reply:
    return Code.OK, PathReply(request.path)
