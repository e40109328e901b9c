"""The request rate of servers with one client: the real ZooKeeper and our node in comparison, in one run."""
