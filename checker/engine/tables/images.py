"""The images of cells: the numbers that their renamed values have in fingerprints, for a symmetric model.

Rule: an image is computed from the renamed value, which need not be a cell itself. It is the number of that cell, if
the search ever meets it.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """The images of all cells, by number. Nodes have a number too, and images of zero."""

    def __init__(self, model: Model, symmetry: Symmetry, numbers: CellNumbers) -> None:
        self._names, self._index = [column.name for column in model.columns], model.index
        self._symmetry, self._numbers = symmetry, numbers
        self._renamings = (Renaming({}, _unchanged), *symmetry.renamings)
        self._images, self._holds = Vector(np.uint64, len(self._renamings)), Vector(np.uint8)

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
        images = [self._image(renaming, column, value) for renaming in self._renamings]
        if images[0] != number:
            raise ModelError(f"symmetry needs data as values, and another value has the same text as {value!r}")
        self._images.append(images)
        is_gate = self._names[column] == self._symmetry.column
        self._holds.append(is_gate and bool(call("the symmetry", self._symmetry.holds, value)))

    def _image(self, renaming: Renaming, column: int, value: Any) -> int:
        name = self._names[column]
        target = self._index[_after(renaming.columns, name)]
        return self._numbers.hash(target, call("a renaming", renaming.value, value))


def _unchanged(value: Any) -> Any:
    return value


def _after(columns: Mapping[str, str], name: str) -> str:
    return columns.get(name, name)
