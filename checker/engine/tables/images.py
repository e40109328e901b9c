"""The images of cells: the numbers that their renamed values have in fingerprints, for a symmetric model.

Rule: an image is computed from the renamed value, which need not be a cell itself. It is the number of that cell, if
the search ever meets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.contract import call
from checker.engine.model import Model, ModelError, Renaming, Symmetry
from checker.engine.tables.fingerprints import CellNumbers

Array = np.ndarray[Any, Any]


class SymmetryArrays(NamedTuple):
    """The arrays of `row_kernels.fingerprint_of_class`: images (u64), holds (u8) and the position of the column."""

    images: Array
    holds: Array
    column: np.uint64


class Images:
    """The images of all cells, by number; `cells` has those of each column by value. Nodes have images of zero."""

    def __init__(
        self, model: Model, symmetry: Symmetry, numbers: CellNumbers, cells: Sequence[Mapping[Any, int]]
    ) -> None:
        self._names, self._index = [column.name for column in model.columns], model.index
        self._symmetry, self._numbers, self._cells = symmetry, numbers, cells
        self._images, self._holds = Vector(np.uint64, 1 + len(symmetry.renamings)), Vector(np.uint8)

    @property
    def arrays(self) -> SymmetryArrays:
        """The images so far, for kernels; the next cell invalidates them."""
        return SymmetryArrays(self._images.view, self._holds.view, np.uint64(self._index[self._symmetry.column]))

    def append_node(self) -> None:
        """Count a node."""
        self._images.append_zero()
        self._holds.append_zero()

    def append(self, column: int, value: Any, number: int) -> None:
        """Add the images of a new cell, which has this number. Raises ModelError."""
        if self._numbers.has_repeats(column):
            raise ModelError(f"symmetry needs data as values, and another value has the same text as {value!r}")
        renamed = (self._image(renaming, column, value, number) for renaming in self._symmetry.renamings)
        self._images.append((number, *renamed))
        is_gate = self._names[column] == self._symmetry.column
        self._holds.append(is_gate and bool(call("the symmetry", self._symmetry.holds, value)))

    def _image(self, renaming: Renaming, column: int, value: Any, number: int) -> int:
        name = self._names[column]
        target = self._index[renaming.columns.get(name, name)]
        after = call("a renaming", renaming.value, value)
        if target == column and after is value:
            return number
        cell = self._cells[target].get(after)
        return self._numbers.hash(target, after) if cell is None else int(self._images.view[cell, 0])
