"""The answer about `reconfig` as data, for `--json`.

`reconfig` of the plan is null if it was not asked, else: refusals (obstacle, servers, because), safer (reconfig |
restarts | neither) with ground and because, and routes, the advised one first. A route has kind (one-at-a-time |
at-once), verdict, without_faults, under_faults (null if no faults were asked for), under_two_faults, quorums_meet and
commands. A command has start (server, members: the lines of its dynamic file), joining and leaving (texts, or null),
zkcli and kazoo (ready to paste), stop (servers), needed (voters each of which the commit needs, if observers become
voters), before and after (voters, observers), disjoint (two quorums, or null) and runs (scenario, budget: none | asked
| pair, and the other fields of a run).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checker.rollout.reconfig.answers import CommandAnswer, FaultBudget, ReconfigAnswer, RouteAnswer
from checker.rollout.reconfig.section import obstacle, safer
from checker.rollout.runs import RunResult
from spec.quorum import View


def reconfig_data(answer: ReconfigAnswer, run_data: Callable[[RunResult], dict[str, Any]]) -> dict[str, Any]:
    """The answer as plain data; `run_data` is the form of a run."""
    preference, ground = answer.comparison
    return {
        "refusals": [
            {"obstacle": each.obstacle.value, "servers": list(each.sids), "because": obstacle(each)}
            for each in answer.refusals
        ],
        "safer": preference.value,
        "ground": ground.value,
        "because": safer(answer),
        "routes": [_route(route, run_data) for route in answer.routes],
    }


def _route(route: RouteAnswer, run_data: Callable[[RunResult], dict[str, Any]]) -> dict[str, Any]:
    return {
        "kind": route.kind.value,
        "verdict": route.outcome.value,
        "without_faults": route.verdict(FaultBudget.NONE).value,
        "under_faults": route.verdict(FaultBudget.ASKED).value if route.faults else None,
        "under_two_faults": route.verdict(FaultBudget.PAIR).value,
        "quorums_meet": route.quorums_meet,
        "commands": [_command(each, run_data) for each in route.commands],
    }


def _command(answer: CommandAnswer, run_data: Callable[[RunResult], dict[str, Any]]) -> dict[str, Any]:
    command, disjoint = answer.command, answer.disjoint
    return {
        "start": [
            {"server": sid, "members": [f"server.{each}={line}" for each, line in command.file_of(sid).items()]}
            for sid in command.joiners
        ],
        "joining": command.joining_text or None,
        "leaving": command.leaving_text or None,
        "zkcli": command.zkcli,
        "kazoo": command.kazoo,
        "stop": list(command.leaving),
        "needed": list(command.needed),
        "before": _view(command.before),
        "after": _view(command.after),
        "disjoint": disjoint and {"a": sorted(disjoint.a), "b": sorted(disjoint.b)},
        "runs": [{"budget": each.budget.name.lower(), **run_data(each.result)} for each in answer.runs],
    }


def _view(view: View) -> dict[str, Any]:
    return {"voters": sorted(view.voters), "observers": sorted(view.observers)}
