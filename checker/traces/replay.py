"""The replay of a saved trace on the model that it was made from, to check that it has the same end.

At each step the replay takes the successor that has the recorded action and arguments and the recorded lanes. The
presenter hides some state (the content of channels, for example), so there may be several such successors; all are
followed, and one that arrives is enough. Rules of this module: no part of the trace is trusted, and the finding at the
end is evaluated again; a mismatch names the step, the recorded value and the present value. A run that never reaches
its goal must close its loop, row by row and not only in the displayed lanes; it must be fair, and it must have no goal.
The check that no goal is still reachable examines at most `checker.engine.liveness.lasso.REMAINS` states.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from checker.command import CommandError, ExitCode
from checker.engine.discovery import Discovery, Step
from checker.engine.liveness import lasso
from checker.engine.model import NO_EXCEPTION, Kind, Move, Property, Row
from checker.engine.semantics import finding_at, possible
from checker.engine.values import brief, canonical, show, to_json
from checker.job import Job, Json
from checker.traces.trace import Lanes, Trace, TraceStep, changed_fields, lanes_of, trace_of, values_of, walk_of

LISTED = 6  # the number of possible moves named in a message

Path = tuple[Step, ...]


class ReplayError(CommandError):
    """A trace does not run on this model as it was recorded.

    `step` is the number of the step that differs, `recorded` the step in the trace, `now` the step of the model.
    """

    exit_code = ExitCode.SCENARIO

    def __init__(self, step: int, recorded: str, now: str) -> None:
        super().__init__(f"the trace does not replay: in step {step} it says {recorded}, and the model says {now}")
        self.step, self.recorded, self.now = step, recorded, now


@dataclass(frozen=True)
class ReplayResult:
    """A trace that ran as recorded. `path` has the model's own values, `found` is its finding evaluated again, if any.

    `trace` is made of these two, and has nothing of the file. `verified` lists the verified statements, one line each.
    """

    trace: Trace
    path: Path
    found: Discovery | None
    verified: tuple[str, ...] = ()


def replay(trace: Trace, job: Job) -> ReplayResult:
    """Run a trace on the job that its source describes. Raises ReplayError where they differ."""
    prop = None if trace.kind is None else _property(trace, job, trace.kind)
    firsts, lanes = job.model.first_rows, trace.steps[0].lanes
    paths: list[Path] = [(Step(None, row),) for row in firsts if not changed_fields(lanes, lanes_of(job, row))]
    if not paths:
        _compare_lanes(0, lanes, [lanes_of(job, row) for row in firsts])
    for step in trace.steps[1:]:
        paths = _advance(job, step, paths)
    if prop is None:
        return ReplayResult(walk_of(job, paths[0]), paths[0], None, ("every step can happen",))
    if prop.kind.is_liveness:
        return _never(trace, job, prop, paths)
    discovery = _find(trace, job, prop, paths)
    return ReplayResult(trace_of(job, discovery), discovery.path, discovery, ("the finding is made anew at the end",))


def _property(trace: Trace, job: Job, kind: Kind) -> Property:
    for prop in (*job.model.properties, NO_EXCEPTION):
        if prop.name == trace.prop and prop.kind is kind:
            return prop
    names = ", ".join(f"{prop.name} ({prop.kind.value})" for prop in job.model.properties) or "no property"
    raise ReplayError(trace.depth, f"that {trace.prop} ({kind.value}) was found", f"it has {names}")


def _advance(job: Job, step: TraceStep, paths: Iterable[Path]) -> list[Path]:
    """The extensions of the paths by the recorded step, one for each row that they reach."""
    further: dict[Row, Path] = {}
    moves: list[Move] = []
    views: list[Lanes] = []
    for path in paths:
        for move, row in possible(job.model, path[-1].row):
            moves.append(move)
            if not _same_move(move, step):
                continue
            lanes = lanes_of(job, row)
            views.append(lanes)
            if not changed_fields(step.lanes, lanes):
                further.setdefault(row, (*path, Step(move, row)))
    if not views:
        recorded = _move_text(step.action or "", step.arguments)
        raise ReplayError(step.number, f"{recorded} happens", _possible(moves))
    if not further:
        _compare_lanes(step.number, step.lanes, views)
    return list(further.values())


def _same_move(move: Move, step: TraceStep) -> bool:
    return move.action == step.action and canonical(to_json(move.arguments)) == canonical(list(step.arguments))


def _move_text(action: str, arguments: Iterable[Json]) -> str:
    return " ".join([action, *(brief(argument) for argument in arguments)])


def _possible(moves: list[Move]) -> str:
    texts = list(dict.fromkeys(_move_text(move.action, to_json(move.arguments)) for move in moves))
    if not texts:
        return "nothing can happen there"
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return f"only these can: {'; '.join(texts[:LISTED])}{more}"


def _compare_lanes(number: int, recorded: Lanes, shown: list[Lanes]) -> None:
    """Raise ReplayError for the closest of the states that the model shows, unless one is as recorded."""
    closest = min(shown, key=lambda lanes: sum(map(len, changed_fields(recorded, lanes).values())))
    for lane, names in changed_fields(recorded, closest).items():
        raise ReplayError(number, *(_fields(lane, names, lanes) for lanes in (recorded, closest)))


def _fields(lane: str, names: Iterable[str], lanes: Lanes) -> str:
    fields = lanes.get(lane, {})
    texts = (f"{name}={show(fields[name])}" if name in fields else f"no {name}" for name in names)
    return f"{lane} has {', '.join(texts)}"


def _find(trace: Trace, job: Job, prop: Property, paths: Iterable[Path]) -> Discovery:
    """The finding at the end of a path that is as recorded, or ReplayError with one that is not."""
    instead = "it finds nothing"
    for path in paths:
        finding = finding_at(job.model, prop, path[-1].row)
        if finding is None:
            continue
        # The values of an exception have its line, which an edit of the file moves.
        is_same = prop is NO_EXCEPTION or _canonical(values_of(finding)) == _canonical(trace.values)
        if finding.clause == trace.clause and is_same:
            return Discovery(prop, finding, trace.depth, path)
        instead = _clause(finding.clause, values_of(finding))
    raise ReplayError(trace.depth, f"{prop.name}: {_clause(trace.clause, trace.values)}", instead)


def _never(trace: Trace, job: Job, prop: Property, paths: Iterable[Path]) -> ReplayResult:
    """A run that never reaches a goal, or ReplayError with its error."""
    since, wrong = trace.since or 0, "there is none"
    for path in paths:
        flaw = lasso.flaw(job.model, prop, path, trace.loop, since)
        if flaw is not None:
            wrong = flaw
            continue
        finding = lasso.describe_lasso(job.model, prop, path, trace.loop, since)
        if (finding.clause, _canonical(values_of(finding))) == (trace.clause, _canonical(trace.values)):
            depth = since if prop.kind is Kind.RECOVERABLE else trace.loop or 0
            discovery = Discovery(prop, finding, depth, path, trace.loop, since)
            return ReplayResult(trace_of(job, discovery), path, discovery, tuple(_verified(job, discovery)))
        wrong = _clause(finding.clause, values_of(finding))
    raise ReplayError(trace.depth, f"{prop.name}: {_clause(trace.clause, trace.values)}, with {trace.shape}", wrong)


def _verified(job: Job, found: Discovery) -> Iterator[str]:
    prop, since = found.prop, found.since or 0
    yield f"no state from step {since} on is a goal"
    if found.loop is None:
        yield "nothing can happen at the end"
    elif found.loop < len(found.path) - 1:
        yield f"the last state is that of step {found.loop}, whole"
    if prop.kind is Kind.EVENTUALLY:
        yield "every unit of fairness either cannot happen somewhere in the loop or does happen in it"
        if any(rule.has_strong for rule in job.model.rules):
            yield "every unit of strong fairness either can happen nowhere in the loop or does happen in it"
    else:
        remains = lasso.remains(job.model, prop, found.path[since].row)
        states = f"the {remains.states:,} states" if remains.whole else f"the first {remains.states:,} states of more"
        yield f"no goal is among {states} that step {since} leads to"


def _canonical(values: Iterable[tuple[str, Json]]) -> str:
    return canonical([list(pair) for pair in values])


def _clause(clause: str, values: Iterable[tuple[str, Json]]) -> str:
    return f"{clause} ({', '.join(f'{name} = {show(value)}' for name, value in values)})"
