"""One exhaustive search in a separate process, perhaps symmetric; prints one line of JSON."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.tlc.official import Instance
from benchmarks.tlc.zab import model as official_zab
from checker.engine import Finding, Kind, Model, Property, Read
from checker.models.ensemble import Budgets, File, Grain, Member, Setup, ensemble
from checker.models.small_election import FOLLOWING, LEADING, election
from checker.properties import ENSEMBLE_PROPERTIES
from checker.scenario import load
from spec.election.channel import ChannelRules
from spec.quorum import majority_view
from spec.text import required_integer
from spec.zab.state import ZabRules

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"


def small_election(servers: int) -> Model:
    """Rounds, votes and buckets alone, without properties: the same model as the Promela one."""
    return election(servers).with_properties([])


def deciding(kind: Kind) -> Callable[[int], Model]:
    """The small election with the property that all servers decide: eventually, or recoverably, by the kind."""

    def decided(*states: str) -> Finding | None:
        return Finding("all have decided") if {*states} <= {LEADING, FOLLOWING} else None

    def model(servers: int) -> Model:
        reads = tuple(Read(str(sid), lambda local: local.state) for sid in range(1, servers + 1))
        return election(servers).with_properties([Property("Decides", reads, decided, kind)])

    return model


def fast_leader_election(servers: int) -> Model:
    """The whole FastLeaderElection from a cold start in one round, checked against its invariants."""
    file = File("zoo.cfg", majority_view(range(1, servers + 1)))
    members = tuple(Member(sid, file, late=True) for sid in range(1, servers + 1))
    setup = Setup(members, round_limit=1, channels=ChannelRules(merge_repeats=True))
    properties = [ENSEMBLE_PROPERTIES.build(setup, name) for name in ("OneLeader", "OnlyVotersCounted")]
    return ensemble("cold start", setup, properties)


def zab(servers: int) -> Model:
    """Three servers that lead and follow, checked against every invariant of Zab; `servers` selects the budgets.

    4: two transactions, two crashes and returns, two lost connections, three elections (the scenario zab-3-servers). 3:
    one of each and two elections, a quick look. 2: for compiling.
    """
    budgets = {
        2: Budgets(elections=1),
        3: Budgets(elections=2, writes=1, crashes=1, restarts=1, disconnects=1),
        4: Budgets(elections=3, writes=2, crashes=2, restarts=2, disconnects=2),
    }
    file = File("zoo.cfg", majority_view((1, 2, 3)))
    members = tuple(Member(sid, file) for sid in (1, 2, 3))
    setup = Setup(members, Grain.ORACLE, budgets=budgets[servers], zab=ZabRules(), discovery_in_one_step=True)
    return ensemble("zab", setup, ENSEMBLE_PROPERTIES.build_defaults(setup))


def example(name: str, *options: str) -> Callable[[int], Model]:
    """A model of `docs/examples`, by its size and perhaps other arguments."""
    return lambda size: load(EXAMPLES / f"{name}.py:model({', '.join((str(size), *options))})").model


MODELS: dict[str, Callable[[int], Model]] = {
    "paxos": example("paxos"),
    "paxos_in_order": example("paxos", "'ordered'"),
    "two_phase_commit": example("two_phase_commit"),
    "rounds": small_election,
    "election": fast_leader_election,
    "zab": zab,
    "recoverable": deciding(Kind.RECOVERABLE),
    "eventually": deciding(Kind.EVENTUALLY),
}


def model_of(name: str, size: str) -> Model:
    """A model by its name and its size, which for `zab_tla` is an instance."""
    return official_zab(*Instance.of(size)) if name == "zab_tla" else MODELS[name](required_integer(size))


def main(model_name: str, size: str, workers: int, kind: str = "in full") -> None:
    """Compile on a small model, then search; raises SystemExit if the space was not exhausted."""
    began = time.monotonic()
    from benchmarks.search_alone import model_of  # noqa: PLC0415 (loading is part of what goes before the search)
    from checker.engine.search import BREADTH_FIRST, explore  # noqa: PLC0415
    from checker.engine.symmetric_search import SYMMETRIC  # noqa: PLC0415

    frontier = SYMMETRIC if kind == "symmetric" else BREADTH_FIRST
    explore(model_of(model_name, "2"), frontier=frontier, workers=workers)
    model = model_of(model_name, size)
    setup_seconds, processor = time.monotonic() - began, time.process_time()
    baseline = psutil.Process().memory_info().rss
    result = explore(model, frontier=frontier, workers=workers)
    if not result.exhausted:
        raise SystemExit(f"the search ended before its end: {result.stop.value}")
    print(
        json.dumps(
            {
                "states": result.states,
                "transitions": result.transitions,
                "seconds": result.seconds,
                "setup_seconds": setup_seconds,
                "baseline_bytes": baseline,
                "processor": time.process_time() - processor,
                "violations": len(result.violations),
                "python_steps": result.python_steps,
                "python_seconds": result.python_seconds,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], required_integer(sys.argv[3]), *sys.argv[4:])
