"""Where a run stops and where it is kept: its own limits, those of the command line, and its part of the budget."""

from __future__ import annotations

import argparse
import hashlib
import json
import math

from checker.engine import Limits
from checker.engine.checkpoint import Checkpoint
from checker.engine.memory import free_memory
from checker.files import slug
from checker.job import Job

SHARE_OF_MEMORY = 0.8  # of what is free, unless --memory says otherwise


def limits_of(job: Job, options: argparse.Namespace, part: float = math.inf) -> tuple[Limits, bool]:
    """The job's limits, with those of the command line in their place, and whether its time is its part of the budget.

    `part`: the seconds that the budget leaves it; infinite without one.
    """
    own = job.limits
    memory = options.memory or own.memory or free_memory(SHARE_OF_MEMORY)
    seconds = options.time or own.seconds
    if options.engine == "both":
        part /= 2  # each of the two has the time that is given
    on_budget = part < (math.inf if seconds is None else seconds)
    limits = Limits(
        depth=own.depth if options.depth is None else options.depth,
        states=options.states or own.states,
        memory=memory,
        seconds=round(part, 2) if on_budget else seconds,
    )
    return limits, on_budget


def checkpoint_of(job: Job, options: argparse.Namespace, *, again: bool = False) -> Checkpoint | None:
    """Where the job's search is kept, if that is wanted: a folder of its own, named after it and what it is made from.

    A scenario that was changed is therefore another search, which begins anew. `again`: it was kept by this command.
    """
    if options.checkpoint is None:
        return None
    made_from = json.dumps(dict(job.source), sort_keys=True).encode("utf-8", "backslashreplace")
    name = f"{slug(job.name)}-{hashlib.sha256(made_from).hexdigest()[:12]}"
    return Checkpoint(options.checkpoint / name, source=dict(job.source), resume=options.resume or again)
