"""Routes of the arrows in a picture: each arrow avoids the boxes, so that it stays visible.

An arrow is straight where no box is in its way. Otherwise it has three parts: a part below the sending, a vertical
part in the gap left of a lane, and a part to the receiver. Rules of this module:

- Each row has a zone above its boxes (`checker.traces.picture_layout`). The first and the last part are in such zones.
- The vertical part is in the gap closest to the receiver that has a free track. Two vertical parts with a common height
  share a track only if every other one runs into a box or is taken.
- An arrow is straight if every track runs into a box. The picture draws it over the boxes.
- A part of an arrow is compared only with the boxes at its height, which two binary searches find. So the time for an
  arrow grows with its own height, not with the height of the picture.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom

CLEAR = 2.0  # between an arrow and a box
SHORT = 25.0  # at most between the end of a lost message and the lane of its receiver
TRACK = 4.0  # between two vertical parts
FIRST_TRACK, LAST_TRACK = 8.0, 12.0  # from the lane right of the gap, and from the lane left of it
DROP, RISE = 8.0, 5.0  # from the sending down to the first part, from the vertical part down to the arrival


class Routes:
    """The routes of the arrows of one picture; `lives` are the positions of the lanes from left to right."""

    def __init__(self, boxes: Sequence[Box], lives: Sequence[float]) -> None:
        self._boxes, self._lives = Boxes(boxes), lives
        self._tracks: list[tuple[float, float, float]] = []

    def route(self, start: Point, end: Point) -> list[Point]:
        """The corners of an arrow, with both ends. The track of a vertical part is taken from then on."""
        straight = [start, end]
        if self._is_free(straight):
            return straight
        (x1, y1), (x2, y2) = start, end
        top, low = y1 + DROP, y2 - RISE
        shared = None
        for track in self._candidates(x1, x2) if top < low else ():
            side = min(DROP, abs(track - x1)) * (1 if x2 > x1 else -1)
            corners = [start, (x1 + side, top), (track, top), (track, low), end]
            if not self._is_free(corners):
                continue
            if not self._is_taken(track, top, low):
                self._tracks.append((track, top, low))
                return corners
            shared = shared or corners
        return shared or straight

    def _candidates(self, x1: float, x2: float) -> Iterator[float]:
        """The tracks between two ends; those in the gap of the receiver come first."""
        gaps = list(pairwise(x for x in self._lives if min(x1, x2) - SHORT <= x <= max(x1, x2) + SHORT))
        for left, right in reversed(gaps) if x2 > x1 else gaps:
            track = right - FIRST_TRACK
            while track >= left + LAST_TRACK:
                yield track
                track -= TRACK

    def _is_free(self, corners: Sequence[Point]) -> bool:
        return not any(self._boxes.cross(*part) for part in pairwise(corners))

    def _is_taken(self, track: float, top: float, low: float) -> bool:
        return any(abs(x - track) < TRACK and top < bottom and begin < low for x, begin, bottom in self._tracks)


class Boxes:
    """The boxes of a picture in the order of their tops.

    `_tops` are the tops, and `_lows` the lowest bottoms up to each box, both with the clear space. Both ascend.
    """

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._boxes = sorted(boxes, key=lambda box: box[1])
        self._tops = [top - CLEAR for _, top, _, _ in self._boxes]
        self._lows = list(accumulate((bottom + CLEAR for _, _, _, bottom in self._boxes), max))

    def cross(self, one: Point, other: Point) -> bool:
        """Whether a straight part enters a box, or comes too close to it."""
        high, low = sorted((one[1], other[1]))
        first, end = bisect_right(self._lows, high), bisect_left(self._tops, low)
        return any(crosses(one, other, box, CLEAR) for box in self._boxes[first:end])


def crosses(one: Point, other: Point, box: Box, clear: float = 0.0) -> bool:
    """Whether a straight part enters a box, or comes closer to it than `clear`."""
    (x1, y1), (x2, y2) = one, other
    left, top, right, bottom = box[0] - clear, box[1] - clear, box[2] + clear, box[3] + clear
    begin, end = 0.0, 1.0
    for at, length, low, high in ((x1, x2 - x1, left, right), (y1, y2 - y1, top, bottom)):
        if length == 0:
            if not low < at < high:
                return False
            continue
        first, second = sorted(((low - at) / length, (high - at) / length))
        begin, end = max(begin, first), min(end, second)
    return begin < end
