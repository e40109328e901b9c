"""Calls a function for each of many seeds, in processes of this machine or of a Ray cluster.

Each call is independent, so a lost machine costs only the calls that ran there; Ray repeats them elsewhere.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from typing import Any, TypeVar

from checker.cluster import Ray, Workers

Answer = TypeVar("Answer")


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
