"""Elements that expire unless they are refreshed: sessions at the leader, connections at any server.

Rules of this module:

- No clock: `now` is an argument, in milliseconds of any monotonic clock.
- A timeout is rounded up to the next tick, so that each tick has one bucket and there are few buckets. The cost of a
  refresh and of a search for expired elements does not depend on the number of waiting elements.
- The queue is mutable, because it is too large to copy with each change.
- A server that stands still hears nobody: its own pause is no silence of its clients. ZooKeeper counts it, so a long
  garbage collection of a leader ends sessions whose packets wait in its sockets. Here only the first part of a pause
  counts (`AttendedTime`).

Source: `ExpiryQueue`, `SessionTrackerImpl.run`.
"""


class ExpiryQueue:
    """Numbers (of sessions, of connections) by the tick at which they expire; `tick` is in milliseconds."""

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
        """Add or refresh an element; it expires at the first tick after its timeout."""
        time = ((now + timeout) // self._tick + 1) * self._tick
        if self._times.get(element) == time:
            return
        self.remove(element)
        self._times[element] = time
        self._buckets.setdefault(time, set()).add(element)

    def remove(self, element: int) -> None:
        """Remove an element, if it is in the queue."""
        time = self._times.pop(element, None)
        if time is None:
            return
        bucket = self._buckets[time]
        bucket.remove(element)
        if not bucket:
            del self._buckets[time]

    def expired(self, now: int) -> tuple[int, ...]:
        """Remove and return the expired elements, in the order of time, then of the numbers: the same on every run."""
        due = sorted(time for time in self._buckets if time <= now)
        elements = tuple(element for time in due for element in sorted(self._buckets.pop(time)))
        for element in elements:
            del self._times[element]
        return elements

    def by_time(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every expiry time, with the elements that expire then."""
        return tuple((time, tuple(sorted(self._buckets[time]))) for time in sorted(self._buckets))


class AttendedTime:
    """Time as a server counts it that may stand still: of each interval between two ticks at most `most` counts.

    The unit is that of `now`, which is the time of any clock that does not go back. The server calls `tick` more often
    than every `most`.
    """

    __slots__ = ("_last", "_most", "_time")

    def __init__(self, most: int, now: int) -> None:
        self._most, self._last, self._time = most, now, now

    def at(self, now: int) -> int:
        """The counted time at `now`."""
        return self._time + min(now - self._last, self._most)

    def tick(self, now: int) -> int:
        """Begin another interval; return the counted time."""
        self._time, self._last = self.at(now), now
        return self._time
