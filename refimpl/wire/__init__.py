"""ZooKeeper's wire formats: the client port, the quorum port, the election port, and transactions.

Rules this package keeps:

- Bytes in, values out, and back: nothing here opens a socket, waits, or decides anything about the protocol.
- What a peer may send without limit is limited here, before memory is taken for it.
- Bytes that are not what they should be are a `refimpl.jute.JuteError`.
"""
