"""The executable node: sockets, disk and timers around `spec`.

The step functions of `spec` decide about the protocol; this package carries events to them and effects away from them
(`node`). Three decisions are its own. A node stops when its disk fails. A transaction above the limit is refused
before it is proposed (`roles`). A leader measures the silence of its learners (`peers.learners`). The formats of
ZooKeeper are in `jute` and `wire` for packets, and in `disk` for files.

- `process`: from the files of one server to a running node; `settings` are the keys of zoo.cfg for a node.
- `node`, `roles`, `replica`, `storage`: events and effects; leader and learner; the tree; the disk.
- `peers`: the election port and the quorum port. `clients`: the client port.
- `journal`: the event log that `checker validate` reads. `demo`: a local ensemble.
"""
