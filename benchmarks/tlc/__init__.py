"""The comparison with TLC, the model checker of TLA+: two modules, and the run of a search."""
