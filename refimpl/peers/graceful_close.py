"""The end of a connection with a peer that may not read its input.

Rules this module keeps:

- The peer may still read the pending output for a short time. Then the connection ends and the rest is dropped: a peer
  that never reads would otherwise hold the connection for ever.

Source: `SO_LINGER` in `QuorumCnxManager.setSockOpts` (off), `LearnerHandler.shutdown`.
"""

import asyncio

from refimpl.listening import StreamTransport

LINGER = 5.0
"""Seconds for a peer to read the output that is pending when its connection is closed."""


def close(transport: StreamTransport) -> None:
    """End a connection; immediately if the output buffer is empty."""
    if not transport.is_closing() and transport.get_write_buffer_size():
        asyncio.get_running_loop().call_later(LINGER, transport.abort)
    transport.close()
