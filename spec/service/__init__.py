"""The decisions of a server about its clients: admission, the order of replies, and the end of sessions.

- `connecting`: the verdict on a client that connects.
- `connection`: the requests of one connection, answered in their order.
- `sessions`: session ids and passwords, and the leader's table of sessions with their owners and their expiry.
- `expiry`: a queue of elements that expire unless they are refreshed.

Source: ZooKeeper's `ZooKeeperServer`, `CommitProcessor`, `FinalRequestProcessor`, `SessionTrackerImpl`.
"""
