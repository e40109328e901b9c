"""The conversion of the options of `--nodes` to jobs: a named set of runs, or the one run that further options
describe.

The description of a run is plain data that a trace can contain, so that the trace can be replayed without this command
line.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec

from checker.cli.options import OPTIONAL, option
from checker.cli.presets import RUN, RunDescription, preset_runs
from checker.engine import Limits
from checker.job import Job, Verdict
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.models.ensemble.actions import BUDGETS
from checker.properties import ENSEMBLE_PROPERTIES
from checker.scenario.ensemble import ensemble_job
from checker.scenario.ensemble_setup import why_no_effect, with_variants
from checker.scenario.errors import variant_named, variant_names
from spec.durable import Durable
from spec.election.channel import ChannelRules
from spec.quorum import Sid, majority_view
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.state import ZabRules

KIND = "nodes"
ELECTIONS = 3  # elections of a leader by the oracle, unless an option gives another number
Digit = Annotated[int, msgspec.Meta(ge=1, le=9)]


class NodesError(Exception):
    """Options that exclude each other; the message has a correction."""


def jobs(options: argparse.Namespace) -> list[Job]:
    """The jobs that the command line requests. Raises NodesError."""
    described = _described(options)
    runs = [described] if described else list(preset_runs(options.nodes))
    if options.variants:
        runs = _with_variants(runs, options.variants)
    return [_job(run, Limits(depth=run["depth"] if options.depth is None else options.depth)) for run in runs]


def _with_variants(runs: list[RunDescription], variants: list[Variant]) -> list[RunDescription]:
    """The runs in which every variant may have an effect. Raises NodesError if there are none."""
    idle = {run["name"]: [why_no_effect(each, _setup(run)) for each in variants] for run in runs}
    chosen = [run for run in runs if not any(idle[run["name"]])]
    if not chosen:
        reasons = [
            f"{each.value}: {why.what}"
            for whys in idle.values()
            for each, why in zip(variants, whys, strict=True)
            if why is not None
        ]
        raise NodesError(f"--variant {'; '.join(dict.fromkeys(reasons))}; take a scenario, where it may: run FILE")
    return [
        {
            **run,
            "name": f"{run['name']} with {variant_names(variants)}",
            "variants": sorted(each.value for each in variants),
        }
        for run in chosen
    ]


def from_source(source: dict[str, Any]) -> Job:
    """The job that a trace describes. Raises NodesError."""
    try:
        run = msgspec.convert(source.get("run"), _RunDescription, strict=True)
    except msgspec.ValidationError as error:
        raise NodesError(f"the source of this trace describes no run of --nodes ({error})") from None
    return _job(msgspec.to_builtins(run), Limits())


class _RunDescription(msgspec.Struct, forbid_unknown_fields=True):
    """The description of a run in a trace, within the ranges of the options."""

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
    protocol: Literal["election", "zab"] = "election"
    discovery: Literal["packets", "one-step"] = "packets"
    given: Annotated[int, msgspec.Meta(ge=0, le=9)] = 0
    properties: list[str] = []
    depth: int | None = None


def _described(options: argparse.Namespace) -> RunDescription | None:
    """The one run that the options describe; None if they only give the number of servers."""
    faults = {name: getattr(options, name) for name in OPTIONAL if getattr(options, name)}
    plain = (options.observers, options.grain, options.established, options.other_view, options.late, options.protocol)
    usual = (options.rounds, options.capacity, options.discovery) == (2, 2, None)
    if not faults and plain == (0, None, False, [], None, None) and usual:
        return None
    if options.late is not None and options.established:
        raise NodesError("--late and --established exclude one another: a late server has not started yet")
    sids = [sid for sid, _ in options.other_view]
    if len(set(sids)) < len(sids):
        raise NodesError("--other-view gives one server two files; give each server one")
    late = 0 if options.established else options.nodes if options.late is None else options.late
    run = {
        **RUN, "nodes": options.nodes, "observers": options.observers, "grain": options.grain or "fine",
        "established": options.established, "rounds": options.rounds, "capacity": options.capacity,
        "late": late, "faults": faults, "protocol": options.protocol or "election",
        "discovery": options.discovery or "packets",
        "other_views": {str(sid): list(voters) for sid, voters in options.other_view},
    }  # fmt: skip
    _check_protocol(run, options)
    if run["protocol"] == "zab" and run["grain"] == "oracle":
        faults.setdefault("elections", ELECTIONS)
    return run


def _check_protocol(run: RunDescription, options: argparse.Namespace) -> None:
    """Check for options without an effect. Raises NodesError."""
    given = [option(name) for name in run["faults"] if BUDGETS[name].domain.is_of_zab]
    given += ["--discovery"] * bool(options.discovery)
    if run["protocol"] == "election" and given:
        raise NodesError(f"{given[0]} changes nothing where the election is all there is; add --protocol zab")
    coarse = [f"--{name}" for name in ("elections", "discovery") if getattr(options, name)]
    if run["grain"] == "fine" and coarse:
        raise NodesError(f"{coarse[0]} changes nothing message by message; add --grain oracle")


def _job(run: RunDescription, limits: Limits) -> Job:
    setup = _setup(run)
    held_to = run["properties"] or ENSEMBLE_PROPERTIES.defaults(setup)
    witnesses = () if run["protocol"] == "zab" else ("Elected",)
    properties = [ENSEMBLE_PROPERTIES.build(setup, name) for name in (*held_to, *witnesses)]
    try:
        model = ensemble(run["name"], setup, properties)
    except ValueError as error:
        raise NodesError(str(error)) from None
    job = ensemble_job(run["name"], model, setup, {"kind": KIND, "run": run})
    silent = job.allowed_silent if len(setup.members) > 1 else model.actions
    return replace(
        job,
        limits=limits,
        expected=None if run["variants"] else Verdict.PASSED,
        allowed_silent=silent | set(run["silent"]),
    )


def _setup(run: RunDescription) -> Setup:
    sids = tuple(range(1, run["nodes"] + 1))
    if run["observers"] >= len(sids):
        raise NodesError(f"--observers {run['observers']} leaves no voter among {len(sids)} servers")
    voters = sids[: len(sids) - run["observers"]]
    usual = File("the usual file", majority_view(voters, sids[len(voters) :]))
    others = {int(sid): _other_file(int(sid), tuple(known), sids) for sid, known in run["other_views"].items()}
    late = sids[len(sids) - min(run["late"], len(sids)) :]
    txns = tuple(Txn(make_zxid(1, number + 1), "given") for number in range(run["given"]))
    disk = Durable(1, 1, txns=txns) if txns else Durable()
    setup = Setup(
        members=tuple(Member(sid, others.get(sid, usual), disk, late=sid in late) for sid in sids),
        grain=Grain(run["grain"]),
        prologue=(Prologue(sids),) if run["established"] else (),
        budgets=Budgets(**run["faults"]),
        round_limit=run["rounds"],
        channels=ChannelRules(capacity=run["capacity"], merge_repeats=True),
        zab=ZabRules() if run["protocol"] == "zab" else None,
        discovery_in_one_step=run["discovery"] == "one-step",
    )
    return with_variants(setup, [variant_named(name) for name in run["variants"]])


def _other_file(sid: Sid, voters: tuple[Sid, ...], sids: tuple[Sid, ...]) -> File:
    if sid not in sids:
        raise NodesError(f"--other-view names server {sid}, and there are the servers 1 to {len(sids)}")
    if sid not in voters:
        raise NodesError(f"--other-view {sid}: its own file must name it, and the voters given leave it out")
    return File(f"the file of server {sid}", majority_view(voters))
