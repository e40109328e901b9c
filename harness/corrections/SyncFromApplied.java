package org.apache.zookeeper.server.quorum;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.List;

/**
 * B: a leader synchronises a learner from what it has committed, and not only from what it has applied.
 *
 * <p>A transaction of {@code toBeApplied} that the learner has is not truncated. The learner has every one up to its
 * last zxid: they are of this leader's epoch, so that last zxid is, too.
 */
final class SyncFromApplied {
    private static final Field TO_BE_APPLIED = toBeApplied();

    private SyncFromApplied() { }

    private static Field toBeApplied() {
        try {
            Field field = Leader.class.getDeclaredField("toBeApplied");
            field.setAccessible(true);
            return field;
        } catch (ReflectiveOperationException missing) {
            throw new ExceptionInInitializerError(missing);
        }
    }

    static long last(long applied, long ofPeer, LearnerMaster master) {
        long last = applied;
        if (master instanceof Leader) {
            synchronized (master) {
                for (Leader.Proposal proposal : committed((Leader) master)) {
                    long zxid = proposal.getZxid();
                    if (zxid <= ofPeer && zxid > last) {
                        last = zxid;
                    }
                }
            }
        }
        return last;
    }

    @SuppressWarnings("unchecked")
    private static Collection<Leader.Proposal> committed(Leader leader) {
        try {
            Collection<Leader.Proposal> committed = (Collection<Leader.Proposal>) TO_BE_APPLIED.get(leader);
            return committed == null ? List.of() : committed; // a mock in upstream's tests has no fields
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
