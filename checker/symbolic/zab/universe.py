"""The sorts of abstract Zab, and quantifiers over them: over any number of elements, or over a few.

- An **unbounded** universe has uninterpreted sorts. A formula that z3 finds unsatisfiable there is refuted for every
  number of servers, views, reigns and transactions.
- A **finite** universe lists its elements, and expands each quantifier into a conjunction or a disjunction. A
  satisfiable formula always has a model there, which becomes a counterexample or a run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

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
