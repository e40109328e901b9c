package org.apache.zookeeper.server.quorum;

import java.net.SocketAddress;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * A: a leader that begins to synchronise a learner no longer counts what the learner has acknowledged before.
 *
 * <p>An outstanding proposal is not applied, so a learner that has it is told to truncate it, and receives it again:
 * its next acknowledgement counts. An earlier connection of the learner may still have acknowledgements to read; they
 * are not counted either.
 */
final class AcksSurviveTruncation {
    /** The handlers of earlier connections, of learners that have come back. */
    private static final Set<LearnerHandler> EARLIER =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    private AcksSurviveTruncation() { }

    static void forget(LearnerHandler handler, LearnerMaster master) {
        if (!(master instanceof Leader) || ((Leader) master).outstandingProposals == null) {
            return; // a mock in upstream's tests has no fields
        }
        Leader leader = (Leader) master;
        synchronized (leader) {
            for (LearnerHandler other : leader.getLearners()) {
                if (other != handler && other.getSid() == handler.getSid()) {
                    EARLIER.add(other);
                }
            }
            for (Leader.Proposal proposal : leader.outstandingProposals.values()) {
                for (SyncedLearnerTracker.QuorumVerifierAcksetPair pair : proposal.qvAcksetPairs) {
                    pair.getAckset().remove(handler.getSid());
                }
            }
        }
    }

    static void count(LearnerMaster master, long sid, long zxid, SocketAddress address, LearnerHandler handler) {
        synchronized (master) {
            if (!EARLIER.contains(handler)) {
                master.processAck(sid, zxid, address);
            }
        }
    }
}
