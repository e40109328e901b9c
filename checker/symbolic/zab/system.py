"""The state of abstract Zab, for any number of servers, with a configuration for each.

A **reign** is one attempt of one server to lead. It has a server, an epoch, and one view, since the view of a server
changes by a restart alone. Reigns, epochs, servers and quorums never change; they are *rigid*. Everything in `ZabState`
changes.

The state contains the disks, and two more kinds of symbols:

- **Statements** are promises, acknowledgements and commits. A failure withdraws none of them. Messages may be lost,
  late or repeated, and a crash loses nothing but memory, so neither changes anything here.
- **Ghosts** exist for the proof alone: `source`, `began_from`, `dead`, and `newest`. No action depends on them.

Source: the Zab paper (Junqueira, Reed, Serafini, DSN 2011) for the phases; `spec/zab` for the differences of
ZooKeeper.

Quantifiers over the sorts are over any number of elements, or over a few:

- An **unbounded** universe has uninterpreted sorts. A formula that z3 finds unsatisfiable there is refuted for every
  number of servers, views, reigns and transactions.
- A **finite** universe lists its elements, and expands each quantifier into a conjunction or a disjunction. A
  satisfiable formula always has a model there, which becomes a counterexample or a run.
"""

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

with suppress(ModuleNotFoundError):  # the refinement needs it not, and each proof imports it itself
    import z3

Formula: TypeAlias = Any
"""A Boolean term of z3, which has no type annotations."""
Term: TypeAlias = Any
"""A term of z3 of any sort."""
Symbol: TypeAlias = Callable[..., Term]
"""A function of the state: a symbol of z3, or a Python function that builds a term from its arguments."""

SORTS = ("node", "quorum", "reign", "txn")
_numbers = itertools.count()


class Universe:
    """The sorts, with their elements if the universe is finite. `sizes` gives the number of elements of each sort."""

    def __init__(self, sizes: Mapping[str, int] | None = None) -> None:
        self.finite = sizes is not None
        self.elements: dict[str, list[Term]] = {}
        self._depth = 0
        self._sorts: dict[str, Any] = {"int": z3.IntSort(), "bool": z3.BoolSort()}
        for name in SORTS:
            if sizes is None:
                self._sorts[name] = z3.DeclareSort(name)
            else:
                # z3 keeps one table of enumerations for the process, so each name is used once.
                number = next(_numbers)
                labels = [f"{name}{i}_{number}" for i in range(sizes[name])]
                self._sorts[name], self.elements[name] = z3.EnumSort(f"{name}_{number}", labels)

    def all(self, sorts: str, body: Callable[..., Formula]) -> Formula:
        """The body holds for all elements; `sorts` names the sort of each argument, as in "node reign"."""
        return self._quantified(z3.And, z3.ForAll, sorts, body)

    def some(self, sorts: str, body: Callable[..., Formula]) -> Formula:
        """The body holds for some elements."""
        return self._quantified(z3.Or, z3.Exists, sorts, body)

    def tuples(self, sorts: str) -> list[tuple[Term, ...]]:
        """All tuples of elements of these sorts, in a finite universe."""
        return list(itertools.product(*(self.elements[name] for name in sorts.split())))

    def constant(self, name: str, sort: str) -> Term:
        """An element that may be any of its sort."""
        return z3.Const(name, self._sorts[sort])

    def function(self, name: str, sorts: str, result: str = "bool") -> Symbol:
        """A function of elements; a relation if the result is "bool"."""
        symbol: Symbol = z3.Function(name, *(self._sorts[sort] for sort in sorts.split()), self._sorts[result])
        return symbol

    def _quantified(self, listed: Symbol, quantifier: Symbol, sorts: str, body: Callable[..., Formula]) -> Formula:
        if self.finite:
            return listed([body(*chosen) for chosen in self.tuples(sorts)])
        # A variable has the number of its depth, so a formula that is made twice is one term.
        outer, names = self._depth, sorts.split()
        self._depth += len(names)
        variables = [self.constant(f"{name[0]}{number}", name) for number, name in enumerate(names, outer)]
        formula = quantifier(variables, body(*variables))
        self._depth = outer
        return formula


class ZabState(NamedTuple):
    """One state: a symbol for each thing that changes. `SIGNATURES` has their sorts."""

    # On disk.
    accepted: Symbol  # (n) acceptedEpoch
    current: Symbol  # (n) currentEpoch, as the reign that the server entered
    log: Symbol  # (n, t) the durable log of n has t
    last: Symbol  # (n) the last zxid of this log; after a SNAP it may be "epoch:0", which no transaction has
    # A reign, from its begin to its end.
    begun: Symbol  # (r) its server has chosen the epoch
    promised: Symbol  # (n, r) n has accepted the epoch, and r counts its ACKEPOCH
    established: Symbol  # (r) a quorum has promised
    via: Symbol  # (r) this quorum
    initial: Symbol  # (r, t) the log of the server of r had t when r began
    initial_last: Symbol  # (r) the last zxid then
    began_in: Symbol  # (r) currentEpoch of the server then, as a reign
    history: Symbol  # (r, t) r began with t, or has proposed it; in memory, not on disk
    history_last: Symbol  # (r) the last zxid of the history
    # Statements to a reign.
    entered: Symbol  # (n, r) n has acknowledged NEWLEADER
    acked: Symbol  # (n, r, t) n has acknowledged t; NEWLEADER acknowledges all initial transactions
    served: Symbol  # (r, q) r serves: all of q have acknowledged NEWLEADER
    committed: Symbol  # (r, t, q) r has committed t, with the acknowledgements of q
    # Ghosts.
    source: Symbol  # (n) log(n) is a prefix of the history of this reign
    began_from: Symbol  # (r) the source of the server of r when r began
    dead: Symbol  # (r, t) a later established reign began without t, so r can never commit t
    # A roll-out in stages; see `rollout`.
    low: Symbol  # () every server that runs has the file of stage low ...
    high: Symbol  # () ... to high
    over: Symbol  # (r) the server of r has stopped to lead
    barrier: Symbol  # () the leader that all servers followed before stage high began
    barrier_quorum: Symbol  # () the quorum that followed it
    grown: Symbol  # (r) servers first started in the stage after that of r may follow r
    newest: Symbol  # () ghost: the established reign of the highest epoch


SIGNATURES: dict[str, tuple[str, str]] = {
    "accepted": ("node", "int"),
    "current": ("node", "reign"),
    "log": ("node txn", "bool"),
    "last": ("node", "int"),
    "begun": ("reign", "bool"),
    "promised": ("node reign", "bool"),
    "established": ("reign", "bool"),
    "via": ("reign", "quorum"),
    "initial": ("reign txn", "bool"),
    "initial_last": ("reign", "int"),
    "began_in": ("reign", "reign"),
    "history": ("reign txn", "bool"),
    "history_last": ("reign", "int"),
    "entered": ("node reign", "bool"),
    "acked": ("node reign txn", "bool"),
    "served": ("reign quorum", "bool"),
    "committed": ("reign txn quorum", "bool"),
    "source": ("node", "reign"),
    "began_from": ("reign", "reign"),
    "dead": ("reign txn", "bool"),
    "low": ("", "int"),
    "high": ("", "int"),
    "over": ("reign", "bool"),
    "barrier": ("", "reign"),
    "barrier_quorum": ("", "quorum"),
    "grown": ("reign", "bool"),
    "newest": ("", "reign"),
}
"""The sorts of the arguments of each symbol, and of its value."""


class AbstractZab:
    """The rigid part: the server and the epoch of each reign, and its quorums.

    Rigid relations may be read as prophecies, since the theorems hold for all of them: `commits(r, q)` says that q is a
    quorum by which r may commit *in the run at hand*, and `establishes(r, q)` one by which it may be established.
    """

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self.all, self.some = universe.all, universe.some
        function = universe.function
        self.epoch = function("epoch", "reign", "int")
        self.server = function("server", "reign", "node")
        self.commits = function("commits", "reign quorum")
        self.establishes = function("establishes", "reign quorum")
        self.member = function("member", "node quorum")
        self.zxid = function("zxid", "txn", "int")
        self.origin = function("origin", "txn", "reign")  # the reign that proposes the transaction
        self.zero = universe.constant("zero", "reign")  # the reign before the first; no server leads it
        self.stage = function("stage", "reign", "int")  # of the file by which a reign is led
        self.first_run = function("first_run", "node", "int")  # the stage in which a server is first started

    def state(self, label: str = "") -> ZabState:
        """A state in which every symbol may have any value."""
        return ZabState(**{name: self.symbol(name, label) for name in SIGNATURES})

    def symbol(self, name: str, label: str) -> Symbol:
        """A symbol of the state that may have any value."""
        return self.universe.function(name + label, *SIGNATURES[name])

    def meet(self, q1: Formula, q2: Formula) -> Formula:
        """Two quorums have a server in common."""
        return self.some("node", lambda n: z3.And(self.member(n, q1), self.member(n, q2)))

    def every_member(self, q: Formula, body: Symbol) -> Formula:
        """The body holds for every server of a quorum."""
        return self.all("node", lambda n: z3.Implies(self.member(n, q), body(n)))

    def axioms(self) -> dict[str, Formula]:
        """The axioms on epochs and zxids under every premise."""
        epoch, zxid = self.epoch, self.zxid
        return {
            "the zero reign precedes all": self.all(
                "reign", lambda r: z3.Implies(r != self.zero, epoch(r) > epoch(self.zero))
            ),
            "zxids are positive": self.all("txn", lambda t: zxid(t) > 0),
            "a zxid begins with its epoch": self.all(
                "txn txn",
                lambda t, u: z3.Implies(zxid(t) <= zxid(u), epoch(self.origin(t)) <= epoch(self.origin(u))),
            ),
        }

    def initial(self, s: ZabState) -> Formula:
        """The first state: empty logs, no epoch accepted, no reign but the zero reign."""
        zero, forall = self.zero, self.all
        none = z3.Not
        return z3.And(
            forall("node", lambda n: z3.And(s.accepted(n) == self.epoch(zero), s.current(n) == zero)),
            forall("node", lambda n: z3.And(s.last(n) == 0, s.source(n) == zero)),
            forall("node txn", lambda n, t: none(s.log(n, t))),
            forall("reign", lambda r: z3.And(s.begun(r) == (r == zero), s.established(r) == (r == zero))),
            forall("reign", lambda r: z3.And(s.initial_last(r) == 0, s.history_last(r) == 0)),
            forall("reign txn", lambda r, t: z3.And(none(s.initial(r, t)), none(s.history(r, t)), none(s.dead(r, t)))),
            forall("node reign", lambda n, r: z3.And(none(s.promised(n, r)), none(s.entered(n, r)))),
            forall("node reign txn", lambda n, r, t: none(s.acked(n, r, t))),
            forall("reign quorum", lambda r, q: none(s.served(r, q))),
            forall("reign txn quorum", lambda r, t, q: none(s.committed(r, t, q))),
            z3.And(s.began_in(zero) == zero, s.began_from(zero) == zero),
            z3.And(s.low() == 0, s.high() == 0, s.barrier() == zero, s.newest() == zero),
            forall("reign", lambda r: z3.And(none(s.over(r)), none(s.grown(r)))),
        )
