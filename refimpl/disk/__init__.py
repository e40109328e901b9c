"""The disk of a node: transaction logs, snapshots and epoch files, in the formats of ZooKeeper 3.8."""
