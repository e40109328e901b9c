"""The differences between two explorations of one model: the equality of the engines, for tests and `--engine both`."""

from __future__ import annotations

from checker.engine.result import Exploration


def disagreements(one: Exploration, other: Exploration) -> list[str]:
    """A line for each figure that should be equal and is not; empty if the two agree.

    For liveness, the goals, the examined part and the depths of findings are compared, but not the loops. Each engine
    may choose among several parents of a state, so `new` in the coverage and the paths of findings may differ, but not
    the lengths of the paths.
    """
    figures = [
        ("why it ended", one.stop, other.stop),
        ("new states by level", one.levels, other.levels),
        ("transitions", one.transitions, other.transitions),
        ("states without a successor", one.deadlocks, other.deadlocks),
        ("fired by action", _fired(one), _fired(other)),
        ("evaluations", one.evaluations, other.evaluations),
        ("depth of findings", _depths(one), _depths(other)),
        ("examined for liveness", one.liveness, other.liveness),
    ]
    return [f"{what}: {a} ({one.engine}) is not {b} ({other.engine})" for what, a, b in figures if a != b]


def _fired(exploration: Exploration) -> dict[str, int]:
    fired = {action: coverage.fired for action, coverage in exploration.coverage.items() if coverage.fired}
    return dict(sorted(fired.items()))


def _depths(exploration: Exploration) -> dict[str, int]:
    return {name: found.depth for name, found in sorted(exploration.found.items())}
