"""The interface between the client port and the server behind it, which replicates and applies the writes of clients.

`Backend` is the server as the client port sees it, and `Frontend` is the client port as the server sees it.

Rules this module keeps:

- `write`, `sync` and `revalidate` do not block; their answers arrive through `Frontend`, in the order in which the
  server applies transactions. A standalone server may answer from inside the call.
- Reads bypass this interface: the client port reads `tree` itself, which always shows all transactions up to
  `last_zxid`, and none beyond.
"""

from typing import Protocol

import msgspec

from refimpl.tree import Tree
from spec.service.handshake import ReadOnlyRules
from spec.tree.apply import TxnResult
from spec.tree.replies import Code
from spec.tree.requests import Request, SessionId
from spec.tree.txns import Change


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a server in the four-letter words, in addition to those of the client port.

    `mode` is `leader`, `follower`, `observer`, `standalone` or `read-only`; sizes are in bytes. `proposals` are the
    sizes of a leader's last, smallest and largest proposal, -1 before the first. `monitored` are further lines of
    `mntr`, their names without `zk_`. `expiring` are the times at which sessions expire, in seconds since 1970, with
    the sessions; only a leader knows them. `membership` is the active configuration, empty for a standalone server.
    `digests` are zxids with the digests of the tree after them.
    """

    mode: str
    data_dir_size: int = 0
    log_dir_size: int = 0
    proposals: tuple[int, int, int] | None = None
    monitored: tuple[tuple[str, int | float | str], ...] = ()
    expiring: tuple[tuple[float, tuple[SessionId, ...]], ...] = ()
    membership: str = ""
    digests: tuple[tuple[int, int], ...] = ()


class Backend(Protocol):
    """A serving server: leader, follower, observer, or standalone; or one without a quorum, which is read-only."""

    @property
    def tree(self) -> Tree:
        """The znodes and sessions, after all applied transactions."""

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied."""

    def read_only(self, session: SessionId) -> ReadOnlyRules | None:
        """Return the rules for a client that presents this session, if the server has no quorum."""

    def write(self, request: Request) -> None:
        """Replicate a request, including CreateSession and CloseSession; `Frontend.applied` reports its outcome."""

    def sync(self, session: SessionId, cxid: int) -> None:
        """Catch up with the leader; `Frontend.synced` reports the end, in order with `Frontend.applied`."""

    def revalidate(self, session: SessionId, timeout: int) -> None:
        """Ask the leader whether a session is alive, and claim it for this server; see `Frontend.revalidated`."""

    def touch(self, session: SessionId, timeout: int) -> None:
        """Record that a client of this session has sent something."""

    def status(self) -> ServerStatus:
        """Return the figures of this server for the four-letter words."""


class Frontend(Protocol):
    """The client port: it receives the outcomes of requests, in the order in which the server applies transactions."""

    def begin(self, backend: Backend) -> None:
        """The server begins to serve."""

    def end(self) -> None:
        """The server stops serving."""

    def applied(self, change: Change, applied: TxnResult) -> None:
        """The next transaction is applied to the tree; any server may have proposed it."""

    def synced(self, session: SessionId, cxid: int, code: Code = Code.OK) -> None:
        """A sync is complete, or refused with this code."""

    def revalidated(self, session: SessionId, valid: bool) -> None:
        """The leader has answered whether a session is alive; if so, this server owns it now."""
