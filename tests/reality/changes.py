"""Changes of ensembles, made from one seed: what changes, by which way of working, and what interrupts it.

    change_of(seed, number) -> Change

Rules of this module:

- A change depends on the seed and its number alone, so that an interrupted run can continue anywhere.
- The kinds are dealt like cards: `KINDS` says how often each is in the deck, and every deck has them all.
- A change has no expected verdict. The planner gives one, and the servers show what happens. Two facts are not
  in a file: a class does not exist, and a danger that the planner names needs neither a fault nor a late message.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random

from spec.quorum import Sid
from tests.reality.states import CLIENT, ELECTION, HOME, NETWORK, QUORUM, SECURE, State, ensemble


class Route(Enum):
    """How a change is carried out."""

    PLAN = "plan"
    GO_ON = "interrupted, --now"
    BACK = "the way back"
    NO_WAIT = "no-wait"
    PARALLEL = "parallel"
    STOP_ALL = "stop-all"
    ORDER = "order"

    @property
    def how(self) -> str | None:
        """The value of `--how`; None if the planner chooses."""
        return self.value if self in (Route.NO_WAIT, Route.PARALLEL, Route.STOP_ALL) else None


@dataclass(frozen=True)
class Change:
    """A change. `cut` places the interruption: 0 is after the first step, and 1 before the last.

    `starts_never`: a server cannot start with its new file for a reason that the file does not show. `provoked`: a
    danger that the planner names needs no fault and no late message, so that it must show.
    """

    number: int
    kind: str
    title: str
    old: State
    new: State
    route: Route = Route.PLAN
    order: tuple[Sid, ...] = ()
    cut: float = 0.0
    tls: bool = False
    starts_never: bool = False
    provoked: bool = False
    names_leader: bool = False


@dataclass(frozen=True)
class _Content:
    """The states of a change before and after, in words, and the facts that are not in the files."""

    title: str
    old: State
    new: State
    tls: bool = False
    starts_never: bool = False
    order: tuple[Sid, ...] = ()


Maker = Callable[[Random], _Content]


@dataclass(frozen=True)
class Kind:
    """A kind of changes: how many of each deck, and the routes of these, one after the other."""

    name: str
    make: Maker
    routes: tuple[Route, ...]
    provoked: bool = False


PLAN, ON, BACK, QUICK, PARALLEL, ALL = (
    Route.PLAN,
    Route.GO_ON,
    Route.BACK,
    Route.NO_WAIT,
    Route.PARALLEL,
    Route.STOP_ALL,
)


# --- members


def _add_one(random: Random) -> _Content:
    count = random.choice((3, 3, 4))
    old = ensemble(count)
    sid = random.choice((count + 1, count + 1, 9))
    return _Content(f"server {sid} is added to {count}", old, old.with_place(sid))


def _remove_one(random: Random) -> _Content:
    count = random.choice((4, 4, 5))
    old = ensemble(count)
    sid = random.choice(old.sids)
    return _Content(f"server {sid} of {count} is removed", old, old.without(sid))


def _add_two(random: Random) -> _Content:
    old = ensemble(3)
    return _Content("servers 4 and 5 are added to 3", old, old.with_place(4).with_place(5))


def _remove_two(random: Random) -> _Content:
    old = ensemble(5)
    one, other = random.sample(old.sids, 2)
    return _Content(f"servers {one} and {other} of 5 are removed", old, old.without(one).without(other))


def _replace_one(random: Random) -> _Content:
    old = ensemble(3)
    gone = random.choice(old.sids)
    return _Content(f"server 4 replaces server {gone} of 3", old, old.without(gone).with_place(4))


def _grow_from_one(random: Random) -> _Content:
    old = ensemble(1)
    return _Content("a standalone server becomes 3", old, old.with_place(2).with_place(3))


def _new_servers_first(random: Random) -> _Content:
    growth = _grow_from_one(random)
    return _Content("a standalone server becomes 3, and starts last", growth.old, growth.new, order=(2, 3, 1))


def _shrink_to_one(random: Random) -> _Content:
    old = ensemble(3)
    return _Content("3 servers become a standalone one", old, old.without(2).without(3))


# --- roles


def _add_observer(random: Random) -> _Content:
    old = ensemble(3)
    return _Content("observer 4 is added to 3", old, old.with_place(4, observer=True))


def _remove_observer(random: Random) -> _Content:
    old = ensemble(3, 1)
    return _Content("observer 4 is removed from 3", old, old.without(4))


def _promote(random: Random) -> _Content:
    old = ensemble(3, 1)
    return _Content("observer 4 becomes a voter", old, old.with_place(4, observer=False))


def _demote(random: Random) -> _Content:
    old = ensemble(4)
    sid = random.choice(old.sids)
    return _Content(f"voter {sid} of 4 becomes an observer", old, old.with_place(sid, observer=True))


# --- ids, hosts and ports


def _renumber(random: Random) -> _Content:
    old = ensemble(3)
    sid = random.choice(old.sids)
    new = old.without(sid).with_place(9, host=f"{NETWORK}{sid}")
    return _Content(f"server {sid} gets the id 9 at its address", old, new)


def _other_host(random: Random) -> _Content:
    old = ensemble(3)
    sid = random.choice(old.sids)
    return _Content(f"server {sid} moves to another address", old, old.with_place(sid, host=f"{NETWORK}{sid + 10}"))


def _one_peer_port(random: Random) -> _Content:
    old = ensemble(3)
    sid, port = random.choice(old.sids), random.choice(("quorum", "election"))
    number = (QUORUM if port == "quorum" else ELECTION) + 10
    return _Content(f"the {port} port of server {sid} changes", old, old.with_place(sid, **{port: number}))


def _all_peer_ports(random: Random) -> _Content:
    old = ensemble(3)
    port = random.choice(("quorum", "election"))
    number = (QUORUM if port == "quorum" else ELECTION) + 10
    return _Content(f"the {port} port of all changes", old, _at_all(old, **{port: number}))


def _client_port(random: Random) -> _Content:
    old = ensemble(random.choice((3, 4)))
    if random.random() < 0.5:
        sid = random.choice(old.sids)
        return _Content(f"the client port of server {sid} changes", old, old.with_place(sid, client=CLIENT + 10))
    return _Content("the client port of all changes", old, _at_all(old, client=CLIENT + 10))


def _secure_client_port(random: Random) -> _Content:
    old = ensemble(3)
    keys = {**_client_tls(), "secureClientPort": str(SECURE)}
    if random.random() < 0.5:
        return _Content("a secure client port is added", old, old.with_keys(keys), tls=True)
    only = {**keys, "clientPort": None, "clientPortAddress": None}
    return _Content("a secure client port replaces the plain one", old.with_keys(keys), old.with_keys(only), tls=True)


def _client_port_is_peer_port(random: Random) -> _Content:
    old = ensemble(3)
    port, number = random.choice((("quorum", QUORUM), ("election", ELECTION)))
    return _Content(f"the client port becomes the {port} port", old, _at_all(old, client=number))


def _secure_port_is_client_port(random: Random) -> _Content:
    old = ensemble(3)
    keys = {**_client_tls(), "secureClientPort": str(CLIENT)}
    return _Content("the secure client port is the client port", old, old.with_keys(keys), tls=True)


def _one_address_for_two(random: Random) -> _Content:
    old = ensemble(3)
    sid, other = random.sample(old.sids, 2)
    return _Content(f"server {sid} gets the address of {other}", old, old.with_place(sid, host=f"{NETWORK}{other}"))


def _peer_ports_swapped(random: Random) -> _Content:
    old = ensemble(3)
    return _Content(
        "the quorum and the election port change places", old, _at_all(old, quorum=ELECTION, election=QUORUM)
    )


def _at_all(old: State, **fields: object) -> State:
    state = old
    for sid in old.sids:
        state = state.with_place(sid, **fields)
    return state


# --- quorums


def _groups(random: Random) -> _Content:
    old = ensemble(5)
    keys = {"group.1": "1:2:3", "group.2": "4:5"} if random.random() < 0.5 else {"group.1": "1:2:3:4:5"}
    given = "; ".join(f"{key}={value}" for key, value in keys.items())
    if random.random() < 0.7:
        return _Content(f"5 servers get {given}", old, old.with_keys(keys))
    return _Content(f"5 servers lose {given}", old.with_keys(keys), old)


def _weights(random: Random) -> _Content:
    count = random.choice((3, 4))
    old = ensemble(count).with_keys({"group.1": ":".join(map(str, range(1, count + 1)))})
    sid, weight = random.choice(old.sids), random.choice((0, 2, 2, 3))
    return _Content(
        f"server {sid} of {count} gets the weight {weight}", old, old.with_keys({f"weight.{sid}": str(weight)})
    )


# --- TLS between servers


def _store(purpose: str) -> dict[str, str]:
    return {
        f"ssl.{purpose}keyStore.location": f"{HOME}/tls/store.pem",
        f"ssl.{purpose}trustStore.location": f"{HOME}/tls/trust.pem",
    }


def _client_tls() -> dict[str, str]:
    return {**_store(""), "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"}


TLS_STEPS: tuple[Mapping[str, str | None], ...] = (
    {},
    {**_store("quorum."), "portUnification": "true"},
    {**_store("quorum."), "portUnification": "true", "sslQuorum": "true"},
    {**_store("quorum."), "sslQuorum": "true"},
)


def _tls(first: int, second: int) -> Maker:
    names = ("no TLS", "portUnification", "sslQuorum and portUnification", "sslQuorum alone")

    def make(random: Random) -> _Content:
        old, new = (ensemble(3).with_keys(TLS_STEPS[step]) for step in (first, second))
        return _Content(f"quorum TLS: {names[first]} to {names[second]}", old, new, tls=True)

    return make


def _tls_detour(random: Random) -> _Content:
    return _tls(*random.choice(((3, 2), (2, 1), (1, 0), (1, 3), (3, 1), (2, 0))))(random)


# --- reconfigEnabled


def _reconfig_on(random: Random) -> _Content:
    old = ensemble(3)
    return _Content("reconfigEnabled is turned on", old, old.with_keys({"reconfigEnabled": "true"}))


def _reconfig_off(random: Random) -> _Content:
    old = ensemble(3).with_keys({"reconfigEnabled": "true"})
    keys: dict[str, str | None] = {"reconfigEnabled": random.choice((None, "false"))}
    return _Content("reconfigEnabled is turned off", old, old.with_keys(keys))


# --- keys

LOCAL = {
    "snapCount": "5000",
    "preAllocSize": "1024",
    "commitLogCount": "200",
    "globalOutstandingLimit": "500",
    "maxCnxns": "200",
    "autopurge.purgeInterval": "1",
    "autopurge.snapRetainCount": "5",
    "fsync.warningthresholdms": "50",
    "digest.enabled": "false",
    "snapshot.compression.method": "gz",
    "flushDelay": "5",
    "maxBatchSize": "100",
    "nio.numWorkerThreads": "4",
    "commitProcessor.numWorkerThreads": "2",
    "tcpKeepAlive": "true",
    "clientPortListenBacklog": "20",
    "forceSync": "yes",
    "snapSizeLimitInKb": "100000",
    "quorum.cnxn.threads.size": "10",
    "leader.maxConcurrentSnapSyncs": "3",
    "learner.asyncSending": "true",
    "serializeLastProcessedZxid.enabled": "false",
    "pathStats.enabled": "false",
    "jvm.pause.monitor": "true",
}
TIMES = {
    "tickTime": "400",
    "initLimit": "100",
    "syncLimit": "50",
    "connectToLearnerMasterLimit": "60",
    "cnxTimeout": "4000",
    "fastleader.maxNotificationInterval": "10000",
    "leader.maxTimeToWaitForEpoch": "9000",
}
FOR_CLIENTS = {
    "maxClientCnxns": "100",
    "minSessionTimeout": "1000",
    "maxSessionTimeout": "60000",
    "4lw.commands.whitelist": "srvr, ruok",
    "enforceQuota": "true",
    "localSessionsEnabled": "true",
    "skipACL": "yes",
}
IGNORED = {
    "jute.maxbuffer": "2000000",
    "readonlymode.enabled": "true",
    "maxTimeToWaitForEpoch": "5000",
    "zookeeper.snapCount": "5000",
    "advancedFlowControlEnabled": "true",
}
MISSPELT = {"snapCont": "5000", "maxClientCnxn": "60", "autopurge": "1", "foreSync": "no", "tickTme": "3000"}
MISSING_CLASSES = ("metricsProvider.className", "serverCnxnFactory", "watchManagerName", "authProvider.1")
SURPRISING = {"leaderServes": "no", "4lw.commands.whitelist": "ruok"}
REFUSED = {
    "tickTime": "two",
    "initLimit": "-",
    "clientPort": "99999999",
    "electionAlg": "9",
    "peerType": "bystander",
    "server.3": f"{NETWORK}3:none:3888",
    "maxClientCnxns": "many",
    "syncEnabled": "maybe",
    "minSessionTimeout": "90000",
    "secureClientPort": "0x1",
    "portUnification": "perhaps",
    "group.1": "1:2",
}


def _key(values: Mapping[str, str]) -> Maker:
    def make(random: Random) -> _Content:
        old = ensemble(random.choice((3, 3, 1, 4)))
        key = random.choice(sorted(values))
        state = old.with_keys({key: values[key]})
        if random.random() < 0.8:
            return _Content(f"{key}={values[key]} is set at {len(old.sids)}", old, state)
        return _Content(f"{key}={values[key]} is removed at {len(old.sids)}", state, old)

    return make


def _set_key(values: Mapping[str, str]) -> Maker:
    def make(random: Random) -> _Content:
        old, key = ensemble(3), random.choice(sorted(values))
        return _Content(f"{key}={values[key]} is set at 3", old, old.with_keys({key: values[key]}))

    return make


def _missing_class(random: Random) -> _Content:
    old, key = ensemble(3), random.choice(MISSING_CLASSES)
    new = old.with_keys({key: "org.example.NoSuchClass"})
    return _Content(f"{key} names a class that does not exist", old, new, starts_never=True)


def _durability(random: Random) -> _Content:
    old = ensemble(3)
    key, value = random.choice((("forceSync", "no"), ("snapshot.trust.empty", "true")))
    return _Content(f"{key}={value}", old, old.with_keys({key: value}))


def _other_data(random: Random) -> _Content:
    old, key = ensemble(3), random.choice(("dataDir", "dataLogDir"))
    own = {sid: {key: f"{HOME}/server-{sid}/other"} for sid in old.sids}
    return _Content(f"{key} is another folder", old, State(old.places, old.keys, own))


def _nothing(random: Random) -> _Content:
    old = ensemble(random.choice((1, 3)))
    return _Content(f"{len(old.sids)} servers are restarted with their files", old, old)


def _members_and_key(random: Random) -> _Content:
    change = random.choice((_add_one, _remove_one, _add_observer, _promote))(random)
    key = random.choice(sorted(LOCAL | TIMES))
    value = (LOCAL | TIMES)[key]
    return _Content(f"{change.title}, and {key}={value}", change.old, change.new.with_keys({key: value}))


def _one_server_differs(random: Random) -> _Content:
    old, key = ensemble(3), random.choice(sorted(LOCAL))
    sid = random.choice(old.sids)
    new = State(old.places, old.keys, {sid: {key: LOCAL[key]}})
    return _Content(f"{key}={LOCAL[key]} at server {sid} alone", old, new)


KINDS = (
    Kind("a voter is added", _add_one, (PLAN, ON, BACK, ON, QUICK, ALL)),
    Kind("a voter is removed", _remove_one, (PLAN, ON, BACK, ON, QUICK, ALL)),
    Kind("two voters are added", _add_two, (PLAN, ON, BACK, PARALLEL)),
    Kind("two voters are removed", _remove_two, (PLAN, ON)),
    Kind("a voter is replaced", _replace_one, (PLAN, ON, BACK)),
    Kind("a standalone server grows", _grow_from_one, (PLAN, ON, ALL)),
    Kind("new servers before the standalone one", _new_servers_first, (Route.ORDER,), provoked=True),
    Kind("shrunk to a standalone server", _shrink_to_one, (PLAN, BACK)),
    Kind("an observer is added", _add_observer, (PLAN, ON, BACK)),
    Kind("an observer is removed", _remove_observer, (PLAN, ALL)),
    Kind("an observer becomes a voter", _promote, (PLAN, ON, BACK)),
    Kind("a voter becomes an observer", _demote, (PLAN, ON)),
    Kind("a server gets another id", _renumber, (PLAN,)),
    Kind("a server moves", _other_host, (PLAN, PLAN)),
    Kind("a peer port of one server", _one_peer_port, (PLAN, ON)),
    Kind("a peer port of all servers", _all_peer_ports, (PLAN, ALL, ALL)),
    Kind("client ports", _client_port, (PLAN, ON, BACK, ALL)),
    Kind("a secure client port", _secure_client_port, (PLAN, PLAN)),
    Kind("a client port on a peer port", _client_port_is_peer_port, (PLAN, ALL)),
    Kind("a secure port on the client port", _secure_port_is_client_port, (PLAN,)),
    Kind("two servers at one address", _one_address_for_two, (PLAN,)),
    Kind("peer ports change places", _peer_ports_swapped, (PLAN, ALL)),
    Kind("groups", _groups, (PLAN, ON)),
    Kind("weights", _weights, (PLAN, ON)),
    Kind("TLS step 1", _tls(0, 1), (PLAN, ON, BACK)),
    Kind("TLS step 2", _tls(1, 2), (PLAN, ON, BACK)),
    Kind("TLS step 3", _tls(2, 3), (PLAN, ON, BACK)),
    Kind("TLS in one step", _tls(0, 3), (PLAN, ALL)),
    Kind("TLS back, or a step left out", _tls_detour, (PLAN, PLAN, ALL)),
    Kind("reconfigEnabled on", _reconfig_on, (PLAN, ON, BACK)),
    Kind("reconfigEnabled off", _reconfig_off, (PLAN, ALL)),
    Kind("a key of one server each", _key(LOCAL), (PLAN, ON, BACK, QUICK, ALL, PLAN)),
    Kind("a key at one server alone", _one_server_differs, (PLAN,)),
    Kind("a time", _key(TIMES), (PLAN, ON, ALL)),
    Kind("a key for clients", _key(FOR_CLIENTS), (PLAN, ON, BACK)),
    Kind("a key that hides a server", _set_key(SURPRISING), (PLAN, PLAN)),
    Kind("a key that is not read", _key(IGNORED), (PLAN,)),
    Kind("a misspelt key", _set_key(MISSPELT), (PLAN,)),
    Kind("a class that does not exist", _missing_class, (PLAN, PLAN)),
    Kind("a value that is refused", _set_key(REFUSED), (PLAN, PLAN, PLAN)),
    Kind("durability", _durability, (PLAN,)),
    Kind("another data folder", _other_data, (PLAN,)),
    Kind("nothing changes", _nothing, (PLAN, BACK)),
    Kind("members and a key", _members_and_key, (PLAN, ON, BACK, ALL)),
)
DECK = tuple((kind, route) for kind in KINDS for route in kind.routes)
"""Each kind as often as it has routes."""


def change_of(seed: int, number: int) -> Change:
    """The change with this number, from 1."""
    deck, place = divmod(number - 1, len(DECK))
    cards = list(DECK)
    Random(f"deck {seed} {deck}").shuffle(cards)
    kind, route = cards[place]
    random = Random(f"change {seed} {number}")
    content = kind.make(random)
    return Change(
        number,
        kind.name,
        content.title,
        content.old,
        content.new,
        route,
        content.order,
        cut=random.random(),
        tls=content.tls,
        starts_never=content.starts_never,
        provoked=kind.provoked,
        names_leader=random.random() < 0.3,
    )
