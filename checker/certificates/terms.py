"""The terms and formulas of an SMT-LIB script.

Rules this module keeps:

- Equal terms are one object. Terms are numbered from 1 in the order of their construction, arguments first, so
  the numbers depend on the formulas alone, and not on the names that `let` gives to their parts.
- `<=` is the only comparison and `=` of two terms has its lower number first: the others are rewritten when built.
- A term that a name of `let` stands for is read where the name is used, with the names of the place of the `let`.
- What this reader does not know is refused: it skips nothing but `set-logic`, `set-info` and comments.

Source: the SMT-LIB Standard, version 2.6, sections 3 and 4, and the theories Core and Ints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from string import digits
from typing import Final, TypeAlias

from spec.text import integer

BOOL, INT = "Bool", "Int"
CONNECTIVES: Final = frozenset({"true", "false", "not", "and", "or", "=>"})
QUANTIFIERS: Final = frozenset({"forall", "exists"})
_COMPARISONS: Final = frozenset({"<=", "<", ">=", ">"})
_ARITHMETIC: Final = {"+": (2, None), "-": (1, None), "*": (2, None), "div": (2, 2)}
"""The functions on integers, with the least and the largest number of arguments."""
_BUILT_IN: Final = CONNECTIVES | QUANTIFIERS | _COMPARISONS | _ARITHMETIC.keys() | {"=", "distinct", "ite", "let", "!"}
LARGEST: Final = 10**18
"""The largest number in a script or a certificate."""
_NUMERAL: Final = re.compile("0|[1-9][0-9]*")
_TOKEN: Final = re.compile(r"\s+|;[^\n]*|(?P<token>[()]|[A-Za-z0-9+\-/*=%?!.$_~&^<>@:#]+)")


def numeral(symbol: str) -> int | None:
    """The number that a symbol is the numeral of; None for any other symbol."""
    return integer(symbol, 0, LARGEST) if _NUMERAL.fullmatch(symbol) else None


class RejectedError(ValueError):
    """A script or a certificate that this program does not accept; the message is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term: a symbol with arguments; a numeral; a variable; or a quantifier, whose last argument is its body.

    `free` has the names of the variables that no quantifier of the term binds.
    """

    number: int
    symbol: str
    arguments: tuple[Term, ...]
    sort: str
    free: frozenset[str]

    @property
    def is_quantifier(self) -> bool:
        """The term is a quantified formula."""
        return self.symbol in QUANTIFIERS

    @property
    def is_connective(self) -> bool:
        """The term is a formula whose truth depends on that of other formulas alone."""
        of_formulas = self.symbol in {"=", "ite"} and self.sort == BOOL and self.arguments[-1].sort == BOOL
        return self.symbol in CONNECTIVES or of_formulas

    @property
    def value(self) -> int | None:
        """The number that a numeral stands for."""
        return numeral(self.symbol)


Expression: TypeAlias = "str | list[Expression]"


@dataclass(slots=True)
class _Named:
    """An expression that a `let` names, with its scope, and the term once it was needed."""

    expression: Expression
    scope: Mapping[str, _Named | Term]
    term: Term | None = None


_Scope: TypeAlias = Mapping[str, "_Named | Term"]


def expressions(text: str) -> list[Expression]:
    """The S-expressions of a text. Raises RejectedError."""
    top: list[Expression] = []
    open_lists = [top]
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise RejectedError(f"unexpected character {text[place]!r}")
        place, token = match.end(), match["token"]
        if token == "(":
            inner: list[Expression] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif token == ")":
            if len(open_lists) == 1:
                raise RejectedError("a parenthesis too many is closed")
            open_lists.pop()
        elif token is not None:
            open_lists[-1].append(token)
    if len(open_lists) > 1:
        raise RejectedError("a parenthesis is not closed")
    return top


@dataclass(slots=True)
class TermTable:
    """All terms of one script and its certificate, and the symbols that they are made of."""

    sorts: set[str] = field(default_factory=lambda: {BOOL, INT})
    functions: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    _all: list[Term] = field(default_factory=list)
    _known: dict[tuple[str, tuple[int, ...], str], Term] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Term:
        """The term with a number. Raises RejectedError."""
        if not 1 <= number <= len(self._all):
            raise RejectedError(f"term {number} does not exist")
        return self._all[number - 1]

    def declare(self, name: str, arguments: Sequence[str], result: str) -> None:
        """Declare a function, or a constant. Raises RejectedError."""
        if name in self.functions or name in _BUILT_IN or name[0] in digits:
            raise RejectedError(f"{name} is declared already")
        for sort in (*arguments, result):
            if sort not in self.sorts:
                raise RejectedError(f"{name} has the unknown sort {sort}")
        self.functions[name] = tuple(arguments), result

    def applied(self, symbol: str, arguments: Sequence[Term] = ()) -> Term:
        """A symbol with arguments. Raises RejectedError if their number or sorts are wrong."""
        sorts = [argument.sort for argument in arguments]
        if not arguments and numeral(symbol) is not None:
            return self._made(symbol, (), INT)
        if symbol in self.functions:
            expected, result = self.functions[symbol]
            self._demand(tuple(sorts) == expected, symbol, sorts)
            return self._made(symbol, arguments, result)
        if symbol in CONNECTIVES:
            most = {"true": 0, "false": 0, "not": 1}.get(symbol)
            self._demand(
                set(sorts) <= {BOOL} and (len(sorts) == most if most is not None else sorts != []), symbol, sorts
            )
            return self._made(symbol, arguments, BOOL)
        if symbol in _COMPARISONS:
            self._demand(sorts == [INT, INT], symbol, sorts)
            left, right = arguments if symbol in {"<=", ">"} else arguments[::-1]
            at_most = self._made("<=", (left, right), BOOL)
            return at_most if symbol in {"<=", ">="} else self._made("not", (at_most,), BOOL)
        if symbol in _ARITHMETIC:
            least, limit = _ARITHMETIC[symbol]
            self._demand(set(sorts) == {INT} and least <= len(sorts) <= (limit or len(sorts)), symbol, sorts)
            return self._made(symbol, arguments, INT)
        return self._compared(symbol, arguments, sorts)

    def _compared(self, symbol: str, arguments: Sequence[Term], sorts: list[str]) -> Term:
        if symbol == "=":
            self._demand(len(sorts) == 2 and sorts[0] == sorts[1], symbol, sorts)
            pair = arguments if sorts[0] == BOOL else sorted(arguments, key=lambda term: term.number)
            return self._made("=", pair, BOOL)
        if symbol == "distinct":
            self._demand(len(sorts) >= 2 and len(set(sorts)) == 1, symbol, sorts)
            unequal = [
                self._made("not", (self._compared("=", pair, [pair[0].sort] * 2),), BOOL)
                for pair in combinations(arguments, 2)
            ]
            return unequal[0] if len(unequal) == 1 else self._made("and", unequal, BOOL)
        if symbol == "ite":
            self._demand(len(sorts) == 3 and sorts[0] == BOOL and sorts[1] == sorts[2], symbol, sorts)
            return self._made("ite", arguments, sorts[1])
        raise RejectedError(f"the symbol {symbol} is not known")

    @staticmethod
    def _demand(is_right: bool, symbol: str, sorts: Sequence[str]) -> None:
        if not is_right:
            raise RejectedError(f"{symbol} cannot have arguments of the sorts ({' '.join(sorts)})")

    def variable(self, name: str, sort: str) -> Term:
        """A variable. No symbol begins with a colon."""
        return self._made(f":{name}", (), sort, frozenset({name}))

    def quantified(self, quantifier: str, variables: Sequence[Term], body: Term) -> Term:
        """A quantified formula. Raises RejectedError."""
        names = {name for variable in variables for name in variable.free}
        if not variables or len(names) < len(variables) or body.sort != BOOL:
            raise RejectedError(f"{quantifier} needs different variables and a formula")
        return self._made(quantifier, (*variables, body), BOOL, body.free - names)

    def _made(self, symbol: str, arguments: Sequence[Term], sort: str, free: frozenset[str] | None = None) -> Term:
        key = symbol, tuple(argument.number for argument in arguments), sort
        if key not in self._known:
            if free is None:
                free = frozenset().union(*(argument.free for argument in arguments))
            self._known[key] = Term(len(self._all) + 1, symbol, tuple(arguments), sort, free)
            self._all.append(self._known[key])
        return self._known[key]

    def instance(self, quantified: Term, values: Sequence[Term]) -> Term:
        """The body of a quantified formula with closed terms for its variables. Raises RejectedError."""
        variables = quantified.arguments[:-1]
        if not quantified.is_quantifier or quantified.free:
            raise RejectedError(f"term {quantified.number} is not a closed quantified formula")
        if [value.sort for value in values] != [variable.sort for variable in variables]:
            raise RejectedError(f"the terms do not have the sorts of the variables of formula {quantified.number}")
        if any(value.free for value in values):
            raise RejectedError("a term of an instance has variables")
        return self._substituted(quantified.arguments[-1], dict(zip(variables, values, strict=True)), {})

    def _substituted(self, term: Term, values: Mapping[Term, Term], done: dict[Term, Term]) -> Term:
        """The term with closed terms for variables. They have no variables, so no quantifier captures any."""
        if not any(name in term.free for variable in values for name in variable.free):
            return term
        if term not in done:
            if term in values:
                done[term] = values[term]
            elif term.is_quantifier:
                *variables, body = term.arguments
                hidden = {name for variable in variables for name in variable.free}
                visible = {variable: value for variable, value in values.items() if not variable.free & hidden}
                done[term] = self.quantified(term.symbol, variables, self._substituted(body, visible, {}))
            else:
                parts = [self._substituted(argument, values, done) for argument in term.arguments]
                done[term] = self.applied(term.symbol, parts)
        return done[term]

    def read(self, expression: Expression, scope: _Scope | None = None) -> Term:
        """The term that an S-expression means. Raises RejectedError."""
        scope = scope or {}
        if isinstance(expression, str):
            meaning = scope.get(expression)
            if isinstance(meaning, _Named):
                if meaning.term is None:
                    meaning.term = self.read(meaning.expression, meaning.scope)
                return meaning.term
            return meaning or self.applied(expression)
        head, rest = expression[0] if expression else expression, expression[1:]
        if not isinstance(head, str):
            raise RejectedError("a list does not begin with a symbol")
        if head == "let" and len(rest) == 2:
            named = {name: _Named(value, scope) for name, value in _pairs(rest[0])}
            return self.read(rest[1], {**scope, **named})
        if head in QUANTIFIERS and len(rest) == 2:
            variables = {name: self.variable(name, self._sort(sort)) for name, sort in _pairs(rest[0])}
            return self.quantified(head, list(variables.values()), self.read(rest[1], {**scope, **variables}))
        return self.applied(head, [self.read(part, scope) for part in rest])

    def _sort(self, name: Expression) -> str:
        if not isinstance(name, str) or name not in self.sorts:
            raise RejectedError(f"the sort {name} is not known")
        return name


def _pairs(expression: Expression) -> Iterator[tuple[str, Expression]]:
    """Each name of a `let` or a quantifier, with the expression after it."""
    names = set()
    for pair in expression:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or pair[0] in names:
            raise RejectedError("a list of names is malformed, or names one twice")
        names.add(pair[0])
        yield pair[0], pair[1]


def script(text: str, terms: TermTable) -> list[Term]:
    """The assertions of an SMT-LIB script, whose sorts and functions are declared in `terms`. Raises RejectedError."""
    if "#" in text:
        raise RejectedError("a script has the character #")
    asserted: list[Term] = []

    def assertion(formula: Expression) -> None:
        term = terms.read(formula)
        if term.sort != BOOL:
            raise RejectedError("an assertion is not a formula")
        asserted.append(term)

    def new_sort(name: Expression, arity: Expression) -> None:
        if not isinstance(name, str) or name in terms.sorts or arity != "0":
            raise RejectedError(f"the sort {name} cannot be declared")
        terms.sorts.add(name)

    def new_function(name: Expression, arguments: Expression, result: Expression) -> None:
        if not isinstance(name, str) or isinstance(arguments, str):
            raise RejectedError("a declaration is malformed")
        terms.declare(name, [terms._sort(argument) for argument in arguments], terms._sort(result))

    commands: dict[str, tuple[int | None, Callable[..., None]]] = {
        "set-logic": (None, lambda *_: None),
        "set-info": (None, lambda *_: None),
        "declare-sort": (2, new_sort),
        "declare-fun": (3, new_function),
        "assert": (1, assertion),
    }
    *listed, last = expressions(text) or [""]
    if last != ["check-sat"]:
        raise RejectedError("the script does not end with check-sat")
    for command in listed:
        name = command[0] if isinstance(command, list) and command else command
        arity, action = commands.get(str(name), (-1, assertion))
        if arity not in {None, len(command) - 1}:
            raise RejectedError(f"the command {name} is not known here")
        action(*command[1:])
    return asserted
