"""Random schedules of whole ensembles: every invariant is checked in every state of a run.

This is a simulation, in addition to the exhaustive runs: the ensembles are larger, with every fault together, and each
step is a random one of the possible moves. It proves nothing; it covers sizes that exhaustive search cannot reach. A
schedule is a seed and a weight for each action, so hypothesis shrinks a failing run to few faults, and the report
contains the command to repeat it.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import TRIVIAL, Finding, Model, Move, Property, Read, Row, Rule
from checker.engine.semantics import fire
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.properties import ENSEMBLE_PROPERTIES
from spec.effects import DiskOperation
from spec.election.channel import ChannelRules
from spec.quorum import View, hierarchical_view, majority_view
from spec.txn import format_zxid
from spec.variants import Variant
from spec.zab.packets import QuorumPacket, described
from spec.zab.state import Append, ZabRules

MOST_STEPS = 300
RARE = {
    "crash": 0.1, "cut": 0.1, "partition": 0.1, "disconnect": 0.1, "give up": 0.1, "rebroadcast": 0.1, "heal": 0.2,
    "ping": 0.2, "client sync": 0.2, "lose leader": 0.5, "lose quorum": 0.5, "restart": 0.5, "client write": 0.5,
}  # fmt: skip
"""The weights of rare actions; the others have weight 1. Without them the budgets would be spent too early."""
BUDGETED = ("crash", "cut", "partition", "disconnect", "client write")
WEIGHED = ("receive", "sync", "apply", "elect", "client write", "crash", "restart", "disconnect", "lose leader")
"""The actions whose weights a schedule varies: the slow servers, and the early events."""


# -- Ensembles and schedules ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """The random choice of moves, by the weights of their actions and by the seed.

    In a calm schedule faults and writes wait until little else is left to do: there are more reigns, each with writes.
    In the others they occur in the middle of other steps.
    """

    seed: int
    weights: tuple[tuple[str, float], ...] = ()
    calm: bool = False

    def weight(self, action: str) -> float:
        budgeted = action in BUDGETED and self.calm
        return RARE.get(action, 1.0) * dict(self.weights).get(action, 1.0) * (0.1 if budgeted else 1.0)


RULES = ZabRules()
VIEWS: dict[str, View] = {
    "three": majority_view([1, 2, 3]),
    "four": majority_view([1, 2, 3, 4]),
    "five": majority_view([1, 2, 3, 4, 5]),
    "three and an observer": majority_view([1, 2, 3], [4]),
    "four and an observer": majority_view([1, 2, 3, 4], [5]),
    "five in three groups": hierarchical_view({1: [1, 2], 2: [3, 4], 3: [5]}),
}


def setup_of(view: View, budgets: Budgets, zab: ZabRules = RULES, **more: Any) -> Setup:
    """An ensemble whose servers all have one file, because the invariants assume equal views."""
    file = File("zoo.cfg", view)
    members = tuple(Member(sid, file) for sid in sorted(view.members))
    return Setup(
        **{"members": members, "grain": Grain.ORACLE, "channels": ChannelRules(capacity=1, merge_repeats=True), **more},
        budgets=budgets,
        zab=zab,
        variants=zab.variants,
    )


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    """Any ensemble of three to five voters, with any faults, at any grain that is fast enough."""
    view = VIEWS[draw(st.sampled_from(list(VIEWS)))]
    fine = len(view.members) == 3 and draw(st.booleans())
    faults = ("crashes", "restarts", "cuts", "partitions", "heals", "disconnects", "syncs", "pings")
    counts = {name: draw(st.integers(0, 2)) for name in faults}
    if fine:
        counts |= {name: draw(st.integers(0, 1)) for name in ("early_timeouts", "notification_timeouts")}
    else:
        counts["elections"] = draw(st.integers(2, 4))
    budgets = Budgets(writes=draw(st.integers(1, 4)), **counts)
    commits_take_time = draw(st.booleans())
    made = setup_of(view, budgets, ZabRules(draw(st.booleans()), commits_take_time))
    late = draw(st.sets(st.sampled_from(sorted(view.members)), max_size=1))
    return replace(
        made,
        members=tuple(replace(member, late=member.sid in late) for member in made.members),
        prologue=(Prologue(made.sids),) if not late and draw(st.booleans()) else (),
        grain=Grain.FINE if fine else Grain.ORACLE,
        clients_anywhere=draw(st.booleans()),
        discovery_in_one_step=not fine and draw(st.booleans()),
    )


weights = st.fixed_dictionaries({action: st.sampled_from([1.0, 0.2, 5.0]) for action in WEIGHED})
schedules = st.builds(
    lambda seed, given_weights, calm: Schedule(seed, tuple(given_weights.items()), calm),
    st.integers(0, 2**32 - 1),
    weights,
    st.booleans(),
)


# -- The simulation ------------------------------------------------------------------------------------------


@dataclass
class Memory:
    """The last result of every function of a model: one step changes little, so the rest is not computed again."""

    model: Model
    shown: dict[Read, tuple[Any, Any]] = field(default_factory=dict)
    answers: dict[str, tuple[list[Any], Any]] = field(default_factory=dict)

    def moves(self, row: Row) -> list[Move]:
        """The moves in the order of `semantics.successors`, before their guards are evaluated."""
        made = [self._ask(rule, partial(_listed, rule), row) for rule in self.model.rules]
        return [move for moves in made for move in moves]

    def answer(self, prop: Property, row: Row) -> Any:
        """The value of the property in this state."""
        answer = self._ask(prop, prop.check, row)
        return TRIVIAL if answer is _NEVER else answer

    def _ask(self, asker: Rule | Property, function: Callable[..., Any], row: Row) -> Any:
        seen = [self._shown(read, row) for read in asker.reads]
        if any(value is None and read.projection is not None for value, read in zip(seen, asker.reads, strict=True)):
            return _NEVER
        name = f"{type(asker).__name__} {asker.name}"
        last = self.answers.get(name)
        if last is None or any(one is not other for one, other in zip(last[0], seen, strict=True)):
            last = self.answers[name] = (seen, function(*seen))
        return last[1]

    def _shown(self, read: Read, row: Row) -> Any:
        value = row[self.model.index[read.column]]
        if read.projection is None:
            return value
        last = self.shown.get(read)
        if last is None or last[0] is not value:
            last = self.shown[read] = (value, read.projection(value))
        return last[1]


_NEVER: tuple[()] = ()
"""The result of a function whose projections say "never"."""


def _listed(rule: Rule, *seen: Any) -> list[Move]:
    return list(rule.moves(*seen) or ())


@dataclass
class Run:
    """The result of one schedule: the moves, the finding that ended it, if any, and the examined invariants."""

    schedule: Schedule
    moves: list[Move] = field(default_factory=list)
    broken: tuple[Property, Finding] | None = None
    examined: Counter[str] = field(default_factory=Counter)

    def report(self, setup: Setup) -> str:
        """The finding, the way to repeat the run, and its moves, a line each."""
        assert self.broken is not None
        prop, finding = self.broken
        lines = [
            f"{prop.name} is violated after {len(self.moves)} steps: {finding.clause}",
            *(f"    {name}: {value}" for name, value in finding.values),
            f"  by {self.schedule}",
            f"  in {setup}",
            *(f"  {number:3} {_told(move)}" for number, move in enumerate(self.moves, start=1)),
        ]
        return "\n".join(lines)


def simulate(model: Model, schedule: Schedule) -> Run:
    chance, memory, run = random.Random(schedule.seed), Memory(model), Run(schedule)
    row: Row | None = model.initial()
    while row is not None:
        for prop in model.properties:
            answer = memory.answer(prop, row)
            run.examined[prop.name] += answer is not TRIVIAL
            if isinstance(answer, Finding):
                run.broken = prop, answer
                return run
        row = None if len(run.moves) == MOST_STEPS else _next(memory, row, run, chance)
    return run


def _next(memory: Memory, row: Row, run: Run, chance: random.Random) -> Row | None:
    """One of the possible moves, drawn by its weight; None if no move is possible."""
    moves = memory.moves(row)
    while moves:
        drawn = chance.choices(range(len(moves)), [run.schedule.weight(move.action) for move in moves])[0]
        move = moves.pop(drawn)
        after = fire(memory.model, row, move)
        if after is not None:
            run.moves.append(move)
            return after
    return None


def model_of(setup: Setup) -> Model:
    return ensemble("a simulation", setup, ENSEMBLE_PROPERTIES.build_defaults(setup))


def runs(setup: Setup, seeds: range) -> Iterator[Run]:
    model = model_of(setup)
    for seed in seeds:
        chance = random.Random(seed)
        drawn = tuple((action, chance.choice([1.0, 0.2, 5.0])) for action in WEIGHED)
        yield simulate(model, Schedule(seed, drawn, calm=seed % 4 == 3))


def _told(move: Move) -> str:
    return " ".join([move.action, *(_word(argument) for argument in move.arguments)])


def _word(argument: Any) -> str:
    if isinstance(argument, QuorumPacket):
        return described(argument)
    if isinstance(argument, Append):
        return f"log {format_zxid(argument.txn.zxid)}"
    return type(argument).__name__ if isinstance(argument, DiskOperation) else str(argument)


def hold(setup: Setup, chosen: list[Schedule]) -> None:
    """Check that no run by these schedules violates an invariant. One model serves several, as it is slow to make."""
    model = model_of(setup)
    for schedule in chosen:
        run = simulate(model, schedule)
        if run.broken is not None:
            pytest.fail(run.report(setup), pytrace=False)


a_few = st.lists(schedules, min_size=1, max_size=4)


@given(setups(), a_few)
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_every_invariant_holds_in_every_state_of_a_random_schedule(setup: Setup, chosen: list[Schedule]) -> None:
    hold(setup, chosen)


@pytest.mark.slow
@given(setups(), a_few)
@settings(max_examples=2000, deadline=None, print_blob=True)
def test_every_invariant_holds_in_new_random_schedules_each_time(setup: Setup, chosen: list[Schedule]) -> None:
    hold(setup, chosen)


# -- The value of the simulation ------------------------------------------------------------------------------

EVERYTHING = Budgets(
    crashes=2, restarts=2, cuts=1, partitions=1, heals=1, disconnects=1, elections=4, writes=3, syncs=1, pings=1
)


def test_schedules_go_deep_and_get_everywhere() -> None:
    """Every action happens, and every invariant is examined in some run."""
    setup = setup_of(VIEWS["three"], EVERYTHING, ZabRules(True, True), clients_anywhere=True)
    done = list(runs(setup, range(60)))
    actions = {move.action for run in done for move in run.moves}
    silent = {name: sum(not run.examined[name] for run in done) for name in ENSEMBLE_PROPERTIES.defaults(setup)}

    assert actions == {
        "elect", "receive", "sync", "apply", "client write", "client sync", "ping", "lose leader", "lose quorum",
        "crash", "restart", "cut", "partition", "heal", "disconnect",
    }  # fmt: skip
    assert sum(len(run.moves) for run in done) / len(done) > 50
    assert max(silent.values()) < len(done), silent


def test_a_seed_is_all_that_it_takes_to_repeat_a_run() -> None:
    setup = setup_of(VIEWS["three"], EVERYTHING)
    one, again = (list(runs(setup, range(5))) for _ in range(2))

    assert [run.moves for run in one] == [run.moves for run in again]


CAUGHT = (
    Variant.TREE_BEHIND_LOG,
    Variant.LOGGED_AFTER_UPTODATE,
    Variant.NEWLEADER_ACK_BEFORE_SYNC,
    Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK,
    Variant.QUEUE_SURVIVES_SHUTDOWN,
    Variant.NO_TRUNCATION,
    Variant.LOG_OUT_OF_ORDER,
    Variant.COMMIT_BEFORE_QUORUM,
)
"""The variants that a few dozen schedules of three servers detect."""


@pytest.mark.parametrize("variant", CAUGHT, ids=lambda variant: variant.value)
def test_it_can_fail(variant: Variant) -> None:
    """The same simulation of a deliberately wrong specification finds a violation, and reports how to repeat it."""
    setup = setup_of(VIEWS["three"], EVERYTHING, ZabRules(variants=frozenset({variant})))
    broken = next((run for run in runs(setup, range(100)) if run.broken is not None), None)

    assert broken is not None
    report = broken.report(setup)
    assert "is violated after" in report
    assert f"seed={broken.schedule.seed}" in report
    assert f"{len(broken.moves):3} {_told(broken.moves[-1])}" in report
