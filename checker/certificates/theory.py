"""Sets of ground literals that equality or integer arithmetic refutes.

Two decisions, one after the other:

1. **Congruence closure**: equal terms are joined in classes, and so are equal functions of equal arguments.
2. **Elimination of variables** (Fourier and Motzkin) from the comparisons of integers, with the classes as variables.
   Every constraint is divided by the common divisor of its coefficients, and its constant rounded down. All steps are
   sound for integers. They are not complete, so some unsatisfiable sets are not refuted.

The arguments of no function are integers in the scripts, so arithmetic has no equality to give back.

Sources: Nelson and Oppen, Fast decision procedures based on congruence closure (JACM 1980); Schrijver, Theory of linear
and integer programming, section 12.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import Final, TypeAlias

from checker.certificates.terms import BOOL, INT, Term

MOST_CONSTRAINTS: Final = 500
MOST_UNEQUAL: Final = 6
"""The pairs of integers that are taken to be unequal; to leave one out is sound."""
_TRUE, _FALSE = -1, -2
"""The classes of the formulas that hold, and of those that do not. The class of a term begins with its number."""
Linear: TypeAlias = tuple[dict[int, int], int]
"""A sum of classes with coefficients, and a constant. As a constraint: it is 0 or more."""


def is_refuted(literals: Iterable[tuple[Term, bool]]) -> bool:
    """Whether no structure gives these atoms these truth values. Connectives and quantifiers are left aside."""
    atoms = [(atom, holds) for atom, holds in literals if not (atom.is_connective or atom.is_quantifier)]
    classes = _Classes(atoms)
    return classes.are_refuted() or _Comparisons(classes).are_refuted()


class _Classes:
    """The classes of equal terms that follow from atoms."""

    def __init__(self, atoms: Sequence[tuple[Term, bool]]) -> None:
        self.atoms = atoms
        self._parents: dict[int, int] = {}
        self.terms: dict[int, Term] = {}
        for atom, holds in atoms:
            self._collect(atom)
            if atom.symbol == "=" and holds:
                self._join(atom.arguments[0].number, atom.arguments[1].number)
            elif atom.symbol not in {"=", "<="}:
                self._join(atom.number, _TRUE if holds else _FALSE)
        while self._joined_congruent():
            pass

    def _collect(self, term: Term) -> None:
        if term.number not in self.terms:
            self.terms[term.number] = term
            for argument in term.arguments:
                if argument.sort != BOOL:
                    self._collect(argument)

    def of(self, number: int) -> int:
        """The class of a term."""
        while number in self._parents:
            number = self._parents[number]
        return number

    def _join(self, left: int, right: int) -> bool:
        left, right = self.of(left), self.of(right)
        if left != right:
            self._parents[left] = right
        return left != right

    def _joined_congruent(self) -> bool:
        seen: dict[tuple[str, tuple[int, ...]], int] = {}
        is_changed = False
        for number, term in self.terms.items():
            if term.arguments and term.symbol not in {"=", "<="}:
                key = term.symbol, tuple(self.of(argument.number) for argument in term.arguments)
                is_changed |= self._join(seen.setdefault(key, number), number)
        return is_changed

    def are_refuted(self) -> bool:
        """Whether a formula both holds and does not, or different terms are equal."""
        pairs = [atom.arguments for atom, holds in self.atoms if atom.symbol == "=" and not holds]
        return self.of(_TRUE) == self.of(_FALSE) or any(self.of(a.number) == self.of(b.number) for a, b in pairs)


class _Comparisons:
    """The constraints on integers."""

    def __init__(self, classes: _Classes) -> None:
        self._classes = classes
        self._constraints: list[Linear] = []
        self._unequal: list[Linear] = []
        for term in classes.terms.values():
            self._add_quotient(term)
        for atom, holds in classes.atoms:
            if atom.symbol in {"=", "<="} and atom.arguments[0].sort == INT:
                left, right = map(self._linear, atom.arguments)
                difference = _sum(right, left, -1)
                if atom.symbol == "=" and not holds:
                    self._unequal.append(difference)
                elif holds:
                    self._constraints.append(difference)
                    if atom.symbol == "=":
                        self._constraints.append(_sum(left, right, -1))
                else:
                    self._constraints.append(_above(_sum(left, right, -1)))

    def are_refuted(self) -> bool:
        """Whether no integers satisfy the constraints, however two unequal ones are ordered."""
        return _without_solution(self._constraints, self._unequal[:MOST_UNEQUAL])

    def _linear(self, term: Term) -> Linear:
        """The sum that a term is; a term of no known form is one of the summands."""
        if term.value is not None:
            return {}, term.value
        if term.symbol in {"+", "-", "*"}:
            parts = [self._linear(argument) for argument in term.arguments]
            if term.symbol == "*":
                factors = [constant for coefficients, constant in parts if not coefficients]
                if len(parts) == 2 and factors:
                    other = parts[1] if not parts[0][0] else parts[0]
                    return _sum(({}, 0), other, factors[0])
            else:
                sign = -1 if term.symbol == "-" else 1
                total = parts[0] if len(parts) > 1 else _sum(({}, 0), parts[0], sign)
                for part in parts[1:]:
                    total = _sum(total, part, sign)
                return total
        return {self._classes.of(term.number): 1}, 0

    def _add_quotient(self, term: Term) -> None:
        """The definition of a quotient by a positive numeral: 0 <= dividend - divisor * quotient < divisor."""
        divisor = term.arguments[1].value if term.symbol == "div" else None
        if divisor:
            rest = _sum(self._linear(term.arguments[0]), self._linear(term), -divisor)
            self._constraints += [rest, _sum(({}, divisor - 1), rest, -1)]


def _sum(left: Linear, right: Linear, factor: int) -> Linear:
    """The sum of a linear form and a multiple of another."""
    coefficients = dict(left[0])
    for variable, coefficient in right[0].items():
        coefficients[variable] = coefficients.get(variable, 0) + factor * coefficient
    return {v: c for v, c in coefficients.items() if c}, left[1] + factor * right[1]


def _above(form: Linear) -> Linear:
    """The constraint that an integer is above 0, and not only 0 or more."""
    return form[0], form[1] - 1


def _without_solution(constraints: list[Linear], unequal: Sequence[Linear]) -> bool:
    if _eliminated(constraints):
        return True
    if not unequal:
        return False
    first, *others = unequal
    orders = (first, _sum(({}, 0), first, -1))
    return all(_without_solution([*constraints, _above(order)], others) for order in orders)


def _eliminated(constraints: Iterable[Linear]) -> bool:
    """Whether the elimination of all variables leaves a constant below 0."""
    tightest = _tightest(constraints)
    while True:
        if tightest.get((), 0) < 0:
            return True
        rows = [(dict(key), constant) for key, constant in tightest.items() if key]
        if not rows:
            return False
        variable = min(_variables(rows), key=lambda name: _products(rows, name))
        positive = [row for row in rows if row[0].get(variable, 0) > 0]
        negative = [row for row in rows if row[0].get(variable, 0) < 0]
        if len(positive) * len(negative) > MOST_CONSTRAINTS:
            return False
        rest = [row for row in rows if variable not in row[0]]
        for low in positive:
            for high in negative:
                scaled = _sum(({}, 0), low, -high[0][variable])
                rest.append(_sum(scaled, high, low[0][variable]))
        tightest = _tightest(rest)


def _tightest(constraints: Iterable[Linear]) -> dict[tuple[tuple[int, int], ...], int]:
    """The least constant for each sum, after division by the common divisor."""
    least: dict[tuple[tuple[int, int], ...], int] = {}
    for coefficients, constant in constraints:
        divisor = gcd(*coefficients.values()) or 1  # of a constant, 0
        key = tuple(sorted((variable, coefficient // divisor) for variable, coefficient in coefficients.items()))
        least[key] = min(least.get(key, constant // divisor), constant // divisor)
    return least


def _variables(rows: Sequence[Linear]) -> list[int]:
    return sorted({variable for coefficients, _ in rows for variable in coefficients})


def _products(rows: Sequence[Linear], variable: int) -> int:
    signs = [coefficients.get(variable, 0) for coefficients, _ in rows]
    return sum(sign > 0 for sign in signs) * sum(sign < 0 for sign in signs)
