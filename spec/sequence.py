"""A sequence that behaves like a tuple, and that is extended without a copy.

Rules of this module:

- A `SharedSequence` is a value: its contents never change. Successive values share one list, and each sees a part of
  it; a value that is extended a second time copies its part into a new list.
- It equals a tuple with the same elements, since the checker has tuples.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Self, TypeVar, overload

T = TypeVar("T")

SHORT = 64
"""The number of elements up to which a copy costs less than a `SharedSequence`."""


def extended(elements: Sequence[T], element: T) -> Sequence[T]:
    """The elements with another one at their end: a tuple while they are few, and then a `SharedSequence`."""
    if len(elements) < SHORT:
        return (*elements, element)
    return (elements if isinstance(elements, SharedSequence) else SharedSequence(elements)) + (element,)


class SharedSequence(Sequence[T]):
    """Elements in the order of their addition, oldest first."""

    __slots__ = ("_end", "_shared", "_start")

    def __init__(self, elements: Iterable[T] = ()) -> None:
        self._shared = list(elements)
        self._start = 0
        self._end = len(self._shared)

    def __len__(self) -> int:
        return self._end - self._start

    def __iter__(self) -> Iterator[T]:
        return iter(self._shared[self._start : self._end])

    def __reversed__(self) -> Iterator[T]:
        for place in range(self._end - 1, self._start - 1, -1):
            yield self._shared[place]

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> T | Self:
        if isinstance(place, slice):
            start, end, stride = place.indices(self._end - self._start)
            if stride != 1:
                raise ValueError("a part of the sequence is a range without gaps")
            return self._part(self._start + start, self._start + max(start, end))
        index = place + (self._start if place >= 0 else self._end)
        if not self._start <= index < self._end:
            raise IndexError(f"the sequence has {len(self)} elements, and {place} was asked for")
        return self._shared[index]

    def __add__(self, elements: Sequence[T]) -> Self:
        if self._end != len(self._shared):
            return type(self)((*self, *elements))
        self._shared.extend(elements)
        return self._part(self._start, len(self._shared))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedSequence | tuple) and len(other) == len(self) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def _part(self, start: int, end: int) -> Self:
        part = type(self).__new__(type(self))
        part._shared, part._start, part._end = self._shared, start, end
        return part
