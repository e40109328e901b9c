"""A server that holds answers as `CommitProcessor` of 3.6.0 to 3.8.0 does: until another connection has a request."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.processes import LOOPBACK

PATIENCE = 30.0
SRVR = b"srvr"
"""A request that `CommitProcessor` never sees."""


class HoldingServer:
    """Stands before a server; `holds` says by the last request of the client whether its answer is held."""

    def __init__(self, listener: socket.socket, port: int, holds: Callable[[bytes], bool]) -> None:
        self.held = 0
        self._listener, self._server, self._holds = listener, port, holds
        self._last: dict[socket.socket, bytes] = {}
        self._requests: Counter[socket.socket] = Counter()
        self._changed = threading.Condition()

    @property
    def port(self) -> int:
        """The port for clients."""
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        """Accept clients until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((LOOPBACK, self._server))
                for passes, one, other in ((self._ask, client, server), (self._answer, server, client)):
                    threading.Thread(target=self._pass, args=(passes, one, other), daemon=True).start()

    def _pass(self, passes: Callable[[socket.socket, bytes], None], source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                passes(source if passes == self._ask else sink, data)
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _ask(self, client: socket.socket, data: bytes) -> None:
        with self._changed:
            self._requests[client] += data[:4] != SRVR
            self._last[client] = data
            self._changed.notify_all()

    def _answer(self, client: socket.socket, _data: bytes) -> None:
        with self._changed:
            if self._requests[client] and self._holds(self._last[client]):
                self.held += 1
                before = self._of_others(client)
                self._changed.wait_for(lambda: self._of_others(client) > before, PATIENCE)

    def _of_others(self, client: socket.socket) -> int:
        return self._requests.total() - self._requests[client]


@contextmanager
def holding(port: int, holds: Callable[[bytes], bool]) -> Iterator[HoldingServer]:
    """A server of this kind before the one at this port."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        server = HoldingServer(listener, port, holds)
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)
