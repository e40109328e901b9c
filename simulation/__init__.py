"""Deterministic simulation: ensembles of real nodes on a simulated clock, network and disk, decided by one seed.

- `world`: the event loop, machines, disks and network. It knows nothing of ZooKeeper.
- `ensemble`: the servers. `session`, `workload`: the clients and their records. `operator`: reconfigurations.
- `faults`: the table of faults, their draw from a seed, and their injection.
- `run`: one run from its plan to its record. `swarm`: many runs, each with its verdict.
- `report`, `command`: their report, a smaller plan that fails, and `python -m refimpl simulate`.

This package uses the checker, which judges the journals and the histories. A server does not import it.
"""
