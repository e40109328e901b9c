"""Where two explorations of one model disagree: what the engines are held to, in tests and by `--engine both`."""

from __future__ import annotations

from checker.engine.result import Exploration


def disagreements(one: Exploration, other: Exploration) -> list[str]:
    """A line for each figure that should be equal and is not; empty if the two agree.

    Of liveness the goals, what was examined and the depths of what was found are compared, not the loops.

    Which of several parents discovers a state is left to each engine, so `new` in the coverage and the paths of
    findings may differ; how long the paths are may not.
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
