"""The result of an exploration, for all engines, and the comparison of two results.

`Exploration` has the counts, the findings and the reason for the end; the report makes the verdict (passed, vacuous,
incomplete). An exploration is exhausted only if every reachable state was expanded; states at a depth bound never are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum
from typing import Any

from checker.engine.bounds import Bound
from checker.engine.discovery import Discovery
from checker.engine.model import NO_EXCEPTION, Kind, Model, ModelError, Property
from checker.engine.space import MOST_DRAWN, MOST_NODES, SeenStates, StateGraph, StateRecord
from checker.engine.values import show, to_json
from checker.html_text import document, folded, paragraph, table

VALUE = 25
"""The work of Python for each value that a model function is called with, in transitions of the table engine.

Measured: calls take 10 to 13 microseconds for each value, a transition takes 0.4 to 0.5.
"""

SEED = 1
"""The default seed of fingerprints."""

MOST_SEED = 10**9

COMPILING = "compiling kernels, on first use only"
"""The line of progress for a compilation, which takes up to a minute."""


class Stop(Enum):
    """The reason why an exploration ended."""

    EXHAUSTED = "exhausted"
    FOUND = "found"  # a violation or a deadlock; its level was finished
    WITNESSED = "witnessed"  # every `sometimes` has its witness, and the caller asked to stop there
    DEPTH = "depth"
    STATES = "states"
    MEMORY = "memory"
    TIME = "time"
    WORK = "work"
    INTERRUPTED = "interrupted"


ENDS = {
    Stop.EXHAUSTED: "space exhausted",
    Stop.FOUND: "stopped at what was found, its level finished",
    Stop.WITNESSED: "stopped when every witness was found",
    Stop.DEPTH: "stopped at the depth given",
    Stop.STATES: "stopped at the number of states given",
    Stop.MEMORY: "stopped at the memory given",
    Stop.TIME: "stopped at the time given",
    Stop.WORK: "stopped at the work given",
    Stop.INTERRUPTED: "interrupted",
}
LEAST_MOVES = 2  # of a state, nearly always
CUT_SHORT = (Stop.TIME, Stop.WORK, Stop.MEMORY, Stop.INTERRUPTED)
"""The ends at a place that depends on the machine or the engine."""


@dataclass(frozen=True)
class Limits:
    """The limits of a run; None means unlimited. Memory is the growth of the resident size, in bytes.

    `seconds` is elapsed time. `work` limits `Exploration.work`, which is equal on every machine and for every number of
    workers: a search that this limit ends always ends in the same place. Time, memory and work are those since the
    start or the resumption of the search. The plain engine counts VALUE for each transition.

        Limits(depth=20, memory=4_000_000_000)
    """

    depth: int | None = None
    states: int | None = None
    memory: int | None = None
    seconds: float | None = None
    work: int | None = None

    @property
    def inside_a_level(self) -> Limits:
        """The limits that end a search inside a level: time, memory and work."""
        return replace(self, depth=None, states=None)

    def less(self, seconds: float = 0.0, work: int = 0) -> Limits:
        """The rest of these limits after this time and work."""
        seconds_left = None if self.seconds is None else max(0.0, self.seconds - seconds)
        return replace(self, seconds=seconds_left, work=None if self.work is None else max(0, self.work - work))

    def reached(self, exploration: Exploration) -> Stop | None:
        """The first limit that a run has reached, if any."""
        if self.depth is not None and exploration.depth >= self.depth:
            return Stop.DEPTH
        if self.states is not None and exploration.states >= self.states:
            return Stop.STATES
        if self.memory is not None and exploration.peak_bytes >= self.memory:
            return Stop.MEMORY
        if self.seconds is not None and exploration.seconds - exploration.seconds_before >= self.seconds:
            return Stop.TIME
        if self.work is not None and exploration.work >= self.work:
            return Stop.WORK
        return None


@dataclass
class Coverage:
    """The number of times an action fired, and the number of states that it reached first."""

    fired: int = 0
    new: int = 0


@dataclass
class Evaluations:
    """The number of states in which a property was evaluated, and of those in which its premise held."""

    states: int = 0
    premise: int = 0


@dataclass
class FunctionCost:
    """The calls of a function of a model, and their time in seconds, with the second calls that compare answers."""

    calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Liveness:
    """The statistics of a property of liveness.

    `goals` and `open` count all states with that answer of the property. `states` counts the examined states, reachable
    from an open one without passing a goal, and `edges` their outgoing moves. `components` are strongly connected. A
    *trap* is a component in which a run may stay forever: no move leaves it (RECOVERABLE), or a run inside it is fair
    (EVENTUALLY). `forced` are actions that need never happen, by which alone a violated property would hold: it holds
    if they are fair, and without one of them it does not. `size` is the memory for the graph in bytes; 0 if unknown.
    """

    goals: int
    open: int
    states: int
    edges: int
    components: int
    traps: int
    forced: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    size: int = field(default=0, compare=False)


@dataclass(kw_only=True)
class SearchCounts:
    """The counts of a search, of a part, or of some walks; they can be added.

    `coverage` has an entry for each action, `evaluations` one for each property that is evaluated in states,
    `functions` one for each called function of the model, and `values` the number of values of each column.
    """

    transitions: int = 0
    deadlocks: int = 0  # states without a successor, expected or not
    coverage: dict[str, Coverage] = field(default_factory=dict)
    evaluations: dict[str, Evaluations] = field(default_factory=dict)
    functions: dict[str, FunctionCost] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    work: int = 0  # of this sitting: transitions, VALUE for each argument of a call of a model function, examined graph
    python_steps: int = 0  # calls of step functions
    python_calls: int = 0  # of any function of the model, these included
    python_seconds: float = 0.0
    spilled_bytes: int = 0  # of waiting states, written to a temporary file

    def add(self, other: SearchCounts) -> None:
        """Add the counts of another part."""
        for count in fields(SearchCounts):
            if count.default is not MISSING:
                setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))
        for action, coverage in other.coverage.items():
            total = self.coverage.setdefault(action, Coverage())
            total.fired, total.new = total.fired + coverage.fired, total.new + coverage.new
        for name, evaluations in other.evaluations.items():
            sums = self.evaluations.setdefault(name, Evaluations())
            sums.states, sums.premise = sums.states + evaluations.states, sums.premise + evaluations.premise
        for name, cost in other.functions.items():
            whole = self.functions.setdefault(name, FunctionCost())
            whole.calls, whole.seconds = whole.calls + cost.calls, whole.seconds + cost.seconds
        for column, number in other.values.items():
            self.values[column] = max(number, self.values.get(column, 0))


@dataclass
class Exploration(SearchCounts):
    """The outcome of one run. `levels[d]` is the number of states first seen after d moves.

    `found` and `liveness` have an entry for each property with data, by its name. A property
    without an entry in `found` has no finding among the states seen.

        if exploration.violations:
            print([step.move for step in exploration.violations[0].path])
        elif not exploration.exhausted:
            print(f"ended by {exploration.stop.value} at depth {exploration.depth}")
    """

    model: Model
    engine: str
    limits: Limits
    levels: list[int] = field(default_factory=list)
    stop: Stop = Stop.EXHAUSTED
    found: dict[str, Discovery] = field(default_factory=dict)
    liveness: dict[str, Liveness] = field(default_factory=dict)  # for each judged property of liveness
    seed: int = SEED  # of fingerprints; without meaning for the plain engine
    seconds: float = 0.0
    seconds_before: float = 0.0  # the part before the search was saved and resumed; no limit counts it
    peak_bytes: int = 0  # the largest resident size seen, less the size at the start or the resumption
    reduction: str = ""  # what a symmetric search counts once, or why it cannot; empty for a search that was not asked
    assumption: str = ""  # of a symmetric search: what it takes for granted, in words
    classes_of: Model | None = None  # of a symmetric search: the system whose classes of renamed states are counted
    growth: str = ""  # of a search that a bound or the memory ended: the content that grows with the depth, in words
    second: str = ""  # with two engines: what the second one did, and that its answers are the same
    compiling: bool = False  # kernels are being compiled, before the end of the first level
    notes: list[str] = field(
        default_factory=list
    )  # on the checkpoint: the state that was resumed, and failures to save
    workers: list[str] = field(default_factory=list)  # on a cluster: the workers, the bytes sent, each loss

    @property
    def sampled(self) -> str:
        """The extent of random walks, which show nothing about other runs; empty for a search of all states."""
        return ""

    @property
    def progress(self) -> str:
        """The progress of random walks on one line; empty for a search of all states."""
        return ""

    @property
    def states(self) -> int:
        """Distinct states seen."""
        return sum(self.levels)

    @property
    def depth(self) -> int:
        """The number of moves to the deepest state seen."""
        return len(self.levels) - 1

    def at_the_cost_of(self, *searches: Exploration) -> Exploration:
        """This result with the time, the work and the memory of these searches, one after the other."""
        sums = ("seconds", "work", "python_steps", "python_calls", "python_seconds")
        cost: dict[str, Any] = {name: sum(getattr(search, name) for search in searches) for name in sums}
        cost |= {name: max(getattr(search, name) for search in searches) for name in ("peak_bytes", "spilled_bytes")}
        return replace(self, **cost)

    def wanted(self, until_witnessed: bool) -> Stop | None:
        """The reason to stop after a finished level because of the findings, if any.

        Liveness needs the whole space, so for a model with liveness the search continues after its last witness.
        """
        if self.violations:
            return Stop.FOUND
        hopes = [prop.name for prop in self.model.properties if prop.kind is Kind.SOMETIMES]
        is_enough = until_witnessed and not self.model.liveness and bool(hopes)
        return Stop.WITNESSED if is_enough and all(name in self.found for name in hopes) else None

    def least_moves(self, depth: int) -> int:
        """A lower bound of the moves of all states at lesser depths: exact where the search ended with that level."""
        ends = [violation.depth for violation in self.violations if not _is_after_expansion(violation.prop)]
        if depth == self.depth and (self.stop is Stop.WITNESSED or (self.stop is Stop.FOUND and depth in ends)):
            return self.transitions
        return LEAST_MOVES * sum(self.levels[:depth])

    @property
    def violations(self) -> list[Discovery]:
        """The findings that are violations (also of liveness) or deadlocks, in the order of the model's properties."""
        return [
            self.found[prop.name]
            for prop in self.properties
            if prop.name in self.found and prop.kind is not Kind.SOMETIMES
        ]

    @property
    def properties(self) -> tuple[Property, ...]:
        """The properties of the model, and `NO_EXCEPTION` if a function of it raised an exception."""
        return (*self.model.properties, *([NO_EXCEPTION] if NO_EXCEPTION.name in self.found else []))

    @property
    def unjudged(self) -> list[str]:
        """The properties of liveness that were not judged, since the space was not exhausted."""
        return [prop.name for prop in self.model.liveness if prop.name not in self.liveness]

    @property
    def exhausted(self) -> bool:
        """True iff every reachable state was expanded."""
        return self.stop is Stop.EXHAUSTED

    @property
    def end(self) -> str:
        """The reason for the end, in words."""
        return ENDS[self.stop]

    def outcome(self, prop: Property) -> str:
        """The outcome of one property, in a few words."""
        discovery = self.found.get(prop.name)
        if prop.kind is Kind.SOMETIMES:
            return f"witnessed at depth {discovery.depth}" if discovery else "never witnessed"
        if prop.kind.is_liveness:
            if prop.name not in self.liveness:
                return "not judged"
            return ("NOT RECOVERABLE" if prop.kind is Kind.RECOVERABLE else "VIOLATED") if discovery else "holds"
        if discovery:
            return f"{'VIOLATED' if prop.kind is Kind.ALWAYS else 'DEADLOCK'} at depth {discovery.depth}"
        if isinstance(prop, Bound):
            return f"cut off {self.evaluations.get(prop.name, Evaluations()).premise:,} states"
        return "holds" if self.exhausted else "no violation seen"

    def _repr_html_(self) -> str:
        """The counts and the outcome of each property, as HTML for a notebook."""
        figures = f"{self.states:,} states, {self.transitions:,} transitions, depth {self.depth}, {self.seconds:.2f} s"
        parts = [paragraph(f"{self.model.name}:", f"{self.end}; {self.sampled or figures}")]
        parts += [paragraph("reduction:", self.reduction)] if self.reduction else []
        parts += [
            paragraph(f"{prop.name}, {self.outcome(prop)}:", _finding(self.found[prop.name]))
            for prop in self.properties
            if prop.name in self.found
        ]
        properties = [self._property_row(prop) for prop in self.properties]
        actions = [(name, f"{count.fired:,}", f"{count.new:,}") for name, count in sorted(self.coverage.items())]
        depths = [(str(depth), f"{states:,}") for depth, states in enumerate(self.levels)]
        heads = ("property", "kind", "outcome", "examined", "premise held"), ("action", "fired", "new states")
        parts += [table(heads[0], properties)] if properties else []
        parts += [table(heads[1], actions)] if actions else []
        parts += [folded("states at each depth", table(("depth", "new states"), depths))] if depths else []
        return document(*parts)

    def _property_row(self, prop: Property) -> tuple[str, ...]:
        count = None if prop.kind.is_liveness else self.evaluations.get(prop.name)
        figures = ("", "") if count is None else (f"{count.states:,}", f"{count.premise:,}")
        return prop.name, prop.kind.value, self.outcome(prop), *figures

    def iter_states(self) -> Iterator[StateRecord]:
        """Each distinct state that the search has seen, with its depth, in the order of the depths.

        The search keeps no states. A second pass makes each when it is asked for; see the rules of
        `checker.engine.space`, also for symmetric searches and for those that a limit ended. Raises ModelError, also
        for random walks, and at a depth where the pass and the search have different numbers of states.

            for state in exploration.iter_states():
                print(state.depth, state["counter"])
        """
        return self._seen.records()

    def graph(self, most: int = MOST_NODES) -> StateGraph:
        """The states and the moves between them as plain data. Raises as `iter_states`, and above `most` states."""
        return self._seen.graph(most)

    def to_dot(self, most: int = MOST_DRAWN) -> str:
        """The graph as a drawing in the language of Graphviz. Raises as `graph`."""
        self._seen.check_size("to_dot", most)
        return self._seen.graph(most).to_dot()

    @property
    def _seen(self) -> SeenStates:
        if self.sampled:
            raise ModelError("random walks do not list the states that they visit; explore the model for that")
        is_whole = self.stop not in CUT_SHORT
        levels = tuple(self.levels if is_whole else self.levels[:-1] or self.levels)
        ends = [violation.depth for violation in self.violations if _is_after_expansion(violation.prop)]
        is_expanded = self.exhausted or (
            self.stop is Stop.FOUND and self.depth in ends and self.depth != self.limits.depth
        )
        model = self.classes_of or self.model
        renamings = None if self.classes_of is None or model.symmetry is None else model.symmetry.renamings
        return SeenStates(model, levels, is_expanded, self.transitions if is_whole else None, renamings)

    @property
    def collision_probability(self) -> float:
        """An upper bound on the probability that two of the states shared a 64-bit fingerprint.

        It is a union bound over all pairs; zero for an engine that stores states whole.
        """
        return 0.0 if self.engine == "plain" else min(1.0, self.states * (self.states - 1) / 2.0**65)


def _finding(discovery: Discovery) -> str:
    """The clause of a finding, and the values behind it."""
    values = ", ".join(f"{name} = {show(to_json(value))}" for name, value in discovery.finding.values)
    return f"{discovery.finding.clause} ({values})" if values else discovery.finding.clause


def disagreements(one: Exploration, other: Exploration) -> list[str]:
    """A line for each figure that should be equal and is not; empty if the two agree.

    For liveness, the goals, the examined part and the depths of findings are compared, but not the loops.
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
    return [f"{figure}: {a} ({one.engine}) is not {b} ({other.engine})" for figure, a, b in figures if a != b]


def verdict_disagreements(symmetric: Exploration, full: Exploration, *, ends: bool = True) -> list[str]:
    """A line for each answer of a full search that a symmetric one does not give; empty if it gives all of them.

    A limit of states ends the two searches at different depths: a finding of one counts if the other has come as far.
    Without `ends` the symmetric one need not find a state without a successor.
    """
    depths_found, expected = _depths(symmetric), _depths(full)
    figures: list[tuple[str, object, object]] = []
    for prop in (*full.model.properties, NO_EXCEPTION):
        depths = depths_found.get(prop.name), expected.get(prop.name)
        if _is_within(depths[1], symmetric, prop) or _is_within(depths[0], full, prop):
            figures.append((f"depth of {prop.name}", *depths))
    if not {symmetric.stop, full.stop} & {Stop.DEPTH, Stop.STATES}:
        figures.append(("why it ended", symmetric.stop, full.stop))
    if full.stop is symmetric.stop in (Stop.EXHAUSTED, Stop.DEPTH):
        if ends:
            figures.append(("whether a state has no successor", symmetric.deadlocks > 0, full.deadlocks > 0))
        figures.append(("actions that fired", sorted(_fired(symmetric)), sorted(_fired(full))))
        figures.append(("premises that held", _premises(symmetric), _premises(full)))
    return [f"{figure}: {a} (symmetric) is not {b} ({full.engine}, in full)" for figure, a, b in figures if a != b]


def _is_within(depth: int | None, other: Exploration, prop: Property) -> bool:
    """Whether another search has examined a property as deep as this, where one found something."""
    last = other.depth - (_is_after_expansion(prop) and other.stop is not Stop.DEPTH)
    return depth is not None and (other.exhausted or depth <= last)


def _is_after_expansion(prop: Property) -> bool:
    """Whether a state is examined for this property while its moves are, and not before."""
    return prop.kind is Kind.FINAL or prop is NO_EXCEPTION


def coverage_of(exploration: Exploration) -> frozenset[tuple[str, str]]:
    """The actions that fired, and the properties whose premise held."""
    premises = {("premise", name) for name in _premises(exploration)}
    return frozenset({("action", action) for action in _fired(exploration)} | premises)


def _premises(exploration: Exploration) -> list[str]:
    return sorted(name for name, evaluation in exploration.evaluations.items() if evaluation.premise)


def _fired(exploration: Exploration) -> dict[str, int]:
    fired = {action: coverage.fired for action, coverage in exploration.coverage.items() if coverage.fired}
    return dict(sorted(fired.items()))


def _depths(exploration: Exploration) -> dict[str, int]:
    return {name: discovery.depth for name, discovery in sorted(exploration.found.items())}
