"""A ZooKeeper service as its clients see it: a leader, servers that lag, connections, sessions, watches, faults.

`service(setup)` gives columns, actors and rules; whoever plugs in adds an actor `client c` for each client c, from 1,
with columns and rules of its own. What the service asks of it:

    client c answers            when
    Heard(Reply(asked, code, reply, zxid))   the answer to a request has come
    Heard(Notice(type, path))   a watch has fired; it is gone
    Disconnected()              the connection is lost; what was asked stays unanswered, and may still be done until
                                the client has a connection again
    Connected(resumed, session, zxid)   there is a connection again; not resumed: with a new session, after Expired
    Expired()                   the session is known to be gone
    Crash()                     the process ends; nothing is heard any more, and nothing must be asked

    client c sends              meaning
    Send(link_name(c), Ask(record))   a request; only while connected, else the model raises ModelError

At first every client is connected with session `session_of(c)`; its n-th session is `session_of(c, n)`. A client hears
`Crash` only where it has neither crashed nor closed its session. It closes it by `Ask(CloseSession())`: what it hears
afterwards is the answer, or `Disconnected`; never `Connected`.

Observers (`observe_commits`, `observe_watches`) are actors of whoever plugs in. They get `Committed(zxid, change,
store, events)` before anything else comes of a transaction, and `Fired(path, told)` when an event has met a watch.

The actions are listed in `rules`; those in `FAULTS` are faults. Columns: `leader`; `server k` with lag alone;
`watches k`; `link c`; `library c` if the setup has one; `faults left`.

What is left out: servers that crash, elect or lose their leader (checked with Zab, `checker.models.ensemble`);
connecting takes one move, and so does what a library does on it; a request of a lost connection that has reached the
leader in time is one that arrived.
"""

from checker.models.service.build import Parts, first_tree, service
from checker.models.service.faults import FAULTS, has_left, spend
from checker.models.service.leader import Leader, open_sessions
from checker.models.service.link import Link, State
from checker.models.service.replica import Replica
from checker.models.service.setup import (
    FAULTS_LEFT,
    LEADER,
    Budgets,
    Clocks,
    ServiceSetup,
    client_name,
    client_of,
    library_name,
    link_name,
    server_name,
    session_of,
    watches_name,
)
from checker.models.service.words import (
    Ask,
    Broken,
    Commit,
    Committed,
    Connected,
    Crash,
    Disconnected,
    Expired,
    Fired,
    Heard,
    Marker,
    Notice,
    Reply,
)

__all__ = [
    "FAULTS",
    "FAULTS_LEFT",
    "LEADER",
    "Ask",
    "Broken",
    "Budgets",
    "Clocks",
    "Commit",
    "Committed",
    "Connected",
    "Crash",
    "Disconnected",
    "Expired",
    "Fired",
    "Heard",
    "Leader",
    "Link",
    "Marker",
    "Notice",
    "Parts",
    "Replica",
    "Reply",
    "ServiceSetup",
    "State",
    "client_name",
    "client_of",
    "first_tree",
    "has_left",
    "library_name",
    "link_name",
    "open_sessions",
    "server_name",
    "service",
    "session_of",
    "spend",
    "watches_name",
]
