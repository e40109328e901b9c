"""A server that only counts bytes and answers from a prepared buffer, to measure the speed of the load generator.

Rules of this module: the stub runs in a separate process, like a server; it knows one batch, and answers it once for
each session; it does as little work for a request as possible.
"""

import multiprocessing
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from benchmarks.node.requests import Batch, answers, framed, opening
from harness.layouts import write
from harness.processes import LOOPBACK

CHUNK = 1 << 18
SESSION = (0, 30_000, 1, bytes(16), False)


def serve(listener: socket.socket, requests: Batch) -> None:
    """Serve sessions one after another, until the listener is closed."""
    prepared = memoryview(answers(requests))
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _session(connection, requests, prepared)


def _session(connection: socket.socket, requests: Batch, prepared: memoryview) -> None:
    read, answered = -len(opening()), 0
    buffer = bytearray(CHUNK)
    while arrived := connection.recv_into(buffer):
        if read < 0 <= read + arrived:
            connection.sendall(framed(write("iilbt", SESSION)))
        read += arrived
        whole = min(max(read, 0) // requests.size, requests.count)
        if whole > answered:
            connection.sendall(prepared[answered * requests.answer_size : whole * requests.answer_size])
            answered = whole
        if read > len(requests.data):
            return


def _process(requests: Batch, ready: Connection) -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        ready.send(listener.getsockname()[1])
        serve(listener, requests)


@contextmanager
def stub(requests: Batch) -> Iterator[int]:
    """Run the stub for this batch; yields its port."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=_process, args=(requests, far), daemon=True)
    process.start()
    try:
        yield near.recv()
    finally:
        process.kill()
        process.join()
