"""Searches on many machines with Ray (`pip install quorate[cluster]`).

`Ray` names a cluster; `workers_named` parses the text of `--workers`. `distributed_search` explores a model on a
cluster, `for_each_seed` calls a function for many seeds. Only `ray_transport` imports Ray, and only when a cluster is
used.

    explore(model, limits, workers=Ray())                      # one process for each core of this machine
    explore(model, limits, workers=Ray("10.0.0.5:6379"))       # one process for each core of that cluster
"""

import multiprocessing
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from spec.text import integer

Answer = TypeVar("Answer")

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


def for_each_seed(
    function: Callable[[int], Answer],
    seeds: Iterable[int],
    workers: Workers,
    stop: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Answer]]:
    """Call a picklable function for each seed; yield each seed with its answer, as the calls end.

    `workers` is a number of processes of this machine, or a Ray cluster. At most two calls for each process wait at a
    time, so the seeds may be endless; closing the iterator cancels the calls that wait. An exception of the function is
    raised here and ends the calls. `stop` ends the calls that run in processes of this machine, which are then waited
    for: a program that ends while its pool ends may print a stack trace of Python. Raises ModelError if there is no
    such cluster.

        for seed, found in for_each_seed(partial(explore_at_random, model), range(1000), workers=Ray()):
            print(seed, found)
    """
    if isinstance(workers, Ray):
        from checker.cluster.ray_transport import ray_calls  # noqa: PLC0415 (imports Ray)

        yield from ray_calls(function, seeds, workers)
        return
    if workers == 1:
        yield from ((seed, function(seed)) for seed in seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting: dict[Any, int] = {}
        queue = iter(seeds)
        try:
            while True:
                for seed in islice(queue, 2 * workers - len(waiting)):
                    waiting[pool.submit(function, seed)] = seed
                if not waiting:
                    return
                for call in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(call), call.result()
        finally:
            if stop is not None:
                stop()
            pool.shutdown(wait=stop is not None, cancel_futures=True)
