"""kazoo clients of ensembles, for the time of a block."""

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient

from harness.ensemble import Ensemble

WAIT = 60.0
"""Seconds until a client must be connected."""


@contextmanager
def client_at(ensemble: Ensemble, *sids: int, timeout: float = 10.0) -> Iterator[KazooClient]:
    """A client of these servers, or of all; `timeout` is that of its session, in seconds."""
    hosts = ",".join(ensemble.address(sid) for sid in sids or ensemble.sids)
    opened = KazooClient(hosts=hosts, timeout=timeout)
    opened.start(timeout=WAIT)
    try:
        yield opened
    finally:
        opened.stop()
        opened.close()
