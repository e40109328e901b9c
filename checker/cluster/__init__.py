"""Searches on many machines with Ray (`pip install ray`).

`Ray` names a cluster; `workers_named` parses the text of `--workers`. The exchange of a search on a cluster is in
`exchange`, and its parts in `search_part`. Only `ray_transport` imports Ray, and only when a cluster is used.

    search.explore(model, limits, workers=Ray())                      # one process for each core of this machine
    search.explore(model, limits, workers=Ray("10.0.0.5:6379"))       # one process for each core of that cluster
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spec.text import integer

if TYPE_CHECKING:
    from checker.engine.result import Exploration
    from checker.engine.search import Request

MOST_THREADS = 64
MOST_PROCESSES = 1024
_ADDRESS = re.compile(r"auto|[A-Za-z0-9_.-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]{2,45}\]:[0-9]{1,5}")


@dataclass(frozen=True)
class Ray:
    """A Ray cluster: the address of its head, or None for a Ray that is started on this machine and shut down again.

    `processes` is the number of workers; None means one for each core of the cluster.
    """

    address: str | None = None
    processes: int | None = None

    def __str__(self) -> str:
        """The text that `workers_named` parses."""
        return "ray" if self.address is None else f"ray:{self.address}"

    def explore(self, request: Request) -> Exploration:
        """Explore a model breadth-first there. Raises ModelError and CheckpointError."""
        from checker.cluster.exchange import explore  # noqa: PLC0415 (loads the kernels)

        return explore(request, self)


Workers = int | Ray
"""The workers of a search: a number of threads of this process, or a Ray cluster."""


def workers_named(text: str) -> Workers:
    """Parse the value of `--workers`: a number of threads, `ray`, or `ray:ADDRESS`. Raises ValueError."""
    name, colon, address = text.strip().partition(":")
    if name != "ray":
        return _threads(text)
    if not colon:
        return Ray()
    if _ADDRESS.fullmatch(address) is None or not _is_port(address):
        raise ValueError(f"{address!r} is not the address of a Ray cluster; write ray:HOST:PORT, such as "
                         "ray:10.0.0.5:6379, or ray:auto")  # fmt: skip
    return Ray(address)


def _threads(text: str) -> int:
    value = integer(text, 1, MOST_THREADS)
    if value is None:
        raise ValueError(f"{text!r} is not a whole number from 1 to {MOST_THREADS}, ray or ray:ADDRESS")
    return value


def _is_port(address: str) -> bool:
    return address == "auto" or integer(address.rpartition(":")[2], 1, 65535) is not None
