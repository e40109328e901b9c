"""The answers of properties as numbers: the verdict of a bundle, and the judgement of a state.

A *verdict* has the answers of a bundle's properties. A *judgement* has the verdict of each bundle that is evaluated in
all states. A state inherits the judgement of its parent, and only the bundles that read something different are
evaluated again. There are few judgements, since the answers of properties rarely differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.model import TRIVIAL, Finding, Model
from checker.engine.tables.layout import Bundle, ModelLayout

Array = np.ndarray[Any, Any]


class BundleVerdict(NamedTuple):
    """The answers of a bundle: the positions of the properties with a premise, and of those with a finding."""

    bundle: Bundle
    premises: tuple[int, ...] = ()
    found: tuple[int, ...] = ()


class Verdicts:
    """The numbers of verdicts and judgements, which only grow.

    Judgement 0 has only trivial verdicts. `judged` and `final` have for each bundle of a judgement, or of final states,
    its group and the number of its verdict if a projection says "never".
    """

    def __init__(self, model: Model, layout: ModelLayout) -> None:
        self._model = model
        # If a projection says "never", a bundle is trivial: the first verdicts, in the order of the bundles.
        self.verdicts = [BundleVerdict(bundle) for bundle in layout.bundles]
        self._numbers = {verdict: number for number, verdict in enumerate(self.verdicts)}
        self.judged, self.final = (
            np.array([(layout.bundles[n].group, n) for n in part], np.uint32).reshape(-1, 2)
            for part in (layout.judged, layout.final)
        )
        self._places = {number: place for place, number in enumerate(layout.judged)}
        self._bundles = {bundle: number for number, bundle in enumerate(layout.bundles)}
        self.judgements = Vector(np.uint32, max(1, len(layout.judged)))
        self._known: dict[tuple[int, ...], int] = {}
        self._judgement(tuple(layout.judged) or (0,))

    def number(self, bundle: Bundle, answers: Iterable[tuple[int, Any]]) -> int:
        """The number of a verdict, from the positions and answers of a bundle's properties."""
        checked = list(answers)
        verdict = BundleVerdict(
            bundle,
            tuple(position for position, answer in checked if answer is not TRIVIAL),
            tuple(position for position, answer in checked if isinstance(answer, Finding)),
        )
        number = self._numbers.setdefault(verdict, len(self.verdicts))
        if number == len(self.verdicts):
            self.verdicts.append(verdict)
        return number

    def judgement_after(self, judgement: int, verdict: int) -> int:
        """The number of the judgement in which this verdict replaces that of its bundle."""
        after = self.judgements.view[judgement].tolist()
        after[self.place(verdict)] = verdict
        return self._judgement(tuple(after))

    def place(self, verdict: int) -> int:
        """The place of a verdict's bundle in a judgement."""
        return self._places[self._bundles[self.verdicts[verdict].bundle]]

    def found(self, judgement: int) -> list[int]:
        """The positions of the properties with a finding in a judgement, except those of liveness."""
        return [
            position
            for verdict in self._verdicts_in(judgement)
            for position in verdict.found
            if not self._model.properties[position].kind.is_liveness
        ]

    def premises(self, judgement: int) -> list[int]:
        """The positions of the properties whose premise holds in a judgement."""
        return [position for verdict in self._verdicts_in(judgement) for position in verdict.premises]

    def _verdicts_in(self, judgement: int) -> list[BundleVerdict]:
        numbers = self.judgements.view[judgement].tolist() if self._places else ()
        return [self.verdicts[number] for number in numbers]

    def totals(self, tally: Array, final: Array) -> Array:
        """The number of times that each verdict was reached, from the numbers of times of judgements and in final
        states.
        """
        totals = np.zeros(len(self.verdicts), np.uint64)
        totals[: len(final)] += final[: len(totals)]
        for place in self._places.values():
            np.add.at(totals, self.judgements.view[: len(tally), place], tally[: self.judgements.size])
        return totals

    def _judgement(self, verdicts: tuple[int, ...]) -> int:
        number = self._known.setdefault(verdicts, self.judgements.size)
        if number == self.judgements.size:
            self.judgements.append(verdicts)
        return number
