package org.apache.zookeeper.server.quorum;

/** H: a leader that looks whether it has a quorum still counts only those learners that acknowledge proposals. */
final class PromotionStopsService {
    private PromotionStopsService() { }

    static boolean counts(LearnerHandler handler, Leader leader) {
        return handler.synced() && leader.isLearnerSynced(handler);
    }
}
