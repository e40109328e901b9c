"""Tables that can be made again: they remember what they were asked, and can tell in short what they learnt.

What tables hold follows from the model's functions and from the questions, in their order; so nothing else of them is
kept when a search is put down, and no Python object ever is.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import Any

import numpy as np

from checker.engine.model import Model
from checker.engine.tables import Node, Tables
from checker.engine.values import described
from checker.engine.vectors import Vector

END = np.uint64((1 << 64) - 1)  # stands behind the questions of each filling; no key, since there are never so many ids


class RecordedTables(Tables):
    """Tables with the keys that `fill` was given (u64), in `questions`."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.questions = Vector(np.uint64)
        self._told = [(hashlib.sha256(), 0) for _ in self._named]

    def fill(self, keys: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """The same, remembered once it is answered."""
        super().fill(keys)
        self.questions.extend(np.append(np.unique(keys), END))

    def ask_again(self, questions: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """Fill tables that are new with what `questions` held of others: they become the same, if the model is.

        A model that is another one may be asked what makes no sense to it, and raise whatever it likes.
        """
        self.row(self.model.initial())
        for asked in np.split(questions, np.flatnonzero(questions == END) + 1)[:-1]:
            self.fill(asked[:-1])

    def digest(self) -> str:
        """A hash of all that was learnt, the same in every process. Values are told once, so it is quick the next time.

        What a node stands for is told by the memo and by what was asked on the way to it.
        """
        digest = hashlib.sha256()
        arrays = (self.zobrist, self.bases, self.listed, self.entries, self.classes, self.label_of, self.verdict_of)
        for vector in (*arrays, self.masks, self.looks):
            digest.update(np.ascontiguousarray(vector.view).data)
        digest.update(self.memo.data.data)
        for place, named in enumerate(self._named):
            told, count = self._told[place]
            for each in islice(named, count, None):
                if not isinstance(each, Node):
                    told.update(described(each).encode(errors="surrogatepass"))
            self._told[place] = told, len(named)
            digest.update(told.digest())
        return digest.hexdigest()

    @property
    def _named(self) -> tuple[list[Any], ...]:
        """What numbers stand for; all these lists only grow."""
        return self._ids, self._asked, self.labels, self.verdicts
