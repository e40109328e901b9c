package org.apache.zookeeper.server.quorum;

import java.io.IOException;
import java.util.Deque;
import org.apache.zookeeper.server.Request;

/**
 * D: an observer logs what is committed before it writes currentEpoch and acknowledges NEWLEADER, as a follower does.
 *
 * <p>An observer with {@code syncEnabled=false} has no log, and remains as it is.
 */
final class ObserverBecomesVoter {
    private ObserverBecomesVoter() { }

    static void log(Learner learner, Deque<Long> committed, Deque<Learner.PacketInFlight> proposed) throws IOException {
        if (!(learner.zk instanceof ObserverZooKeeperServer) || !learner.self.getSyncEnabled()) {
            return;
        }
        boolean logged = false;
        while (!committed.isEmpty() && !proposed.isEmpty()
                && proposed.peekFirst().hdr.getZxid() == committed.peekFirst()) {
            committed.removeFirst();
            Request request = proposed.removeFirst().toRequest();
            learner.zk.getZKDatabase().append(request);
            learner.zk.processTxn(request);
            logged = true;
        }
        if (logged) {
            learner.zk.getZKDatabase().commit();
        }
    }
}
