"""Ending a connection with a peer that may not read what it is sent.

Rules this module keeps:

- What was written before may still be read, for a little while. Then the connection ends, and what is left is dropped:
  a peer that never reads would keep it for ever.

Source: `SO_LINGER` in `QuorumCnxManager.setSockOpts` (off), `LearnerHandler.shutdown`.
"""

import asyncio

LINGER = 5.0
"""Seconds in which a peer can read what it was sent before its connection was closed."""


def close(transport: asyncio.Transport) -> None:
    """Ends a connection; at once if everything is sent."""
    if not transport.is_closing() and transport.get_write_buffer_size():
        asyncio.get_running_loop().call_later(LINGER, transport.abort)
    transport.close()
