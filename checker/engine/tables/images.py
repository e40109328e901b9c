"""The images of cells: the numbers that their renamed values have in fingerprints, for a symmetric model.

Rule: an image is computed from the renamed value, which need not be a cell itself. It is the number of that cell, if
the search ever meets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.contract import call
from checker.engine.model import Model, Renaming, Symmetry
from checker.engine.tables.fingerprints import CellNumbers

Array = np.ndarray[Any, Any]


class Images:
    """The images of all cells, by number; `cells` has those of each column by value. Nodes have images of zero."""

    def __init__(
        self, model: Model, symmetry: Symmetry, numbers: CellNumbers, cells: Sequence[Mapping[Any, int]]
    ) -> None:
        self._names, self._index = [column.name for column in model.columns], model.index
        self._renamings, self._numbers, self._cells = symmetry.renamings, numbers, cells
        self._images = Vector(np.uint64, 1 + len(symmetry.renamings))

    @property
    def array(self) -> Array:
        """The images so far, for kernels: u64[cell, renaming]. The next cell invalidates it."""
        return self._images.view

    def append_node(self) -> None:
        """Count a node."""
        self._images.append_zero()

    def append(self, column: int, value: Any, number: int) -> None:
        """Add the images of a new cell, which has this number. Raises ModelError."""
        self._numbers.of_text(column, value)
        renamed = (self._image(renaming, column, value, number) for renaming in self._renamings)
        self._images.append((number, *renamed))

    def _image(self, renaming: Renaming, column: int, value: Any, number: int) -> int:
        name = self._names[column]
        target = self._index[renaming.columns.get(name, name)]
        after = call("a renaming", renaming.value, value)
        if target == column and after is value:
            return number
        cell = self._cells[target].get(after)
        return self._numbers.of_text(target, after) if cell is None else int(self._images.view[cell, 0])
