"""What is to end at a time unless it is heard of before: sessions at the leader, connections at any server.

Rules this module keeps:

- No clock: `now` is an argument, milliseconds of any clock that never goes back.
- A time-out is rounded up to the next tick, so that there is one bucket for each tick, and few buckets. Hearing of
  something and looking for what is over cost the same however many wait.
- The queue is mutable: what waits is too much to be copied with each change.

Source: `ExpiryQueue`.
"""


class ExpiryQueue:
    """Numbers (of sessions, of connections) by the tick at which they expire; `tick` in milliseconds."""

    __slots__ = ("_buckets", "_tick", "_times")

    def __init__(self, tick: int) -> None:
        if tick <= 0:
            raise ValueError(f"a tick of {tick} ms: expiry needs one of at least 1 ms")
        self._tick = tick
        self._times: dict[int, int] = {}
        self._buckets: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._times)

    def __contains__(self, element: object) -> bool:
        return element in self._times

    def update(self, element: int, timeout: int, now: int) -> None:
        """The element was heard of; it expires at the first tick after its time-out."""
        time = ((now + timeout) // self._tick + 1) * self._tick
        if self._times.get(element) == time:
            return
        self.remove(element)
        self._times[element] = time
        self._buckets.setdefault(time, set()).add(element)

    def remove(self, element: int) -> None:
        """The element does not expire any more; nothing happens if it did not wait."""
        time = self._times.pop(element, None)
        if time is None:
            return
        bucket = self._buckets[time]
        bucket.remove(element)
        if not bucket:
            del self._buckets[time]

    def expired(self, now: int) -> tuple[int, ...]:
        """What is over, once each, in the order of time, then of the numbers: the same on every run."""
        due = sorted(time for time in self._buckets if time <= now)
        found = tuple(element for time in due for element in sorted(self._buckets.pop(time)))
        for element in found:
            del self._times[element]
        return found

    def next_time(self) -> int | None:
        """When something expires next, or None when nothing waits."""
        return min(self._buckets, default=None)

    def by_time(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every time, with what expires then."""
        return tuple((time, tuple(sorted(self._buckets[time]))) for time in sorted(self._buckets))
