package quorate;

import java.util.List;
import java.util.Map;
import java.util.Set;
import quorate.Change.Place;

/** The corrections by their names, and the classes that they were tried with. */
final class Corrections {
    private static final String QUORUM = "org/apache/zookeeper/server/quorum/";
    private static final String SERVER = "org/apache/zookeeper/server/";
    private static final String DISK = "org/apache/zookeeper/server/persistence/";

    /** The SHA-256 of each class that is changed, in every release that was tried. */
    static final Map<String, Set<String>> TRIED = Map.of(
            QUORUM + "LearnerHandler", Set.of(
                    "a0286294d037ef7309511dc178d5d019bf6d462aaf5f4fdbc8485d61c0e91bc3"), // 3.9.5
            QUORUM + "Learner", Set.of(
                    "b474589541c061530b131a55a932eb795a8b2f2789c4d31da730b1565e4924b2"), // 3.9.5
            QUORUM + "Leader", Set.of(
                    "13622151eadd92259f995ae4393d939986d5b608fbb2198456b79c59f5ba7e25"), // 3.9.5
            QUORUM + "FastLeaderElection", Set.of(
                    "3f2ad3fd1f11a784d9342e455d222dd04c45d0d0bf0f61bf0142aa55d3749c46"), // 3.9.5
            QUORUM + "QuorumPeerMain", Set.of(
                    "6c2723b5484aea32e6dc73b039636c127231e256cbb93ffb14096fba43677b8d"), // 3.9.5
            SERVER + "ZooKeeperServer", Set.of(
                    "562c03aedafa25a826f9327c07164f514a7b2997631ca145b83c210e339ec5e7"), // 3.9.5
            DISK + "FileTxnLog", Set.of(
                    "2515ebfc52240f510d719e1029249b62ba9f1f93380372269e38c13fa3604877")); // 3.9.5

    private static final String SYNC_FOLLOWER = "syncFollower(JL" + QUORUM + "LearnerMaster;)Z";
    private static final String HANDLER = "L" + QUORUM + "LearnerHandler;";
    private static final String LEADER = "L" + QUORUM + "Leader;";
    private static final String PEER = "L" + QUORUM + "QuorumPeer;";
    private static final String VERIFIER = "L" + QUORUM + "flexible/QuorumVerifier;";
    private static final String MASTER = "L" + QUORUM + "LearnerMaster;";

    static final Map<String, List<Change>> ALL = Map.of(
            "acks-survive-truncation", List.of(
                    new Change(QUORUM + "LearnerHandler", SYNC_FOLLOWER,
                            Place.BEFORE, 1, "ZKDatabase.isTxnLogSyncEnabled()Z",
                            QUORUM + "AcksSurviveTruncation", "forget(" + HANDLER + MASTER + ")V", 0, 3),
                    new Change(QUORUM + "LearnerHandler", "run()V",
                            Place.INSTEAD, 1, "LearnerMaster.processAck(JJLjava/net/SocketAddress;)V",
                            QUORUM + "AcksSurviveTruncation",
                            "count(" + MASTER + "JJLjava/net/SocketAddress;" + HANDLER + ")V", 0)),
            "sync-from-applied", List.of(
                    new Change(QUORUM + "LearnerHandler", SYNC_FOLLOWER,
                            Place.AFTER, 1, "ZKDatabase.getmaxCommittedLog()J",
                            QUORUM + "SyncFromApplied", "last(JJ" + MASTER + ")J", 1, 3),
                    new Change(QUORUM + "LearnerHandler", SYNC_FOLLOWER,
                            Place.AFTER, 1, "ZKDatabase.getDataTreeLastProcessedZxid()J",
                            QUORUM + "SyncFromApplied", "last(JJ" + MASTER + ")J", 1, 3)),
            "trunc-after-snap", List.of(
                    new Change(DISK + "FileTxnLog", "truncate(J)Z",
                            Place.INSTEAD, 1, "FileTxnLog$PositionInputStream.getPosition()J",
                            DISK + "TruncAfterSnap",
                            "position(L" + DISK + "FileTxnLog$PositionInputStream;L" + DISK
                                    + "FileTxnLog$FileTxnIterator;J)J", 3, 1)),
            "observer-becomes-voter", List.of(
                    new Change(QUORUM + "Learner", "syncWithLeader(J)V",
                            Place.BEFORE, 2, "QuorumPeer.setCurrentEpoch(J)V",
                            QUORUM + "ObserverBecomesVoter",
                            "log(L" + QUORUM + "Learner;Ljava/util/Deque;Ljava/util/Deque;)V", 0, 10, 11)),
            "pending-view-activated", List.of(
                    new Change(QUORUM + "Learner", "syncWithLeader(J)V",
                            Place.INSTEAD, 3,
                            "QuorumPeer.processReconfig(" + VERIFIER + "Ljava/lang/Long;Ljava/lang/Long;Z)Z",
                            QUORUM + "PendingViewActivated",
                            "activate(" + PEER + VERIFIER
                                    + "Ljava/lang/Long;Ljava/lang/Long;ZLjava/util/Deque;Ljava/util/Deque;)Z", 10, 11)),
            "last-seen-forgotten", List.of(
                    new Change(QUORUM + "QuorumPeerMain", "runFromConfig(L" + QUORUM + "QuorumPeerConfig;)V",
                            Place.BEFORE, 1, "QuorumPeer.setQuorumVerifier(" + VERIFIER + "Z)" + VERIFIER,
                            QUORUM + "LastSeenForgotten",
                            "takeUp(L" + QUORUM + "QuorumPeerMain;L" + QUORUM + "QuorumPeerConfig;)V", 0, 1)),
            "epoch-of-active-view", List.of(
                    voters("getEpochToPropose(JJ)J"),
                    quorum("getEpochToPropose(JJ)J"),
                    voters("waitForEpochAck(JL" + QUORUM + "StateSummary;)V"),
                    quorum("waitForEpochAck(JL" + QUORUM + "StateSummary;)V")),
            "promotion-stops-service", List.of(
                    new Change(QUORUM + "FastLeaderElection", "lookForLeader()L" + QUORUM + "Vote;",
                            Place.INSTEAD, 1, "QuorumPeer$ServerState.ordinal()I",
                            QUORUM + "PromotionStopsService", "kind(L" + QUORUM + "QuorumPeer$ServerState;)I")),
            "restore-undone", List.of(
                    new Change(SERVER + "ZooKeeperServer", "restoreFromSnapshot(Ljava/io/InputStream;)J",
                            Place.INSTEAD, 1, "ZooKeeperServer.setZKDatabase(L" + SERVER + "ZKDatabase;)V",
                            SERVER + "RestoreUndone",
                            "replace(L" + SERVER + "ZooKeeperServer;L" + SERVER + "ZKDatabase;)V")));

    private static Change voters(String in) {
        return new Change(QUORUM + "Leader", in, Place.INSTEAD, 1, "Leader.isParticipant(J)Z",
                QUORUM + "EpochOfActiveView", "votes(" + LEADER + "J)Z");
    }

    private static Change quorum(String in) {
        return new Change(QUORUM + "Leader", in, Place.INSTEAD, 1, "QuorumVerifier.containsQuorum(Ljava/util/Set;)Z",
                QUORUM + "EpochOfActiveView", "containsQuorum(" + VERIFIER + "Ljava/util/Set;" + LEADER + ")Z", 0);
    }

    private Corrections() { }
}
