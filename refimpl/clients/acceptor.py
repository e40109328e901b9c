"""The listening sockets of the client port, and the way of a connection from `accept` to its transport.

Rules this module keeps:

- A connection counts towards all limits when it is accepted, before a TLS handshake. A refused one is closed in the
  same call, so that the number of refused sockets never uses up the descriptors of the server.

Source: `NIOServerCnxnFactory.AcceptThread`, `NettyServerCnxnFactory` (TLS).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from functools import partial
from typing import Any, Protocol

from refimpl.clients.connection import Connection
from refimpl.clients.settings import ClientSettings
from refimpl.listening import Listener, ListenError, bind
from spec.config.server_line import Address

logger = logging.getLogger("quorate.clients")


class Admission(Protocol):
    """The client port, as the acceptor sees it."""

    settings: ClientSettings

    def admit(self, address: str, port: int, descriptor: int = -1) -> Connection | None:
        """A new connection, if it is within the limits."""

    def forget(self, connection: Connection) -> None:
        """Remove a connection that has ended before it was open."""


class Acceptor:
    """The sockets of one client port, listening until `close`."""

    def __init__(self, admission: Admission) -> None:
        self._admission, self._settings = admission, admission.settings
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Listener] = []
        self._opening: set[asyncio.Task[None]] = set()

    def listen(self) -> None:
        """Opens the ports. Raises ListenError, and TlsError for a TLS file that cannot be used."""
        settings = self._settings
        context = settings.tls.context() if settings.tls else None
        if settings.address is not None:
            self._listen(settings.address, None)
        if settings.secure_address is not None:
            self._listen(settings.secure_address, context)

    def close(self) -> None:
        """Closes the ports, and the connections whose handshake is not complete."""
        for listener in self._listeners:
            listener.close()
        for opening in tuple(self._opening):
            opening.cancel()
        self._listeners.clear()

    def ports(self) -> tuple[int, ...]:
        """The open ports, in the order of the settings; a port of 0 in the settings has its real number here."""
        return tuple(listener.port for listener in self._listeners)

    def _listen(self, address: Address, context: ssl.SSLContext | None) -> None:
        try:
            listener = Listener(bind(address.host, address.port), partial(self._accepted, context))
        except OSError as error:
            why = error.strerror or str(error)
            raise ListenError(error.errno, f"cannot listen for clients at {address}: {why}") from None
        self._listeners.append(listener)

    def _accepted(self, context: ssl.SSLContext | None, opened: socket.socket, peer: tuple[Any, ...]) -> None:
        connection = self._admission.admit(peer[0], peer[1], opened.fileno())
        if connection is None:
            opened.close()
            return
        opening = self._loop.create_task(self._open(connection, opened, context))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    async def _open(self, connection: Connection, opened: socket.socket, context: ssl.SSLContext | None) -> None:
        """Makes the transport of an admitted connection, after the handshake on a TLS port."""
        timeout = self._settings.connect_timeout / 1000 if context is not None else None
        make = partial(self._loop.connect_accepted_socket, lambda: connection, opened)
        try:
            await make(ssl=context, ssl_handshake_timeout=timeout)
        except ConnectionResetError:
            logger.debug("%s: closed by the client before it was open", connection)
        except OSError as error:
            logger.warning("%s: disconnected before it was open: %s", connection, error)
        finally:
            if not connection.is_open:
                self._admission.forget(connection)
