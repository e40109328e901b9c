"""The limits and the checkpoint of a run: the job's limits, those of the command line, and its share of the budget."""

from __future__ import annotations

import argparse
import hashlib
import json
import math

from checker.engine import Limits
from checker.engine.checkpoint import Checkpoint
from checker.engine.process import free_memory
from checker.job import Job
from checker.output_files import slug

SHARE_OF_MEMORY = 0.8  # of the available memory, unless --memory is given


def limits_of(job: Job, options: argparse.Namespace, part: float = math.inf) -> tuple[Limits, bool]:
    """The job's limits, replaced by those of the command line, and whether its time limit is its share of the budget.

    `part` is that share in seconds; infinite without a budget.
    """
    own = job.limits
    memory = options.memory or own.memory or free_memory(SHARE_OF_MEMORY)
    seconds = options.time or own.seconds
    if options.engine == "both":
        part /= 2  # each of the two engines gets the same time
    on_budget = part < (math.inf if seconds is None else seconds)
    limits = Limits(
        depth=own.depth if options.depth is None else options.depth,
        states=options.states or own.states,
        memory=memory,
        seconds=round(part, 2) if on_budget else seconds,
    )
    return limits, on_budget


def checkpoint_of(job: Job, options: argparse.Namespace, *, again: bool = False) -> Checkpoint | None:
    """The checkpoint of a job, or None if none is requested: a folder named after the job and a hash of its source.

    A changed scenario is therefore a different search, which starts from the beginning. `again`: this command has
    already saved the search.
    """
    if options.checkpoint is None:
        return None
    made_from = json.dumps(dict(job.source), sort_keys=True).encode("utf-8", "backslashreplace")
    name = f"{slug(job.name)}-{hashlib.sha256(made_from).hexdigest()[:12]}"
    return Checkpoint(options.checkpoint / name, source=dict(job.source), resume=options.resume or again)
