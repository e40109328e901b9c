"""The lines of `spec` that a piece of work executes, by function."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SPEC = Path(__file__).parents[2] / "spec"
Line = tuple[str, int]
"""A function, such as `zab/leader.py: begin`, and the number of a line in its file."""


@contextmanager
def executed() -> Iterator[set[Line]]:
    """Collect the executed lines of functions, in this thread and in those that it starts."""
    lines: set[Line] = set()
    missing: dict[CodeType, set[int]] = {}
    prefix = f"{SPEC}/"

    def begin(frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        # The body of a module or a class runs once in a process, when it is imported.
        if not code.co_filename.startswith(prefix) or not code.co_flags & CO_OPTIMIZED:
            return None
        numbers = missing.get(code)
        if numbers is None:
            numbers = {line for *_, line in code.co_lines() if line is not None} - {code.co_firstlineno}
            missing[code] = numbers
        # A function whose lines are all collected runs at full speed.
        return collect if numbers else None

    def collect(frame: FrameType, event: str, _argument: object) -> Any:
        code = frame.f_code
        if event == "line" and frame.f_lineno in missing[code]:
            missing[code].discard(frame.f_lineno)
            function = code.co_qualname.partition(".<")[0]  # a comprehension belongs to its function
            lines.add((f"{code.co_filename.removeprefix(prefix)}: {function}", frame.f_lineno))
        return collect

    before = sys.gettrace()
    threading.settrace(begin)
    sys.settrace(begin)
    try:
        yield lines
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]
