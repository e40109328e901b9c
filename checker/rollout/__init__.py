"""Plans the roll-out of zoo.cfg files: judges an order, finds one, or cuts the change into safe stages.

    inputs       the files of an ensemble, before and after
    files        their keys and ports, and what differs between two; the files during an interrupted roll-out
    stages       one change, or several of one voter each, with the files between
    orders       orders of starts, stops and restarts; ways of working: the order and waits of a person or a platform
    reconfig     a change of members by `reconfig`, beside the restarts
    order_proof  the proof that one order is safe for any faults, by the theorem about roll-outs
    disks        disks that are not what they were, and the safe ways instead
    scenarios    each question about a stage as a scenario
    runs         the exploration of a scenario, its outcome, and the loop over all questions under one budget
    assessor     the table of questions, and how each is asked of the orders of a route, behind openings if it is deep
    claims       the table of claims: the kinds of evidence, and the fold that makes a verdict
    route_verdict
                 the claims about a route of a stage, from the runs and from a proof about quorums
    order_search the routes and orders of a change that are judged, the most useful first
    answer       the request and the result; the state after a failed step, and the verdicts on it
    planner      the whole plan, with the ways of working, the disks, the releases, the way back and `reconfig`
    output       the document, the data and the files

Every run is a scenario that `checker.scenario` loads and that `replay` can repeat.
"""

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.orders import OrderError
from checker.rollout.planner import plan
from checker.rollout.runs import Engine, SafetyVerdict

__all__ = ["Engine", "Folder", "OrderError", "Plan", "PlanRequest", "SafetyVerdict", "plan", "read_folder"]
