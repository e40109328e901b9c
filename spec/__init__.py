"""What a ZooKeeper server does, as pure step functions.

Rules of this package: no I/O, no clock, no randomness, and no import of `checker` or `refimpl`. Every value
is frozen and hashable. A step takes a state and an event and returns a new state and effects, which are data.
"""
