"""Models that come with the checker: general processes, a small election, a ZooKeeper ensemble, a service, recipes."""
