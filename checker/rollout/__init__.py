"""Plans the roll-out of zoo.cfg files: judges an order, finds one, or cuts the change into safe stages.

    folders      the files on disk, before and after
    differences  the keys that differ between two files of a server
    interrupted  the files on disk during a roll-out
    stages       one change, or several of one voter each, with the files between
    steps        orders of starts, stops and restarts
    quorums      the answer of z3
    scenarios    each question about a stage as a scenario
    runs         the exploration of a scenario, and its outcome
    assess       a judged stage: leaders, commits, healing, without faults and under faults
    divergence   the effect of a split on data
    observers    the effect on data of an observer that is counted as a voter
    versions     roll-outs where configurations have versions
    answer       the request and the result
    planner      the whole plan
    failures     the state after a failed step, and the verdicts on it
    markdown, sections, data, artifacts, phrases   the output

Every run is a scenario that `checker.scenario` loads and that `replay` can repeat.
"""

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.folders import Folder, read_folder
from checker.rollout.planner import plan
from checker.rollout.runs import Engine, SafetyVerdict, run
from checker.rollout.steps import OrderError

__all__ = ["Engine", "Folder", "OrderError", "Plan", "PlanRequest", "SafetyVerdict", "plan", "read_folder", "run"]
