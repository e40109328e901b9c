package org.apache.zookeeper.server.quorum;

import java.util.Deque;
import org.apache.zookeeper.server.quorum.flexible.QuorumVerifier;

/**
 * E: a learner does not activate the configuration of NEWLEADER while its transaction is a proposal without its commit.
 *
 * <p>COMMITANDACTIVATE activates it, on the same connection. The version of a configuration is the zxid of its
 * transaction.
 */
final class PendingViewActivated {
    private PendingViewActivated() { }

    static boolean activate(QuorumPeer peer, QuorumVerifier view, Long designated, Long zxid, boolean restart,
            Deque<Long> committed, Deque<Learner.PacketInFlight> proposed) {
        for (Learner.PacketInFlight proposal : proposed) {
            long version = proposal.hdr.getZxid();
            if (version == view.getVersion() && !committed.contains(version)) {
                return false;
            }
        }
        return peer.processReconfig(view, designated, zxid, restart);
    }
}
