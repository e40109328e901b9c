"""Checkpoints: a search is saved in a folder and can be resumed.

`search_checkpoint` describes the contents of the folder, and `checkpoint_store` writes and reads it.

    explore(model, limits, checkpoint=Checkpoint(folder, source=job.source, resume=True))

This file has the parameters. It imports no other part of the engine than `model`, so a command line need not wait for
the kernels.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker.engine.model import ModelError

EVERY = 300.0  # seconds
Json = Any


class CheckpointError(ModelError):
    """A search cannot be saved in a folder, or not be resumed from its contents; the message has the reason."""


@dataclass(frozen=True)
class Checkpoint:
    """A folder for the checkpoint of one search, which is created if necessary, and the interval between saves.

    With `resume` the search continues from the checkpoint in the folder; without a checkpoint there, it starts from the
    beginning. Without `resume`, a folder that already has a checkpoint is refused, so that none is overwritten.

    The search is saved every `every` seconds, and when a limit or an interrupt (Ctrl-C) ends it; a second Ctrl-C
    interrupts without a save. A search that ends for another reason removes its checkpoint. A failed save is recorded
    in `Exploration.notes`, and the search continues.

    `source` is the JSON value that the model was made from (`Job.source`); a checkpoint for another source is refused.
    """

    folder: Path
    source: Json = None
    every: float = EVERY
    resume: bool = False
