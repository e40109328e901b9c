"""The rounds of a divided level: the calls of all parts, in an order in which no part waits long for another.

The calls of one part are carried out in the order in which they are started here. The rows of the next two rounds are
expanded before the new states of a round are built: while a part expands them, the candidates and the flags of the
others arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from checker.cluster.part.messages import PartReport
from checker.cluster.part.pieces import Pieces, joined
from checker.cluster.transport import Ref, Transport


def expand_rounds(
    transport: Transport,
    rounds: Iterable[Pieces],
    must_end: Callable[[], bool],
    note: Callable[[int, PartReport], None],
) -> tuple[Pieces, bool]:
    """Expand the rounds of a level; return the pieces of the next level, and whether all rounds were expanded.

    `note` gets the report of each part after each round. No round begins after `must_end` is true; those under way are
    finished. Raises PartLostError and ModelError.
    """
    parts = range(transport.parts)
    left = deque(rounds)
    begun: deque[tuple[Pieces, list[list[Ref]]]] = deque()
    built: deque[tuple[Pieces, list[Ref]]] = deque()
    counted: list[Pieces] = []

    def expand_next() -> None:
        if left and not must_end():
            pieces = left.popleft()
            begun.append((pieces, [transport.call(part, "expand", pieces, returns=len(parts)) for part in parts]))

    expand_next()
    while begun:
        expand_next()
        pieces, sent = begun.popleft()
        flags = [
            transport.call(owner, "probe", pieces, *(each[owner] for each in sent), returns=len(parts))
            for owner in parts
        ]
        expand_next()
        built.append((pieces, [transport.call(part, "build", *(each[part] for each in flags))[0] for part in parts]))
        while len(built) > (1 if begun else 0):
            counted.append(_counted(transport, *built.popleft(), note))
    return joined(counted), not left


def _counted(transport: Transport, pieces: Pieces, built: list[Ref], note: Callable[[int, PartReport], None]) -> Pieces:
    sizes = np.zeros(len(pieces.parts), np.int64)
    for part, (counts, report) in enumerate(transport.get(built)):
        sizes[pieces.parts == part] = counts
        note(part, report)
    return Pieces(pieces.parts, sizes).without_empty()
