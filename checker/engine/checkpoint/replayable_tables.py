"""Tables that can be rebuilt: they record the questions that they were asked, and have a digest of all answers.

The contents of tables follow from the model's functions and from the questions, in their order. A checkpoint therefore
needs only the questions, and never a Python object.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import Any

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.contract import described
from checker.engine.model import Model
from checker.engine.tables import Node, Tables

END = np.uint64((1 << 64) - 1)  # ends the questions of one call of `fill`; it is never a key, since ids stay smaller


class ReplayableTables(Tables):
    """Tables with a record of the keys of each `fill` (u64), in `questions`."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.questions = Vector(np.uint64)
        self._digests = [(hashlib.sha256(), 0) for _ in self._named]

    def fill(self, keys: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """Answer these keys, and record them afterwards."""
        super().fill(keys)
        self.questions.extend(np.append(np.unique(keys), END))

    def replay(self, questions: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """Fill new tables from the `questions` of others. They become equal if the models are equal.

        The functions of a different model may get meaningless questions, and raise any exception.
        """
        self.row(self.model.initial())
        for keys in np.split(questions, np.flatnonzero(questions == END) + 1)[:-1]:
            self.fill(keys[:-1])

    def digest(self) -> str:
        """A hash of all answers, the same in every process. Each value is hashed only once, so later calls are fast.

        The values of a node are not hashed: they follow from the memo and the questions.
        """
        digest = hashlib.sha256()
        arrays = (self.zobrist, self.bases, self.listed, self.entries, self.classes, self.label_of, self.verdict_of)
        for vector in (*arrays, self.masks, self.projection_class):
            digest.update(np.ascontiguousarray(vector.view).data)
        digest.update(self.memo.data.data)
        for place, named in enumerate(self._named):
            objects, count = self._digests[place]
            for each in islice(named, count, None):
                if not isinstance(each, Node):
                    objects.update(described(each).encode(errors="surrogatepass"))
            self._digests[place] = objects, len(named)
            digest.update(objects.digest())
        return digest.hexdigest()

    @property
    def _named(self) -> tuple[list[Any], ...]:
        """The objects behind the numbers; all these lists only grow."""
        return self._ids, self._operands, self.labels, self.verdicts
