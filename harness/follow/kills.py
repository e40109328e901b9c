"""Kills random servers at random moments of a plan, and starts each again with the file that it has then."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from harness.follow.servers import FollowedServers
from harness.processes import ServerError
from spec.quorum import Sid

AFTER_STEP_SECONDS = 4.0
DOWN_SECONDS = 1.0


class Killer:
    """Kills `kills` servers in a run with this many steps. Each kill is a random time after the begin of a random step.

    The same seed chooses the same steps and delays. The server is one of those that run at that time, so it depends on
    the run as well.
    """

    def __init__(self, servers: FollowedServers, kills: int, steps: int, seed: str, say: Callable[[str], None]) -> None:
        self._servers, self._say = servers, say
        self._random = random.Random(f"{seed}-kills")
        chosen = sorted(
            (self._random.randrange(steps), self._random.uniform(0, AFTER_STEP_SECONDS)) for _ in range(kills)
        )
        self._delays = {step: [delay for each, delay in chosen if each == step] for step, _ in chosen}
        self._threads: list[threading.Thread] = []
        self._one_at_a_time = threading.Lock()
        self.errors: list[ServerError | OSError] = []

    def step_begins(self, number: int) -> None:
        """Start the clocks of the kills that follow the begin of this step, counted from 0."""
        for delay in self._delays.pop(number, []):
            thread = threading.Thread(target=self._kill_after, args=(delay, self._random.random()), daemon=True)
            thread.start()
            self._threads.append(thread)

    def finish(self) -> None:
        """Wait until every server that was killed has been started again."""
        for thread in self._threads:
            thread.join()

    def _kill_after(self, delay: float, choice: float) -> None:
        threading.Event().wait(delay)
        with self._one_at_a_time:
            try:
                self._kill(choice)
            except (ServerError, OSError) as error:  # the run reports it
                self.errors.append(error)

    def _kill(self, choice: float) -> None:
        while True:
            running = self._servers.running
            if running and self._killed(running[int(choice * len(running))], choice):
                return
            threading.Event().wait(0.1)  # a step is under way on it

    def _killed(self, sid: Sid, choice: float) -> bool:
        """Kill a server and start it again, unless a step stops or starts it now."""
        if not self._servers.locks[sid].acquire(blocking=False):
            return False
        try:
            if not self._servers.alive(sid):
                return False
            self._say(f"kill -9 of server {sid} ({self._servers.mode(sid) or 'not serving'})")
            self._servers.kill(sid)
            threading.Event().wait(choice * DOWN_SECONDS)
            self._servers.start(sid)
            return True
        finally:
            self._servers.locks[sid].release()
