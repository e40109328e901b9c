"""Random walks judged a second time: every count of a runner, from runs that the plain engine executes again."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Model
from checker.engine.discovery import Step
from checker.engine.semantics import answer, successors
from checker.swarm.walker import WalkRunner

Path = Sequence[Step]


def counted(runner: WalkRunner, walks: range) -> dict[str, Any]:
    """Return the counts of a runner for these walks, in the form of `recounted`."""
    counts = runner.run(walks.start, len(walks))
    return {
        "walks": counts.walks,
        "steps": counts.transitions,
        "dead": counts.deadlocks,
        "depths": counts.depths,
        "fired": {name: each.fired for name, each in counts.coverage.items() if each.fired},
        "evaluations": {name: (each.states, each.premise) for name, each in counts.evaluations.items()},
        "sightings": {name: tuple(each) for name, each in counts.sightings.items()},
        "local": {name: count for name, count in counts.local_states.items() if count},
    }


def recounted(model: Model, paths: dict[int, Path]) -> dict[str, Any]:
    """Return the counts of walks, by their numbers, with the functions of the model alone.

    The last state of a walk is examined for a deadlock, also at the limit of its steps.
    """
    evaluated, premise, fired = Counter[str](), Counter[str](), Counter[str]()
    sightings: dict[str, tuple[int, int]] = {}
    dead = 0
    for walk, path in paths.items():
        fired.update(step.move.action for step in path[1:] if step.move is not None)
        is_dead = not _alarms(model, path) and not any(True for _ in successors(model, path[-1].row))
        dead += is_dead
        for number, step in enumerate(path):
            ends = is_dead and number == len(path) - 1
            for prop in model.properties:
                if prop.kind is Kind.FINAL and not ends:
                    continue
                said = answer(model, prop, step.row)
                evaluated[prop.name] += 1
                premise[prop.name] += said is not TRIVIAL
                if isinstance(said, Finding):
                    sightings[prop.name] = min((number, walk), sightings.get(prop.name, (number, walk)))
    rows = {step.row for path in paths.values() for step in path}
    return {
        "walks": len(paths),
        "steps": sum(len(path) - 1 for path in paths.values()),
        "dead": dead,
        "depths": dict(Counter(len(path) - 1 for path in paths.values())),
        "fired": dict(fired),
        "evaluations": {p.name: (evaluated[p.name], premise[p.name]) for p in model.properties},
        "sightings": sightings,
        "local": {c.name: len({row[n] for row in rows}) for n, c in enumerate(model.columns)},
    }


def _alarms(model: Model, path: Path) -> bool:
    """Return whether a walk ends at a violation, so that its last state is not examined for a deadlock."""
    last = path[-1].row
    return any(p.kind is Kind.ALWAYS and isinstance(answer(model, p, last), Finding) for p in model.properties)


def paths_of(runner: WalkRunner, walks: range) -> dict[int, Path]:
    """Return the runs of these walks; a step that the plain engine does not have is a ModelError."""
    return {walk: runner.repeat(walk)[0] for walk in walks}
