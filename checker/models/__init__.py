"""Models that come with the checker: of processes in general, of a small election, of a ZooKeeper ensemble."""
