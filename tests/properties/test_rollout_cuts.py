"""Twenty roll-outs, with each run cut off at each of its levels: no cell is SAFE that is UNSAFE without the cut.

A search that a limit ended at a depth has explored the levels up to that depth, and the violations in them. So a cut
run is made from the whole run. One test compares runs made that way with runs that were really cut.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from checker.engine import Limits
from checker.rollout import Wish, plan, read_folder
from checker.rollout.folders import Folder
from checker.rollout.runs import Outcome, Ran, run_within
from checker.rollout.scenarios import Asked, Question, scenario_of
from checker.scenario import ScenarioError

ENOUGH = 30_000  # states of a run; a run that needs more counts as unfinished
Cells = dict[tuple[Question, bool], Outcome]

# Members before, members after (`-` marks an observer), the order, the server that leads first, and the faults.
ROLLOUTS = [
    ((1,), (1, 2, 3), (2, 3, 1), 1, 0),
    ((1,), (1, 2, 3), (1, 2, 3), 1, 0),
    ((1,), (1, 2, 3), (3, 1, 2), 1, 0),
    ((1,), (1, 2), (2, 1), 1, 0),
    ((1,), (1, 2), (1, 2), 1, 1),
    ((1, 2), (1, 2, 3), (3, 1, 2), 2, 0),
    ((1, 2), (1, 2, 3), (1, 2, 3), 2, 0),
    ((1, 2), (1, 3), (3, 1, 2), 2, 0),
    ((1, 2), (1, 3), (2, 3, 1), 2, 0),
    ((1, 2), (3, 4), (3, 4, 1, 2), 2, 0),
    ((1, 2), (1,), (2, 1), 2, 0),
    ((1, 2), (1,), (1, 2), 2, 0),
    ((1, 2), (1, 2, -3), (3, 1, 2), 2, 0),
    ((1, 2, -3), (1, 2, 3), (1, 2, 3), 2, 0),
    ((1, 2, -3), (1, 2, 3), (3, 1, 2), 2, 0),
    ((1, 2, 3), (1, 2, -3), (3, 1, 2), 3, 0),
    ((1, 2, 3), (1, 2), (3, 1, 2), 3, 0),
    ((1, 2, 3), (1,), (2, 3, 1), 3, 0),
    ((1, 2, 3), (1,), (1, 2, 3), 3, 0),
    ((1, 2, 3), (3,), (3, 1, 2), 3, 0),
]


@cache
def folder(members: tuple[int, ...]) -> Folder:
    lines = [f"server.{abs(sid)}=zoo{abs(sid)}:2888:3888{':observer' if sid < 0 else ''}\n" for sid in members]
    with tempfile.TemporaryDirectory() as name:
        Path(name, "zoo.cfg").write_text("tickTime=2000\n" + "".join(lines), encoding="utf-8")
        return read_folder(Path(name))


@cache
def _explored(text: str) -> Ran | ScenarioError:
    try:
        return run_within(_asked[text], Limits(states=ENOUGH))
    except ScenarioError as error:  # an opening that is impossible
        return error


_asked: dict[str, Asked] = {}


def whole(asked: Asked) -> Ran:
    """Return the run without a cut. Raises ScenarioError for an impossible opening."""
    text = scenario_of(asked) + str(sorted(asked.stage.texts.items()))
    _asked[text] = asked
    ran = _explored(text)
    if isinstance(ran, ScenarioError):
        raise ran
    return ran if ran.asked == asked else replace(ran, asked=asked)


def cut_off(ran: Ran, depth: int) -> Ran:
    """Return the run, cut off at the end of the level of this depth."""
    if depth >= ran.depth or (ran.outcome is Outcome.UNSAFE and ran.found and ran.found.depth <= depth):
        return ran
    return replace(
        ran, outcome=Outcome.OPEN, depth=depth, states=sum(ran.levels[: depth + 1]), found=None, stuck=None, looking=(),
        exhausted=False, levels=ran.levels[: depth + 1],
    )  # fmt: skip


def cells(wish: Wish, cuts: dict[int, int]) -> tuple[Cells, list[Ran]]:
    """Return the cells of a plan whose run number n is cut off at the depth `cuts[n]`, and all of its runs."""
    made: list[Ran] = []

    def run(asked: Asked, _: float) -> Ran:
        ran = whole(asked)
        made.append(cut_off(ran, cuts[len(made)]) if len(made) in cuts else ran)
        return made[-1]

    direct = plan(wish, run).direct
    return {(q, faulty): direct.cell(q, faulty=faulty).outcome for q in Question for faulty in (False, True)}, made


def each_cut(made: list[Ran]) -> Iterator[dict[int, int]]:
    """Yield every run and each of its levels, one at a time."""
    for number, ran in enumerate(made):
        for depth in range(ran.depth):
            yield {number: depth}


@pytest.mark.parametrize(("old", "new", "order", "leader", "faults"), ROLLOUTS)
def test_no_cut_makes_a_cell_safe_that_is_unsafe(
    old: tuple[int, ...], new: tuple[int, ...], order: tuple[int, ...], leader: int, faults: int
) -> None:
    wish = Wish(folder(old), folder(new), order, leader, faults)
    without, made = cells(wish, {})
    unsafe = {key for key, outcome in without.items() if outcome is Outcome.UNSAFE}
    for cut in each_cut(made):
        after, _ = cells(wish, cut)
        assert not [key for key in unsafe if after[key] is Outcome.SAFE], cut


def test_the_roll_outs_are_of_both_kinds() -> None:
    wishes = [Wish(folder(old), folder(new), order, leader, faults) for old, new, order, leader, faults in ROLLOUTS]
    unsafe = sum(Outcome.UNSAFE in cells(wish, {})[0].values() for wish in wishes)
    assert 5 <= unsafe <= 15


def test_a_run_that_is_cut_off_is_as_one_made_from_the_whole_run() -> None:
    _, runs = cells(Wish(folder((1,)), folder((1, 2, 3)), (2, 3, 1), 1, 0), {})
    for ran in runs:
        for depth in range(0, ran.depth, 3):
            really, made = run_within(ran.asked, Limits(depth=depth)), cut_off(ran, depth)
            assert (really.outcome, really.states, really.complete) == (made.outcome, made.states, made.complete)
            assert (really.found is None, really.stuck) == (made.found is None, made.stuck)
