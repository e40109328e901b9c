"""The number of each value in fingerprints: a keyed hash of its column and of its canonical text.

The numbers do not depend on the order of discovery, so that every search of a model with the same seed gives a state
the same fingerprint. Another seed gives independent numbers: two searches with different seeds both miss a state only
if it collides twice.

Rules:

- The text of a value is the same in every process (`contract.described`).
- Two values of one column with equal numbers are noticed when they meet. It is an error if their texts differ. Values
  that hold other objects than data may have equal texts; they are numbered in the order of discovery.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from checker.engine.contract import described, is_data, short
from checker.engine.model import Column, ModelError


class CellNumbers:
    """The numbers of the values of each column, for one seed."""

    def __init__(self, columns: Sequence[Column], seed: int) -> None:
        self.seed = seed
        self._names = [column.name for column in columns]
        self._key = str(seed).encode()
        self._values: list[dict[int, Any]] = [{} for _ in columns]
        self._repeats: list[dict[str, int]] = [{} for _ in columns]

    def number(self, column: int, value: Any) -> int:
        """The number of a new value of a column. Raises ModelError if another value has the same."""
        text = described(value)
        number = self._hash(column, text)
        known = self._values[column]
        if number in known:
            if described(known[number]) != text:
                raise self._collision(column, known[number], value)
            repeats = self._repeats[column][text] = self._repeats[column].get(text, 0) + 1
            number = self._hash(column, f"{text}#{repeats}")
            if number in known:
                raise self._collision(column, known[number], value)
        known[number] = value
        return number

    def of_text(self, column: int, value: Any) -> int:
        """The number that a value has by its text alone: in every process, and if it is never met.

        Raises ModelError if other values may have the same text: it is no data, or of one of two types with one name.
        """
        if self._repeats[column] or not is_data(value):
            raise ModelError(
                f"the column {self._names[column]!r} has values that their texts do not tell apart, such as "
                f"{short(value)}: they hold objects that are no data, or types of one name; a search with "
                "symmetry or on a cluster needs data in their place"
            )
        return self._hash(column, described(value))

    def _hash(self, column: int, text: str) -> int:
        data = f"{self._names[column]}\0{text}".encode(errors="surrogatepass")
        return int.from_bytes(blake2b(data, key=self._key, digest_size=8).digest(), "little")

    def _collision(self, column: int, one: Any, other: Any) -> ModelError:
        return ModelError(
            f"two values of the column {self._names[column]!r} have one number for fingerprints: "
            f"{one!r} and {other!r}; use another seed than {self.seed}"
        )
