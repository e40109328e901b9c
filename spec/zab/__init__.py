"""Zab, as ZooKeeper does it: a leader, its learners, and how they are brought to one history and kept there.

- `leader.step`, `learner.step`: one server, one event; what they do when they serve is in `broadcast` and `serving`.
- `synchronisation`: how a leader brings a learner up to date; `synchronising`: what the learner makes of it.
- `disk`: what was asked of the disk, and what a crash leaves of it.
- `packets`, `events`, `state`: the words they use.

Source: ZooKeeper's `Leader`, `LearnerHandler`, `Learner`, `Follower`, `Observer`; Junqueira, Reed and Serafini, "Zab:
High-performance broadcast for primary-backup systems" (DSN 2011), for the phases and the properties.
"""
