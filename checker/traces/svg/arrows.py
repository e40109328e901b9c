"""Messages and links of a picture: arrows from sending to arrival, crosses for losses, links that break or heal.

Rules of this module:

- A shaft runs from the sending to the arrival, around the boxes. Words are below the end of a shaft, since the shaft
  arrives from above.
- A lost message ends in a cross short of its receiver, a removed one without a head there. A message in flight at the
  end of the run is a short arrow towards its receiver, and its words name the receiver.
- One line shows the cuts between all lanes of one side and all lanes of another, with filled ends for one side.
- An arrow is straight where no box is in its way. Otherwise it has three parts: a part below the sending, a vertical
  part in the gap left of a lane, and a part to the receiver. The first and the last part are in the zones that each row
  has above its boxes (`checker.traces.svg.layout`).
- The vertical part is in the gap closest to the receiver that has a free track. Two vertical parts with a common height
  share a track only if every other one runs into a box or is taken.
- An arrow is straight if every track runs into a box. The picture draws it over the boxes.
- A part of an arrow is compared only with the boxes at its height, which two binary searches find. So the time for an
  arrow grows with its own height, not with the height of the picture.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from checker.html_text import escaped
from checker.traces.summary import Fate, MessageLife
from checker.traces.svg.layout import (
    CHANNEL,
    SANS,
    SMALL,
    LinkBand,
    PictureLayout,
    arrow_head,
    columns_in,
    cross,
    line,
    polyline,
    shortened,
    tag,
    text,
    title,
)

LOST_SHORT = 20.0  # distance from the cross to the receiver's line of a lost message
STUB = 26.0  # length of the arrow of a message in flight
CLASSES = {Fate.ARRIVED: "arrives", Fate.LOST: "lost", Fate.REMOVED: "removed", Fate.UNDER_WAY: "under-way"}
CAPTIONS = {"cut": "cut", "heal": "whole again", "between": ""}


class Arrows:
    """The messages of one picture; `prefix` comes before their ids."""

    def __init__(self, places: PictureLayout, prefix: str) -> None:
        self._places, self._prefix = places, prefix
        self._rows = {row.step.number: row for row in places.rows}
        stacks = [(lane, stack) for row in places.rows for lane, stack in row.blocks.items()]
        boxes = [places.box(lane, block) for lane, stack in stacks for block in stack]
        self._routes = Routes(boxes, [places.life(lane) for lane in places.lanes])

    def shafts(self) -> Iterator[str]:
        """A group for each message: its line, a dot where it begins, a head or a cross where it ends."""
        for message in self._places.messages:
            yield self._stub(message) if message.fate is Fate.UNDER_WAY else self._arrow(message)

    def _start(self, message: MessageLife) -> tuple[float, float]:
        x = self._places.life(message.sender)
        if message.sent is None:
            return x, self._places.top - 4
        return x, self._rows[message.sent].at(message.sender)

    def _group(self, message: MessageLife, inside: str) -> str:
        return tag(
            "g",
            title(message.sentence) + inside,
            id=f"{self._prefix}m{message.number}",
            class_="message " + CLASSES[message.fate],
            data_message=message.number,
            data_sent=message.sent,
            data_ended=message.ended,
        )

    def _end(self, message: MessageLife) -> tuple[float, float, int]:
        """The end of a message, and its side of the receiver: -1 for the left."""
        assert message.ended is not None
        x, from_x = self._places.life(message.receiver), self._places.life(message.sender)
        side = -1 if from_x <= x else 1
        y = self._rows[message.ended].ends[message.number]
        return x + side * (0 if message.fate is Fate.ARRIVED else LOST_SHORT), y, side

    def _arrow(self, message: MessageLife) -> str:
        (x1, y1), (x2, y2, _) = self._start(message), self._end(message)
        dot = tag("circle", cx=x1, cy=y1, r=3, class_="dot")
        *corners, before, end = self._routes.route((x1, y1), (x2, y2))
        shaft = polyline([*corners, before, end], "shaft") if corners else line(x1, y1, x2, y2, "shaft")
        if message.fate is Fate.LOST:
            return self._group(message, shaft + dot + cross(x2, y2))
        if message.fate is Fate.REMOVED:
            return self._group(message, shaft + dot)
        return self._group(message, shaft + dot + arrow_head(x2, y2, x2 - before[0], y2 - before[1]))

    def _stub(self, message: MessageLife) -> str:
        """A short arrow towards the receiver; those of one sender, step and side overlap."""
        x, y = self._start(message)
        end = x + self._side(message) * STUB
        dot = tag("circle", cx=x, cy=y, r=3, class_="dot")
        return self._group(message, line(x, y, end, y, "shaft") + dot + arrow_head(end, y, end - x, 0))

    def _side(self, message: MessageLife) -> int:
        """The direction of a message: 1 for the right."""
        return 1 if self._places.life(message.receiver) >= self._places.life(message.sender) else -1

    def labels(self) -> Iterator[str]:
        """The words on messages: below the ends of shafts, and behind the stubs of messages in flight."""
        under_way = defaultdict(list)
        for message in self._places.messages:
            if message.ended is None:
                under_way[(*self._start(message), self._side(message))].append(message)
                continue
            x, y, side = self._end(message)
            fate = "" if message.fate is Fate.ARRIVED else f" {CLASSES[message.fate]}"
            name = f"m{message.number}{fate}"
            yield self._label(x + side * 9, y + 12, side, (name, message.text, message.sentence), fate)
        for (x, y, side), messages in under_way.items():
            words = ", ".join(f"m{message.number} to {message.receiver}" for message in messages)
            whole = "\n".join(message.sentence for message in messages)
            yield self._label(x + side * (STUB + 4), y + 4, side, ("", words, whole), " under-way")

    def _label(self, x: float, y: float, side: int, words: tuple[str, str, str], kind: str) -> str:
        """Words from x towards a side: a name, more words, and the whole text for the title."""
        name, more, whole = words
        columns = columns_in(self._places.lane_width - abs(x - self._nearest(x)) - CHANNEL, SMALL, SANS)
        label = shortened(more, columns - len(name) - 1)
        inside = title(whole) + (tag("tspan", name, class_="id") + " " if name else "") + escaped(label)
        return tag("text", inside, x=x, y=y, class_=f"label{kind}", text_anchor="end" if side < 0 else "start")

    def _nearest(self, x: float) -> float:
        return min((self._places.life(lane) for lane in self._places.lanes), key=lambda life: abs(life - x))


def band_drawn(places: PictureLayout, band: LinkBand) -> str:
    """Links that broke or healed in a step, as one line over the lanes they join."""
    lanes = sorted({lane for pair in band.pairs for lane in pair}, key=places.lanes.index)
    ends = [places.life(lane) for lane in lanes]
    parts = [line(ends[0], band.y, ends[-1], band.y, "")]
    sides = _sides(band.pairs)
    for lane, x in zip(lanes, ends, strict=True):
        second = " second" if lane in sides[1] else ""
        parts.append(tag("rect", x=x - 4, y=band.y - 4, width=8, height=8, class_=f"end{second}"))
    words = CAPTIONS[band.kind]
    if words:
        words += ": " + _pairs_text(band.pairs, sides)
        room = columns_in(places.truths_left - ends[0] - 20, SMALL, SANS)
        parts.append(title(words))
        parts.append(text(ends[0] + 9, band.y + 13, shortened(words, room), f"label {band.kind}"))
    return tag("g", "".join(parts), class_=f"band {band.kind}")


def _sides(pairs: tuple[tuple[str, str], ...]) -> tuple[set[str], set[str]]:
    """The two sides of cut links, if all of one side have lost all of the other; otherwise one side with all lanes."""
    side = {pairs[0][0]} | {a if b == pairs[0][1] else b for a, b in pairs if pairs[0][1] in (a, b)}
    rest = {lane for pair in pairs for lane in pair} - side
    if rest and {frozenset(pair) for pair in pairs} == {frozenset((a, b)) for a in side for b in rest}:
        return side, rest
    return side | rest, set()


def _pairs_text(pairs: tuple[tuple[str, str], ...], sides: tuple[set[str], set[str]]) -> str:
    if sides[1]:
        return " | ".join(", ".join(sorted(side)) for side in sides)
    return ", ".join(f"{sender} - {receiver}" for sender, receiver in pairs)


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
            if not any(abs(x - track) < TRACK and top < bottom and begin < low for x, begin, bottom in self._tracks):
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
    for position, length, low, high in ((x1, x2 - x1, left, right), (y1, y2 - y1, top, bottom)):
        if length == 0:
            if not low < position < high:
                return False
            continue
        first, second = sorted(((low - position) / length, (high - position) / length))
        begin, end = max(begin, first), min(end, second)
    return begin < end
