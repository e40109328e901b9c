"""The kernels of stubborn sets as ordinary Python functions, with a changed line: mutants need no compilation.

The sources are executed again under other names, with decorators that change nothing.
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

from checker.engine.reduction import stubborn

MODULES = (
    "hash_tables",
    "move_kernels",
    "closure_kernels",
    "message_kernels",
    "queue_kernels",
    "stubborn_kernels",
    "drain_kernels",
)
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


def use_pure(monkeypatch: pytest.MonkeyPatch, changed: str = "", right: str = "", wrong: str = "") -> None:
    """Let `StubbornSets` call kernels in Python, where the module `changed` has a line that is wrong."""
    monkeypatch.setitem(sys.modules, f"pure.{PACKAGE}.jit", _jit())
    for name in MODULES:
        source = inspect.getsource(importlib.import_module(f"{PACKAGE}.{name}"))
        if name == changed:
            assert source.count(right) == 1, (name, right, source.count(right))
            source = source.replace(right, wrong)
        module = types.ModuleType(f"pure.{PACKAGE}.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(source.replace(f"from {PACKAGE}.", f"from pure.{PACKAGE}."), module.__dict__)
        for kernel in ("find_stubborn_set", "find_drained"):
            if hasattr(module, kernel):
                setattr(module, kernel, _quietly(getattr(module, kernel)))
                monkeypatch.setattr(stubborn, name, module)


def _quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in which products may overflow, as in compiled code."""

    def called(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return called
