"""`python -m harness follow`: follows the plan for a roll-out on real servers, under writes, with random kills.

Exit codes: 0 every acknowledged write kept in every run, 1 not so, 2 a wrong command line or an input that cannot be
followed, 3 a run in which the harness failed.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from checker.command import Command, refused
from checker.command_table import called
from checker.rollout import Engine, OrderError, Plan, PlanRequest, SafetyVerdict, plan
from checker.rollout.inputs.sources import read_input
from checker.symbolic.disjoint import UndecidedError
from harness import real
from harness.directories import add_keep, keep_mistake
from harness.follow.follower import EnsembleFollower, FollowOptions, PlanFollower
from harness.follow.reconfig import ReconfigFollower
from harness.follow.result import Ending, FollowedRun
from harness.follow.servers import Loopback, MappingError
from harness.processes import ServerError
from harness.releases import MAVEN
from spec.config import ConfigError
from spec.text import between

DESCRIPTION = "Follows the plan for a roll-out on real servers, under writes, with random kills."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--from", required=True, dest="old", metavar="INPUT", help="the present state, as for rollout")
    parser.add_argument("--to", required=True, dest="new", metavar="INPUT", help="the new state")
    parser.add_argument("--release", default=MAVEN[-1], help=f"the release of the servers (default: {MAVEN[-1]})")
    parser.add_argument("--runs", type=between(0), default=1, metavar="N", help="how often (default: once)")
    parser.add_argument(
        "--kills", type=between(0), metavar="K", help="SIGKILLs in each run (default: 1; none in a plan by reconfig)"
    )
    parser.add_argument("--seed", type=between(0), default=1, metavar="S", help="of the first run; each run adds 1")
    add_keep(parser)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; return its exit code."""
    if options.runs == 0:
        return refused("--runs 0: nothing to do; write a number from 1", 2)
    if reason := keep_mistake(options.keep) or real.available(options.release):
        return refused(reason, 2)
    try:
        rollout = plan(PlanRequest(read_input(options.old), read_input(options.new)), Engine().run)
        _check(rollout, options.kills)
    except ConfigError as error:
        return refused("; ".join(map(str, error.problems)), 2)
    except (OrderError, UndecidedError, MappingError) as error:
        return refused(str(error), 2)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="quorate-"))
    results: list[FollowedRun] = []
    try:
        for number in range(1, options.runs + 1):
            results.append(_follow(rollout, options, number, folder))
    except (ServerError, OSError) as error:
        return refused(str(error), 3)
    finally:
        if options.keep is None and all(result.ending is Ending.KEPT for result in results):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"the servers' directories: {folder}")
    print(f"\n{total(results)}")
    return exit_code(results)


def _check(made: Plan, kills: int | None) -> None:
    """Raise MappingError if the plan is not safe, has no steps, or has a file that cannot be followed here."""
    if made.reconfig_route is not None:
        # A route by reconfig need not be decided; only a violation that was found forbids it.
        if made.reconfig_route.outcome is SafetyVerdict.UNSAFE:
            raise MappingError(f"a violation was found in these commands; ask {called('rollout')}")
        if kills:
            problem = "no server may restart between a `reconfig` and its reply, so no server is killed"
            raise MappingError(f"--kills {kills}: {problem}; leave it out")
        return
    if made.outcome is not SafetyVerdict.SAFE:
        problem = f"the planner does not call this change safe ({made.outcome.value})"
        raise MappingError(f"{problem}; ask {called('rollout')}")
    if not any(part.stage.remaining for part in made.advised):
        raise MappingError("there is nothing to do: every server has its new file")
    ports = iter(range(1, 1000))
    trial = Loopback(lambda count: tuple(next(ports) for _ in range(count)))
    for part in made.advised:
        for state in (part.stage.old, part.stage.new):
            for sid in state.members:
                trial.text(state, sid, Path("data"))


def _follow(made: Plan, options: argparse.Namespace, number: int, folder: Path) -> FollowedRun:
    route = made.reconfig_route
    kills = options.kills if options.kills is not None else int(route is None)
    chosen = FollowOptions(options.release, kills=kills, seed=options.seed + number - 1)
    directory = folder / f"run-{number}"
    print(f"run {number} of {options.runs}, ZooKeeper {options.release}, seed {chosen.seed}", flush=True)

    def say(text: str) -> None:
        print(f"  {text}", flush=True)

    follower: EnsembleFollower = (
        PlanFollower(made, chosen, directory, say)
        if route is None
        else ReconfigFollower(made, route, chosen, directory, say)
    )
    result = follower.follow()
    print(f"  {result.ending.value}{f': {result.reason}' if result.reason else ''}")
    print(
        f"  {result.acknowledged} acknowledged, {result.lost} lost, longest pause {result.pause:.1f} s, "
        f"waits in vain {result.vain}",
        flush=True,
    )
    return result


def total(results: list[FollowedRun]) -> str:
    """The sum of all runs, in one line."""
    count = sum(result.ending is Ending.KEPT for result in results)
    acknowledged, lost = sum(result.acknowledged for result in results), sum(result.lost for result in results)
    pause = max((result.pause for result in results), default=0.0)
    led = max((step.pause for result in results for step in result.steps if step.led), default=0.0)
    vain = sum(result.vain for result in results)
    return (
        f"every write kept {count} of {len(results)}; {acknowledged} acknowledged, {lost} lost; longest pause "
        f"{pause:.1f} s, in a step on the leader {led:.1f} s; waits in vain {vain}"
    )


def exit_code(results: list[FollowedRun]) -> int:
    """0 if every run kept every write, 3 if the harness failed in one, else 1."""
    if any(result.ending in (Ending.LOST, Ending.DIFFERS) for result in results):
        return 1
    if any(result.ending is Ending.FAILED for result in results):
        return 3
    return int(any(result.ending is not Ending.KEPT for result in results))


FOLLOW = Command(add_options, run)
