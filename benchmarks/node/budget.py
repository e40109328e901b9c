"""The command `python -m benchmarks budget`: the time of the event loop for one request, by layer of the node.

Rules of this module:

- A standalone node runs in this process, on a disk in a temporary directory, and the load generator in another one. The
  figure is the CPU time of this thread, which other programs of the machine change little.
- The layers are the shares of a second run under cProfile, applied to the time of the first. A built-in function counts
  for the layer that calls it. cProfile makes calls dearer than they are, so the shares are approximate.
"""

import argparse
import asyncio
import cProfile
import logging
import multiprocessing
import pstats
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from typing import TypeAlias

from benchmarks.node.load import drive, make, session
from benchmarks.node.requests import OPERATIONS, batch
from harness.processes import free_ports
from refimpl.__main__ import run_loop
from refimpl.process import read_settings, serve
from spec.text import between

REQUESTS, WARM_UP = 20_000, 3_000
LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Zab steps", ("spec/zab/", "spec/sequence.py", "spec/server.py", "spec/effects.py", "spec/durable.py")),
    ("clients and sessions", ("refimpl/clients/", "spec/service/")),
    ("tree", ("spec/tree/", "refimpl/tree.py", "refimpl/replica.py")),
    ("wire and jute", ("refimpl/wire/", "refimpl/jute/", "<string>")),
    ("disk", ("refimpl/disk/",)),
    ("node and roles", ("refimpl/",)),
)
"""The layers, and the paths that belong to each; the first that fits counts."""
OTHER = "event loop and others"

Words: TypeAlias = "Queue[str]"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks budget", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--outstanding", type=between(1), default=50, metavar="N", help="requests outstanding (default 50)"
    )
    parser.add_argument("--requests", type=between(1), default=REQUESTS, metavar="N", help="requests of a run")
    options = parser.parse_args(argv)
    logging.disable(logging.INFO)
    print(f"microseconds of the event loop's thread for a request, {options.outstanding} outstanding")
    for operation in OPERATIONS:
        alone, _ = _run(operation, options.outstanding, options.requests, profiled=False)
        _, shares = _run(operation, options.outstanding, options.requests, profiled=True)
        whole = sum(shares.values())
        parts = ", ".join(f"{name} {alone * part / whole:.1f}" for name, part in shares.most_common())
        print(f"{operation:<7} {alone:6.1f}: {parts}")
    return 0


def _run(operation: str, outstanding: int, count: int, *, profiled: bool) -> tuple[float, Counter[str]]:
    """The microseconds of this thread for a request, and the profiled time by layer."""
    result: list[tuple[float, Counter[str]]] = []

    async def measured(settings_file: Path, port: int) -> None:
        listening, stopping, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()
        server = loop.create_task(serve(read_settings(settings_file), None, stopping, lambda _: listening.set()))
        await listening.wait()
        context = multiprocessing.get_context("spawn")
        replies: Words = context.Queue()
        commands: Words = context.Queue()
        child = context.Process(
            target=_client, args=(port, operation, outstanding, count, replies, commands), daemon=True
        )
        child.start()
        await loop.run_in_executor(None, replies.get)
        profile = cProfile.Profile()
        start = time.thread_time()
        commands.put("go")
        if profiled:
            profile.enable()
        await loop.run_in_executor(None, replies.get)
        profile.disable()
        microseconds = (time.thread_time() - start) / count * 1e6
        stopping.set()
        await server
        child.join()
        result.append((microseconds, _layers(profile) if profiled else Counter()))

    with tempfile.TemporaryDirectory(prefix="budget-") as directory:
        (port,) = free_ports(1)
        zoo_cfg = Path(directory) / "zoo.cfg"
        zoo_cfg.write_text(f"tickTime=2000\ndataDir={directory}\nclientPort={port}\n")
        run_loop(measured(zoo_cfg, port))
    return result[0]


def _client(port: int, operation: str, outstanding: int, count: int, ready: Words, go: Words) -> None:
    """Warm the server up, wait, and make the requests; runs in another process."""
    with session(port) as connection:
        make(connection, "/load-000001")
        drive(connection, batch("set", WARM_UP, "/load-000001"), outstanding)
        make(connection, "/load-000002")
        ready.put("warm")
        go.get()
        drive(connection, batch(operation, count, "/load-000002"), outstanding)
        ready.put("done")


def _layers(profile: cProfile.Profile) -> Counter[str]:
    """The time of each layer: that of its functions, and of the built-in functions that they call."""
    times: Counter[str] = Counter()
    for (file, _, _), (_, _, seconds, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if file != "~":
            times[_layer(file)] += seconds
            continue
        for (caller, _, _), (_, _, part, _) in callers.items():
            times[_layer(caller)] += part
    return times


def _layer(file: str) -> str:
    for name, parts in LAYERS:
        if any(part in file for part in parts):
            return name
    return OTHER
