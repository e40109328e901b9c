"""The layout of a trace's picture: the columns from left to right, and the rows from the top down.

The columns are the number of a step, its caption, the lanes, and a narrow column for each property. A row is a step. At
its top are the ends of messages, below them the links that break or heal, and below these the boxes of each lane:
marks, notes and changes. `PictureLayout` draws nothing; the letters and shapes of a picture are here as well.

Rules of this module:

- Lengths are in pixels. Text is counted in columns.
- All lanes have the width of the longest words, within bounds that depend on the number of lanes.
- Ends of messages at one lane in one step are below each other, so that they do not overlap.
- A picture is XML 1.0 for all words of a model: `on_a_line` writes what XML cannot contain as its code.
- No font is measured, because the fonts of a reader are unknown. Text is counted in columns: a wide East Asian
  character has two columns, and a column has the width of a rather wide font.
- Numbers have one decimal at most, so that equal traces give equal pictures on every machine.
- The sign of each truth value has a different shape.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot

from rich.cells import cell_len

from checker.engine.values import show
from checker.html_text import escaped
from checker.job import DiagramEvent
from checker.traces.summary import MEANING, MessageLife, changes, is_marked, messages_of, turns
from checker.traces.trace import Trace, TraceStep, Truth
from spec.text import on_a_line

MONO, SANS, BOLD = 0.61, 0.56, 0.65  # width of a column in ems


def columns_in(width: float, size: float, ratio: float) -> int:
    """The number of columns of a font of that size in a width; at least four."""
    return max(4, int(width / (size * ratio)))


def shortened(text: str, columns: int) -> str:
    """Text within a number of columns; a cut text ends in an ellipsis."""
    text = " ".join(on_a_line(text).split())
    if cell_len(text) <= columns:
        return text
    start = text[: max(0, columns - 1)]
    while start and cell_len(start) > columns - 1:
        start = start[:-1]
    return start.rstrip() + "…"


def wrapped(text: str, columns: int, lines: int) -> list[str]:
    """Text within a number of lines and columns; a longer text is cut as in `shortened`."""
    words = [piece for word in on_a_line(text).split() for piece in _pieces(word, columns)]
    filled: list[str] = [""]
    for place, word in enumerate(words):
        longer = f"{filled[-1]} {word}".strip()
        if cell_len(longer) <= columns:
            filled[-1] = longer
        elif len(filled) < lines:
            filled.append(word)
        else:
            filled[-1] = shortened(" ".join([filled[-1], *words[place:]]), columns)
            break
    return filled


def _pieces(word: str, columns: int) -> list[str]:
    """A word that is wider than a line, in pieces."""
    step = columns if cell_len(word) == len(word) else max(1, columns // 2)
    return [word[start : start + step] for start in range(0, len(word), step)] if cell_len(word) > columns else [word]


def number(value: float) -> str:
    """A coordinate: `12`, `12.5`."""
    return f"{round(value, 1):g}" if abs(value) < 100000 else str(round(value))


def tag(name: str, inside: str | None = None, **attributes: str | float | None) -> str:
    """An element. `inside` is markup already; attributes that are None are left out; `class_` is written `class`."""
    content = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{content}/>" if inside is None else f"<{name}{content}>{inside}</{name}>"


def text(x: float, y: float, words: str, class_: str, **attributes: str | float | None) -> str:
    """A line of text whose baseline is at y."""
    return tag("text", escaped(words), x=x, y=y, class_=class_, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def polyline(corners: Sequence[tuple[float, float]], class_: str) -> str:
    """A line with corners."""
    return tag("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in corners), class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str, radius: float = 3) -> str:
    """A rectangle with round corners."""
    return tag("rect", x=x, y=y, width=width, height=height, rx=radius, class_=class_)


def title(words: str) -> str:
    """The title of an element, which a browser shows at the pointer."""
    return tag("title", "\n".join(escaped(part) for part in words.split("\n")))


SIGNS = {
    Truth.HOLDS: tag("path", d="M-4 0.5L-1 3.5L4.5 -3.5"),
    Truth.FAILS: tag("circle", r=6.5) + tag("path", d="M-3 -3L3 3M-3 3L3 -3"),
    Truth.TRIVIAL: tag("circle", r=1.8),
    Truth.WITNESSED: tag("path", d="M0 -6.5L1.9 -2L6.4 -2L2.8 1L4.1 5.6L0 2.9L-4.1 5.6L-2.8 1L-6.4 -2L-1.9 -2Z"),
    Truth.UNSEEN: tag("path", d="M-3.5 0H3.5"),
    Truth.REACHED: tag("circle", r=4.5),
    Truth.OPEN: tag("circle", r=4.5),
}


def truth_sign(x: float, y: float, truth: Truth, prop: str = "") -> str:
    """The sign of a truth value around a point."""
    content = title(f"{prop}: {MEANING[truth]}") if prop else ""
    kind = truth.value.replace(" ", "-")
    return tag("g", content + SIGNS[truth], class_=f"truth {kind}", transform=f"translate({x:.1f} {y:.1f})")


def legend(x: float, y: float, truths: Sequence[Truth]) -> str:
    """The meaning of the signs, in a line whose text is based at y."""
    parts = []
    for truth in truths:
        parts += [truth_sign(x + 7, y - 4, truth), text(x + 18, y, MEANING[truth], "foot")]
        x += 36 + len(MEANING[truth]) * 12 * SANS
    return tag("g", "".join(parts), class_="legend")


def arrow_head(x: float, y: float, dx: float, dy: float) -> str:
    """A head whose point is at (x, y), of an arrow that goes in the direction (dx, dy)."""
    length = hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    back_x, back_y = x - 9 * ux, y - 9 * uy
    corners = [(x, y), (back_x - 4 * uy, back_y + 4 * ux), (back_x + 4 * uy, back_y - 4 * ux)]
    return tag("path", d="M" + "L".join(f"{cx:.1f} {cy:.1f}" for cx, cy in corners) + "Z", class_="head")


def cross(x: float, y: float) -> str:
    """A cross where a message is lost."""
    return tag("path", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10", class_="cross")


SIZE, SMALL = 12.5, 12.0  # fonts: captions; boxes of lanes
LINE, SLOT = 15.0, 17.0  # heights of a line in a box, and of the end of a message
LOOP_WIDTH, NUMBER_WIDTH, CAPTION_WIDTH, TRUTH_WIDTH = 38.0, 28.0, 160.0, 17.0
LANES_WIDTH, NARROWEST, WIDEST = 720.0, 144.0, 285.0  # of all lanes together, of one
LIFE = 16.0  # from the left of a lane to its line
BESIDE, PADDING, CHANNEL = 9.0, 10.0, 14.0  # from a line to its boxes, within a box, from a box to the next line
MARK = -4.0  # from a line to the box of a crash, a start or a decision
EDGE = 14.0
FIRST = 14.0  # from the top of a row to the first thing in it
HEADER = 30.0
NAME_COLUMNS = 24  # of a property, written upwards
FIELD_LINES = 4  # lines of one field at most
REMARK_COLUMNS = 21  # of a remark on a property: the width of the caption and of the space right of it
LINKS = ("cut", "heal")


@dataclass(frozen=True)
class LaneBox:
    """A box of a lane: `kind` is crash, start, decide, marked, note or changes.

    The lines are pairs (name of the field, words). The name is empty except for the first line of a field.
    """

    kind: str
    lines: tuple[tuple[str, str], ...]
    whole: str
    top: float

    @property
    def height(self) -> float:
        """The height in pixels, without the space below."""
        return len(self.lines) * LINE + (6 if self.kind == "changes" else 5)


@dataclass(frozen=True)
class LinkBand:
    """Links that broke or healed in a step, or the connection of a note."""

    kind: str
    pairs: tuple[tuple[str, str], ...]
    y: float


@dataclass(frozen=True)
class StepRow:
    """The place of a step. `ends` maps the messages that end in it to heights, `sends` maps lanes to their sendings.

    Words on messages are in the gaps between lanes. Two ends never have the same place at a lane, or in a gap.
    """

    step: TraceStep
    top: float
    height: float
    caption: tuple[str, ...]
    remarks: tuple[str, ...]
    ends: dict[int, float]
    bands: tuple[LinkBand, ...]
    blocks: dict[str, tuple[LaneBox, ...]]
    sends: dict[str, float]

    @property
    def line(self) -> float:
        """The height of the first event of the step."""
        return self.top + FIRST

    def at(self, lane: str) -> float:
        """The height of the events of a lane in this step: below the words of the messages that arrive."""
        return self.sends.get(lane, self.line)


class PictureLayout:
    """The layout of one trace's picture; `top` is the height of its heading."""

    def __init__(self, trace: Trace, top: float) -> None:
        self.trace = trace
        self.messages: list[MessageLife] = messages_of(trace)
        peers = [name for step in trace.steps for d in step.events for name in (d.lane, d.peer) if name is not None]
        self.lanes = tuple(dict.fromkeys((*trace.lanes, *peers))) or ("model",)
        self.properties = tuple(dict.fromkeys(name for step in trace.steps for name in step.truth))
        self.left = LOOP_WIDTH if trace.loop is not None else EDGE
        self.lanes_left = self.left + NUMBER_WIDTH + CAPTION_WIDTH
        most = max(NARROWEST, min(WIDEST, LANES_WIDTH / len(self.lanes)))
        words = [f"{name} {value}" for step in self.trace.steps for name, value in _every_change(self.trace, step)]
        words += [f"m{message.number} {message.text}" for message in self.messages]
        words += [event.text for step in self.trace.steps for event in step.events if event.kind != "note"]
        columns = max([*map(cell_len, words), *map(cell_len, self.lanes)], default=0)
        need = columns * SMALL * MONO + BESIDE + PADDING + CHANNEL + 1
        self.lane_width = round(max(NARROWEST, min(most, need)))
        self.truths_left = self.lanes_left + len(self.lanes) * self.lane_width + 6
        self.width = self.truths_left + len(self.properties) * TRUTH_WIDTH + EDGE
        names = max((min(NAME_COLUMNS, cell_len(name)) for name in self.properties), default=0)
        self.top = max(top + HEADER, names * SMALL * BOLD + 12)  # the names are right of the heading, not below it
        self.rows: tuple[StepRow, ...] = tuple(self._rows())
        self.bottom = self.rows[-1].top + self.rows[-1].height

    def life(self, lane: str) -> float:
        """The distance of a lane's line from the left."""
        return self.lanes_left + self.lanes.index(lane) * self.lane_width + LIFE

    def box(self, lane: str, block: LaneBox) -> tuple[float, float, float, float]:
        """The left, the top, the right and the bottom of the box of a block."""
        left = self.life(lane) + (BESIDE if block.kind in ("changes", "note") else MARK)
        columns = max(cell_len(f"{name} {words}" if name else words) for name, words in block.lines)
        return left, block.top, left + columns * SMALL * MONO + PADDING, block.top + block.height

    @property
    def box_columns(self) -> int:
        """Columns of text in a box."""
        return columns_in(self.lane_width - BESIDE - PADDING - CHANNEL, SMALL, MONO)

    def _rows(self) -> Iterator[StepRow]:
        top = self.top
        ends = defaultdict(list)
        for message in self.messages:
            if message.ended is not None:
                ends[message.ended].append(message)
        for step in self.trace.steps:
            row = self._row(step, top, ends[step.number])
            yield row
            top += row.height

    def _row(self, step: TraceStep, top: float, ending: list[MessageLife]) -> StepRow:
        columns = columns_in(CAPTION_WIDTH - 14, SIZE, SANS)
        caption = tuple(wrapped(step.caption, columns, 5))
        remarks = tuple(line for turn in turns(self.trace, step) for line in wrapped(turn, REMARK_COLUMNS, 3))
        heights, sends = self._ends(top + FIRST, ending)
        sending = [sends.get(message.sender, top + FIRST) for message in self.messages if message.sent == step.number]
        low = max([top + FIRST - 4, *(height + FIRST for height in heights.values()), *(y + 5 for y in sending)])
        bands: list[LinkBand] = []
        for kind, pairs in _linked(step):
            low = low + SLOT if bands or heights else top + FIRST
            bands.append(LinkBand(kind, pairs, low))
        low += 14 if any(band.kind != "between" for band in bands) or (bands and sending) else 8
        blocks = {lane: tuple(self._blocks(step, lane, low)) for lane in self.lanes}
        low = max([low, *(block.top + block.height for stack in blocks.values() for block in stack)])
        words = top + 9 + 16 * len(caption) + 14 * len(remarks)
        return StepRow(
            step, top, max(low, words, top + 24) + 7 - top, caption, remarks, heights, tuple(bands), blocks, sends
        )

    def _ends(self, top: float, ending: list[MessageLife]) -> tuple[dict[int, float], dict[str, float]]:
        """The heights of the ends of messages, from `top` down, and of the sendings of their receivers.

        A sending is below every label beside its lane: the label of a message that stays under way begins there.
        """
        heights = {}
        slots: Counter[str | int] = Counter()
        for message in ending:
            place = self.lanes.index(message.receiver)
            gap = place - 1 if self.lanes.index(message.sender) <= place else place
            slot = max(slots[message.receiver], slots[gap])
            slots[message.receiver] = slots[gap] = slot + 1
            heights[message.number] = top + SLOT * slot
        beside = {lane: (lane, place - 1, place) for place, lane in enumerate(self.lanes) if slots[lane]}
        return heights, {lane: top + SLOT * max(slots[key] for key in keys) + 4 for lane, keys in beside.items()}

    def _blocks(self, step: TraceStep, lane: str, top: float) -> Iterator[LaneBox]:
        """The boxes of a lane, from the top down."""
        columns = self.box_columns
        for event in step.events:
            words = _event_label(step, event)
            if event.lane == lane and words is not None:
                kind, remarks = words
                lines = tuple(("", part) for part in wrapped(remarks, columns, FIELD_LINES))
                block = LaneBox(kind, lines, remarks, top)
                yield block
                top += block.height + 4
        changed = list(changes(self.trace, step, lane))
        if changed:
            yield LaneBox("changes", tuple(_lines(changed, columns)), _whole(lane, step), top)


def _lines(changed: list[tuple[str, str]], columns: int) -> Iterator[tuple[str, str]]:
    """One line for each field, and more lines for a long one."""
    for name, value in changed:
        label = wrapped(name, max(4, columns - 4), 1)[0]
        rest = columns - cell_len(label) - 1
        if cell_len(value) <= rest or rest >= 12:
            first, *rest_lines = wrapped(value, max(4, rest), 1 if cell_len(value) <= rest else FIELD_LINES)
            yield label, first
        else:
            yield label, ""
            rest_lines = wrapped(value, columns - 1, FIELD_LINES)
        yield from (("", " " + rest_line) for rest_line in rest_lines)


def _event_label(step: TraceStep, event: DiagramEvent) -> tuple[str, str] | None:
    """The kind and the text of a mark or a note; None for other drawings, and for a note equal to the caption."""
    if event.kind in ("crash", "start", "decide"):
        return event.kind, event.text
    if event.kind == "note" and event.text != step.caption:
        return ("marked", event.text[1:-1]) if is_marked(event.text) else ("note", event.text)
    return None


def _linked(step: TraceStep) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Links of a step as cut or healed; the pair of a note on two lanes is `between`."""
    for kind in LINKS:
        pairs = tuple((d.lane, d.peer or d.lane) for d in step.events if d.kind == kind)
        if pairs:
            yield kind, pairs
    between = tuple((d.lane, d.peer) for d in step.events if d.kind == "note" and d.peer not in (None, d.lane))
    if between:
        yield "between", tuple((lane, peer) for lane, peer in between if peer is not None)


def _every_change(trace: Trace, step: TraceStep) -> Iterator[tuple[str, str]]:
    for lane in step.changed:
        yield from changes(trace, step, lane)


def _whole(lane: str, step: TraceStep) -> str:
    """All fields of a lane, for the title of its changes."""
    fields = step.lanes.get(lane, {})
    values = [f"{name} = {show(value)}" for name, value in fields.items()]
    return "\n".join([f"{lane} after step {step.number}", *values])
