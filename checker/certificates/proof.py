"""The steps of a certificate, and their check.

A proof speaks of a script's assertions with numbers: a literal is the number of a closed formula, or its negative. A
clause is a list of literals, and says that one holds. Clauses come from:

- each **assertion** of the script, which holds;
- each **connective** of a formula that occurs, which has the truth value that its parts give it;
- `instance`: a formula for all elements implies its instances, and an instance implies the formula for some element;
- `witness`: if a formula holds for some element, or fails for some, then it does for the new constants of this step;
- `lemma`: a clause whose negation `theory` refutes;
- `derived`: a clause that unit propagation proves: with all its literals false, a clause has no literal left.

The witness of a closed formula is a constant that is new where the step is made. So a structure that satisfies the
assertions has one that satisfies all clauses, and the empty clause refutes them.

A certificate is a text with one step a line, after `HEADER`; see `check`. The constants of the witness of formula 57
are `#57.0`, `#57.1`, and so on.

Sources: Henkin, The completeness of the first-order functional calculus (JSL 1949), for witnesses; Goldberg and
Novikov, Verification of proofs of unsatisfiability for CNF formulas (DATE 2003), for derived clauses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from checker.certificates.terms import BOOL, LARGEST, Expression, RejectedError, Term, TermTable, expressions, script
from checker.certificates.theory import is_refuted
from spec.text import integer

HEADER: Final = "quorate certificate 1"
Literal: TypeAlias = int
Clause: TypeAlias = tuple[Literal, ...]


class Proof:
    """The clauses that are proved so far of one script. Each step raises RejectedError if it is not sound."""

    def __init__(self, text: str) -> None:
        self.terms = TermTable()
        self.clauses: list[Clause] = []
        self.reasons: dict[Literal, Clause] = {}
        """The literals that hold, in the order of their discovery, each with the clause that it follows from."""
        self.conflict: Clause | None = None
        """A clause that the assumptions make false."""
        self.is_complete = False
        """The empty clause is proved: the script is unsatisfiable."""
        self._facts = 0
        """The number of literals that hold without an assumption."""
        self._watched: defaultdict[Literal, list[list[Literal]]] = defaultdict(list)
        self._pending: list[Literal] = []
        self._mentioned: set[Term] = set()
        self.assertions = script(text, self.terms)
        for formula in self.assertions:
            self._add((self.literal(formula),))

    def literal(self, formula: Term) -> Literal:
        """The literal of a closed formula, whose connectives are defined from now on."""
        sign = 1
        while formula.symbol == "not":
            sign, formula = -sign, formula.arguments[0]
        if formula not in self._mentioned:
            if formula.sort != BOOL or formula.free:
                raise RejectedError(f"term {formula.number} is not a closed formula")
            self._mentioned.add(formula)
            self._define(formula)
        return sign * formula.number

    def instance(self, number: int, values: Sequence[Term]) -> None:
        """An instance of a quantified formula."""
        formula = self.terms[number]
        body = self.literal(self.terms.instance(formula, values))
        self._add((-self.literal(formula), body) if formula.symbol == "forall" else (self.literal(formula), -body))

    def witness(self, formula: Term) -> tuple[Term, ...]:
        """New constants for the variables of a closed quantified formula."""
        constants = []
        for place, variable in enumerate(formula.arguments[:-1] if formula.is_quantifier else ()):
            name = f"#{formula.number}.{place}"
            self.terms.declare(name, (), variable.sort)
            constants.append(self.terms.applied(name))
        body = self.literal(self.terms.instance(formula, constants))
        self._add((-self.literal(formula), body) if formula.symbol == "exists" else (self.literal(formula), -body))
        return tuple(constants)

    def lemma(self, clause: Clause) -> None:
        """A clause of equality and integer arithmetic."""
        if not is_refuted((self.atom(literal), literal < 0) for literal in clause):
            raise RejectedError("neither equality nor arithmetic proves this lemma")
        self._add(clause)

    def atom(self, literal: Literal) -> Term:
        """The formula of a literal."""
        formula = self.terms[abs(literal)]
        if formula not in self._mentioned or formula.sort != BOOL:
            raise RejectedError(f"term {abs(literal)} is not a formula of this proof")
        return formula

    def derived(self, clause: Clause) -> None:
        """A clause that unit propagation proves."""
        negated = [-literal for literal in clause if self.atom(literal)]
        if not self.is_complete:
            self.assume(negated)
            is_proved = self.conflict is not None
            self.retract()
            if not is_proved:
                raise RejectedError("unit propagation does not prove this clause")
            self._add(clause)

    def assume(self, literals: Iterable[Literal]) -> None:
        """Let literals hold until `retract`, and all that follows from them by unit propagation."""
        for literal in literals:
            if self.conflict is None:
                self._hold(literal, (literal,))
                self._propagate()

    def retract(self) -> None:
        """Forget the assumptions and their consequences."""
        while len(self.reasons) > self._facts:
            self.reasons.popitem()
        self._pending.clear()
        self.conflict = None

    def _hold(self, literal: Literal, reason: Clause) -> None:
        if -literal in self.reasons:
            self.conflict = reason
        elif literal not in self.reasons:
            self.reasons[literal] = reason
            self._pending.append(literal)

    def _propagate(self) -> None:
        """Find what follows. Every clause is listed with two of its literals that are not false, while it has them."""
        while self._pending and self.conflict is None:
            false = -self._pending.pop()
            listed, self._watched[false] = self._watched[false], []
            for position, clause in enumerate(listed):
                if self.conflict is not None:
                    self._watched[false] += listed[position:]
                    break
                self._visit(clause, false)

    def _visit(self, clause: list[Literal], false: Literal) -> None:
        """List a clause with another literal than the one that became false. The first two are the ones it has."""
        if clause[0] == false:
            clause[0], clause[1] = clause[1], false
        if clause[0] not in self.reasons:
            for place in range(2, len(clause)):
                if -clause[place] not in self.reasons:
                    clause[1], clause[place] = clause[place], false
                    self._watched[clause[1]].append(clause)
                    return
            self._hold(clause[0], tuple(clause))
        self._watched[false].append(clause)

    def _add(self, clause: Iterable[Literal]) -> None:
        """Add a clause. Nothing is assumed now, so literals that are false stay so."""
        literals = list(dict.fromkeys(clause))
        self.clauses.append(tuple(literals))
        if self.is_complete:
            return
        literals.sort(key=lambda literal: -literal in self.reasons)
        if len(literals) > 1:
            for literal in literals[:2]:
                self._watched[literal].append(literals)
        if not literals or -literals[0] in self.reasons:
            self.is_complete = True
        elif len(literals) == 1 or -literals[1] in self.reasons:
            self._hold(literals[0], tuple(literals))
            self._propagate()
            self.is_complete = self.conflict is not None
        self._facts = len(self.reasons)

    def _define(self, formula: Term) -> None:
        """Add the clauses that give a formula the truth value of its parts, and a conditional term its value."""
        name, symbol = formula.number, formula.symbol
        if not formula.is_connective:
            for term in () if formula.is_quantifier else formula.arguments:
                self._define_conditionals(term)
            return
        parts = [self.literal(part) for part in formula.arguments]
        if symbol in {"and", "true"}:
            self._define_any(-name, [-part for part in parts])
        elif symbol in {"or", "false"}:
            self._define_any(name, parts)
        elif symbol == "=>":
            self._define_any(name, [*(-part for part in parts[:-1]), parts[-1]])
        elif symbol == "=":
            self._define_choice(name, parts[0], parts[1], -parts[1])
        else:
            self._define_choice(name, *parts)

    def _define_choice(self, name: Literal, condition: Literal, then: Literal, otherwise: Literal) -> None:
        """The literal has the value of one of two others."""
        for sign in (1, -1):
            self._add((-condition, sign * name, -sign * then))
            self._add((condition, sign * name, -sign * otherwise))

    def _define_conditionals(self, term: Term) -> None:
        """A conditional term is equal to one of its alternatives."""
        if term not in self._mentioned and term.sort != BOOL:
            self._mentioned.add(term)
            for argument in term.arguments:
                self._define_conditionals(argument)
            if term.symbol == "ite":
                condition = self.literal(term.arguments[0])
                for sign, value in zip((-1, 1), term.arguments[1:], strict=True):
                    self._add((sign * condition, self.literal(self.terms.applied("=", (term, value)))))

    def _define_any(self, name: Literal, parts: Sequence[Literal]) -> None:
        """The literal holds if and only if one of the parts does."""
        self._add((-name, *parts))
        for part in parts:
            self._add((name, -part))


def check(script_text: str, certificate: str) -> Counter[str]:
    """The number of steps of each kind of a certificate of a script. Raises RejectedError if it proves nothing.

    The lines after the header: `w FORMULA` is a witness, `i NUMBER TERM ...` an instance, `l LITERAL ...` a lemma and
    `d LITERAL ...` a derived clause. Formulas and terms are S-expressions.
    """
    header, *lines = certificate.splitlines() or [""]
    if header != HEADER:
        raise RejectedError(f"line 1: the header is not {HEADER!r}")
    with _rejecting("the script"):
        proof = Proof(script_text)
    counts: Counter[str] = Counter()
    for number, line in enumerate(lines, start=2):
        with _rejecting(f"line {number}"):
            counts[_step(proof, line)] += 1
    if not proof.is_complete:
        raise RejectedError("the empty clause is not proved")
    return counts


@contextmanager
def _rejecting(place: str) -> Iterator[None]:
    """A context whose errors are rejections that name the place."""
    try:
        yield
    except RecursionError:
        raise RejectedError(f"{place}: it is nested too deeply") from None
    except ValueError as error:
        raise RejectedError(f"{place}: {error}") from None


def _step(proof: Proof, line: str) -> str:
    """Take the step of a line; its kind."""
    kind, *given = expressions(line) or [""]
    if kind == "w" and len(given) == 1:
        proof.witness(proof.terms.read(given[0]))
    elif kind == "i" and given:
        proof.instance(_number(given[0]), [proof.terms.read(term) for term in given[1:]])
    elif kind == "l":
        proof.lemma(tuple(map(_number, given)))
    elif kind == "d":
        proof.derived(tuple(map(_number, given)))
    else:
        raise RejectedError(f"{line[:60]!r} is not a step")
    return str(kind)


def _number(given: Expression) -> int:
    number = integer(given, -LARGEST, LARGEST) if isinstance(given, str) else None
    if number is None:
        raise RejectedError("a number is expected, and not a term")
    return number
