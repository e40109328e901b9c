"""The executable node: sockets, disk and timers around `spec`.

The step functions of `spec` decide about the protocol; this package carries events to them and effects away from them
(`node`). It decides three things itself: a node stops when its disk fails, a transaction above the limit is refused
before it is proposed (`services`), and a leader counts how long a learner is silent (`peers.learners`). The formats of
ZooKeeper are in `jute` and `wire` for packets, and in `disk` for files.

- `server`: from the files of one server to a node that runs; `settings` is what a node takes from its zoo.cfg.
- `node`, `services`, `replica`, `storage`: events and effects; leader and learner; the tree; the disk.
- `peers`: the election port and the quorum port. `clients`: the client port.
- `journal`: the event log that `checker validate` reads. `demo`: a local ensemble.
"""
