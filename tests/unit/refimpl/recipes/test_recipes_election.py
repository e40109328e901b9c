"""An election without servers: a candidate that is running does not run twice, however close the two calls are."""

import queue
import threading
import time
from typing import Any

import pytest

from refimpl.recipes import Election, election

WAIT = 10.0


class SlowStanding:
    """A `Participation` that leads immediately, and takes a while to be created."""

    token = 5

    def __init__(self, *_: Any, **__: Any) -> None:
        self.condition = threading.Condition()
        time.sleep(0.1)

    def begin(self) -> None:
        pass

    def wait(self, *_: Any) -> bool:
        return True

    def end(self) -> None:
        pass


def test_of_two_runs_at_once_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election, "Participation", SlowStanding)
    candidate, leave, refused = Election(None, "/election"), threading.Event(), queue.Queue[str]()

    def run() -> None:
        try:
            candidate.run(lambda _: leave.wait(WAIT))
        except RuntimeError as error:
            refused.put(str(error))
            leave.set()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT)
    assert refused.qsize() == 1
    assert "runs already" in refused.get()
