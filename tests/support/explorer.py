"""Shipped scenarios, and walks on them, for the tests of the explorer."""

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from checker.engine.model import Kind
from checker.engine.semantics import successors
from checker.explorer import Handlers
from checker.explorer.walk import WalkRequest
from checker.job import Job
from checker.scenario import bundled, load

SCRIPT = (
    "the operator stops server.2",
    "server.1 has lost its leader server.2",
    "server.5 has lost its leader server.2",
    "server.3 has lost its leader server.2",
    "server.4 has lost its leader server.2",
    "server.1 elects server.3",
    "the operator starts server.2 with zoo-5.cfg",
    "server.2 and server.4 elect server.5",
)
"""The captions of the counterexample for the roll-out in the wrong order, as on the real system (requirement R10)."""
KINDS = (
    ("r10-wrong-order", Kind.ALWAYS),
    ("r19-no-protection-alone", Kind.FINAL),
    ("r10-leader-last", Kind.SOMETIMES),
    ("votes-sent-once", Kind.RECOVERABLE),
    ("votes-sent-once", Kind.EVENTUALLY),
    ("zookeeper-1419-never-elects", Kind.RECOVERABLE),
    ("zookeeper-1419-never-elects", Kind.EVENTUALLY),
    ("r21-never-learns", Kind.EVENTUALLY),
)
"""Shipped scenarios that have a finding of that kind within a few thousand states.

The runs of the liveness findings end, stay, and repeat.
"""


@cache
def job(name: str) -> Job:
    return load(_path(name))


def with_folder(name: str) -> tuple[Job, str]:
    """Return the job of the scenario with that name, and the name of its folder."""
    return job(name), _path(name).parent.name


def _path(name: str) -> Path:
    (path,) = (path for path in bundled() if path.stem == name)
    return path


def as_told(name: str, captions: Sequence[str]) -> tuple[int, ...]:
    """Return the ordinals of a walk with these captions."""
    row, path = job(name).model.initial(), []
    for caption in captions:
        told = [(job(name).presenter.caption(move), after) for move, after in successors(job(name).model, row)]
        path.append([each for each, _ in told].index(caption))
        row = told[path[-1]][1]
    return tuple(path)


@cache
def handlers(*names: str) -> Handlers:
    return Handlers(map(with_folder, names))


def key_of(one: Handlers, place: int = 0) -> str:
    return str(one.jobs()["jobs"][place]["key"])


def patient(_states: int, _depth: int) -> bool:
    """A progress callback that never cancels."""
    return True


def walked(name: str, path: tuple[int, ...] = ()) -> dict[str, Any]:
    one = handlers(name)
    return one.walk(WalkRequest(key_of(one), path))


def random_walk(name: str, seed: int, moves: int) -> list[tuple[int, ...]]:
    """Return the ordinals of a random walk and of all its prefixes, chosen on the model directly."""
    chance, row, path = random.Random(seed), job(name).model.initial(), [()]
    for _ in range(moves):
        after = [row for _, row in successors(job(name).model, row)]
        if not after:
            break
        ordinal = chance.randrange(len(after))
        row = after[ordinal]
        path.append((*path[-1], ordinal))
    return path


WRONG_ORDER = as_told("r10-wrong-order", SCRIPT)
