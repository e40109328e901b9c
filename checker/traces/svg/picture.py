"""The picture of a trace: lanes with time going down, messages as arrows from sending to arrival.

`picture` makes one `<svg>` element. Every page and every document with a picture of a trace uses it. Rules:

- The row of a step has the id `step-7` and the attribute `data-step`; the group of its contents has `data-step` too. A
  message is a group with the id `m3`, `data-message`, `data-sent` and `data-ended`. The classes are those of
  `picture.svg.css`.
- The order from the back to the front is: rows, lines of lanes, contents of rows, arrows, words on messages. A box
  therefore never hides an arrow.
- A colour is never the only sign: a lost message ends in a cross, a crash has its word, each truth value has a shape.
- A shortened text is complete in a title. A browser shows the title at the pointer.
"""

from collections.abc import Iterator
from importlib.resources import files

from rich.cells import cell_len

from checker.html_text import escaped
from checker.job import Verdict
from checker.traces.summary import NOT_SHOWN, about, claim, finding
from checker.traces.svg.arrows import Arrows, band_drawn
from checker.traces.svg.layout import (
    BOLD,
    EDGE,
    LIFE,
    LINE,
    LINKS,
    NAME_COLUMNS,
    NUMBER_WIDTH,
    SANS,
    SIZE,
    SMALL,
    TRUTH_WIDTH,
    LaneBox,
    PictureLayout,
    StepRow,
    arrow_head,
    box,
    columns_in,
    legend,
    line,
    shortened,
    tag,
    text,
    title,
    truth_sign,
    wrapped,
)
from checker.traces.trace import Trace, Truth

FOOT = 42.0  # from the lowest row to the first line below the names of the lanes
ABOUT_LINES = 12  # lines of one paragraph of the caption below the picture

STYLE = (files(__package__ or "checker.traces.svg") / "picture.svg.css").read_text(encoding="utf-8")


def picture(
    trace: Trace, *, heading: bool = True, selected: int | None = None, prefix: str = "", styled: bool = True
) -> str:
    """One `<svg>` element, without a newline at the end.

    `heading` adds the finding above the picture and the bounds below it. `selected` is the number of a step to mark.
    `prefix` precedes every id, for a document with several pictures. A page that includes `STYLE` sets `styled` to
    False.
    """
    return _Picture(trace, heading=heading, selected=selected, prefix=prefix).whole(styled=styled)


class _Picture:
    def __init__(self, trace: Trace, *, heading: bool, selected: int | None, prefix: str) -> None:
        self._trace, self._selected, self._prefix = trace, selected, prefix
        self._heading = list(_heading(trace, PictureLayout(trace, 0).truths_left)) if heading else []
        top = sum(height for _, _, _, height in self._heading) + (EDGE if heading else 4)
        self._places = PictureLayout(trace, top)
        self._arrows = Arrows(self._places, prefix)

    def whole(self, *, styled: bool) -> str:
        """The element."""
        places = self._places
        foot = list(self._foot(places.bottom + FOOT))
        height = places.bottom + FOOT + 16 * len(foot)
        parts = [
            tag("title", escaped(f"{self._trace.job}: {self._trace.headline}")),
            *([f"<style>{STYLE}</style>"] if styled else []),
            box(0, 0, places.width, height, "paper", 0),
            *self._remarks_above(),
            *(self._back(row) for row in places.rows),
            *self._lanes(),
            *self._loop(),
            *(self._step(row) for row in places.rows),
            *self._arrows.shafts(),
            *self._arrows.labels(),
            *foot,
        ]
        width = places.width
        return tag(
            "svg",
            "\n" + "\n".join(parts) + "\n",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {round(width)} {round(height)}",
            width=round(width),
            height=round(height),
            role="img",
            class_="quorate-trace",
        )

    # -- above and below -------------------------------------------------------------------------------------

    def _remarks_above(self) -> Iterator[str]:
        low = 0.0
        for class_, words, whole, height in self._heading:
            low += height
            yield tag("text", title(whole) + escaped(words), x=EDGE, y=low, class_=class_)

    def _foot(self, low: float) -> Iterator[str]:
        truths = [truth for truth in Truth if any(truth in step.truth.values() for step in self._trace.steps)]
        if truths:
            yield legend(EDGE, low, truths)
        columns = columns_in(self._places.width - 2 * EDGE, SMALL, SANS)
        low += 16 if truths else 0
        for words in wrapped(f"Shown: {NOT_SHOWN}.", columns, 3):
            yield text(EDGE, low, words, "foot")
            low += 16
        for name, words in about(self._trace) if self._heading else ():
            whole = f"{name}: {words}"
            for part in wrapped(whole, columns, ABOUT_LINES):
                yield tag("text", title(whole) + escaped(part), x=EDGE, y=low, class_="about")
                low += 16

    # -- rows and lanes --------------------------------------------------------------------------------------

    def _back(self, row: StepRow) -> str:
        number = row.step.number
        classes = ["row", "even" if number % 2 == 0 else "odd"]
        classes += ["turn"] if self._turns_bad(row) else []
        classes += ["selected"] if number == self._selected else []
        return tag(
            "rect",
            id=f"{self._prefix}step-{number}",
            data_step=number,
            x=self._places.left - 2,
            y=row.top,
            width=self._places.width - self._places.left - 4,
            height=row.height,
            class_=" ".join(classes),
        )

    def _turns_bad(self, row: StepRow) -> bool:
        """Whether a property begins to fail in a step, or the step has the finding."""
        before = self._trace.steps[row.step.number - 1].truth if row.step.number else {}
        fails = (name for name, truth in row.step.truth.items() if truth is Truth.FAILS)
        ends = row.step.number == self._trace.depth and self._trace.kind is not None
        return ends or any(before.get(name) is not Truth.FAILS for name in fails)

    def _lanes(self) -> Iterator[str]:
        places = self._places
        for lane in places.lanes:
            x = places.life(lane)
            for top, bottom, up in self._spans(lane):
                yield line(x, top, x, bottom, "life" if up else "life down")
            name = shortened(lane, columns_in(places.lane_width - LIFE - 14, SIZE, BOLD))
            width = cell_len(name) * SIZE * BOLD + 14
            for y in (places.top - 25, places.bottom + 4):
                parts = [title(lane), box(x - 10, y, width, 20, "lane-box", 4), text(x - 2, y + 14, name, "lane-name")]
                yield tag("g", "".join(parts), class_="lane")
        for place, name in enumerate(places.properties):
            x, y = places.truths_left + (place + 0.5) * TRUTH_WIDTH + 4, places.top - 6
            class_name = "property found" if name == self._trace.prop else "property"
            words = title(name) + escaped(shortened(name, NAME_COLUMNS))
            yield tag("text", words, class_=class_name, transform=f"translate({x:.1f} {y:.1f}) rotate(-90)")

    def _spans(self, lane: str) -> Iterator[tuple[float, float, bool]]:
        """The spans of a lane, up or down, as (top, bottom, up)."""
        turns = [
            (row.at(lane), event.kind == "start")
            for row in self._places.rows
            for event in row.step.events
            if event.lane == lane and event.kind in ("crash", "start")
        ]
        at_first = self._trace.steps[0].lanes.get(lane, {}).get("state")
        top, up = self._places.top - 6, not (turns and turns[0][1]) and at_first != "down"
        for y, is_up in turns:
            yield top, y, up
            top, up = y, is_up
        yield top, self._places.bottom + 6, up

    def _loop(self) -> Iterator[str]:
        """A bracket around the steps that repeat for ever, with an arrow back to the first of them."""
        first, last = self._trace.loop, self._trace.depth
        if first is None or first >= last:
            return
        left, right = 18.0, self._places.left - 4
        rows = self._places.rows
        top, low = rows[first + 1].top + 6, rows[last].top + rows[last].height - 6
        path = f"M{right} {low:.1f}H{left}V{top:.1f}H{right - 5}"
        middle = (top + low) / 2
        turned = f"translate({left - 4} {middle:.1f}) rotate(-90)"
        words = tag("text", "repeats for ever", transform=turned, text_anchor="middle")
        yield tag("g", tag("path", d=path) + arrow_head(right + 1, top, 1, 0) + words, class_="loop")

    # -- the contents of a row ------------------------------------------------------------------------------

    def _step(self, row: StepRow) -> str:
        places, number = self._places, row.step.number
        x = places.left + NUMBER_WIDTH - 10
        anchor = tag("a", text(x, row.top + 18, str(number), "number"), href=f"#{self._prefix}step-{number}")
        parts = [title(f"step {number}: {row.step.caption}"), anchor]
        low = row.top + 18
        for words in row.caption:
            parts.append(text(x + 10, low, words, "caption"))
            low += 16
        for words in row.remarks:
            parts.append(text(x + 10, low, words, "told bad" if self._turns_bad(row) else "told"))
            low += 14
        parts += [*self._dots(row), *(band_drawn(self._places, band) for band in row.bands)]
        parts += [self._block(lane, block) for lane, stack in row.blocks.items() for block in stack]
        for place, name in enumerate(places.properties):
            if name in row.step.truth:
                x = places.truths_left + (place + 0.5) * TRUTH_WIDTH
                parts.append(truth_sign(x, row.top + 14, row.step.truth[name], name))
        return tag("g", "".join(parts), class_="step", data_step=number)

    def _dots(self, row: StepRow) -> Iterator[str]:
        """The dots of the lanes that act in a step: at an arrival, at a sending, or at the top of the row."""
        busy = {lane for lane in row.step.changed if lane not in row.sends} if row.step.number else set()
        marked = {d.lane for d in row.step.events if d.kind not in ("lost", "removed", "send", "deliver", *LINKS)}
        spots = {(lane, row.line) for lane in busy | marked}
        arrived = {d.message: d.lane for d in row.step.events if d.kind == "deliver" and d.message is not None}
        spots |= {(lane, row.ends[message]) for message, lane in arrived.items() if message in row.ends}
        for lane, y in sorted(spots):
            yield tag("circle", cx=self._places.life(lane), cy=y, r=3.6, class_="dot")

    def _block(self, lane: str, block: LaneBox) -> str:
        x, top, right, bottom = self._places.box(lane, block)
        parts = [title(block.whole), box(x, top, right - x, bottom - top, "", 3)]
        for place, (name, words) in enumerate(block.lines):
            label = tag("tspan", escaped(name), class_="field") + " " if name else ""
            inside = label + escaped(words)
            y = block.top + LINE * (place + 1) - 1.5
            parts.append(tag("text", inside, x=x + 5, y=y, xml_space="preserve"))
        return tag("g", "".join(parts), class_=f"block {block.kind}", data_lane=lane)


def _heading(trace: Trace, width: float) -> Iterator[tuple[str, str, str, float]]:
    """The lines above the picture, as (class, words of the line, words of the paragraph, height of the line)."""
    bad = " bad" if trace.verdict not in (None, Verdict.PASSED) else ""
    rows = [
        (f"headline{bad}", trace.headline, 19.0, BOLD, 2),
        ("finding", finding(trace), 12.5, BOLD, 5),
        ("claim", claim(trace), 13.5, SANS, 8),
    ]
    for class_, words, size, ratio, most in (row for row in rows if row[1]):
        for place, part in enumerate(wrapped(words, columns_in(width - 2 * EDGE, size, ratio), most)):
            yield class_, part, words, size + (12 if place == 0 else 5)
