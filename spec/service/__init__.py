"""What a server decides about its clients: who may connect, in which order requests are answered, when a session ends.

- `connecting`: what becomes of a client that presents itself.
- `connection`: the requests of one connection, answered in their order.
- `sessions`: session ids and passwords, and the leader's table of sessions with their owners and their expiry.
- `expiry`: what ends unless it is heard of.

Source: ZooKeeper's `ZooKeeperServer`, `CommitProcessor`, `FinalRequestProcessor`, `SessionTrackerImpl`.
"""
