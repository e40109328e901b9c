package org.apache.zookeeper.server.quorum;

/**
 * F: a server that starts takes up the configuration that it has seen last before its active one.
 *
 * <p>In the other order the active one counts as the last one seen, and the file of the later one is deleted.
 */
final class LastSeenForgotten {
    private LastSeenForgotten() { }

    static void takeUp(QuorumPeerMain server, QuorumPeerConfig files) {
        if (files.getLastSeenQuorumVerifier() != null) {
            server.quorumPeer.setLastSeenQuorumVerifier(files.getLastSeenQuorumVerifier(), false);
        }
    }
}
