"""The kernels of stubborn sets as ordinary Python functions, perhaps with a changed line.

Mutants need no compilation then, and an index out of range is an error, since NumPy checks every one. The sources are
executed again under other names, with decorators that change nothing.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from checker.engine import rounds, worker
from checker.engine.reduction import stubborn

MODULES = (
    "hash_tables",
    "move_kernels",
    "closure_kernels",
    "message_kernels",
    "queue_kernels",
    "stubborn_kernels",
    "drain_kernels",
    "row_kernels",
    "build_kernels",
    "search_kernels",
)
CALLED = {
    "find_stubborn_set": (stubborn,),
    "find_drained": (stubborn,),
    "expand": (worker,),
    "build": (worker, rounds),
}
"""The kernels that Python calls, and where."""
PACKAGE = "checker.engine.kernels"


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _ones_below(word: Any) -> np.uint64:
    number = int(word)
    return np.uint64((number & -number).bit_length() - 1 if number else 64)


def _jit() -> types.ModuleType:
    module = types.ModuleType(f"pure.{PACKAGE}.jit")
    for name in ("kernel", "inlined", "shared"):
        setattr(module, name, _same)
    module.ones_below = _ones_below  # type: ignore[attr-defined]
    module.prefetch = lambda *_: None  # type: ignore[attr-defined]
    return module


def use_pure(
    monkeypatch: pytest.MonkeyPatch, changed: str = "", right: str = "", wrong: str = "", *, searches: bool = False
) -> None:
    """Let `StubbornSets` call kernels in Python, where the module `changed` has a line that is wrong.

    With `searches`, the search of new states is in Python too.
    """
    monkeypatch.setitem(sys.modules, f"pure.{PACKAGE}.jit", _jit())
    for name in MODULES:
        source = inspect.getsource(importlib.import_module(f"{PACKAGE}.{name}"))
        if name == changed:
            assert source.count(right) == 1, (name, right, source.count(right))
            source = source.replace(right, wrong)
        module = types.ModuleType(f"pure.{PACKAGE}.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(source.replace(f"from {PACKAGE}.", f"from pure.{PACKAGE}."), module.__dict__)
        for kernel, callers in CALLED.items():
            if name in module.__dict__.get(kernel, _same).__module__:
                setattr(module, kernel, _quietly(getattr(module, kernel)))
                for caller in callers if searches or callers == (stubborn,) else ():
                    monkeypatch.setattr(caller, name, module)


def _quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in which products may overflow, as in compiled code."""

    def called(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return called
