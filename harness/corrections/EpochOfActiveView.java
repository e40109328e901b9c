package org.apache.zookeeper.server.quorum;

import java.util.HashSet;
import java.util.Set;
import org.apache.zookeeper.server.quorum.flexible.QuorumVerifier;

/** G: a new epoch needs a quorum of the active configuration, and of a later one that the leader has seen. */
final class EpochOfActiveView {
    private EpochOfActiveView() { }

    static boolean votes(Leader leader, long sid) {
        QuorumVerifier later = later(leader);
        return isVoter(leader.self.getQuorumVerifier(), sid) || later != null && isVoter(later, sid);
    }

    static boolean containsQuorum(QuorumVerifier active, Set<Long> sids, Leader leader) {
        QuorumVerifier later = later(leader);
        return isQuorum(active, sids) && (later == null || isQuorum(later, sids));
    }

    private static QuorumVerifier later(Leader leader) {
        QuorumVerifier seen = leader.self.getLastSeenQuorumVerifier();
        return seen != null && seen.getVersion() > leader.self.getQuorumVerifier().getVersion() ? seen : null;
    }

    private static boolean isVoter(QuorumVerifier view, long sid) {
        return view.getVotingMembers().containsKey(sid);
    }

    /** A majority is counted without a look at the members, so only voters may be in the set. */
    private static boolean isQuorum(QuorumVerifier view, Set<Long> sids) {
        Set<Long> voters = new HashSet<>(sids);
        voters.retainAll(view.getVotingMembers().keySet());
        return view.containsQuorum(voters);
    }
}
