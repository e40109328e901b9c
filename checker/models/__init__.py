"""Models that come with the checker: a small election, a ZooKeeper ensemble, a service, recipes."""
