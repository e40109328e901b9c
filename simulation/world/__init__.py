"""The simulated world of servers and clients: one clock, machines, disks, and a network.

- `loop`: the event loop of all processes. `disk`, `paths`: files, and what remains of them when the power fails.
- `transport`, `network`: connections, links, and their faults. `machine`: the system of one process.
"""
