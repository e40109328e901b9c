"""The keys of a zoo.cfg in the planner: each key of the guide has an effect, by its value.

The names are those of the Administrator's Guide of 3.9.5. What the source of 3.9.5 reads from a file is said by
`QuorumPeerConfig.parseProperties`, and by the names of the system properties in its classes.
"""

import pytest

from checker.rollout.files.differences import MODELLED
from checker.rollout.files.keys import Effect, effect_of

GUIDE = """
    4lw.commands.whitelist DigestAuthenticationProvider.digestAlg DigestAuthenticationProvider.enabled
    DigestAuthenticationProvider.superDigest IPAuthenticationProvider.usexforwardedfor
    X509AuthenticationProvider.superUser admin.commandURL admin.enableServer admin.forceHttps admin.idleTimeout
    admin.needClientAuth admin.portUnification admin.rateLimiterIntervalInMS admin.restore.enabled
    admin.serverAddress admin.serverPort admin.snapshot.enabled advancedFlowControlEnabled audit.enable
    audit.impl.class authProvider autopurge.purgeInterval autopurge.snapRetainCount bitHashCacheSize
    client.certReload client.portUnification clientPort clientPortAddress clientPortListenBacklog
    clientTcpKeepAlive cnxTimeout commitLogCount commitProcessor.maxCommitBatchSize
    commitProcessor.maxReadBatchSize commitProcessor.numWorkerThreads connectToLearnerMasterLimit
    connectionDecreaseRatio connectionDropDecrease connectionDropIncrease connectionFreezeTime
    connectionMaxTokens connectionTokenFillCount connectionTokenFillTime
    connection_throttle_global_session_weight connection_throttle_local_session_weight
    connection_throttle_renew_session_weight connection_throttle_weight_enabled dataDir dataLogDir
    digest.enabled electionAlg electionPortBindRetry emulate353TTLNodes enableEagerACLCheck enforce.auth.enabled
    enforce.auth.schemes enforceQuota ensembleAuthName extendedTypesEnabled fastleader.maxNotificationInterval
    fastleader.minNotificationInterval fips-mode flushDelay follower.skipLearnerRequestToNextProcessor forceSync
    forward_learner_requests_to_commit_processor_disabled fsync.warningthresholdms globalOutstandingLimit
    initLimit jute.maxbuffer jute.maxbuffer.extrasize kerberos.canonicalizeHostNames
    kerberos.removeHostFromPrincipal kerberos.removeRealmFromPrincipal largeRequestMaxBytes
    largeRequestThreshold leader.closeSocketAsync leaderServes learner.asyncSending learner.closeSocketAsync
    localSessionsEnabled localSessionsUpgradingEnabled maxBatchSize maxClientCnxns maxCnxns
    maxConcurrentDiffSyncs maxConcurrentSnapSyncs maxGetChildrenResponseCacheSize maxInProcessingDeadWatchers
    maxResponseCacheSize maxSessionTimeout maxTimeToWaitForEpoch maxWriteQueuePollTime messageTracker.BufferSize
    messageTracker.Enabled metricsProvider.className metricsProvider.exportJvmInfo metricsProvider.httpHost
    metricsProvider.httpPort metricsProvider.maxQueueSize metricsProvider.numWorkerThreads
    metricsProvider.workerShutdownTimeoutMs minSessionTimeout multiAddress.enabled
    multiAddress.reachabilityCheckEnabled multiAddress.reachabilityCheckTimeoutMs
    netty.server.earlyDropSecureConnectionHandshakes nio.numSelectorThreads nio.numWorkerThreads
    observer.election.DelayMs observer.reconnectDelayMs observerMasterPort outstandingHandshake.limit
    preAllocSize quorumCnxnTimeoutMs quorumListenOnAllIPs reconfigEnabled requestStaleConnectionCheck
    requestStaleLatencyCheck requestThrottleDropStale requestThrottleLimit requestThrottleStallTime
    request_throttler.shutdownTimeout secureClientPort serializeLastProcessedZxid.enabled serverCnxnFactory
    sessionRequireClientSASLAuth skipACL snapCount snapSizeLimitInKb snapshot.compression.method
    snapshot.trust.empty ssl.allowReverseDnsLookup ssl.authProvider ssl.ciphersuites ssl.clientAuth
    ssl.clientHostnameVerification ssl.context.supplier.class ssl.crl ssl.enabledProtocols
    ssl.handshakeDetectionTimeoutMillis ssl.hostnameVerification ssl.keyStore.passwordPath ssl.keyStore.type
    ssl.ocsp ssl.protocol ssl.quorum.allowReverseDnsLookup ssl.quorum.ciphersuites ssl.quorum.clientAuth
    ssl.quorum.clientHostnameVerification ssl.quorum.context.supplier.class ssl.quorum.crl
    ssl.quorum.enabledProtocols ssl.quorum.handshakeDetectionTimeoutMillis ssl.quorum.hostnameVerification
    ssl.quorum.keyStore.location ssl.quorum.keyStore.password ssl.quorum.keyStore.passwordPath
    ssl.quorum.keyStore.type ssl.quorum.ocsp ssl.quorum.protocol ssl.quorum.trustStore.location
    ssl.quorum.trustStore.password ssl.quorum.trustStore.passwordPath ssl.quorum.trustStore.type ssl.sslProvider
    ssl.trustStore.location ssl.trustStore.password ssl.trustStore.passwordPath ssl.trustStore.type sslQuorum
    sslQuorumReloadCertFiles standaloneEnabled superUser syncEnabled syncLimit tcpKeepAlive throttledOpWaitTime
    tickTime txnLogSizeLimitInKb watchManagerName watcherCleanIntervalInSeconds watcherCleanThreadsNum
    watcherCleanThreshold znode.container.checkIntervalMs znode.container.maxNeverUsedIntervalMs
    znode.container.maxPerMinute
""".split()  # noqa: SIM905 (a list would have a hundred lines)


@pytest.mark.parametrize("key", GUIDE)
def test_each_key_of_the_guide_is_known(key: str) -> None:
    assert key in MODELLED or effect_of(key, "1").effect is not Effect.UNKNOWN


@pytest.mark.parametrize("key", ["ticktime", "snapcount", "my.plugin", "sslquorum"])
def test_a_key_in_another_spelling_is_unknown(key: str) -> None:
    assert effect_of(key, "1").effect is Effect.UNKNOWN


@pytest.mark.parametrize(
    ("key", "note"),
    [
        ("jute.maxbuffer", "-Djute.maxbuffer"),  # `BinaryInputArchive` reads `jute.maxbuffer`, without the prefix
        ("maxTimeToWaitForEpoch", "leader.maxTimeToWaitForEpoch"),  # `Leader.MAX_TIME_TO_WAIT_FOR_EPOCH`
        ("requestThrottleLimit", "request_throttle_max_requests"),  # `RequestThrottler`
        ("zookeeper.superUser", "without zookeeper."),  # it would become `zookeeper.zookeeper.superUser`
    ],
)
def test_a_key_that_the_file_cannot_have_is_named_as_it_must_be_given(key: str, note: str) -> None:
    effect = effect_of(key, "1")
    assert effect.effect is Effect.IGNORED
    assert note in effect.note


@pytest.mark.parametrize(
    ("key", "value", "effect"),
    [
        ("forceSync", "yes", Effect.LOCAL),
        ("forceSync", None, Effect.LOCAL),
        ("forceSync", "true", Effect.DURABILITY),  # only `yes` syncs (`FileTxnLog`)
        ("snapshot.trust.empty", "TRUE", Effect.DURABILITY),  # `Boolean.getBoolean` ignores case
        ("snapshot.trust.empty", "yes", Effect.LOCAL),
    ],
)
def test_an_effect_depends_on_the_value(key: str, value: str | None, effect: Effect) -> None:
    assert effect_of(key, value).effect is effect
