"""Makes certificates of conditions. This module need not be trusted, since `checker.certificates` checks its results.

1. The **sentences**: each assertion as one universal formula or more, with functions for witnesses (Skolem).
2. z3 refutes them, and reports the instances that it made. Those that are needed are an unsatisfiable core of them.
3. The instances become **steps**: an instance or a witness for each quantifier on the way to the parts of a formula.
4. A **search** through the cases of the clauses. A case that unit propagation refutes gives a derived clause. One that
   satisfies all clauses is refuted by z3 with equality and arithmetic, and gives a lemma.

Sources: the z3 guide on "on-clause" callbacks; Marques-Silva and Sakallah, GRASP (1999), for clauses from conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import z3

from checker.certificates.proof import HEADER, Clause, Literal, Proof
from checker.certificates.terms import (
    BOOL,
    CONNECTIVES,
    INT,
    LARGEST,
    Expression,
    RejectedError,
    Term,
    expressions,
    numeral,
)
from checker.certificates.theory import is_refuted
from checker.symbolic.solvers import ATTEMPTS, MILLISECONDS, Solver, answer_of_cvc5
from spec.text import integer

Path: TypeAlias = tuple[int, ...]
"""The way from an assertion to a part of it: its number, then that of an argument for each step.

An argument whose truth is used both ways has two numbers, n and ~n.
"""
_BODY = -1000
"""The number of the body of a quantifier."""


class UncertifiedError(Exception):
    """No certificate was found; the message is the reason."""


def certificate(script: str, *, seconds: float = 60) -> str:
    """A certificate of a script that is unsatisfiable. Raises UncertifiedError, and RejectedError for a bad script."""
    log = _StepLog(script)
    if not log.proof.is_complete:
        sentences = _Sentences(log)
        for instance in _instances(sentences, seconds):
            sentences.realise(instance)
        _CaseSearch(log).finish()
    return "\n".join((HEADER, *log.lines)) + "\n"


class _StepLog:
    """A proof, and the lines of its steps. A step that was taken already is not taken again."""

    def __init__(self, script: str) -> None:
        self.proof = Proof(script)
        self.lines: list[str] = []
        self._instances: set[tuple[Term, ...]] = set()
        self._witnesses: dict[Term, tuple[Term, ...]] = {}

    def instance(self, formula: Term, values: tuple[str, ...]) -> Term:
        """The instance of a formula, with expressions for the values. They are read in the order of the steps."""
        terms = tuple(self.proof.terms.read(expressions(value)[0]) for value in values)
        if (formula, *terms) not in self._instances:
            self._instances.add((formula, *terms))
            self.proof.instance(formula.number, terms)
            self.lines.append(" ".join(("i", str(formula.number), *values)))
        return self.proof.terms.instance(formula, terms)

    def witness(self, expression: str) -> tuple[Term, ...]:
        """The constants for a formula, given as an expression."""
        formula = self.proof.terms.read(expressions(expression)[0])
        if formula not in self._witnesses:
            self._witnesses[formula] = self.proof.witness(formula)
            self.lines.append(f"w {expression}")
        return self._witnesses[formula]

    def lemma(self, clause: Clause) -> None:
        """Add a lemma."""
        self.proof.lemma(clause)
        self.lines.append(" ".join(("l", *map(str, clause))))

    def derived(self, clause: Clause) -> None:
        """Add a derived clause."""
        self.proof.derived(clause)
        self.lines.append(" ".join(("d", *map(str, clause))))


def text(term: Term, values: Mapping[str, str] = MappingProxyType({})) -> str:
    """A term as an S-expression, with these texts for its variables."""
    if term.symbol.startswith(":"):
        return values.get(term.symbol[1:], term.symbol[1:])
    if term.is_quantifier:
        *variables, body = term.arguments
        names = {name for variable in variables for name in variable.free}
        bound = " ".join(f"({variable.symbol[1:]} {variable.sort})" for variable in variables)
        return f"({term.symbol} ({bound}) {text(body, {k: v for k, v in values.items() if k not in names})})"
    parts = [text(argument, values) for argument in term.arguments]
    return f"({' '.join((term.symbol, *parts))})" if parts else term.symbol


def written(expression: Expression) -> str:
    """The text of an S-expression."""
    return expression if isinstance(expression, str) else f"({' '.join(map(written, expression))})"


def _symbols(value: str) -> set[str]:
    return set(value.replace("(", " ").replace(")", " ").split())


class _Variable(NamedTuple):
    name: str
    sort: str


class _Value(NamedTuple):
    """What stands for a variable in a sentence: a variable, or a function for witnesses with variables."""

    symbol: str
    variables: tuple[_Variable, ...]
    is_witness: bool = False

    @property
    def text(self) -> str:
        """The S-expression."""
        names = " ".join(name for name, _ in self.variables)
        return f"({self.symbol} {names})" if self.is_witness and names else self.symbol


_Values: TypeAlias = dict[str, _Value]


class _Witness(NamedTuple):
    """The function for a variable of a quantified formula: its place there, and the values of the free variables."""

    formula: Term
    place: int
    values: _Values
    variables: tuple[_Variable, ...]


class _Sentence(NamedTuple):
    """A universal formula that a part of an assertion implies."""

    path: Path
    variables: tuple[_Variable, ...]
    matrix: str


class _Instance(NamedTuple):
    """A sentence with terms for its variables."""

    number: int
    values: tuple[str, ...]


class _Sentences:
    """The assertions of a proof as universal sentences for z3, and the way back from an instance to steps."""

    def __init__(self, log: _StepLog) -> None:
        self._log = log
        self._witnesses: dict[str, _Witness] = {}
        self._bound: dict[Path, tuple[_Variable, ...] | None] = {}
        """The variables at each universal quantifier; None for an existential one."""
        self._has_quantifier: dict[Term, bool] = {}
        self.listed = [
            sentence
            for number, formula in enumerate(log.proof.assertions)
            for sentence in self._split(formula, True, (number,), {}, ())
        ]

    @property
    def declarations(self) -> str:
        """The sorts and functions of the sentences."""
        terms = self._log.proof.terms
        lines = ["(set-logic ALL)", *(f"(declare-sort {sort} 0)" for sort in sorted(terms.sorts - {BOOL, INT}))]
        functions = {**terms.functions, **{name: self._signature(name) for name in self._witnesses}}
        lines += [f"(declare-fun {name} ({' '.join(given)}) {result})" for name, (given, result) in functions.items()]
        return "\n".join(lines)

    @property
    def script(self) -> str:
        """The question whether the sentences are satisfiable. The quantifier of sentence 5 is named s5."""
        return "\n".join((self.declarations, *self._assertions(), "(check-sat)"))

    def _assertions(self) -> Iterator[str]:
        for number, sentence in enumerate(self.listed):
            body = sentence.matrix
            if sentence.variables:
                variables = " ".join(f"({name} {sort})" for name, sort in sentence.variables)
                body = f"(forall ({variables}) (! {body} :qid s{number}))"
            yield f"(assert {body})"

    def has(self, instance: _Instance) -> bool:
        """Whether an instance has a term for each variable, and no symbol that the solver has made itself."""
        if instance.number < 0 or len(instance.values) != len(self.listed[instance.number].variables):
            return False
        known = {"ite", *CONNECTIVES, "=", "<=", *self._log.proof.terms.functions, *self._witnesses}
        return all(
            symbol in known or numeral(symbol) is not None for value in instance.values for symbol in _symbols(value)
        )

    def ground(self, instance: _Instance) -> str:
        """The matrix of a sentence with the terms."""
        sentence = self.listed[instance.number]
        if not sentence.variables:
            return sentence.matrix
        named = zip(sentence.variables, instance.values, strict=True)
        return f"(let ({' '.join(f'({variable.name} {value})' for variable, value in named)}) {sentence.matrix})"

    def _signature(self, name: str) -> tuple[tuple[str, ...], str]:
        witness = self._witnesses[name]
        return tuple(variable.sort for variable in witness.variables), name.rpartition("!")[2]

    def _quantified(self, term: Term) -> bool:
        if term not in self._has_quantifier:
            self._has_quantifier[term] = term.is_quantifier or any(map(self._quantified, term.arguments))
        return self._has_quantifier[term]

    def _split(
        self, term: Term, holds: bool, path: Path, values: _Values, scope: tuple[_Variable, ...]
    ) -> Iterator[_Sentence]:
        """The sentences of a formula that holds, or does not."""
        if term.is_quantifier and (self._quantified(term.arguments[-1]) or (term.symbol == "forall") != holds):
            inner, within = self._entered(term, holds, path, values, scope)
            yield from self._split(term.arguments[-1], holds, (*path, _BODY), inner, within)
        elif term.symbol == "not":
            yield from self._split(term.arguments[0], not holds, (*path, 0), values, scope)
        elif (term.symbol, holds) in {("and", True), ("or", False), ("=>", False)}:
            last = len(term.arguments) - 1
            for place, part in enumerate(term.arguments):
                part_holds = holds or (term.symbol == "=>" and place < last)
                yield from self._split(part, part_holds, (*path, place), values, scope)
        else:
            bound = list(scope)
            matrix = self._matrix(term, holds, path, values, scope, bound)
            yield _Sentence(path, tuple(bound), matrix if holds else f"(not {matrix})")

    def _entered(
        self, term: Term, holds: bool, path: Path, values: _Values, scope: tuple[_Variable, ...]
    ) -> tuple[_Values, tuple[_Variable, ...]]:
        """The texts for the variables below a quantifier, and the universal variables there."""
        *bound, _ = term.arguments
        label = ".".join(map(str, path))
        names = [f"{label}!{place}!{variable.sort}" for place, variable in enumerate(bound)]
        if (term.symbol == "forall") == holds:
            variables = tuple(_Variable(f"x{name}", bound[place].sort) for place, name in enumerate(names))
            self._bound[path], scope = variables, scope + variables
            meant = [_Value(variable.name, (variable,)) for variable in variables]
        else:
            self._bound[path] = None
            free = {name: values[name] for name in sorted(term.free)}
            variables = tuple(dict.fromkeys(variable for value in free.values() for variable in value.variables))
            self._witnesses |= {f"w{name}": _Witness(term, place, free, variables) for place, name in enumerate(names)}
            meant = [_Value(f"w{name}", variables, is_witness=True) for name in names]
        return {**values, **{variable.symbol[1:]: value for variable, value in zip(bound, meant, strict=True)}}, scope

    def _matrix(
        self,
        term: Term,
        holds: bool,
        path: Path,
        values: _Values,
        scope: tuple[_Variable, ...],
        bound: list[_Variable],
    ) -> str:
        """The formula without quantifiers; `bound` gets the universal variables of all."""
        if not self._quantified(term):
            return text(term, {name: value.text for name, value in values.items()})

        def part(place: int, *, same: bool = True) -> str:
            index = place if same or term.symbol in {"not", "=>"} else ~place
            return self._matrix(term.arguments[place], holds == same, (*path, index), values, scope, bound)

        if term.is_quantifier:
            inner, within = self._entered(term, holds, path, values, scope)
            bound += within[len(scope) :]
            return self._matrix(term.arguments[-1], holds, (*path, _BODY), inner, within, bound)
        last = len(term.arguments) - 1
        if term.symbol in {"and", "or"}:
            return f"({term.symbol} {' '.join(part(place) for place in range(last + 1))})"
        if term.symbol == "not":
            return f"(not {part(0, same=False)})"
        if term.symbol == "=>":
            return f"(=> {' '.join(part(place, same=place == last) for place in range(last + 1))})"
        if term.symbol == "=":
            return f"(and (=> {part(0, same=False)} {part(1)}) (=> {part(1, same=False)} {part(0)}))"
        return f"(and (=> {part(0, same=False)} {part(1)}) (or {part(0)} {part(2)}))"

    def realise(self, instance: _Instance) -> None:
        """Take the steps that prove the clauses of an instance."""
        sentence = self.listed[instance.number]
        values = [self._closed(expressions(value)[0]) for value in instance.values]
        choice = dict(zip(sentence.variables, values, strict=True))
        self._part(sentence.path, choice)
        length = len(sentence.path)
        for path in sorted(self._bound, key=len):
            if path[:length] == sentence.path:
                self._part((*path, _BODY), choice)

    def _part(self, path: Path, choice: Mapping[_Variable, str]) -> Term:
        """The part of an assertion at a path, after the steps on the way to it."""
        if len(path) == 1:
            return self._log.proof.assertions[path[0]]
        term, index = self._part(path[:-1], choice), path[-1]
        if index != _BODY:
            return term.arguments[index if index >= 0 else ~index]
        variables = self._bound[path[:-1]]
        if variables is None:
            return self._log.proof.terms.instance(term, self._log.witness(text(term)))
        return self._log.instance(term, tuple(choice[variable] for variable in variables))

    def _closed(self, value: Expression) -> str:
        """A term of a sentence with the constants of witnesses in the place of their functions."""
        head, *rest = [value] if isinstance(value, str) else value
        symbol, arguments = written(head), [self._closed(argument) for argument in rest]
        if symbol in self._witnesses:
            return self._constant(symbol, arguments)
        return f"({' '.join((symbol, *arguments))})" if arguments else symbol

    def _constant(self, symbol: str, arguments: Sequence[str]) -> str:
        """The constant that a function for witnesses has for some terms."""
        witness = self._witnesses[symbol]
        choice = dict(zip(witness.variables, arguments, strict=True))

        def value(meant: _Value) -> str:
            terms = [choice[variable] for variable in meant.variables]
            return self._constant(meant.symbol, terms) if meant.is_witness else terms[0]

        values = {name: value(meant) for name, meant in witness.values.items()}
        return self._log.witness(text(witness.formula, values))[witness.place].symbol


def _instances(sentences: _Sentences, seconds: float) -> list[_Instance]:
    """The instances that a refutation needs. Raises UncertifiedError if neither solver reports enough of them."""
    ground = [_Instance(number, ()) for number, sentence in enumerate(sentences.listed) if not sentence.variables]
    for seed in range(ATTEMPTS):
        for search in (_made_by_cvc5, _made_by_z3):
            made = filter(sentences.has, search(sentences.script, seed, int(seconds * MILLISECONDS / ATTEMPTS)))
            needed = _core(sentences, [*ground, *dict.fromkeys(made)], seconds)
            if needed is not None:
                return needed
    raise UncertifiedError("neither solver reports instances that refute the sentences")


def _made_by_cvc5(script: str, seed: int, milliseconds: int) -> Iterator[_Instance]:
    """The instances in the proof of cvc5; nothing without a proof."""
    cvc5 = Solver.CVC5.load()
    solver = cvc5.Solver(cvc5.TermManager())
    for name, value in (("produce-proofs", "true"), ("tlimit-per", str(milliseconds)), ("seed", str(seed))):
        solver.setOption(name, value)
    if answer_of_cvc5(solver, script) == "unsat":
        lists = solver.getInstantiations()
        for group in expressions(lists.decode() if isinstance(lists, bytes) else lists):
            if isinstance(group, list):  # and not the word "none"
                number = _numbered(written(group[1]))
                yield from (_Instance(number, tuple(map(written, values))) for values in group[2:])


def _made_by_z3(script: str, seed: int, milliseconds: int) -> list[_Instance]:
    """The instances that z3 makes on its way to a refutation."""
    made: list[_Instance] = []

    def note(reason: z3.ExprRef | None, _: object, __: object) -> None:
        if reason is not None and z3.is_app(reason) and reason.decl().name() == "inst":
            quantifier, *_, binding, _ = reason.children()
            values = tuple(value.sexpr() for value in binding.children())
            made.append(_Instance(_numbered(quantifier.qid()), values))

    solver = z3.Solver()
    solver.set("timeout", milliseconds, "random_seed", seed)
    z3.OnClause(solver, note)
    solver.from_string(script)
    return made if solver.check() == z3.unsat else []


def _numbered(name: str) -> int:
    """The number of the sentence whose quantifier has this name; -1 for one that a solver has made itself."""
    number = integer(name[1:], 0, LARGEST) if name.startswith("s") else None
    return -1 if number is None else number


def _core(sentences: _Sentences, instances: Sequence[_Instance], seconds: float) -> list[_Instance] | None:
    """The instances that are needed; None if z3 does not refute all of them together."""
    labels = {f"instance!{place}": instance for place, instance in enumerate(instances)}
    solver = z3.Solver()
    solver.set("timeout", int(seconds * MILLISECONDS), "core.minimize", True)
    lines = (f"(declare-const {label} Bool)(assert (=> {label} {sentences.ground(labels[label])}))" for label in labels)
    solver.from_string("\n".join((sentences.declarations, *lines)))
    if solver.check(*map(z3.Bool, labels)) != z3.unsat:
        return None
    needed = {str(label) for label in solver.unsat_core()}
    return [instance for label, instance in labels.items() if label in needed]


class _CaseSearch:
    """The search through the cases of the clauses of a proof, until the empty clause."""

    def __init__(self, log: _StepLog) -> None:
        self._log, self._proof = log, log.proof
        self._solver = z3.Solver()
        self._expressions: dict[Term, z3.ExprRef] = {}
        self._sorts = {name: z3.DeclareSort(name) for name in self._proof.terms.sorts}
        self._sorts |= {BOOL: z3.BoolSort(), INT: z3.IntSort()}
        self._atoms: dict[str, tuple[Term, bool]] = {}

    def finish(self) -> None:
        """Add lemmas and derived clauses until the proof is complete. Raises UncertifiedError."""
        while not self._proof.is_complete:
            decisions = self._decide()
            if self._proof.conflict is not None:
                clause = tuple(-literal for literal in self._causes(decisions))
                self._proof.retract()
                self._log.derived(clause)
            else:
                lemma = self._lemma()
                self._proof.retract()
                self._log.lemma(lemma)

    def _decide(self) -> list[Literal]:
        """Choose literals until all clauses hold, or one does not."""
        proof, decisions = self._proof, list[Literal]()
        for clause in proof.clauses:
            while proof.conflict is None and not any(literal in proof.reasons for literal in clause):
                choice = next(literal for literal in clause if -literal not in proof.reasons)
                decisions.append(choice)
                proof.assume([choice])
        return decisions

    def _causes(self, decisions: Sequence[Literal]) -> list[Literal]:
        """The decisions that the conflict follows from."""
        proof, causes = self._proof, set[Literal]()
        pending = [-literal for literal in proof.conflict or ()]
        while pending:
            literal = pending.pop()
            if literal not in causes:
                causes.add(literal)
                pending += [-other for other in proof.reasons[literal] if other != literal]
        return [decision for decision in decisions if decision in causes]

    def _lemma(self) -> Clause:
        """A clause of equality and arithmetic that is false now. Raises UncertifiedError."""
        literals = [literal for literal in self._proof.reasons if self._is_theory(self._proof.terms[abs(literal)])]
        labels = {str(label): literal for literal in literals for label in (self._label(literal),)}
        if self._solver.check(*(z3.Bool(label) for label in labels)) != z3.unsat:
            raise UncertifiedError("the steps leave a case that equality and arithmetic do not refute")
        core = [labels[str(label)] for label in self._solver.unsat_core()]
        atoms = {literal: (self._proof.terms[abs(literal)], literal > 0) for literal in core}
        if not is_refuted(atoms.values()):
            raise UncertifiedError("a case is refuted by z3 and not by the checker")
        for literal in core:
            smaller = {other: atom for other, atom in atoms.items() if other != literal}
            if is_refuted(smaller.values()):
                atoms = smaller
        return tuple(-literal for literal in atoms)

    @staticmethod
    def _is_theory(term: Term) -> bool:
        return term.sort == BOOL and not (term.is_connective or term.is_quantifier)

    def _label(self, literal: Literal) -> str:
        """The name of an assumption that implies the literal."""
        label = f"literal!{literal}"
        if label not in self._atoms:
            atom = self._proof.terms[abs(literal)]
            self._atoms[label] = atom, literal > 0
            expression = self._expression(atom)
            self._solver.add(z3.Implies(z3.Bool(label), expression if literal > 0 else z3.Not(expression)))
        return label

    def _expression(self, term: Term) -> z3.ExprRef:
        """A term for z3. A conditional is a constant there, since clauses define it."""
        if term not in self._expressions:
            self._expressions[term] = self._built(term)
        return self._expressions[term]

    def _built(self, term: Term) -> z3.ExprRef:
        if term.value is not None:
            return z3.IntVal(term.value)
        if term.symbol == "ite":
            return z3.Const(f"ite!{term.number}", self._sorts[term.sort])
        arguments = [self._expression(argument) for argument in term.arguments]
        if term.symbol in self._proof.terms.functions:
            given, result = self._proof.terms.functions[term.symbol]
            return z3.Function(term.symbol, *(self._sorts[sort] for sort in (*given, result)))(*arguments)
        if term.symbol == "-" and len(arguments) == 1:
            return -arguments[0]
        operators = {
            "=": lambda a, b: a == b,
            "<=": lambda a, b: a <= b,
            "div": lambda a, b: a / b,
            "*": lambda a, b: a * b,
        }
        if term.symbol in operators:
            return operators[term.symbol](*arguments)
        total = arguments[0]
        for argument in arguments[1:]:
            total = total + argument if term.symbol == "+" else total - argument
        return total


__all__ = ["RejectedError", "UncertifiedError", "certificate"]
