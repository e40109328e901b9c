"""The executable node: sockets, disk and timers around `spec`.

This package decides nothing about the protocol; it carries events to the step functions of `spec` and effects away
from them (`node`). What it knows is ZooKeeper's formats: `jute` and `wire` for what travels, `disk` for what stays.

- `server`: from the files of one server to a node that runs; `settings` is what a node takes from its zoo.cfg.
- `node`, `services`, `replica`, `storage`: events and effects; leader and learner; the tree; the disk.
- `peers`: the election port and the quorum port. `clients`: the client port.
- `journal`: the event log that `checker validate` reads. `demo`: a local ensemble.
"""
