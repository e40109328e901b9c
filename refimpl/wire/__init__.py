"""ZooKeeper's wire formats: the client port, the quorum port, the election port, and transactions.

Rules this package keeps:

- It converts bytes to values and back. Nothing here opens a socket, waits, or decides anything about the protocol.
- Sizes that a peer could choose freely are limited here, before memory is allocated.
- Malformed bytes raise a `refimpl.jute.JuteError`.
"""
