"""What the tables tell the reduction: an observer hears of everything that they learn, and answers questions.

Rule: an observer changes no entry of the tables, except by `Tables.revise`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from checker.engine.reduction.plan import LocalGraph, StubbornPlan


class TablesObserver(Protocol):
    """The reduction, which follows what the tables learn, and answers the questions that kernels ask about it."""

    rows: np.ndarray[Any, Any]  # of the channels whose deliveries may be drained, as kernels take them

    @property
    def plan(self) -> StubbornPlan | None:
        """The processes and channels, for stubborn sets."""

    @property
    def graph(self) -> LocalGraph | None:
        """The graph of local states, for stubborn sets."""

    def sent(self, actor: int, operation: int, source: str) -> None:
        """A rule or a step, named by `source`, sends an operation to the actor at this position."""

    def learnt(self, cell: int, operation: int, value: int) -> None:
        """An operation on a cell was carried out; the value is that of the memo."""

    def listed(self, cell: int) -> None:
        """The moves of the own rules of a cell's column were listed."""

    def enabled(self, position: int, moves: list[int]) -> None:
        """The rule at this position, which reads several columns, lists these moves in a row of the search."""

    def answer(self, cell: int, question: Any) -> int | None:
        """The answer for a cell, as a value of the memo; None if the kernels find it elsewhere."""

    def holds(self) -> bool:
        """Whether all answers that kernels have used are still right; no kernel runs."""

    def drained(self, before: list[int], cells: list[int]) -> list[int]:
        """The columns of the channels that deliver at once in a row of cells after another one, in this order."""

    def chosen(self, cells: list[int]) -> frozenset[int] | None:
        """The columns whose own rules were followed in a row of cells; None for all moves."""
