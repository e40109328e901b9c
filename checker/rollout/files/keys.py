"""The effect of each key of a zoo.cfg, and the condition for its change; the ports and handshakes that keys ask for.

    effect_of(key, value)  -> KeyEffect(effect, note)

Rules of this module:

- A key counts as known if the Administrator's Guide of 3.9.5 lists it, or if the source of 3.9.5 reads it. The keys of
  members, roles, quorums and addresses are not here: the model has them (`checker.rollout.files.differences`).
- The effect is that of the new value: `forceSync=yes` is harmless, and `forceSync=no` can lose writes.
- ZooKeeper makes the system property `zookeeper.<key>` of a key that it does not read itself. Some properties of the
  guide have other names, so their keys do nothing in a file (`Effect.IGNORED`).

Sources: `QuorumPeerConfig.parseProperties`; the system properties that the classes of 3.9.5 read; the guide's sections
"Configuration Parameters", "AdminServer configuration" and "Metrics Providers".

The connections of a server are the ports that it listens on, and the handshakes by which others refuse it:

    conflicts(given)    -> a Problem for each pair of listeners that cannot both be bound
    occupied(old, new)  -> a Problem for each server that needs a port which another one has until its step
    strangers(old, new) -> the servers that refuse each other by TLS or SASL while some have the new file

- A listener without a host binds every address of its machine, so it conflicts with any other one of that port. Names
  are compared as they are written: two names of one machine are not seen.
- A server that listens with its AdminServer and for clients at one port starts all the same (`QuorumPeer.start` logs
  the failure of the AdminServer). With any other pair it does not start, never elects, or cannot lead.
- A standalone server has no ports for peers.
- Two servers of one host cannot have one port, not even one after the other: an addition may come before a removal, and
  a wait would be answered by the other server. A port that several old servers have is that of an excerpt.
- A server connects by TLS if `sslQuorum` is true. It accepts TLS if `sslQuorum` or `portUnification` is true, and plain
  connections unless `sslQuorum` is true without `portUnification`.
- A server that connects proves who it is if `quorum.auth.learnerRequireSasl` is true, which needs a server with
  `quorum.auth.enableSasl`. With `quorum.auth.serverRequireSasl` a server refuses every connection without such a proof.
- Two servers talk if each can connect to the other: an election needs one direction, and following the other one.
- Certificates and credentials are not read. So this finds servers that cannot talk, and never shows that they can.

Sources: `QuorumPeerMain.runFromConfig`, `QuorumPeer.start`, `QuorumCnxManager.Listener`, `Leader.createServerSocket`,
`JettyAdminServer`, `PrometheusMetricsProvider` of 3.9.5; the guide has the defaults.
`QuorumCnxManager.initiateConnection`, `Learner.createSocket`, `Leader.createServerSocket`,
`UnifiedServerSocket`, `SaslQuorumAuthServer.authenticate`, `SaslQuorumAuthLearner.authenticate`; ZooKeeper
Administrator's Guide, "Upgrading existing nonTLS cluster with no downtime".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import combinations, product
from typing import NamedTuple

from checker.printable import similar
from checker.rollout.inputs.folders import ServerFiles, addresses_of, settings
from spec.config.ensemble import shared_addresses
from spec.config.problems import Problem
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS, is_loopback
from spec.text import integer


class Effect(Enum):
    """The effect of a key on the verdict, in words."""

    MODELLED = "modelled"
    LOCAL = "for each server alone"
    CLIENTS = "for clients"
    STARTS = "for the start of a server"
    AGREE = "to be equal at all servers in the end"
    PEERS = "for the connections between servers"
    ACCESS = "for what clients may do"
    IGNORED = "not read from a file by ZooKeeper 3.9.5"
    DISK = "not modelled: the disk is empty, unless the data is moved first"
    DURABILITY = "can lose acknowledged writes"
    UNKNOWN = "not known to ZooKeeper 3.9.5"
    NOT_STATED = "not compared"


class KeyEffect(NamedTuple):
    """The effect of a key with its value, and a condition or an advice for the operator; an empty text is neither."""

    effect: Effect
    note: str = ""


_TIMES = "the verdict allows every time-out at any time; a value that is too small costs service"
_FILES = "the files must be good at every server; try one server first"
_RENAMED = (
    "maxTimeToWaitForEpoch=leader.maxTimeToWaitForEpoch maxConcurrentSnapSyncs=leader.maxConcurrentSnapSyncs "
    "maxConcurrentDiffSyncs=leader.maxConcurrentDiffSyncs connectionMaxTokens=connection_throttle_tokens "
    "connectionTokenFillTime=connection_throttle_fill_time connectionTokenFillCount=connection_throttle_fill_count "
    "connectionFreezeTime=connection_throttle_freeze_time connectionDropIncrease=connection_throttle_drop_increase "
    "connectionDropDecrease=connection_throttle_drop_decrease "
    "connectionDecreaseRatio=connection_throttle_decrease_ratio requestThrottleLimit=request_throttle_max_requests "
    "requestThrottleStallTime=request_throttle_stall_time requestThrottleDropStale=request_throttle_drop_stale "
    "requestStaleLatencyCheck=request_stale_latency_check requestStaleConnectionCheck=request_stale_connection_check "
    "throttledOpWaitTime=throttled_op_wait_time advancedFlowControlEnabled=netty.advancedFlowControl.enabled "
    "outstandingHandshake.limit=netty.server.outstandingHandshake.limit"
)
"""Names of the guide that a file does not have, each with the one that it has."""
_STRANGE = (
    "another program or a plug-in may read it: roll it out separately, or test it. Who votes, and where the data is, "
    "do not change with it"
)
_POWER = "a power failure loses what servers have acknowledged and not written"
_EMPTY = "a server whose snapshots are missing starts with the rest of its data"
_TABLE: dict[Effect, dict[str, str]] = {
    Effect.LOCAL: {
        "snapCount preAllocSize commitLogCount snapSizeLimitInKb txnLogSizeLimitInKb snapshotSizeFactor "
        "forceSnapshotSync snapshot.compression.method serializeLastProcessedZxid.enabled closeSessionTxn.enabled "
        "digest.enabled globalOutstandingLimit maxCnxns clientPortListenBacklog maxResponseCacheSize "
        "maxGetChildrenResponseCacheSize fsync.warningthresholdms bitHashCacheSize watcherCleanThreadsNum "
        "watcherCleanThreshold watcherCleanIntervalInSeconds maxInProcessingDeadWatchers flushDelay "
        "maxWriteQueuePollTime maxBatchSize request_throttle_max_requests request_throttle_stall_time "
        "request_throttle_drop_stale request_stale_latency_check request_stale_connection_check "
        "request_throttler.shutdownTimeout throttled_op_wait_time largeRequestMaxBytes largeRequestThreshold "
        "netty.advancedFlowControl.enabled netty.server.outstandingHandshake.limit "
        "netty.server.earlyDropSecureConnectionHandshakes enableEagerACLCheck leader.maxConcurrentSnapSyncs "
        "leader.maxConcurrentDiffSyncs learner.closeSocketAsync leader.closeSocketAsync learner.asyncSending "
        "forward_learner_requests_to_commit_processor_disabled follower.skipLearnerRequestToNextProcessor "
        "leader.ackLoggingFrequency observerMaster.sizeLimit connection_throttle_tokens connection_throttle_fill_time "
        "connection_throttle_fill_count connection_throttle_freeze_time connection_throttle_drop_increase "
        "connection_throttle_drop_decrease connection_throttle_decrease_ratio connection_throttle_weight_enabled "
        "connection_throttle_global_session_weight connection_throttle_local_session_weight "
        "connection_throttle_renew_session_weight tcpKeepAlive clientTcpKeepAlive electionPortBindRetry "
        "nio.numSelectorThreads nio.numWorkerThreads nio.directBufferBytes nio.sessionlessCnxnTimeout "
        "nio.shutdownTimeout commitProcessor.numWorkerThreads commitProcessor.maxReadBatchSize "
        "commitProcessor.maxCommitBatchSize commitProcessor.shutdownTimeout intBufferStartingSizeBytes "
        "messageTracker.BufferSize messageTracker.Enabled pathStats.enabled pathStats.delay pathStats.initialDelay "
        "pathStats.maxDepth pathStats.sampleRate pathStats.slotCapacity pathStats.slotDuration pathStats.topPathMax "
        "audit.enable quorum.cnxn.threads.size jmx.log4j.disable jmx.log4j.mbean": "",
        "tickTime initLimit syncLimit connectToLearnerMasterLimit leader.maxTimeToWaitForEpoch cnxTimeout "
        "quorumCnxnTimeoutMs fastleader.minNotificationInterval fastleader.maxNotificationInterval "
        "observer.reconnectDelayMs observer.election.DelayMs leaderConnectDelayDuringRetryMs "
        "multiAddress.reachabilityCheckTimeoutMs multiAddress.reachabilityCheckEnabled": _TIMES,
        "syncEnabled observer.syncEnabled": "an observer without it fetches more from its leader after a restart",
        "peerType": "the list of servers decides the role",
        "electionAlg": "3 is the only value",
        "autopurge. jvm.pause.": "",
        "admin.": "a server whose AdminServer does not start serves clients all the same",
    },
    Effect.CLIENTS: {
        "clientPort clientPortAddress secureClientPort secureClientPortAddress": (
            "give clients the new address beside the old one before the first restart, and remove the old one after "
            "the last; probes and monitoring follow too"
        ),
        "minSessionTimeout maxSessionTimeout": "sessions get another time-out when they connect again",
        "maxClientCnxns": "clients behind one address may be refused",
        "leaderServes": "the leader refuses clients, who need another server",
        "4lw.commands.whitelist": "a probe or a monitor whose command is missing fails",
        "enforceQuota": "writes beyond a quota are refused",
        "localSessionsEnabled localSessionsUpgradingEnabled": "a local session has no ephemeral znodes",
        "request.timeout disableAutoWatchReset clientCnxnSocket client.secure": "it is a key of clients",
    },
    Effect.STARTS: {
        "metricsProvider.className serverCnxnFactory watchManagerName audit.impl.class authProvider authProvider. "
        "ssl.context.supplier.class ssl.quorum.context.supplier.class": "the class must be on the class path",
        "datadir.autocreate": "the folders must exist",
        "db.autocreate": "a server with an empty disk then needs the file `initialize`",
        "oraclePath": "it must be readable, and is for two servers alone",
        "observerMasterPort": "the port must be free; observers connect to it",
        "metricsProvider.": "its port must be free",
    },
    Effect.AGREE: {
        "extendedTypesEnabled emulate353TTLNodes": (
            "set it everywhere before the first TTL znode, and remove it after the last"
        ),
        "multiAddress.enabled": (
            "several addresses of a server need -Dzookeeper.multiAddress.enabled=true: the key in the file comes too "
            "late"
        ),
    },
    Effect.PEERS: {
        "sslQuorum portUnification quorum.auth.enableSasl quorum.auth.learnerRequireSasl "
        "quorum.auth.serverRequireSasl": "certificates and credentials are not read here",
        "sslQuorumReloadCertFiles ssl.quorum.": _FILES,
        "quorum.auth.kerberos.servicePrincipal quorum.auth.learner.saslLoginContext "
        "quorum.auth.server.saslLoginContext": (
            "servers whose credentials differ do not talk to each other; try one server first"
        ),
        "fips-mode": "with it, host names of certificates are verified in another way; try one server first",
    },
    Effect.ACCESS: {
        "skipACL": "`yes` lets every client do everything",
        "DigestAuthenticationProvider.enabled DigestAuthenticationProvider.superDigest "
        "DigestAuthenticationProvider.digestAlg IPAuthenticationProvider.usexforwardedfor "
        "X509AuthenticationProvider.superUser SASLAuthenticationProvider.superPassword superUser ensembleAuthName "
        "sessionRequireClientSASLAuth enforce.auth.enabled enforce.auth.schemes allowSaslFailedClients "
        "letAnySaslUserDoX requireKerberosConfig sasl.client sasl.client.canonicalize.hostname sasl.client.username "
        "sasl.clientconfig sasl.serverconfig security.auth_to_local server.principal server.realm kinit "
        "kerberos.removeHostFromPrincipal kerberos.removeRealmFromPrincipal kerberos.canonicalizeHostNames "
        "kerberos.minReLoginTimeMs": "clients that connect again are judged by the new value",
        "client.certReload client.portUnification ssl.authProvider ssl.": _FILES,
    },
    Effect.IGNORED: {
        "jute.maxbuffer jute.maxbuffer.extrasize": "give it as -D{key}, with the same value everywhere",
        "readonlymode.enabled znode.container.checkIntervalMs znode.container.maxPerMinute "
        "znode.container.maxNeverUsedIntervalMs leader.nodelay follower.nodelay": "give it as -D{key}",
        "zookeeper.": "the file has names without zookeeper.",
        **{key: f"write {name}" for key, name in (pair.split("=") for pair in _RENAMED.split())},
    },
    Effect.DISK: {"dataDir dataLogDir": "copy the old folder to the new one while the server is stopped"},
}
"""The notes of the keys by their effects; a name that ends with a dot is that of all keys which begin with it."""
_KNOWN = {
    key: KeyEffect(effect, note.format(key=key))
    for effect, notes in _TABLE.items()
    for keys, note in notes.items()
    for key in keys.split()
}
DURABLE = frozenset({"forceSync", "snapshot.trust.empty"})
"""The keys that can lose acknowledged writes with some values."""


def effect_of(key: str, value: str | None) -> KeyEffect:
    """The effect of a key that is not modelled, with the value that the server starts with; None: it is not set."""
    if key == "forceSync":  # `FileTxnLog`: every other value turns it off
        return KeyEffect(Effect.LOCAL) if value in (None, "yes") else KeyEffect(Effect.DURABILITY, _POWER)
    if key == "snapshot.trust.empty":
        trusting = (value or "").lower() == "true"
        return KeyEffect(Effect.DURABILITY, _EMPTY) if trusting else KeyEffect(Effect.LOCAL)
    *heads, _ = parts = key.split(".")
    names = (key, *(".".join(parts[:number]) + "." for number in range(len(heads), 0, -1)))
    known = next((_KNOWN[name] for name in names if name in _KNOWN), None)
    if known is None:
        close = similar(re.sub("[0-9]+", "N", key), (*_KNOWN, "server.N", "group.N", "weight.N"))
        return KeyEffect(Effect.UNKNOWN, f"did you mean {close}? Otherwise {_STRANGE}" if close else _STRANGE)
    return known


ADMIN, CLIENT, SECURE = "admin.serverPort", "clientPort", "secureClientPort"
PROMETHEUS = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
HIGHEST = 65535
HANDSHAKE = (
    "sslQuorum", "portUnification", "quorum.auth.enableSasl", "quorum.auth.learnerRequireSasl",
    "quorum.auth.serverRequireSasl",
)  # fmt: skip


class Listener(NamedTuple):
    """A port of a server, the host by which it is bound ("" for every address), and the key that says so."""

    name: str
    host: str
    port: int

    def excludes(self, other: Listener) -> bool:
        """Whether one machine cannot bind both, and the server needs both."""
        if self.port != other.port or {self.name, other.name} == {ADMIN, CLIENT}:
            return False
        return not self.host or not other.host or self.host == other.host


def listeners_of(given: ServerFiles) -> tuple[Listener, ...]:
    """The listeners of a server, by its files and their keys."""
    return tuple(listener for listener in _listeners(given, settings(given)) if listener.port > 0)


def changed_for_clients(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> frozenset[tuple[Sid, str]]:
    """The servers whose clients need another address, with the port: `CLIENT` or `SECURE`.

    A server listens for clients by its own `server.N` line, or else by `clientPort` (`setupClientPort`).
    """
    return frozenset(
        (sid, listener.name)
        for sid in old.keys() & new.keys()
        for listener in {*listeners_of(old[sid])} ^ {*listeners_of(new[sid])}
        if listener.name in (CLIENT, SECURE)
    )


def _listeners(given: ServerFiles, values: Mapping[str, str]) -> Iterator[Listener]:
    config = given.config
    if config.client is not None:
        yield Listener(CLIENT, _bound(config.client.host), config.client.port)
    yield Listener(SECURE, _bound(values.get("secureClientPortAddress", "")), _port(values, SECURE))
    line = config.server(given.sid)
    if line is not None and not config.effective_view.standalone:
        for address in line.addresses:
            host = "" if config.listens_on_all_ips else _bound(address.host)
            yield Listener("the quorum port", host, address.quorum_port)
            yield Listener("the election port", host, address.election_port)
    yield Listener("observerMasterPort", "", _port(values, "observerMasterPort"))
    if values.get("admin.enableServer", "true").lower() == "true":
        yield Listener(ADMIN, _bound(values.get("admin.serverAddress", "")), _port(values, "admin.serverPort", 8080))
    if values.get("metricsProvider.className") == PROMETHEUS:
        host = _bound(values.get("metricsProvider.httpHost", ""))
        yield Listener("metricsProvider.httpPort", host, _port(values, "metricsProvider.httpPort", 7000))


def _bound(host: str) -> str:
    return "" if host in WILDCARDS else host.lower()


def _port(values: Mapping[str, str], key: str, default: int = 0) -> int:
    return integer(values[key], 0, HIGHEST) or 0 if key in values else default


def conflicts(given: ServerFiles) -> Iterator[Problem]:
    """The ports that a server cannot bind: it names a port twice, or the address of another server."""
    for first, second in combinations(listeners_of(given), 2):
        if first.excludes(second):
            problem = f"server {given.sid} cannot listen twice on port {first.port}"
            by = f"by {first.name} and by {second.name}"
            yield Problem(given.origin, 0, f"{problem}, {by}", "give each of them a port of its own")
    if not given.config.effective_view.standalone:
        for sid, name, address, owner in shared_addresses({line.sid: line for line in given.config.servers}):
            problem = f"server.{sid}: the {name} {address} is also an address of server.{owner}"
            yield Problem(given.origin, 0, problem, "only one server can listen there: change the host or the port")


Place = tuple[str, int]
"""A host and a port."""


def occupied(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> Iterator[Problem]:
    """The servers of the new state with a port of their host that another server has, in the old or in the new state.

    There is one problem for each server.
    """
    after = _places(new)
    before, later = _owners(_places(old)), _owners(after)
    for sid, places in sorted(after.items()):
        for place, name in places.items():
            holding = before.get(place, set())
            rivals = holding or later[place] - {sid}
            if name != ADMIN and sid not in holding and len(holding) < 2 and rivals:
                owner, added = min(rivals), sid not in old
                step = f"add server {sid} with an empty disk" if added else f"change server {sid}"
                first = f"{'move' if owner in new else 'remove'} server {owner} in a roll-out of its own"
                which = ("is there until its step" if owner in new else "goes") if holding else "is there, too"
                problem = f"server {sid} has the address of server {owner}, which {which}"
                right = f"{first}, and then {step}" if holding else "give each of them a port of its own"
                address = f"{name} is {place[0]}:{place[1]}"
                yield Problem(new[sid].origin, 0, f"{problem}: both cannot run there at one time ({address})", right)
                break


def _owners(places: Mapping[Sid, Mapping[Place, str]]) -> dict[Place, set[Sid]]:
    owners: dict[Place, set[Sid]] = {}
    for sid, place in ((sid, place) for sid, owned in places.items() for place in owned):
        owners.setdefault(place, set()).add(sid)
    return owners


def _places(servers: Mapping[Sid, ServerFiles]) -> dict[Sid, dict[Place, str]]:
    """Where each server listens, and by which key; at a loopback address only if it has no other host."""
    addresses = addresses_of(servers)
    places: dict[Sid, dict[Place, str]] = {}
    for sid, files in servers.items():
        hosts = sorted({address.host for address in addresses.get(sid, ())} - WILDCARDS)
        hosts = [host for host in hosts if not is_loopback(host)] or hosts
        places[sid] = {(host, port.port): port.name for host, port in product(hosts, listeners_of(files))}
    return places


class Handshake(NamedTuple):
    """The values of `HANDSHAKE` in one file: which connections a server makes and accepts; false is the default."""

    ssl_quorum: bool = False
    port_unification: bool = False
    knows_sasl: bool = False
    proves_itself: bool = False
    demands_proof: bool = False

    def reaches(self, other: Handshake) -> bool:
        """Whether a server with this file can connect to one with the other file."""
        proved = other.knows_sasl if self.proves_itself else not other.demands_proof
        return proved and (other.port_unification or self.ssl_quorum == other.ssl_quorum)

    def talks_with(self, other: Handshake) -> bool:
        """Whether each can connect to the other."""
        return self.reaches(other) and other.reaches(self)


def strangers(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> tuple[tuple[Sid, Sid], ...]:
    """The pairs of servers that do not talk in a state of the roll-out: the smaller id first, each pair once.

    A file whose input does not state the keys makes no pair.
    """
    files = [
        (sid, Handshake(*(settings(files).get(key, "").lower() == "true" for key in HANDSHAKE)))
        for state in (old, new)
        for sid, files in state.items()
        if all(files.states(key) for key in HANDSHAKE)
    ]
    kinds = {handshake for _, handshake in files}
    if all(a.talks_with(b) for a in kinds for b in kinds):
        return ()  # most files have one handshake, and there may be hundreds of servers
    pairs = ((low, high) for low, high in product(files, repeat=2) if low[0] < high[0])
    return tuple(sorted({(low[0], high[0]) for low, high in pairs if not low[1].talks_with(high[1])}))
