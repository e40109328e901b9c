"""Searches that are put down and taken up again: where one is kept. What is kept of it, says `keeper`.

    explore(model, limits, checkpoint=Checkpoint(folder, source=job.source, resume=True))

This module loads nothing of the engine, so that a command line need not wait for the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker.engine.model import ModelError

EVERY = 300.0  # seconds
Json = Any


class CheckpointError(ModelError):
    """A search cannot be kept in a folder, or not be taken up from what is there; the message says why."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a search is kept, and how often; the folder is for one search, and is made if need be.

    With `resume` the search goes on from what is in the folder; if nothing is, it begins anew. Without, a folder in
    which a search is kept already is refused, so that none is overwritten.

    `every` so many seconds the search is kept, and in any case when a limit or an interrupt (Ctrl-C; a second one
    does not wait) ends it. When it comes to its own end, there is nothing to go on with, and what was kept is removed.
    Where it could not be kept is said in `Exploration.notes`, and the search goes on.

    `source` is any JSON value that the model was made from (`Job.source`); what was kept for another one is refused.
    """

    folder: Path
    source: Json = None
    every: float = EVERY
    resume: bool = False
