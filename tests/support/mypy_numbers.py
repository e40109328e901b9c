"""A plugin of mypy that finds every conversion of a text to a number: only `spec.text` may have one.

The type of the argument decides, so a number of numpy or an enum is no finding. `spec.text` says why there is one
reader: `int` accepts other scripts' digits and underscores, and raises an error for more than 4,300 digits.
"""

from collections.abc import Callable, Iterable

from mypy.errorcodes import ErrorCode
from mypy.nodes import Expression, RefExpr
from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import Instance, Type, UnionType, get_proper_type

CODE = ErrorCode("foreign-number", "A text is read as a number elsewhere than in spec.text", "Quorate")
NUMBERS = {"builtins.int", "builtins.float", "builtins.complex", "fractions.Fraction", "decimal.Decimal"}
TEXTS = ("builtins.str", "builtins.bytes", "builtins.bytearray")
JUDGES = ("isdigit", "isdecimal", "isnumeric")
RIGHT = "use integer, decimal or an option's reader of spec.text"


class ForeignNumbers(Plugin):
    """Finds `int(text)`, `map(int, texts)`, `type=int` of an option, and `text.isdigit()`."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname in NUMBERS:
            return _conversion
        return _mapping if fullname == "builtins.map" else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        name = fullname.rpartition(".")[2]
        if name in JUDGES:
            return _judgement
        return _option if name == "add_argument" else None


def _is_text(given: Type) -> bool:
    proper = get_proper_type(given)
    if isinstance(proper, UnionType):
        return any(map(_is_text, proper.items))
    return isinstance(proper, Instance) and any(map(proper.type.has_base, TEXTS))


def _has_number(expressions: Iterable[list[Expression]]) -> bool:
    return any(isinstance(each, RefExpr) and each.fullname in NUMBERS for given in expressions for each in given)


def _refused(context: FunctionContext | MethodContext, wrong: bool) -> Type:
    if wrong:
        context.api.fail(f"A text is read as a number; {RIGHT}", context.context, code=CODE)
    return context.default_return_type


def _conversion(context: FunctionContext) -> Type:
    return _refused(context, any(map(_is_text, context.arg_types[0])) if context.arg_types else False)


def _mapping(context: FunctionContext) -> Type:
    proper = [get_proper_type(given) for given in context.arg_types[1]]
    texts = any(isinstance(each, Instance) and any(map(_is_text, (each, *each.args))) for each in proper)
    return _refused(context, texts and _has_number(context.args[:1]))


def _option(context: MethodContext) -> Type:
    return _refused(context, _has_number(context.args))


def _judgement(context: MethodContext) -> Type:
    return _refused(context, True)


def plugin(_version: str) -> type[Plugin]:
    """The entry point of mypy."""
    return ForeignNumbers
