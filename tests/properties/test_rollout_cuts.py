"""Twenty roll-outs, with each run cut off at each of its levels: no cell is SAFE that is UNSAFE without the cut.

A search that a limit ended at a depth has explored the levels up to that depth, and the violations in them. So a cut
run is made from the whole run. One test compares runs made that way with runs that were really cut.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from checker.engine import Limits
from checker.rollout import PlanRequest, plan, read_folder
from checker.rollout.inputs.folders import Folder
from checker.rollout.orders import Way
from checker.rollout.runs import RunResult, SafetyVerdict, run_within
from checker.rollout.scenarios import Question, RunSpec
from checker.scenario import ScenarioError

ENOUGH = 30_000  # states of a run; a run that needs more counts as unfinished
Cells = dict[tuple[Question, bool], SafetyVerdict]

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


def request_for(
    old: tuple[int, ...], new: tuple[int, ...], order: tuple[int, ...], leader: int, faults: int
) -> PlanRequest:
    """Return a request in one way of working: the table of all ways comes after the cells and adds nothing to them."""
    return PlanRequest(folder(old), folder(new), order, leader, faults, how=Way.ONE_BY_ONE)


@cache
def _explored(text: str) -> RunResult | ScenarioError:
    try:
        return run_within(_asked[text], Limits(states=ENOUGH))
    except ScenarioError as error:  # an opening that is impossible
        return error


_asked: dict[str, RunSpec] = {}


def whole(spec: RunSpec) -> RunResult:
    """Return the run without a cut. Raises ScenarioError for an impossible opening."""
    text = spec.text + str(sorted(spec.stage.texts.items()))
    _asked[text] = spec
    ran = _explored(text)
    if isinstance(ran, ScenarioError):
        raise ran
    return ran if ran.spec == spec else replace(ran, spec=spec)


def cut_off(ran: RunResult, depth: int) -> RunResult:
    """Return the run, cut off at the end of the level of this depth."""
    if depth >= ran.depth or (ran.outcome is SafetyVerdict.UNSAFE and ran.found and ran.found.depth <= depth):
        return ran
    return replace(
        ran, outcome=SafetyVerdict.OPEN, depth=depth, states=sum(ran.levels[: depth + 1]), found=None,
        stuck=None, looking=(),
        exhausted=False, levels=ran.levels[: depth + 1],
    )  # fmt: skip


def cells(request: PlanRequest, cuts: dict[int, int]) -> tuple[Cells, list[RunResult]]:
    """Return the cells of a plan whose run number n is cut off at the depth `cuts[n]`, and all of its runs."""
    made: list[RunResult] = []

    def run(spec: RunSpec, _: float) -> RunResult:
        ran = whole(spec)
        made.append(cut_off(ran, cuts[len(made)]) if len(made) in cuts else ran)
        return made[-1]

    direct = plan(request, run).direct
    return {(q, faulty): direct.answer(q, faulty=faulty).outcome for q in Question for faulty in (False, True)}, made


def each_cut(made: list[RunResult]) -> Iterator[dict[int, int]]:
    """Yield every run and each of its levels, one at a time."""
    for number, ran in enumerate(made):
        for depth in range(ran.depth):
            yield {number: depth}


@pytest.mark.parametrize(("old", "new", "order", "leader", "faults"), ROLLOUTS)
def test_no_cut_makes_a_cell_safe_that_is_unsafe(
    old: tuple[int, ...], new: tuple[int, ...], order: tuple[int, ...], leader: int, faults: int
) -> None:
    request = request_for(old, new, order, leader, faults)
    without, made = cells(request, {})
    unsafe = {key for key, outcome in without.items() if outcome is SafetyVerdict.UNSAFE}
    for cut in each_cut(made):
        after, _ = cells(request, cut)
        assert not [key for key in unsafe if after[key] is SafetyVerdict.SAFE], cut


def test_the_roll_outs_are_of_both_kinds() -> None:
    unsafe = sum(SafetyVerdict.UNSAFE in cells(request_for(*each), {})[0].values() for each in ROLLOUTS)
    assert 5 <= unsafe <= 15


def test_the_cells_are_the_same_where_every_way_is_compared() -> None:
    for each in ROLLOUTS[3], ROLLOUTS[10]:
        one_way = request_for(*each)
        assert cells(replace(one_way, how=None), {})[0] == cells(one_way, {})[0]


def test_a_run_that_is_cut_off_is_as_one_made_from_the_whole_run() -> None:
    _, runs = cells(request_for((1,), (1, 2, 3), (2, 3, 1), 1, 0), {})
    for ran in runs:
        for depth in range(0, ran.depth, 3):
            really, made = run_within(ran.spec, Limits(depth=depth)), cut_off(ran, depth)
            assert (really.outcome, really.states, really.complete) == (made.outcome, made.states, made.complete)
            assert (really.found is None, really.stuck) == (made.found is None, made.stuck)
