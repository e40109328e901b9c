"""The worker processes, managed by their parent: started, given commands, paused, killed, replaced.

Rules of this module:

- A process is stopped and ended by the id that it was started with, and by the process that started it. A worker ends
  when its standard input ends, which happens when its parent ends.
- A replacement worker keeps the place and has a new name, so that the two cannot be confused.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import refimpl

ROOT = Path(refimpl.__file__).parent.parent
MODULE = "tests.node.recipes_chaos.worker"
RECIPES = ("lock", "latch", "selector", "fair", "unfair")


def resource(recipe: str) -> str:
    """The path of the queue of a recipe, which is also the name of the guarded resource."""
    return f"/chaos-{recipe}"


@dataclass(frozen=True)
class Employment:
    """The settings that all workers share."""

    hosts: str
    hub_port: int
    clients: int
    time_out: float
    seed: int
    directory: Path
    recipes: Sequence[str] = RECIPES


class Worker:
    """The worker at a place; `generation` counts the earlier ones."""

    def __init__(self, place: int, employment: Employment, generation: int = 0) -> None:
        self.place, self.generation = place, generation
        self.recipe = employment.recipes[place % len(employment.recipes)]
        self.name = f"w{place}.{generation}"
        self.clients = tuple(f"{self.name}/{number}" for number in range(employment.clients))
        self.paused = False
        self._employment = employment
        command = [
            *(sys.executable, "-m", MODULE, self.name, self.recipe, resource(self.recipe), str(employment.clients)),
            *(employment.hosts, str(employment.hub_port), str(employment.time_out), f"{employment.seed}/{self.name}"),
        ]
        with (employment.directory / f"worker-{place}.txt").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def tell(self, line: str) -> None:
        """Send it a line; a paused worker reads it afterwards."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def pause(self) -> None:
        self.paused = True
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        self.paused = False
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def quit(self, seconds: float = 10.0) -> None:
        """Ask it to end; SIGKILL if it does not."""
        if self.alive:
            self.tell("quit")
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def successor(self) -> "Worker":
        """A new worker at the same place."""
        return Worker(self.place, self._employment, self.generation + 1)
