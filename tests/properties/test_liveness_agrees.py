"""Random graphs: both engines judge liveness by its definitions, and the runs of their findings are correct."""

import zlib
from dataclasses import replace
from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Discovery,
    Finding,
    Kind,
    Model,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    plain,
    search,
)
from checker.engine.result import disagreements
from checker.job import Job
from checker.present import DefaultPresenter
from checker.traces import read_itf, replay, to_itf, to_mermaid, to_text, trace_of

PLACES = 8


def chance(*key) -> int:
    """Return a pseudo-random number, a function of its key."""
    return zlib.crc32(repr(key).encode())


def random_model(seed: int, units: int, moves: int) -> Model:
    """Return a model of two tokens on a few places, and a rule over both; the functions are drawn from `seed`."""

    def wander(me):
        def list_moves(at):
            return [
                Move(f"go {chance(seed, me, at, n, '?') % units}", (n,), (Send(me, chance(seed, me, at, n) % PLACES),))
                for n in range(chance(seed, me, at) % (moves + 1))
            ]

        return Rule(f"wander {me}", (Read(me),), list_moves, fair=fair_of(me))

    def meet(one, other):
        if chance(seed, one, other, "meet") % 3:
            return None
        return [Move("meet", (), (Send("a", chance(seed, one, other, "a") % PLACES), Send("b", 0)))]

    def check_of(number):
        goals, idle = 1 + chance(seed, number, "goals") % 9, chance(seed, number, "idle") % 3

        def check(one, other):
            answer = chance(seed, number, one, other) % 10
            return Finding("goal") if answer < goals - 1 else TRIVIAL if answer % 3 < idle else None

        return check

    actions = [*(f"go {unit}" for unit in range(units)), "meet"]

    def fair_of(rule):
        named = {action: chance(seed, rule, action, "fair") % 4 for action in actions}
        return {action: "strong" if number == 1 else number > 1 for action, number in named.items()}

    def unfair_of(number):
        return frozenset(action for action in actions if chance(seed, number, action, "unfair") % 3 == 0)

    kinds = [Kind.RECOVERABLE, Kind.EVENTUALLY, Kind.EVENTUALLY, Kind.RECOVERABLE, Kind.EVENTUALLY]
    reads = (Read("a"), Read("b"))
    return Model(
        f"random {seed}",
        (Column("a", 0), Column("b", 0)),
        tuple(Actor(name, (name,), lambda values, to: Outcome((to,))) for name in "ab"),
        (wander("a"), wander("b"), Rule("meet", reads, meet, fair=fair_of("meet"))),
        tuple(Property(f"p{n}", reads, check_of(n), kind, "", unfair_of(n % 3)) for n, kind in enumerate(kinds)),
    )


shapes = st.tuples(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3))


def unit_of(prop, rule, move):
    """The definition of a unit of fairness: a fair action of a rule, unless the property excepts it."""
    return (rule.name, move.action) if rule.fair[move.action] and move.action not in prop.unfair else None


class Plainly:
    """The definitions of liveness by brute force over sets of states, without components or the engines' searches."""

    def __init__(self, model: Model, prop: Property) -> None:
        self.edges = {}
        self.strong = {
            (rule.name, action) for rule in model.rules for action in rule.fair if rule.fair[action] == "strong"
        }
        todo = [model.initial()]
        while todo:
            row = todo.pop()
            if row not in self.edges:
                self.edges[row] = [
                    (unit_of(prop, rule, move), tuple(self.after(row, move)))
                    for rule in model.rules
                    for move in rule.moves(*(row["ab".index(read.column)] for read in rule.reads)) or ()
                ]
                todo += [after for _, after in self.edges[row]]
        said = {row: prop.check(*row) for row in self.edges}
        self.goals = {row for row, what in said.items() if isinstance(what, Finding)}
        self.open = {row for row, what in said.items() if what is None}

    @staticmethod
    def after(row, move):
        changed = {send.actor: send.operation for send in move.sends}
        return [changed.get(name, value) for name, value in zip("ab", row, strict=True)]

    def reach(self, row, within):
        """Return the rows that runs within `within` reach from a row, including that row."""
        seen = {row}
        while more := {after for one in seen for _, after in self.edges[one] if after in within} - seen:
            seen |= more
        return seen

    def recoverable(self) -> bool:
        return all(self.reach(row, self.edges.keys()) & self.goals for row in self.open)

    def eventually(self) -> bool:
        """Whether no fair run begins in an open state and stays among states that are not goals.

        Such a run visits a set of states infinitely often. These states lead to one another. They lie among the states
        in which no unit of some set of strong units can happen, where the run takes each other strong unit that can
        happen; every such set of units is tried. If a smaller set of states admits such a run, their whole component
        among these states does too.
        """
        rest = self.edges.keys() - self.goals
        reached = set().union(*(self.reach(row, rest) for row in self.open))
        able = {row: {unit for unit, _ in self.edges[row]} - {None} for row in reached}
        units = sorted(self.strong & set().union(*able.values()))
        for count in range(len(units) + 1):
            for never in combinations(units, count):
                left = {row for row in reached if able[row].isdisjoint(never)}
                if any(self.may_stay(self.around(row, left)) for row in left):
                    return False
        return True

    def around(self, row, rest):
        """Return the strongly connected component of a row within `rest`."""
        return {other for other in self.reach(row, rest) if row in self.reach(other, rest)}

    def due(self, states):
        """Return the units that a run which visits exactly these states again and again must take."""
        able = [{unit for unit, _ in self.edges[row]} - {None} for row in states]
        return set.intersection(*able) | (set.union(*able) & self.strong)

    def may_stay(self, states) -> bool:
        return self.due(states) <= {unit for row in states for unit, after in self.edges[row] if after in states}


def never_comes_to_its_goal(model: Model, found: Discovery) -> None:
    """Assert each step of a run, and that it never reaches its goal by the definition alone."""
    graph, rows = Plainly(model, found.prop), [step.row for step in found.path]
    moves = list(zip(rows[:-1], rows[1:], [step.move for step in found.path[1:]], strict=True))
    assert rows[0] == model.initial()
    for before, after, _ in moves:
        assert after in {to for _, to in graph.edges[before]}
    assert graph.goals.isdisjoint(rows[found.since :])
    if found.prop.kind is Kind.RECOVERABLE:
        assert rows[found.since] in graph.open
        assert graph.goals.isdisjoint(graph.reach(rows[found.since], graph.edges.keys()))
        assert found.depth == found.since
        assert (graph.edges[rows[-1]] == []) == (found.loop is None)
        return
    assert rows[found.since] in graph.open
    assert found.depth == found.loop
    assert rows[found.loop] == rows[-1]
    taken = {
        unit_of(found.prop, rule, move)
        for before, after, move in moves[found.loop :]
        for rule in model.rules
        for listed in rule.moves(*(before["ab".index(read.column)] for read in rule.reads)) or ()
        if (listed.action, listed.arguments) == (move.action, move.arguments)
        and tuple(graph.after(before, listed)) == after
    }
    assert graph.due(rows[found.loop :]) <= taken


def forced_actions_are_the_fewest(model, prop, forced):
    """With them the property holds, and without any of them it does not; none are named if all do not suffice."""

    def holds(actions):
        rules = [
            replace(rule, fair=rule.fair | {action: rule.fair[action] or True for action in actions})
            for rule in model.rules
        ]
        fairer = replace(prop, unfair=prop.unfair - set(actions))
        return Plainly(model.with_rules(rules), fairer).eventually()

    if forced:
        assert holds(forced)
        assert not any(holds([other for other in forced if other != action]) for action in forced)
    else:
        assert not holds(model.actions)


@settings(max_examples=150, deadline=None)
@given(shapes)
@example((0, 1, 1))  # the actions that are forced do not suffice, and there are two of them
def test_both_engines_judge_as_the_definitions_do_and_show_runs_that_are_what_they_claim(shape):
    model = random_model(*shape)
    by_plain, by_tables = plain.explore(model), search.explore(model)
    assert disagreements(by_plain, by_tables) == []
    for prop in model.properties:
        graph = Plainly(model, prop)
        holds = graph.recoverable() if prop.kind is Kind.RECOVERABLE else graph.eventually()
        assert (prop.name not in by_plain.found) is holds
        assert by_plain.liveness[prop.name].goals == len(graph.goals)
        if prop.kind is Kind.EVENTUALLY and not holds:
            forced_actions_are_the_fewest(model, prop, by_plain.liveness[prop.name].forced)
    for exploration in (by_plain, by_tables):
        for found in exploration.found.values():
            never_comes_to_its_goal(model, found)


@settings(max_examples=40, deadline=None)
@given(shapes)
def test_two_threads_find_what_one_finds_down_to_the_loops(shape):
    model = random_model(*shape)
    one, two = (search.explore(model, workers=workers) for workers in (1, 2))
    assert disagreements(one, two) == []
    assert one.found == two.found


@settings(max_examples=40, deadline=None)
@given(shapes)
@example((325, 1, 2))  # two rules list moves of one name with the same effect
def test_every_run_is_written_read_and_replayed(shape):
    model = random_model(*shape)
    job = Job(model.name, model, DefaultPresenter(model), {"seed": shape[0]})
    for found in search.explore(model).found.values():
        trace = trace_of(job, found)
        assert read_itf(to_itf(trace)) == trace
        again = replay(trace, job).found
        assert (again.finding, again.depth, again.loop, again.since) == (
            found.finding, found.depth, found.loop, found.since
        )  # fmt: skip
        assert [step.row for step in again.path] == [step.row for step in found.path]
        assert (found.loop in (None, trace.depth)) == ("loop for ever" not in to_mermaid(trace))
        assert (found.loop in (None, trace.depth)) == ("the loop begins here" not in to_text(trace))
