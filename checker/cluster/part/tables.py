"""The tables of a part: those of a checkpoint, without values that only one process can tell apart.

The fingerprints of two parts must agree. They do if the text of a value determines its number, as that of data does.
Other values have equal texts, also where no process meets two of them, so they are refused.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from checker.engine.checkpoint.search_checkpoint import ReplayableTables
from checker.engine.contract import described
from checker.engine.model import Model, Row
from checker.engine.tables.fingerprints import CellNumbers


class TextNumbers(CellNumbers):
    """The numbers of values by their texts alone."""

    def number(self, column: int, value: Any) -> int:
        """The number of a new value. Raises ModelError for a value whose text others may have."""
        super().number(column, value)
        return self.of_text(column, value)


class PartTables(ReplayableTables):
    """The tables of one process of a distributed search."""

    def __init__(self, model: Model, seed: int) -> None:
        super().__init__(model, seed)
        self._numbers = TextNumbers(model.columns, seed)


def row_digest(row: Row) -> str:
    """A digest of the texts of the values of a row, the same in every process."""
    return blake2b("\0".join(map(described, row)).encode(errors="surrogatepass"), digest_size=16).hexdigest()
