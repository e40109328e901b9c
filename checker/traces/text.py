"""A trace as plain text, suitable for a document.

The finding is first, then a line for each step with a column for each lane, then every message in full and each lane's
state at the end. Rules of this module:

- A cell holds only the changes of the step; the first line holds everything.
- A message appears by its number when it is sent (`m3->2`: to lane 2), arrives (`gets m3`) or is lost.
- A line under the step marks the beginning of a loop, and the step that closes it.
- Events that a reader must not miss (crashes, starts, cuts, decisions) are between stars.
- A line is one line, and contains nothing that a terminal would obey, whatever the text of a model is.
- No line is wider than `width`, except where the text of a model is. With so many lanes that a column would be narrower
  than `NARROWEST`, changes are listed under each step instead.
"""

import textwrap
from collections.abc import Iterator, Sequence

from checker.engine.values import show
from checker.traces.summary import NOT_SHOWN, claim, finding, messages_of, pieces, truth_lines, turns
from checker.traces.trace import Trace, TraceStep
from spec.text import on_a_line

WIDTH = 110
NARROWEST = 15  # columns of a lane
CAPTION = 32  # columns of a caption at most
CELL_LINES = 12  # lines of a cell at most
PIECE_LINES = 3  # lines of one value at most
GAP = " | "
WHAT = "what happens"


def to_text(trace: Trace, width: int = WIDTH) -> str:
    """The whole trace as text of that width, with a newline at the end."""
    sections = [part(trace, width) for part in (heading, _steps, _messages, _end, _properties)]
    return "\n\n".join("\n".join(map(on_a_line, lines)) for lines in sections if lines) + "\n"


def heading(trace: Trace, width: int) -> list[str]:
    """The finding, its clause and values, the summary of the run, the job, its grain and its bounds."""
    lines_above = [trace.headline, finding(trace), *textwrap.wrap(claim(trace), width, break_on_hyphens=False)]
    about_it = f"{trace.job}; grain: {trace.grain}"
    bounds = textwrap.wrap("bounds: " + "; ".join(trace.bounds), width, subsequent_indent="  ", break_on_hyphens=False)
    return [*(line for line in lines_above if line), about_it, *(bounds if trace.bounds else [])]


# -- the steps -----------------------------------------------------------------------------------------------


def _steps(trace: Trace, width: int) -> list[str]:
    digits = max(len("step"), len(str(trace.depth)))
    captions = min(CAPTION, max(len(WHAT), *(len(step.caption) for step in trace.steps)))
    lanes = trace.lanes
    room = width - digits - captions - len(GAP) * (len(lanes) + 1)
    if lanes and room // len(lanes) >= NARROWEST:
        return list(_table(trace, digits, captions, room))
    return list(_list(trace, digits, width))


def _table(trace: Trace, digits: int, captions: int, room: int) -> Iterator[str]:
    lanes = trace.lanes
    # A lane gets what its longest line needs, or a share of the room if that is too wide.
    share = room // len(trace.lanes)
    needs = [max(len(lane), *(len(" ".join(pieces(step, lane))) for step in trace.steps)) for lane in trace.lanes]
    spare = sum(max(0, share - need) for need in needs)
    wide = sum(1 for need in needs if need > share) or 1
    widths = [digits, captions, *[min(need, share + (spare // wide if need > share else 0)) for need in needs]]
    yield _line(["step".rjust(digits), WHAT, *lanes], widths)
    yield "-+-".join("-" * width for width in widths)
    for step in trace.steps:
        caption = textwrap.wrap(step.caption, captions, break_on_hyphens=False) or [""]
        cells = [[str(step.number).rjust(digits)], caption]
        cells += [_cell(pieces(step, lane), width) for lane, width in zip(lanes, widths[2:], strict=True)]
        for row in range(max(map(len, cells))):
            yield _line([cell[row] if row < len(cell) else "" for cell in cells], widths)
        yield from _turns(trace, step, " " * digits + GAP)


def _list(trace: Trace, digits: int, width: int) -> Iterator[str]:
    indent = " " * (digits + 2)
    for step in trace.steps:
        yield f"{step.number:>{digits}}  {step.caption}"
        for lane in trace.lanes:
            words = pieces(step, lane)
            if words:
                lines = _cell(words, max(NARROWEST, width - len(indent) - len(lane) - 2))
                yield f"{indent}{lane}: {lines[0]}"
                yield from (indent + " " * (len(lane) + 2) + line for line in lines[1:])
        yield from _turns(trace, step, indent)


def _turns(trace: Trace, step: TraceStep, indent: str) -> Iterator[str]:
    yield from (f"{indent}=> {line}" for line in turns(trace, step))


# -- after the steps -----------------------------------------------------------------------------------------


def _messages(trace: Trace, width: int) -> list[str]:
    """Each message in full: its sender and receiver, the step of its sending, and its fate."""
    rows = [
        [f"m{m.number}", f"{m.sender} -> {m.receiver}", m.text, f"{m.start_text},", m.end_text]
        for m in messages_of(trace)
    ]
    if not rows:
        return []
    lengths = [max(len(row[place]) for row in rows) for place in range(4)]
    lengths[2] = max(NARROWEST, min(lengths[2], width - sum(lengths) + lengths[2] - len("arrives in step 100") - 10))
    return ["messages", *("  " + _row(row, lengths) for row in rows)]


def _row(row: Sequence[str], lengths: Sequence[int]) -> str:
    cells = [_cut(cell, length).ljust(length) for cell, length in zip(row, lengths, strict=False)]
    return "  ".join([*cells[:3], f"{cells[3]} {row[4]}"])


def _end(trace: Trace, width: int) -> list[str]:
    lanes = trace.steps[-1].lanes
    name_width = max((len(lane) for lane in lanes), default=0)
    lines = []
    for lane, fields in lanes.items():
        values = [f"{name}={show(value)}" for name, value in fields.items()]
        cell = _cell(values, max(NARROWEST, width - name_width - 4))
        lines += [f"  {(lane if not row else '').ljust(name_width)}  {line}" for row, line in enumerate(cell)]
    return ["at the end", *lines] if lines else []


def _properties(trace: Trace, width: int) -> list[str]:
    """The truth of each property by steps, and the parts of the state that are not shown."""
    truths = truth_lines(trace)
    name_width = max((len(name) for name, _ in truths), default=0)
    lines = [f"  {name.ljust(name_width)}  {words}" for name, words in truths]
    return [*(["properties, by step", *lines, ""] if lines else []), *textwrap.wrap(f"shown: {NOT_SHOWN}", width)]


# -- lines and cells -----------------------------------------------------------------------------------------


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(_cut(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(pieces: Sequence[str], width: int) -> list[str]:
    """Pieces in lines of that width; a piece too long for a line is broken, and shortened if it is very long."""
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + 1 + len(piece) <= width:
            lines[-1] += " " + piece
        else:
            lines += _broken(piece, width)
    if len(lines) > CELL_LINES:
        lines = [*lines[: CELL_LINES - 1], _cut(f"… {len(lines) - CELL_LINES + 1} more lines", width)]
    return lines


def _broken(piece: str, width: int) -> list[str]:
    lines = textwrap.wrap(piece, width, subsequent_indent=" ", break_on_hyphens=False) or [""]
    if len(lines) > PIECE_LINES:
        lines = [*lines[: PIECE_LINES - 1], _cut(lines[PIECE_LINES - 1] + " …" * width, width)]
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
