"""The kernels of a search as ordinary Python functions, in which an index out of range is an error.

Compiled kernels check no index, NumPy checks every one. The sources are executed again under other names, with
decorators that change nothing.
"""

import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from checker.engine import rounds, worker

MODULES = (
    "hash_tables",
    "move_kernels",
    "build_kernels",
    "search_kernels",
)
CALLED = {
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
    for name in ("kernel", "inlined"):
        setattr(module, name, _same)
    module.ones_below = _ones_below  # type: ignore[attr-defined]
    module.prefetch = lambda *_: None  # type: ignore[attr-defined]
    return module


def use_pure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search expand and build states by kernels in Python."""
    monkeypatch.setitem(sys.modules, f"pure.{PACKAGE}.jit", _jit())
    for name in MODULES:
        source = inspect.getsource(importlib.import_module(f"{PACKAGE}.{name}"))
        module = types.ModuleType(f"pure.{PACKAGE}.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(source.replace(f"from {PACKAGE}.", f"from pure.{PACKAGE}."), module.__dict__)
        for kernel, callers in CALLED.items():
            if name in module.__dict__.get(kernel, _same).__module__:
                setattr(module, kernel, _quietly(getattr(module, kernel)))
                for caller in callers:
                    monkeypatch.setattr(caller, name, module)


def _quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in which products may overflow, as in compiled code."""

    def called(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return called
