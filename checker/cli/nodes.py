"""The runs of `--nodes N`: a named set that checks an ensemble in several situations, or one run with other options.

    cold start           an election with all its messages, and the first steps of its leader
    established          a leader that serves: writes, a crash, a return, re-election, synchronisation
    crash, observer, another view
                         the same with an observer, one server whose file does not name it, and a dropped connection
    a broken link        an election with all its messages after a link was cut; only the election
    faults of every kind the oracle's elections under every fault; only the election

Rules of this module:

- The description of a run is plain data that a trace can contain, so that the trace can be replayed without this
  command line.
- Each run of the set checks every invariant of its protocol. An invariant whose premise never holds makes the run
  vacuous, except where the bounds of the run exclude the premise: these are listed in `silent` and reported as allowed.
- A run that takes long has a depth limit, which `--depth` replaces.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec

from checker.cli.options import OPTIONAL, option
from checker.engine import Limits
from checker.job import Job, Verdict
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.models.ensemble.actions import BUDGETS
from checker.properties import ENSEMBLE_PROPERTIES
from checker.scenario.ensemble import ensemble_job
from checker.scenario.ensemble_setup import why_no_effect, with_release, with_variants
from checker.scenario.yaml_lines import LikeError, like_named, variant_named, variant_names
from spec.durable import Durable
from spec.election.channel import ChannelRules
from spec.quorum import Sid, majority_view
from spec.releases import Release
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.state import ZabRules

KIND = "nodes"
ELECTIONS = 3  # elections of a leader by the oracle, unless an option gives another number
RunDescription = dict[str, Any]
FINE_UP_TO = 4  # the greatest number of servers whose election can be explored with all its messages

RUN: RunDescription = {
    "name": "as described", "nodes": 3, "observers": 0, "grain": "fine", "established": False, "other_views": {},
    "rounds": 2, "capacity": 2, "late": 0, "faults": {}, "silent": [], "variants": [], "protocol": "election",
    "discovery": "packets", "given": 0, "properties": [], "depth": None,
}  # fmt: skip
"""The defaults of every run.

`silent` names actions that need not fire and invariants whose premise need not hold. `given` is the number of
transactions on every disk at the start. `properties` names the invariants; an empty list means the usual ones. A run
with the defects of a release has the key `like` too.
"""
BEGINNING = ("LeaderIsAVoter", "OnlyVotersCounted", "Leadership", "OnlyVotersAck", "NoBadState")
DEPTHS = {4: 30, 5: 22, 6: 17, 7: 13}
"""The depth limits of the long runs of the whole server, by the number of servers."""

Digit = Annotated[int, msgspec.Meta(ge=1, le=9)]


class NodesError(Exception):
    """Options that exclude each other; the message has a correction."""


def jobs(options: argparse.Namespace) -> list[Job]:
    """The jobs that the command line requests. Raises NodesError."""
    described = _described(options)
    runs = [described] if described else list(preset_runs(options.nodes))
    if options.variants:
        runs = _with_variants(runs, options.variants)
    if options.like:
        runs = _with_release(runs, options.like)
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


def _with_release(runs: list[RunDescription], release: Release) -> list[RunDescription]:
    """The runs in which the defects of a release may have an effect. Raises NodesError if there are none."""
    chosen, reasons = [], []
    for run in runs:
        try:
            with_release(_setup(run), release)
        except LikeError as error:
            reasons.append(error.reason)
        else:
            chosen.append({**run, "name": f"{run['name']} like {release}", "like": str(release)})
    if not chosen:
        raise NodesError(f"--like {release}: {reasons[0].what}; add --protocol zab")
    return chosen


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
    like: str = ""


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
    setup, like = _setup(run), None
    if run.get("like"):
        setup, like = with_release(setup, like_named(run["like"]))
    held_to = run["properties"] or ENSEMBLE_PROPERTIES.defaults(setup)
    witnesses = () if run["protocol"] == "zab" else ("Elected",)
    properties = [ENSEMBLE_PROPERTIES.build(setup, name) for name in (*held_to, *witnesses)]
    try:
        model = ensemble(run["name"], setup, properties)
    except ValueError as error:
        raise NodesError(str(error)) from None
    job = ensemble_job(run["name"], model, setup, {"kind": KIND, "run": run}, like=like)
    silent = job.allowed_silent if len(setup.members) > 1 else model.actions
    return replace(
        job,
        limits=limits,
        expected=None if run["variants"] or like else Verdict.PASSED,
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
    disk = Durable(1, 1, log=txns) if txns else Durable()
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


def preset_runs(nodes: int) -> Iterator[RunDescription]:
    """The set for this number of servers."""
    fine, depth = nodes <= FINE_UP_TO, DEPTHS.get(nodes)
    run = {**RUN, "nodes": nodes, "depth": depth}
    if fine:
        # In one round only one leader is established: a second one would be the violation.
        yield {
            **run, "name": "cold start", "protocol": "zab", "rounds": 1, "properties": _beginning(nodes),
            "silent": ["Leadership"],
        }  # fmt: skip
    else:
        yield {**RUN, "nodes": nodes, "name": "cold start", "grain": "oracle", "late": nodes}
    if nodes > 1:
        yield _whole(run, "established")
    if nodes > 2:
        other = {str(nodes - 1): list(range(1, nodes))}
        yield _whole(run, "crash, observer, another view", observers=1, other_views=other, disconnects=1)
    if nodes > 1 and fine:
        # A server that was cut off hears from the decided servers, and joins them without a `decide` step.
        links = {"cuts": 1, "heals": 1, "notification_timeouts": 1}
        yield {
            **RUN, "nodes": nodes, "name": "a broken link", "established": True, "faults": links, "silent": ["decide"],
        }  # fmt: skip
    if nodes > 1:
        less = {"crashes": 1, "restarts": 1, "partitions": 1, "heals": 1}
        every = {"crashes": 2, "restarts": 2, "cuts": 1, "partitions": 1, "heals": 1}
        yield {
            **RUN, "nodes": nodes, "name": "faults of every kind", "grain": "oracle", "late": nodes,
            "faults": every if fine else less,
        }  # fmt: skip


def _beginning(nodes: int) -> list[str]:
    """The invariants of an ensemble before its first commit; a single server waits for no ACK."""
    return [name for name in BEGINNING if nodes > 1 or name != "OnlyVotersAck"]


def _whole(
    run: RunDescription, name: str, observers: int = 0, other_views: Any = None, disconnects: int = 0
) -> RunDescription:
    """The whole server, from a leader that serves: two writes, a crash and a return, one more election."""
    faults = {"elections": 1, "writes": 2, "crashes": 1, "restarts": 1, "disconnects": disconnects}
    # Neither of two voters leads without the other, so the one with more transactions leads, and none is truncated.
    silent = ["CommittedLogDurability"] if run["nodes"] - observers == 2 else []
    return {
        **run, "name": name, "protocol": "zab", "grain": "oracle", "discovery": "one-step", "established": True,
        "given": 1, "silent": silent,
        "observers": observers, "other_views": other_views or {}, "faults": {k: v for k, v in faults.items() if v},
    }  # fmt: skip
