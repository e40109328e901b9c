"""The server behind the client port, which replicates and applies the writes of the clients.

Rules this module keeps:

- `write`, `sync` and `revalidate` do not block; their answers arrive through `ClientPort`, in the order in which the
  server applies transactions. A standalone server may answer from inside the call.
- Reads bypass this interface: the client port reads `tree` itself, which always shows all transactions up to
  `last_zxid`, and none beyond.
"""

from typing import Protocol

import msgspec

from refimpl.tree import Tree
from spec.tree.requests import Request, SessionId


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a server in the four-letter words, in addition to those of the client port.

    `mode` is `leader`, `follower`, `observer` or `standalone`; sizes are in bytes. `proposals` are the sizes of a
    leader's last, smallest and largest proposal, -1 before the first. `monitored` are further lines of `mntr`, their
    names without `zk_`. `expiring` are the times at which sessions expire, in seconds since 1970, with the sessions;
    only a leader knows them.
    """

    mode: str
    data_dir_size: int = 0
    log_dir_size: int = 0
    proposals: tuple[int, int, int] | None = None
    monitored: tuple[tuple[str, int | float | str], ...] = ()
    expiring: tuple[tuple[float, tuple[SessionId, ...]], ...] = ()


class Backend(Protocol):
    """A serving server: leader, follower, observer, or standalone."""

    @property
    def tree(self) -> Tree:
        """The znodes and sessions, after all applied transactions."""

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied."""

    def write(self, request: Request) -> None:
        """Replicate a request, including CreateSession and CloseSession; `ClientPort.applied` reports its outcome."""

    def sync(self, session: SessionId, cxid: int) -> None:
        """Catch up with the leader; `ClientPort.synced` reports the end, in order with `ClientPort.applied`."""

    def revalidate(self, session: SessionId, timeout: int) -> None:
        """Ask the leader whether a session is alive, and claim it for this server; see `ClientPort.revalidated`."""

    def touch(self, session: SessionId, timeout: int) -> None:
        """Record that a client of this session has sent something."""

    def status(self) -> ServerStatus:
        """Return the figures of this server for the four-letter words."""
