"""The executable node: sockets, disk and timers around `spec`.

The step functions of `spec` decide about the protocol; this package carries events to them and effects away from them
(`node`). It measures times and sizes, and `spec` decides what follows from them: `spec.zab.timeouts` about silence,
`spec.zab.registration` about introductions, `spec.service.sessions` about the owners of sessions, and
`spec.tree.prepare` about transactions that are too large. Two things are left to this package. It stops, and
acknowledges nothing more, when its disk fails (`Node._disk_failed`). It bounds its resources: memory, descriptors, and
connections. The formats of ZooKeeper are in `jute` and `wire` for packets, and in `disk` for files.

- `process`: from the files of one server to a running node; `settings` are the keys of zoo.cfg for a node.
- `node`, `roles`, `replica`, `storage`: events and effects; leader and learner; the tree; the disk.
- `peers`: the election port and the quorum port. `clients`: the client port.
- `journal`: the event log that `checker validate` reads. `demo`: a local ensemble.
"""
