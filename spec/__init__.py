"""The behaviour of a ZooKeeper server, as pure step functions.

Rules of this package: no I/O, no clock, no randomness, and no import of `checker` or `refimpl`. A step takes a state
and an event and returns a new state and effects, which are data. Values are frozen and hashable. Tables that are too
large to copy change in place: `service.expiry`, `service.sessions`, `tree.watches` and `tree.overlay`.
"""
