"""Frames on a stream: an i32 length, followed by that number of bytes.

Rules this module keeps:

- A length is checked as soon as it has arrived; at most one frame and one read are held.

Source: `NIOServerCnxn.readLength`, `QuorumCnxManager.RecvWorker.run`.
"""

import struct

from refimpl.jute import JuteError

LENGTH = struct.Struct(">i")


class Frames:
    """Splits a stream into frames of 1 to `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting = bytearray()
        self._needed = LENGTH.size

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that these bytes complete, without their lengths. Raises JuteError for a bad length."""
        self._waiting += data
        if len(self._waiting) < self._needed:
            return []
        # One copy, from which frames are cut: slices of a bytearray would be copied twice.
        content = bytes(self._waiting)
        frames: list[bytes] = []
        offset = 0
        while len(content) - offset >= self._needed:
            (length,) = LENGTH.unpack_from(content, offset)
            if not 0 < length <= self._limit:
                raise JuteError("frame", "length", offset, f"{length}, where 1 to {self._limit} would be right")
            end = offset + LENGTH.size + length
            self._needed = LENGTH.size + length
            if end <= len(content):
                frames.append(content[offset + LENGTH.size : end])
                offset, self._needed = end, LENGTH.size
        del self._waiting[:offset]
        return frames
