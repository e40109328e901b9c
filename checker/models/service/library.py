"""A client's library in the model: `spec.client.library`, between the link and the client.

It has a column only where something depends on its memory (`ServiceSetup.has_library`); elsewhere the link sends to the
client directly. It keeps outstanding requests only if the setup is `pipelined`: with one request at a time the client
knows them.

The request that registers watches again is carried out in the move that reconnects. On a real connection it is the
first request, and the server treats every change that it applies between the two as missed.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.models.service.messages import (
    Acceptance,
    ClientCrash,
    ConnectionLoss,
    Delivery,
    RegisterWatches,
    Reply,
    SessionExpiry,
    SubmitRequest,
    WatchNotification,
)
from checker.models.service.setup import ServiceSetup, client_name, library_name, server_name
from spec.client import library as spec
from spec.client.library import Library
from spec.tree.requests import CloseSession
from spec.variants import Variant


def library_actor(client: int, setup: ServiceSetup) -> Actor:
    """The library of a client."""
    name, above = library_name(client), client_name(client)
    registers = setup.keeps_watches and Variant.LOST_WATCH not in setup.variants

    def step(values: tuple[Any, ...], said: Any) -> Outcome:
        library: Library = values[0]
        match said:
            case SubmitRequest(record):
                return Outcome((spec.submit(library, record) if setup.pipelined else library,))
            case Acceptance(server, told):
                after = spec.connected(library, told.session)
                again = (
                    (Send(server_name(server), RegisterWatches(client, after)),) if registers and after.watches else ()
                )
                return Outcome((after,), (*again, Send(above, told)))
        return Outcome((_relevant(_remember(library, said)),), (Send(above, said),))

    def _remember(library: Library, said: Delivery | ConnectionLoss | SessionExpiry | ClientCrash) -> Library:
        match said:
            case Delivery(WatchNotification(type_, path)):
                return spec.notified(library, type_, path)
            case Delivery(Reply(asked, code, _, zxid)):
                return spec.closed() if isinstance(asked, CloseSession) else spec.answered(library, asked, code, zxid)
            case ConnectionLoss():
                return spec.lost(library, keeps_watches=setup.keeps_watches)
            case SessionExpiry():
                return spec.expired(library)
        return spec.closed()

    def _relevant(library: Library) -> Library:
        """The library without information that has no effect in this setup.

        Without lag every server has applied every transaction, so a library without watches need not keep the last
        zxid. If the setup does not keep watches, they are dropped.
        """
        if not setup.lag and not library.watches:
            library = replace(library, seen=0)
        return library if setup.keeps_watches else replace(library, watches=frozenset())

    return Actor(name, (name,), step)
