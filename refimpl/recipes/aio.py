"""The lock for asyncio: the same lock, held by tasks instead of threads.

Rules of this module:

- Nothing here blocks the event loop: each `acquire` runs in a separate thread.
- A task that is cancelled while it waits gives up its place. If it has just acquired the lock, it releases it.
"""

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import Any, Self

from refimpl.recipes.errors import LockLost
from refimpl.recipes.lock import Lock, end_of_block


class AsyncLock:
    """`Lock` for asyncio; the client is a started `kazoo.client.KazooClient`, with its own threads.

        async with AsyncLock(client, "/locks/printer") as lock:
            await printer.write(document, lock.token)

    Re-entrant for the task that holds it.
    """

    def __init__(self, client: Any, path: str, id: str = "") -> None:
        self.lock = Lock(client, path, id)

    @property
    def is_held(self) -> bool:
        """See `Lock.is_held`."""
        return self.lock.is_held

    @property
    def token(self) -> int | None:
        """See `Lock.token`; the owner is the current task."""
        return self.lock.token_of(asyncio.current_task())

    async def acquire(self, timeout: float | None = None) -> bool:
        """See `Lock.acquire`; the owner is the current task."""
        loop, owner = asyncio.get_running_loop(), asyncio.current_task()
        future: asyncio.Future[bool] = loop.create_future()
        given_up = threading.Event()

        def finish(taken: bool, error: BaseException | None) -> None:
            if future.cancelled():
                if taken:
                    self._give_back(owner)
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(taken)

        def work() -> None:
            success, error = False, None
            try:
                success = self.lock.acquire_as(owner, timeout, given_up.is_set)
            except Exception as raised:
                error = raised
            try:
                loop.call_soon_threadsafe(finish, success, error)
            except RuntimeError:  # the loop is closed
                if success:
                    self._give_back(owner)

        threading.Thread(target=work, name=f"{self.lock.path} acquire", daemon=True).start()
        try:
            return await future
        except asyncio.CancelledError:
            given_up.set()
            self.lock.wake()
            if future.done() and not future.cancelled() and future.exception() is None and future.result():
                self._give_back(owner)
            raise

    def _give_back(self, owner: object) -> None:
        with contextlib.suppress(LockLost):
            self.lock.release_as(owner)

    def release(self) -> None:
        """See `Lock.release`; the owner is the current task."""
        self.lock.release_as(asyncio.current_task())

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_of_block(self.lock.path, self.release, error)
