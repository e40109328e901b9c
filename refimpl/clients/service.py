"""What stands behind the client port: the server that replicates and applies what the clients write.

Rules this module keeps:

- `write`, `sync` and `revalidate` return at once; their answers arrive through `Clients`, in the order in which the
  server applies transactions. A server alone may answer from inside the call.
- Reads do not pass here: the client port reads `tree` itself, which always shows all transactions up to
  `last_zxid`, and none beyond.
"""

from typing import Protocol

import msgspec

from refimpl.store import Tree
from spec.tree.requests import Request, SessionId


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the four-letter words tell of a server, beside what the client port sees itself.

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


class Service(Protocol):
    """A server that serves: leader, follower, observer, or one alone."""

    @property
    def tree(self) -> Tree:
        """The znodes and sessions, with all that is applied."""

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied."""

    def write(self, request: Request) -> None:
        """Replicate a request, CreateSession and CloseSession too; `Clients.applied` tells what it came to."""

    def sync(self, session: SessionId, cxid: int) -> None:
        """Catch up with the leader; `Clients.synced` tells when, in order with `Clients.applied`."""

    def revalidate(self, session: SessionId, timeout: int) -> None:
        """Ask the leader whether a session lives, and make this server its owner; `Clients.revalidated` tells."""

    def touch(self, session: SessionId, timeout: int) -> None:
        """A client of this session was heard."""

    def status(self) -> ServerStatus:
        """What the four-letter words tell of this server."""
