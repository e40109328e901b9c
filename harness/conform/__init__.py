"""Compares any server of ZooKeeper's client protocol with the specification, by the same scripts at both."""
