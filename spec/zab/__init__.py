"""Zab, as ZooKeeper implements it: a leader and its learners, and the protocol that keeps them at one history.

- `leader.step`, `learner.step`: one server, one event; their behaviour while serving is in `broadcast` and `serving`.
- `synchronisation`: the packets by which a leader brings a learner up to date; `synchronising`: the learner's side.
- `disk`: the queue of disk operations, and the part of it that survives a crash.
- `memory`: the part of a process that survives the end of a leader or a learner, in variants.
- `epochs`: bounds on the epochs that a server believes.
- `packets`, `events`, `state`: the vocabulary.

Source: ZooKeeper's `Leader`, `LearnerHandler`, `Learner`, `Follower`, `Observer`; Junqueira, Reed and Serafini, "Zab:
High-performance broadcast for primary-backup systems" (DSN 2011), for the phases and the properties.
"""
