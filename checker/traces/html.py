"""A trace as one self-contained HTML page: the finding, the picture, a list of the steps, the trace as data.

Rules of this module:

- The page loads nothing, and its own policy forbids it to. It reads as a document without JavaScript; with JavaScript,
  arrow keys walk the steps. The address `#step-7` leads to a step either way.
- The list shows the changes of each step, in a column for each lane; the whole state is in a `details` element below.
- The page holds the trace as an ITF file in the element `itf`, so that the page can be replayed.
"""

from collections.abc import Iterator, Sequence
from importlib.resources import files

from checker.engine.values import show
from checker.html_text import escaped
from checker.job import Verdict
from checker.traces.itf import for_page, to_itf
from checker.traces.markdown import SIGNS
from checker.traces.summary import MEANING, NOT_SHOWN, REPLAY, about, claim, finding, messages_of, short_pieces, turns
from checker.traces.svg.picture import picture
from checker.traces.trace import Trace, TraceStep, Truth

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
HERE = files(__package__ or "checker.traces")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
{heading}
</header>
<figure>
{picture}
</figure>
<p class="keys">Arrow keys walk the steps; a click on one marks it, and the address leads to it.</p>
<h2>Steps</h2>
<div class="scroll">
{steps}
</div>
{messages}
<p>Shown: {not_shown}. To replay it: {replay}.</p>
<script type="application/json" id="itf">
{itf}</script>
<script>
{script}</script>
</body>
</html>
"""


def to_html(trace: Trace) -> str:
    """The page, with a newline at the end."""
    return PAGE.format(
        policy=POLICY,
        title=escaped(f"{trace.headline}: {trace.job}"),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        heading="\n".join(_heading(trace)),
        picture=picture(trace, heading=False),
        steps=_steps(trace),
        messages=_messages(trace),
        not_shown=escaped(NOT_SHOWN),
        replay=escaped(REPLAY),
        itf=for_page(to_itf(trace)),
        script=(HERE / "page.js").read_text(encoding="utf-8"),
    )


def _heading(trace: Trace) -> Iterator[str]:
    bad = ' class="bad"' if trace.verdict not in (None, Verdict.PASSED) else ""
    yield f"<h1{bad}>{escaped(trace.headline)}</h1>"
    if finding(trace):
        yield f'<p class="finding">{escaped(finding(trace))}</p>'
    yield f'<p class="claim">{escaped(claim(trace))}</p>'
    rows = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(words)}</dd>" for name, words in about(trace))
    yield f"<dl>{rows}</dl>"


def _steps(trace: Trace) -> str:
    names = list(dict.fromkeys(name for step in trace.steps for name in step.truth))
    head = "".join(f"<th>{escaped(lane)}</th>" for lane in ("step", "what happens", *trace.lanes, *names))
    rows = "\n".join(_step(trace, step, names) for step in trace.steps)
    return f'<table class="steps">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _step(trace: Trace, step: TraceStep, names: Sequence[str]) -> str:
    number = step.number
    bad = " bad" if any(truth is Truth.FAILS for truth in step.truth.values()) else ""
    remarks = "".join(f'<div class="told{bad}">{escaped(line)}</div>' for line in turns(trace, step))
    cells = [f'<td class="number"><a href="#step-{number}">{number}</a></td>']
    cells.append(f"<td>{escaped(step.caption)}{remarks}{_whole(step)}</td>")
    for lane in trace.lanes:
        changed = "".join(f"<div>{escaped(piece)}</div>" for piece in short_pieces(trace, step, lane))
        cells.append(f'<td class="lane">{changed}</td>')
    cells += [_truth(step, name) for name in names]
    return f'<tr id="state-{number}" data-step="{number}">{"".join(cells)}</tr>'


def _whole(step: TraceStep) -> str:
    """The state after a step, in a closed `details` element."""
    values = {
        lane: ", ".join(f"{name} = {show(value)}" for name, value in step.lanes[lane].items()) for lane in step.lanes
    }
    rows = "".join(f"<tr><th>{escaped(lane)}</th><td>{escaped(text)}</td></tr>" for lane, text in values.items())
    return f"<details><summary>whole state</summary><table>{rows}</table></details>" if rows else ""


def _truth(step: TraceStep, name: str) -> str:
    truth = step.truth.get(name)
    if truth is None:
        return '<td class="truth"></td>'
    kind, title = truth.value.replace(" ", "-"), escaped(f"{name}: {MEANING[truth]}")
    return f'<td class="truth {kind}" title="{title}">{SIGNS[truth]} {MEANING[truth]}</td>'


def _messages(trace: Trace) -> str:
    items = "".join(f"<li>{escaped(message.sentence)}</li>" for message in messages_of(trace))
    if not items:
        return ""
    return f"<h2>Messages</h2>\n<details><summary>every message in full</summary><ul>{items}</ul></details>"
