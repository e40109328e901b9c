"""The runs that `--nodes` stands for: a named set, or the one run that further options describe.

The set looks at an ensemble from several sides, each at the finest grain that is affordable: the election itself
message by message; a crash with a restart, an observer and a server that has another configuration, together;
broken links; and every fault at once by the oracle.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from checker.cli.options import BUDGETS
from checker.engine import Limits
from checker.job import Job, Verdict
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.properties import build, defaults
from checker.scenario import EnsembleLens, known_actions
from checker.scenario.actions import may_be_silent
from checker.scenario.bounds import bounds_of
from checker.scenario.refined import with_refinement
from checker.scenario.variants import named, names, why_idle, with_variants
from spec.election.channel import ChannelRules
from spec.quorum import Sid, majority_view
from spec.variants import Variant

KIND = "nodes"
FINE_UP_TO = 4  # servers whose election can be explored message by message
Described = dict[str, Any]
Digit = Annotated[int, msgspec.Meta(ge=1, le=9)]


class NodesError(Exception):
    """Options that do not go together; the message says what would."""


def jobs(options: argparse.Namespace) -> list[Job]:
    """The runs that the command line asks for. Raises NodesError."""
    described = _described(options)
    runs = [described] if described else list(_set_of_runs(options.nodes))
    if options.variants:
        runs = _with_variants(runs, options.variants)
    return [_job(run, Limits(depth=options.depth)) for run in runs]


def _with_variants(runs: list[Described], variants: list[Variant]) -> list[Described]:
    """Those of the runs in which each of the variants may change something. Raises NodesError if there is none."""
    idle = {run["name"]: [why_idle(each, _setup(run)) for each in variants] for run in runs}
    chosen = [run for run in runs if not any(idle[run["name"]])]
    if not chosen:
        told = [f"{each.value}: {why.what}" for whys in idle.values() for each, why in zip(variants, whys, strict=True)
                if why is not None]  # fmt: skip
        raise NodesError(f"--variant {'; '.join(dict.fromkeys(told))}; take a scenario, where it may: run FILE")
    return [
        {**run, "name": f"{run['name']} with {names(variants)}", "variants": sorted(each.value for each in variants)}
        for run in chosen
    ]


def from_source(source: dict[str, Any]) -> Job:
    """The run that a trace carries. Raises NodesError."""
    try:
        run = msgspec.convert(source.get("run"), _Run, strict=True)
    except msgspec.ValidationError as error:
        raise NodesError(f"the source of this trace describes no run of --nodes ({error})") from None
    return _job(msgspec.to_builtins(run), Limits())


class _Run(msgspec.Struct, forbid_unknown_fields=True):
    """A run in words that a trace can carry, within the ranges of the options."""

    name: str
    nodes: Annotated[int, msgspec.Meta(ge=1, le=7)]
    observers: Annotated[int, msgspec.Meta(ge=0, le=6)]
    grain: Literal["fine", "oracle"]
    established: bool
    other_views: dict[str, list[int]]
    rounds: Digit
    capacity: Digit
    late: Annotated[int, msgspec.Meta(ge=0, le=7)]
    faults: dict[str, Digit]
    silent: list[str]
    variants: list[str] = []


_RUN: Described = {
    "name": "as described", "nodes": 3, "observers": 0, "grain": "fine", "established": False, "other_views": {},
    "rounds": 2, "capacity": 2, "late": 0, "faults": {}, "silent": [], "variants": [],
}  # fmt: skip
"""What holds of a run unless it says otherwise. `silent` are actions that need not fire in it."""


def _set_of_runs(nodes: int) -> Iterable[Described]:
    grain = "fine" if nodes <= FINE_UP_TO else "oracle"
    yield {**_RUN, "name": "cold start", "nodes": nodes, "grain": grain, "rounds": 1, "late": nodes}
    crash = {"crashes": 1, "restarts": 1, **({"impatience": 1} if grain == "fine" else {})}
    if nodes > 2:
        yield {
            **_RUN, "name": "crash, observer, another view", "nodes": nodes, "observers": 1, "grain": grain,
            "established": True, "rounds": 3, "other_views": {str(nodes - 1): list(range(1, nodes))}, "faults": crash,
        }  # fmt: skip
    links = {"cuts": 1, "heals": 1, "rebroadcasts": 1}
    if 1 < nodes <= FINE_UP_TO:
        # Who was cut off hears from those who have decided, and joins them without a decision of its own.
        yield {
            **_RUN, "name": "a broken link", "nodes": nodes, "established": True, "faults": links,
            "silent": ["decide"],
        }  # fmt: skip
    every = {"crashes": 2, "restarts": 2, "cuts": 1, "partitions": 1, "heals": 1}
    if nodes > 1:
        less = every if nodes <= FINE_UP_TO else {"crashes": 1, "restarts": 1, "partitions": 1, "heals": 1}
        yield {**_RUN, "name": "faults of every kind", "nodes": nodes, "grain": "oracle", "late": nodes, "faults": less}


def _described(options: argparse.Namespace) -> Described | None:
    """The one run that the options describe; None if they only say how many servers."""
    faults = {name: getattr(options, name) for name in BUDGETS if getattr(options, name)}
    plain = (options.observers, options.grain, options.established, options.other_view, options.late)
    if not faults and plain == (0, None, False, [], None) and (options.rounds, options.capacity) == (2, 2):
        return None
    if options.late is not None and options.established:
        raise NodesError("--late and --established exclude one another: a late server has not started yet")
    sids = [sid for sid, _ in options.other_view]
    if len(set(sids)) < len(sids):
        raise NodesError("--other-view gives one server two files; give each server one")
    late = 0 if options.established else options.nodes if options.late is None else options.late
    return {
        **_RUN, "nodes": options.nodes, "observers": options.observers, "grain": options.grain or "fine",
        "established": options.established, "rounds": options.rounds, "capacity": options.capacity,
        "late": late, "faults": faults,
        "other_views": {str(sid): list(voters) for sid, voters in options.other_view},
    }  # fmt: skip


def _job(run: Described, limits: Limits) -> Job:
    setup = _setup(run)
    properties = [build(setup, name, None) for name in (*defaults(setup), "Elected")]
    try:
        model = ensemble(run["name"], setup, properties)
    except ValueError as error:
        raise NodesError(str(error)) from None
    silent = may_be_silent(setup) | set(run["silent"]) if len(setup.members) > 1 else known_actions(model)
    job = Job(
        name=run["name"],
        model=model,
        lens=EnsembleLens(model, setup),
        source={"kind": KIND, "run": run},
        grain=run["grain"],
        limits=limits,
        expected=None if run["variants"] else Verdict.PASSED,
        bounds=bounds_of(setup, 0),
        allowed_silent=silent,
    )
    return with_refinement(job, setup)


def _setup(run: Described) -> Setup:
    sids = tuple(range(1, run["nodes"] + 1))
    if run["observers"] >= len(sids):
        raise NodesError(f"--observers {run['observers']} leaves no voter among {len(sids)} servers")
    voters = sids[: len(sids) - run["observers"]]
    usual = File("the usual file", majority_view(voters, sids[len(voters) :]))
    others = {int(sid): _other_file(int(sid), tuple(known), sids) for sid, known in run["other_views"].items()}
    late = sids[len(sids) - min(run["late"], len(sids)) :]
    setup = Setup(
        members=tuple(Member(sid, others.get(sid, usual), late=sid in late) for sid in sids),
        grain=Grain(run["grain"]),
        prologue=(Prologue(sids),) if run["established"] else (),
        budgets=Budgets(**run["faults"]),
        round_limit=run["rounds"],
        channels=ChannelRules(capacity=run["capacity"], merge_repeats=True),
    )
    return with_variants(setup, [named(name) for name in run["variants"]])


def _other_file(sid: Sid, voters: tuple[Sid, ...], sids: tuple[Sid, ...]) -> File:
    if sid not in sids:
        raise NodesError(f"--other-view names server {sid}, and there are the servers 1 to {len(sids)}")
    if sid not in voters:
        raise NodesError(f"--other-view {sid}: its own file must name it, and the voters given leave it out")
    return File(f"the file of server {sid}", majority_view(voters))
