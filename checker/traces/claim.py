"""What every view for readers says of a trace in words: the claim, the turns of a step, what is not shown.

The claim is a sentence or two that tell the run before its details: the steps in which something was decided, broke,
began or was marked, in the words of their captions, and the last one, where the finding is. Rules of this module:

- Nothing is added to what the trace says: each part of a claim is the caption of a step, and names that step.
- A claim is short: of more than `PARTS` steps the last ones are told, since they are nearest to the finding.
"""

from __future__ import annotations

from collections.abc import Sequence

from checker.traces.pieces import is_marked
from checker.traces.trace import Trace, TraceStep, Truth
from checker.traces.values import show

PARTS = 7
NEAR = 4  # steps at the end that are told where little else is to tell, or where they repeat for ever
TURNING = frozenset({"crash", "start", "cut", "heal", "decide"})  # what a reader must not miss, by its kind
WORDS = {
    Truth.FAILS: "fails",
    Truth.WITNESSED: "is witnessed",
    Truth.HOLDS: "holds again",
    Truth.REACHED: "has its goal",
}
MEANING = {
    Truth.HOLDS: "holds",
    Truth.FAILS: "fails",
    Truth.TRIVIAL: "says nothing",
    Truth.WITNESSED: "witnessed",
    Truth.UNSEEN: "not witnessed",
    Truth.REACHED: "has its goal",
    Truth.OPEN: "wants its goal",
}


def claim(trace: Trace) -> str:
    """The run in short: `step 1: the operator stops server.2; step 6: server.1 elects server.3; ...`."""
    moves = trace.steps[1:]
    told = {step.number for step in moves if _is_turning(step)}
    if len(told) < 2:
        told |= {step.number for step in moves if any(drawn.kind == "note" for drawn in step.drawn)}
    last = NEAR if len(told) < 2 or (trace.loop is not None and trace.loop < trace.depth) else 1
    told |= {step.number for step in moves[-last:]}
    parts = [f"step {number}: {trace.steps[number].caption}" for number in sorted(told)[-PARTS:]]
    if len(told) > PARTS:
        parts.insert(0, "…")
    if trace.loop is not None:
        parts += [f"then {line}" for line in trace.turning(trace.loop) if "repeat" in line or "nothing" in line]
    return "; ".join(parts) or "the run ends where it begins"


def _is_turning(step: TraceStep) -> bool:
    return any(drawn.kind in TURNING or is_marked(drawn.text) for drawn in step.drawn)


def finding(trace: Trace) -> str:
    """The clause, and the values that made it so; nothing for a walk."""
    values = ", ".join(f"{name} = {show(value)}" for name, value in trace.values)
    return f"{trace.clause}: {values}" if values else trace.clause


def about(trace: Trace) -> list[tuple[str, str]]:
    """What was run, as (what, told): the job, its grain, its verdict, its bounds."""
    rows = [("run", trace.job), ("grain", trace.grain)]
    rows += [] if trace.verdict is None else [("verdict", trace.verdict.value)]
    return [*rows, ("bounds", "; ".join(trace.bounds))] if trace.bounds else rows


def turns(trace: Trace, step: TraceStep) -> list[str]:
    """What a reader is told after a step: properties that begin to fail, hold again or are witnessed; and of a loop."""
    before = trace.steps[step.number - 1].truth if step.number else {}
    told = []
    for name, truth in step.truth.items():
        said = truth in (Truth.FAILS, Truth.WITNESSED, Truth.REACHED) or before.get(name) is Truth.FAILS
        if said and truth is not before.get(name) and truth in WORDS:
            told.append(f"{name} {WORDS[truth]}")
    return [*told, *trace.turning(step.number)]


def truth_told(trace: Trace) -> list[tuple[str, str]]:
    """For each property what it says of which steps: `holds in 0, 6-7; says nothing of 1-5; fails in 8`."""
    told = []
    for name in dict.fromkeys(name for step in trace.steps for name in step.truth):
        where: dict[Truth, list[int]] = {}
        for step in trace.steps:
            if name in step.truth:
                where.setdefault(step.truth[name], []).append(step.number)
        told.append((name, "; ".join(f"{MEANING[truth]}: {spans(steps)}" for truth, steps in where.items())))
    return told


def spans(numbers: Sequence[int]) -> str:
    """Ascending numbers: `0, 6-8`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


NOT_SHOWN = (
    "step 0 has every field of a lane, later steps those that change; "
    "of the rest of the state (what a channel holds, say) only messages are shown"
)
REPLAY = "python -m checker replay FILE, with the .itf.json, .html or .py file of this trace"
