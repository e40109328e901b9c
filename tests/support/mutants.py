"""Mutants of the specification: each changes one expression or statement of one module of `spec`.

A mutant is identified by its module, the function, the text before and after, and a number where that pair occurs more
than once in the function. Line numbers are not part of the identity, so unrelated edits do not change it.

The operators: comparisons, negation, `and`/`or`, arithmetic and bit operators, constants, enum members, effects of a
tuple, keywords of a call (fields that `replace` updates), swapped arguments, and statements.

Three kinds of code have no mutants, because no behaviour depends on them: annotations and docstrings, assertions, and
the texts of f-strings.
"""

import ast
import copy
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LEFT_OUT = {"spec/variants.py"}  # a list of names, without behaviour

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """A node, the text that replaces it, and the readable form of both."""

    node: ast.expr | ast.stmt
    text: str
    before: str
    after: str
    in_function: bool = True

    def applied(self, source: str) -> str:
        node, data = self.node, source.encode()
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        lines = data.splitlines(keepends=True)
        begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
        end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
        return (data[:begin] + self.text.encode() + data[end:]).decode()


@dataclass(frozen=True)
class Mutant:
    """One change of one module. `path` is relative to the repository."""

    path: str
    function: str
    before: str
    after: str
    number: int
    change: Change = field(repr=False, compare=False)

    @property
    def is_in_a_class_or_module(self) -> bool:
        """Whether the code runs when the module is imported, outside of any function."""
        return not self.change.in_function

    @cached_property
    def text(self) -> str:
        return self.change.applied((REPOSITORY / self.path).read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """The identity in one line."""
        number = f" #{self.number}" if self.number > 1 else ""
        return f"{self.path}: {self.function}: {self.before} -> {self.after}{number}"

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def rank(self) -> str:
        """A hash of the identity. The mutants with the lowest ranks are the sample."""
        return sha256(self.name.encode()).hexdigest()


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Return every mutant of `spec`, in the order of its rank."""
    sources = sorted((REPOSITORY / "spec").rglob("*.py"))
    paths = [str(source.relative_to(REPOSITORY)) for source in sources]
    made = [mutant for path in paths if path not in LEFT_OUT for mutant in mutants_of(path)]
    return tuple(sorted(made, key=lambda mutant: mutant.rank))


def mutants_of(path: str) -> Iterator[Mutant]:
    """Yield the mutants of one module, in the order of the source."""
    source = (REPOSITORY / path).read_text(encoding="utf-8")
    seen: Counter[tuple[str, str, str]] = Counter()
    for function, change in _Changes(source).found:
        pair = (function, change.before, change.after)
        seen[pair] += 1
        yield Mutant(path, function, change.before, change.after, seen[pair], change)


def write_copy(folder: Path) -> None:
    """Copy the package `spec` into a folder; the scenarios are a symbolic link."""
    shutil.copytree(REPOSITORY / "spec", folder / "spec", ignore=shutil.ignore_patterns("__pycache__", "scenarios"))
    (folder / "spec" / "scenarios").symlink_to(REPOSITORY / "spec" / "scenarios")


def _shown(node: ast.AST) -> str:
    """Return the first line of a node's source in normal form."""
    return ast.unparse(node).partition("\n")[0]


def _is_constant_name(name: str) -> bool:
    return name.isupper() and len(name) > 1


class _Changes(ast.NodeVisitor):
    """A visitor that collects the changes of a module, each with the function that contains it."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self.found: list[tuple[str, Change]] = []
        self._scope: list[str] = []
        self._functions = 0
        self._members: dict[str, list[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_constant_name(node.attr):
                members = self._members.setdefault(node.value.id, [])
                members += [node.attr] if node.attr not in members else []
        self.visit(tree)

    def _add(self, node: ast.expr | ast.stmt, text: str, before: str, after: str) -> None:
        self.found.append((".".join(self._scope) or "module", Change(node, text, before, after, self._functions > 0)))

    def _expression(self, node: ast.expr, after: ast.expr) -> None:
        self._add(node, f"({ast.unparse(after)})", _shown(node), _shown(after))

    # Code without mutants.

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and _shown(node.annotation) != "TypeAlias":
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Skip assertions: they have no effect on behaviour."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip f-strings: they are texts, and `ast` gives no correct offsets inside them before Python 3.12."""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        for each in node.body:
            self.visit(each)
        self._scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scope.append(node.name)
        for default in [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]:
            self.visit(default)
        self._functions += 1
        for each in node.body:
            self.visit(each)
        self._functions -= 1
        self._scope.pop()

    # Statements.

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(node, "pass", _shown(node), "dropped")
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "pass", _shown(node), "dropped")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._negated(node.test)
        if not node.orelse:
            self._add(node, "pass", _shown(node), "dropped")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negated(test)
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard is not None:
            self._negated(node.guard)
            self.visit(node.guard)
        for each in node.body:
            self.visit(each)

    def _negated(self, test: ast.expr) -> None:
        """Negate a test, except a comparison or a negation, which has its mutant where it is visited."""
        if not isinstance(test, ast.Compare) and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self._expression(test, ast.UnaryOp(ast.Not(), test))

    # Expressions.

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                after = copy.copy(node)
                after.ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                self._expression(node, after)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._expression(node, node.operand)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._expression(node, ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = OPERATORS.get(type(node.op))
        if other is not None:
            self._expression(node, ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._expression(node, ast.Constant(not node.value))
        elif isinstance(node.value, int):
            self._expression(node, ast.Constant(node.value + 1))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and _is_constant_name(node.attr) and node.value.id != "Variant":
            members = self._members[node.value.id]
            after = members[(members.index(node.attr) + 1) % len(members)]
            if after != node.attr:
                self._expression(node, ast.Attribute(node.value, after))
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        if isinstance(node.ctx, ast.Load):
            for place, element in enumerate(node.elts):
                if isinstance(element, ast.Call | ast.Starred):
                    after = ast.Tuple([*node.elts[:place], *node.elts[place + 1 :]], ast.Load())
                    self._add(node, ast.unparse(after), f"{_shown(element)} in {_shown(node)}", "dropped")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for place, keyword in enumerate(node.keywords):
            if isinstance(node.func, ast.Name) and node.func.id == "replace":
                after = ast.Call(node.func, node.args, [*node.keywords[:place], *node.keywords[place + 1 :]])
                self._add(node, ast.unparse(after), f"{_shown(keyword)} in {_shown(node)}", "dropped")
        for place, (left, right) in enumerate(pairwise(node.args)):
            if isinstance(left, ast.Constant) and isinstance(right, ast.Constant) and left.value != right.value:
                swapped = [*node.args[:place], right, left, *node.args[place + 2 :]]
                self._expression(node, ast.Call(node.func, swapped, node.keywords))
        self.generic_visit(node)
