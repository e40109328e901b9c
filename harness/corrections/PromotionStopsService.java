package org.apache.zookeeper.server.quorum;

import org.apache.zookeeper.server.quorum.QuorumPeer.ServerState;

/**
 * H: a server that looks for a leader counts an observer that follows it as a follower.
 *
 * <p>Only notifications of voters come here ({@code validVoter}), so such an observer is to become a voter.
 */
final class PromotionStopsService {
    private PromotionStopsService() { }

    static int kind(ServerState state) {
        return (state == ServerState.OBSERVING ? ServerState.FOLLOWING : state).ordinal();
    }
}
