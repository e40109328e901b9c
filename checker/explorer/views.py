"""A walk as JSON, for the page: its picture, its last state, the truth of each property, and the possible moves.

Rules of this module:

- Values are sent as text, because JavaScript would round large numbers.
- The view of a move has its changes and its target: a state of this walk, a state with a finding, or a state without
  successors. Each next state is computed for that, and its successors only up to the first.
"""

import hashlib
from collections.abc import Iterator, Mapping

from checker.engine.discovery import Discovery
from checker.engine.model import Finding, Kind, Move, Property, Row
from checker.engine.semantics import answer
from checker.engine.values import canonical, show
from checker.explorer.walk import Path, Walks, write_path
from checker.job import DiagramEvent, Job, Json
from checker.scenario.yaml_lines import read_yaml
from checker.traces.summary import FATES, change_text
from checker.traces.svg.picture import picture
from checker.traces.trace import (
    Lanes,
    Trace,
    TraceStep,
    Truth,
    changed_fields,
    lanes_of,
    trace_of,
    truths,
    values_of,
    walk_of,
)

ELSEWHERE = "the whole"  # the lane of a move that neither draws nor changes anything of a lane
SAID = (Truth.FAILS, Truth.WITNESSED, Truth.REACHED)  # the truth values that the list of moves shows


def fingerprint(source: Mapping[str, Json]) -> str:
    """The identity of a job in links: a digest of its source."""
    return hashlib.sha256(canonical(dict(source)).encode()).hexdigest()[:16]


def check_of(trace: Trace) -> str:
    """A digest of the captions and the lanes of a walk; it detects a link of a release with other moves."""
    content = [[step.caption, dict(step.lanes)] for step in trace.steps]
    return hashlib.sha256(canonical(content).encode()).hexdigest()[:12]


def job_view(job: Job, key: str, folder: str, story: Json = None) -> dict[str, Json]:
    """The view of a job; it is the same for all walks. `story` is one that `checker.explorer.stories` has placed."""
    return {
        "key": key,
        "name": job.name,
        "file": str(_scenario(job.source).get("file", "")),
        "folder": folder,
        "about": _about(job.source),
        "grain": job.grain,
        "bounds": list(job.bounds),
        "expected": job.expected.value if job.expected else None,
        "actions": sorted(job.actions),
        "properties": [
            {"name": prop.name, "kind": prop.kind.value, "meaning": prop.meaning} for prop in job.model.properties
        ],
        "refines": job.refinement is not None,
        "story": story,
    }


def _about(source: Mapping[str, Json]) -> str:
    """The description in a scenario; empty if the job does not come from a scenario."""
    text = _scenario(source).get("text")
    content = read_yaml(text, "").value if isinstance(text, str) else None
    return str(content.get("about") or "") if isinstance(content, dict) else ""


def _scenario(source: Mapping[str, Json]) -> Mapping[str, Json]:
    """The source at the end of a chain: the source of a finer run has that of the coarser run as `of`."""
    while isinstance(source.get("of"), Mapping):
        source = source["of"]
    return source


def walk_view(job: Job, key: str, walks: Walks, ordinals: tuple[int, ...]) -> dict[str, Json]:
    """The view of a walk. Raises BadRequestError for a move that is not possible."""
    path = walks.path(ordinals)
    runs = walks.findings(path)
    trace = trace_of(job, runs[0]) if runs else walk_of(job, path)
    row, last = path[-1].row, trace.steps[-1]
    return {
        "job": key,
        "path": list(ordinals),
        "link": link_of(key, ordinals, check_of(trace)),
        # The page has the style and the heading itself.
        "picture": picture(trace, heading=False, selected=trace.depth, prefix="p-", styled=False),
        "lanes": _lanes(last),
        "properties": [_property(job, prop, row, trace) for prop in job.model.properties],
        "findings": [finding_view(job, item) for item in runs],
        "moves": [_move(job, walks, path, last, n, *item) for n, item in enumerate(walks.next(row))],
    }


def link_of(key: str, ordinals: tuple[int, ...], check: str) -> str:
    """The link to a walk; its last part is the check of the end."""
    return f"{key}/{write_path(ordinals)}/{check}"


def finding_view(job: Job, found: Discovery) -> dict[str, Json]:
    """The view of the finding at the end of a run."""
    return {
        "property": found.prop.name,
        "kind": found.prop.kind.value,
        "good": found.prop.kind is Kind.SOMETIMES,
        "headline": trace_of(job, found).headline,
        **answer_view(found.finding),
    }


def answer_view(finding: Finding) -> dict[str, Json]:
    """The clause of a finding, and the values that made it so."""
    return {"clause": finding.clause, "values": [[name, show(value)] for name, value in values_of(finding)]}


def _lanes(step: TraceStep) -> list[Json]:
    """The lanes after a step, with marks on the changed fields; step 0 has no marks."""
    changed = step.changed if step.number else {}
    return [
        {
            "name": lane,
            "fields": [
                {"name": name, "text": value_text(value), "changed": name in changed.get(lane, ())}
                for name, value in fields.items()
            ],
            "gone": [name for name in changed.get(lane, ()) if name not in fields],
        }
        for lane, fields in step.lanes.items()
    ]


def value_text(value: Json) -> str:
    """The value of a field for its card: a record without its braces."""
    text = show(value)
    return text[1:-1] if isinstance(value, dict) and text.startswith("{") else text


def _property(job: Job, prop: Property, row: Row, trace: Trace) -> dict[str, Json]:
    truth = trace.steps[-1].truth[prop.name]
    view: dict[str, Json] = {
        "name": prop.name,
        "kind": prop.kind.value,
        "truth": truth.value,
    }
    result = answer(job.model, prop, row) if truth in SAID else None
    return view | (answer_view(result) if isinstance(result, Finding) else {})


# -- the possible moves -------------------------------------------------------------------------------------


def _move(job: Job, walks: Walks, path: Path, last: TraceStep, ordinal: int, move: Move, after: Row) -> dict[str, Json]:
    effect, _ = effect_view(job, (path[-1].row, last.lanes), move, (after, lanes_of(job, after)))
    truth = truths(job.model, after)
    return {
        "ordinal": ordinal,
        **effect,
        "back_to": next((number for number, step in enumerate(path) if step.row == after), None),
        "last": not walks.next(after),
        "turns": [
            {"property": name, "truth": value.value}
            for name, value in truth.items()
            if value in SAID and (value is Truth.FAILS or last.truth[name] is not value)
        ],
    }


def effect_view(
    job: Job, before: tuple[Row, Lanes], move: Move, after: tuple[Row, Lanes]
) -> tuple[dict[str, Json], tuple[DiagramEvent, ...]]:
    """What a move does between two states, on any walk: for the page, and as events of a picture."""
    events = job.presenter.diagram(before[0], move, after[0])
    changed = changed_fields(before[1], after[1])
    view = {
        "action": move.action,
        "caption": job.presenter.caption(move),
        "lane": next(iter([*(d.lane for d in events), *changed]), ELSEWHERE),
        "changes": list(_changes(changed, before[1], after[1])),
        "drawn": [_message_text(d) for d in events if d.kind in ("send", *FATES)],
    }
    return view, events


def _changes(changed: Mapping[str, tuple[str, ...]], before: Lanes, after: Lanes) -> Iterator[Json]:
    """Each changed field with its value before and after, None for a missing field; only the changes of a record."""
    for lane, names in changed.items():
        old, new = before.get(lane, {}), after.get(lane, {})
        for name in names:
            was = change_text(new.get(name), old[name]) if name in old else None
            would_be = change_text(old.get(name), new[name]) if name in new else None
            yield {"lane": lane, "field": name, "before": was, "after": would_be}


def _message_text(event: DiagramEvent) -> str:
    if event.kind in ("lost", "removed"):
        return f"what {event.lane} has sent{f' to {event.peer}' if event.peer else ''} is {event.kind}: {event.text}"
    word = {"send": "sends to", "deliver": "hears"}[event.kind]
    return f"{event.lane} {word} {event.peer}: {event.text}"
