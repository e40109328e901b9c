"""How fast servers answer one client: the real ZooKeeper and our node side by side, in one run."""
