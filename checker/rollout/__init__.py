"""Plans the roll-out of zoo.cfg files: judges an order, finds one, or cuts the change into stages that are safe.

    folders    what operators have on disk, before and after
    stages     one change, or several of one voter each; the files between
    steps      orders of starts, stops and restarts
    quorums    the quick answer, by z3
    scenarios  what is asked about a stage, each question a scenario
    runs       a scenario explored, and what came of it
    assess     a stage judged: leaders, commits, healing, without faults and under faults
    differ     what a split does to data
    versions   the same where configurations have versions
    answer     what was asked, and what came of it
    planner    the whole plan
    markdown, data, kept, words   what is said and written of it

It explores nothing by itself: every run is a scenario that `checker.scenario` loads and that `replay` can repeat.
"""

from checker.rollout.answer import Plan, Wish
from checker.rollout.folders import Folder, read_folder
from checker.rollout.planner import plan
from checker.rollout.runs import Engine, Outcome, run
from checker.rollout.steps import OrderError

__all__ = ["Engine", "Folder", "OrderError", "Outcome", "Plan", "Wish", "plan", "read_folder", "run"]
