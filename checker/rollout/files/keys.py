"""The effect of each key of a zoo.cfg, and the condition for its change.

    effect_of(key, value)  -> KeyEffect(effect, note)

Rules of this module:

- A key counts as known if the Administrator's Guide of 3.9.5 lists it, or if the source of 3.9.5 reads it. The keys of
  members, roles, quorums and addresses are not here: the model has them (`checker.rollout.files.differences`).
- The effect is that of the new value: `forceSync=yes` is harmless, and `forceSync=no` can lose writes.
- ZooKeeper makes the system property `zookeeper.<key>` of a key that it does not read itself. Some properties of the
  guide have other names, so their keys do nothing in a file (`Effect.IGNORED`).

Sources: `QuorumPeerConfig.parseProperties`; the system properties that the classes of 3.9.5 read; the guide's sections
"Configuration Parameters", "AdminServer configuration" and "Metrics Providers".
"""

from enum import Enum
from typing import NamedTuple


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
    return next((_KNOWN[name] for name in names if name in _KNOWN), KeyEffect(Effect.UNKNOWN, _STRANGE))
