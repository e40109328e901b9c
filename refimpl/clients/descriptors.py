"""File descriptors: the limit of this process, and the part of it that is kept from clients.

A server without a free descriptor can neither begin a new log file nor write a snapshot, so it would have to stop. The
number of a descriptor is the lowest free one. A connection whose number lies in the reserve is therefore refused: all
lower numbers are in use.
"""

import resource

from refimpl.listening import ACCEPTS, MAX_STRANGERS

_STRANGERS = 4 * MAX_STRANGERS
"""Connections of peers on two ports: those without an introduction, and those outside the configuration."""
_REFUSED = 4 * 4 * ACCEPTS
"""Refused connections of peers, which are closed within four turns of the event loop, on four listening sockets.

A refused client is closed before the next one is accepted.
"""
_OWN = 128
"""Descriptors for the disk, the listening sockets, the event loop, and the connections with configured servers."""
RESERVE = _STRANGERS + _REFUSED + _OWN
"""Descriptors that no client gets: 512."""
_UNLIMITED = 1 << 20


def raise_limit() -> int:
    """Raises the soft limit on open files to the hard one. Returns the number of descriptors of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _UNLIMITED if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _UNLIMITED if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a system may allow less than its hard limit
        return soft
    return wanted


def first_reserved(limit: int) -> int:
    """The lowest descriptor that no client gets: behind it lie `RESERVE` ones, or half of a small limit."""
    return limit - min(RESERVE, limit // 2)
