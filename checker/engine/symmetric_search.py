"""The symmetric search: states that differ in names alone count as one, where the model says that names do not matter.

A fingerprint is the same for a state and all renamed ones (`move_kernels.fingerprint_of_class`), so that the first of
them is kept. Rules:

- Breadth first, the depth of a state is that of the full search, since a renamed run is as long as the run.
- A model whose rules compare names declares an over-approximation: rules that list every move of the model, and more,
  and compare no names. That system is searched instead. If it has no violation, the model has none. If it has one, the
  model has none at a lesser depth, and a renamed path to it may be a run of the model: this is tried. So are the paths
  to states where premises hold. Other premises that hold there, and actions that fire, are looked for in the model.
- The model declares its symmetry. Before a search the declaration is compared with the model in some states: those of
  random walks, where a renamed state must have the renamed successors and the same answers.
- Liveness needs the whole graph: such a model is searched in full. So is one with an over-approximation and a property
  of states without a successor, which may have one there.

Source: Ip and Dill, "Better verification through symmetry" (1996).
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from checker.engine import asymmetry, search
from checker.engine.discovery import Discovery, Step
from checker.engine.model import TRIVIAL, AnswerError, Kind, Model, ModelError, Move, Renaming, Row, Symmetry
from checker.engine.result import CUT_SHORT, Exploration, Limits, Stop, coverage_of
from checker.engine.semantics import answer_if_any, finding_at, possible, rebuild, renamed
from checker.engine.steps import step_properties

WALKS, LONGEST = 40, 100
"""The random walks of the comparison, and their steps at most."""
MOST_COMPARED = 300
PREMISE_RUNS = 8
"""The runs of an over-approximation that are tried as runs of the model, for each property; each ends with different
answers of the properties."""
FIRST_PART = 20_000
"""The states of the first part of a model that is compared with its over-approximation."""
_IDENTITY = Renaming({}, lambda value: value)
_Following = tuple[Move, Row]
Covered = frozenset[tuple[str, str]]
"""Actions and premises; `result.coverage_of` is one."""


class _Symmetric:
    """The frontier of one state of each class of renamed ones.

    Raises ModelError, also if a comparison of some states shows that the model is not as symmetric as it declares. A
    model without a usable symmetry is explored in full, and `Exploration.reduction` has the reason. A checkpoint is one
    of the symmetric search; a search in full after it is not saved.
    """

    def explore(self, request: search.Request) -> Exploration:
        model, limits, began = request.model, request.limits, time.monotonic()
        if not isinstance(request.workers, int):
            raise ModelError("--reduce symmetric does not run on a cluster; write --reduce none, or --workers N")

        def left() -> Limits:
            return limits.less(time.monotonic() - began)

        def in_full(limits: Limits) -> Exploration:
            full = search.BREADTH_FIRST.explore(replace(request, limits=limits, checkpoint=None))
            is_lost = request.checkpoint is not None and full.stop in CUT_SHORT
            return replace(full, notes=["the search in full after the symmetric one is not kept"] if is_lost else [])

        symmetry, why = model.symmetry, reason_against_symmetry(model)
        if why is not None or symmetry is None:
            return replace(search.BREADTH_FIRST.explore(request), reduction=f"none is possible: {why}")
        explored = searched(model, symmetry)
        compared = compare(model, symmetry, request.seed)
        premise_runs = 0 if explored is model else PREMISE_RUNS
        asked = replace(request, model=explored, limits=left())
        run = search.by_threads(asked, symmetric=True, premise_runs=premise_runs)
        assumption = f"renamed states were taken as alike, and {compared:,} were compared"
        result = replace(run.run(), assumption=assumption, classes_of=explored)
        exact, further = answers_of_model(model, symmetry, result, run.premises, in_full, left)
        summary = (
            f"states that differ in names count once ({1 + len(symmetry.renamings)} renamings; {compared} compared)"
        )
        summary += ("" if explored is model else ", in an over-approximation") + further
        before = result.seconds_before
        seconds = before + time.monotonic() - began
        return replace(exact, limits=limits, seconds=seconds, seconds_before=before, reduction=summary)


SYMMETRIC: search.Frontier = _Symmetric()


def reason_against_symmetry(model: Model) -> str | None:
    """The reason why renamed states of a model cannot count once, if there is one."""
    if model.symmetry is None:
        return "the model declares no symmetry"
    if model.liveness:
        return f"the property {model.liveness[0].name!r} is one of liveness, which needs the whole graph of states"
    if model.finals and model.symmetry.wider is not None:
        name = model.finals[0].name
        return f"the property {name!r} is one of states without a successor, which an over-approximation may lack"
    return None


def searched(model: Model, symmetry: Symmetry) -> Model:
    """The model that a symmetric search explores: the over-approximation, if there is one."""
    return model if symmetry.wider is None else model.with_rules(symmetry.wider)


def answers_of_model(
    model: Model,
    symmetry: Symmetry,
    found: Exploration,
    premises: Mapping[str, list[list[int]]],
    in_full: Callable[[Limits], Exploration],
    left: Callable[[], Limits],
) -> tuple[Exploration, str]:
    """The answers of a model, from those of the system that was searched, and what was searched in addition, in words.

    `premises` has runs to states with the premise of a property, as ordinals. `in_full` searches the model, and `left`
    has the limits that are left.
    """
    if symmetry.wider is None:
        return found, ""
    runs = {name: _run_of(model, symmetry, discovery) for name, discovery in found.found.items()}
    discoveries = {name: run for name, run in runs.items() if run is not None}

    def rest() -> Limits:
        return left().less(work=found.work)

    if found.stop not in CUT_SHORT:
        if len(discoveries) < len(runs):
            return in_full(rest()), "; then explored in full, as a path found there is no run of the model"
        missing = frozenset() if found.violations else coverage_of(found) - _covered_by(model, symmetry, premises)
        if (full := _unless_covered(missing, in_full, rest)) is not None:
            return full, "; then explored in full, as an action fires or a premise holds there alone"
    return replace(found, model=model, found=discoveries), ""


def _covered_by(model: Model, symmetry: Symmetry, premises: Mapping[str, list[list[int]]]) -> Covered:
    """The actions and premises of those runs that are runs of the model, perhaps renamed."""
    explored, covered = searched(model, symmetry), set[tuple[str, str]]()
    for name, runs in premises.items():
        for ordinals in runs:
            if ("premise", name) in covered:
                break
            path = _renamed_run(model, symmetry, rebuild(explored, ordinals))
            covered |= {("action", step.move.action) for step in path if step.move is not None}
            covered |= {("premise", premise) for premise in _premises(model, path[-1].row)} if path else set()
    return frozenset(covered)


def _premises(model: Model, row: Row) -> list[str]:
    """The properties of states whose premise holds in a row."""
    of_steps = step_properties(model.properties)
    of_states = [prop for prop in model.properties if prop not in of_steps]
    return [prop.name for prop in of_states if answer_if_any(model, prop, row) is not TRIVIAL]


def _unless_covered(
    missing: Covered, in_full: Callable[[Limits], Exploration], left: Callable[[], Limits]
) -> Exploration | None:
    """A search of the model that ends before it covers these actions and premises; None if it covers all of them.

    Actions fire and premises hold early, so that a small part of the model is mostly enough.
    """
    states = FIRST_PART
    while missing:
        limits = left()
        is_last = limits.states is not None and limits.states <= states
        part = in_full(limits if is_last else replace(limits, states=states))
        if missing <= coverage_of(part):
            return None
        if is_last or part.stop is not Stop.STATES:
            return part
        states *= 4
    return None


def _run_of(model: Model, symmetry: Symmetry, found: Discovery) -> Discovery | None:
    path = _renamed_run(model, symmetry, found.path)
    finding = finding_at(model, found.prop, path[-1].row) if path else None
    return None if finding is None else replace(found, finding=finding, path=path)


def _renamed_run(model: Model, symmetry: Symmetry, path: Iterable[Step]) -> tuple[Step, ...]:
    """The run of a model through the rows of a path, with the first renaming under which there is one; () if none."""
    rows = [step.row for step in path]
    runs = (_path(model, [renamed(model, to, row) for row in rows]) for to in (_IDENTITY, *symmetry.renamings))
    return next((run for run in runs if run), ())


def _path(model: Model, rows: list[Row]) -> tuple[Step, ...]:
    """The run of a model through these rows; () if there is none."""
    if rows[0] not in model.first_rows:
        return ()
    path = [Step(None, rows[0])]
    for before, after in pairwise(rows):
        move = next((move for move, row in possible(model, before) if row == after), None)
        if move is None:
            return ()
        path.append(Step(move, after))
    return tuple(path)


def compare(model: Model, symmetry: Symmetry, seed: int) -> int:
    """Compare states of random walks with renamed ones; return how many. Raises ModelError at the first difference."""
    chance, compared, explored = random.Random(seed), set[Row](), searched(model, symmetry)
    for _ in range(WALKS):
        row = chance.choice(explored.first_rows) if len(explored.first_rows) > 1 else explored.initial()
        for _ in range(LONGEST):
            if len(compared) >= MOST_COMPARED:
                return len(compared)
            try:
                following = possible(explored, row)
                if row not in compared:
                    compared.add(row)
                    _compare(explored, row, following, chance.choice(symmetry.renamings))
                    if explored is not model:
                        _compare_moves(model, row, following)
            except AnswerError:
                break  # the search finds the state, and the run to it
            if not following:
                break
            row = chance.choice(following)[1]
    return len(compared)


def _compare(model: Model, row: Row, following: Iterable[_Following], to: Renaming) -> None:
    other = renamed(model, to, row)
    expected = [(move, renamed(model, to, after)) for move, after in following]
    found = possible(model, other)
    if _counted(expected) != _counted(found):
        safe, safe_found = _but_violations(model, expected), _but_violations(model, found)
        if _counted(safe) != _counted(safe_found):
            raise asymmetry.of_moves(model, to, safe, safe_found)
    for prop in model.properties:
        answers = answer_if_any(model, prop, row), answer_if_any(model, prop, other)
        if type(answers[0]) is not type(answers[1]):
            raise asymmetry.of_property(model, to, prop, (row, other), answers)


def _compare_moves(model: Model, row: Row, following: Iterable[_Following]) -> None:
    expected_moves = {(move.action, after) for move, after in following}
    for move, after in possible(model, row):
        if (move.action, after) not in expected_moves:
            raise asymmetry.of_wider_rules(row, move)


def _counted(following: Iterable[tuple[Move, Row | None]]) -> Counter[tuple[str, Row | None]]:
    return Counter((move.action, after) for move, after in following)


def _but_violations(model: Model, following: Iterable[_Following]) -> list[asymmetry.Following]:
    """Moves with the states after them; None for one that violates a property: a search ends there."""

    def is_violation(row: Row) -> bool:
        return any(prop.kind is Kind.ALWAYS and finding_at(model, prop, row) is not None for prop in model.properties)

    return [(move, None if is_violation(after) else after) for move, after in following]
