package org.apache.zookeeper.server;

import java.io.IOException;
import org.apache.zookeeper.server.quorum.QuorumZooKeeperServer;

/**
 * I: a restored database replaces that of the QuorumPeer too, and a snapshot has it before the answer.
 *
 * <p>Its last zxid is that from before the restore, so that the zxids continue. The log goes on in a new file: the
 * present one may have been moved away.
 */
final class RestoreUndone {
    private RestoreUndone() { }

    static void replace(ZooKeeperServer server, ZKDatabase restored) throws IOException {
        long last = server.getZKDatabase().getDataTreeLastProcessedZxid();
        restored.setlastProcessedZxid(Math.max(last, restored.getDataTreeLastProcessedZxid()));
        server.setZKDatabase(restored);
        if (server instanceof QuorumZooKeeperServer) {
            ((QuorumZooKeeperServer) server).self.setZKDatabase(restored);
        }
        restored.rollLog();
        server.takeSnapshot(true, false);
    }
}
