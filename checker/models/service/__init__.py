"""A ZooKeeper service as its clients see it: a leader, servers that lag, connections, sessions, watches, faults.

`service(setup)` returns columns, actors and rules. The caller adds an actor `client c` for each client c, from 1, with
the client's columns and rules. The interface of this actor:

    client c receives                meaning
    Delivery(Reply(asked, code, reply, zxid))   the reply to a request
    Delivery(WatchNotification(type, path))     a watch has fired, and is removed
    ConnectionLoss()                 the connection is lost; outstanding requests stay unanswered, and may still be
                                     carried out until the client has a connection again
    ConnectionStart(resumed, session, zxid)   there is a connection again; not resumed: with a new session, after
                                     SessionExpiry
    SessionExpiry()                  the session is known to be over
    ClientCrash()                    the process ends; it receives nothing after this, and must not send a request

    client c sends                   meaning
    Send(link_name(c), SendRequest(record))   a request; only while connected, otherwise the model raises ModelError

Initially every client is connected with session `session_of(c)`; its n-th session is `session_of(c, n)`. A client gets
`ClientCrash` only if it has neither crashed nor closed its session. It closes the session by
`SendRequest(CloseSession())`: after that it gets the reply, or `ConnectionLoss`, but never `ConnectionStart`.

Observers (`observe_commits`, `observe_watches`) are actors of the caller. They get
`CommitFact(zxid, change, store, events)` before every other consequence of a transaction, and `WatchFact(path, told)`
when an event has met a watch.

`ServiceAction` lists the actions. Columns: `leader`; `link c`; `watches k`;
`server k` with lag only; `library c` if the setup has one; `faults`.

The model omits servers that crash, elect or lose their leader (checked with Zab, `checker.models.ensemble`). A
connection takes one move, including the requests of the client's library on it. A request of a lost connection that has
reached the leader in time counts as arrived.
"""

from checker.models.service.client_connection import ClientConnection, ConnectionState
from checker.models.service.messages import (
    ClientCrash,
    Commit,
    CommitFact,
    ConnectionClosed,
    ConnectionLoss,
    ConnectionStart,
    Delivery,
    Reply,
    SendRequest,
    ServiceAction,
    SessionExpiry,
    SyncMarker,
    WatchFact,
    WatchNotification,
)
from checker.models.service.rules import first_tree, service
from checker.models.service.servers import LaggingServer, Leader, open_sessions
from checker.models.service.setup import (
    LEADER,
    Clocks,
    FaultBudgets,
    ServiceSetup,
    client_name,
    client_of,
    link_name,
    server_name,
    session_of,
    watches_name,
)

__all__ = [
    "LEADER",
    "ClientConnection",
    "ClientCrash",
    "Clocks",
    "Commit",
    "CommitFact",
    "ConnectionClosed",
    "ConnectionLoss",
    "ConnectionStart",
    "ConnectionState",
    "Delivery",
    "FaultBudgets",
    "LaggingServer",
    "Leader",
    "Reply",
    "SendRequest",
    "ServiceAction",
    "ServiceSetup",
    "SessionExpiry",
    "SyncMarker",
    "WatchFact",
    "WatchNotification",
    "client_name",
    "client_of",
    "first_tree",
    "link_name",
    "open_sessions",
    "server_name",
    "service",
    "session_of",
    "watches_name",
]
