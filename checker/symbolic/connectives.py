"""The logical connectives of the actions, for terms of z3 and for Python's truth values.

One definition of the actions then serves the proof, where their conditions are formulas over symbols, and the check of
the refinement, where the same conditions are evaluated in one finite state.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import z3

Formula: TypeAlias = Any
"""A Boolean term of z3, or a truth value of Python."""
Term: TypeAlias = Any
"""A term of z3 of any sort, or a value of Python."""


def _operands(given: tuple[Formula, ...]) -> list[Formula]:
    return list(given[0]) if len(given) == 1 and isinstance(given[0], list) else list(given)


def And(*given: Formula) -> Formula:  # noqa: N802 - the names of z3
    """All operands hold; a single list contains the operands."""
    operands = _operands(given)
    return all(operands) if all(isinstance(each, bool) for each in operands) else z3.And(*given)


def Or(*given: Formula) -> Formula:  # noqa: N802
    """Some operand holds; a single list contains the operands."""
    operands = _operands(given)
    return any(operands) if all(isinstance(each, bool) for each in operands) else z3.Or(*given)


def Not(operand: Formula) -> Formula:  # noqa: N802
    """The operand does not hold."""
    return not operand if isinstance(operand, bool) else z3.Not(operand)


def Implies(premise: Formula, conclusion: Formula) -> Formula:  # noqa: N802
    """If the premise holds, so does the conclusion."""
    if isinstance(premise, bool) and isinstance(conclusion, bool):
        return not premise or conclusion
    return z3.Implies(premise, conclusion)


def If(condition: Formula, then: Term, otherwise: Term) -> Term:  # noqa: N802
    """One of two values."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    return z3.If(condition, then, otherwise)
