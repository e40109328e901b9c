"""The runs of `--nodes N`: the scenarios of the folder `nodes` with N servers, or the one that options describe.

An option that describes an ensemble sets the key of a scenario that has its name.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from msgspec import Struct

from checker.cli.sources import RunRequest
from checker.scenario import ScenarioError, VariantError, bundled, from_text
from checker.scenario.schema import ZAB, ChannelEntry, FaultsEntry, Scenario, ServersEntry, WorkloadEntry
from checker.scenario.yaml_lines import read_yaml, write_yaml
from checker.user_files import OutputError

FOLDER = "nodes"
_OF_BUDGETS: dict[str, type[Struct]] = {"faults": FaultsEntry, "workload": WorkloadEntry}
_MAPS: dict[str, type[Struct]] = {
    "": Scenario,
    "servers": ServersEntry,
    "channel": ChannelEntry,
    **_OF_BUDGETS,
}
KEYS = {
    key: name for name, entry in _MAPS.items() for key in entry.__struct_fields__ if key not in ("variants", "like")
}
"""The map of a scenario that has the key; "" for the scenario itself."""


def requests_of(options: argparse.Namespace) -> list[RunRequest]:
    """The runs that the command line requests. A run that its variants and its release cannot change is left out.

    Raises OutputError for options that exclude each other.
    """
    described = list(_described(options))
    jobs, refusals = [], dict[str, None]()
    for keys in described or presets(options.nodes):
        try:
            jobs.append(
                from_text(write_yaml(keys), lambda _: None, f"{keys['name']}.yaml", options.variants, options.like)
            )
        except VariantError as error:
            refusals[_with_options(str(error))] = None
        except ScenarioError as error:
            option = error.key.split(".")[:2][-1].replace("_", "-")
            raise OutputError(_with_options(f"--{option}: {error.what}; {error.right}")) from None
    if not jobs:
        raise OutputError("; ".join(refusals))
    if described and options.nodes == 1:  # a server alone gets no message and loses no peer
        jobs = [replace(job, allowed_silent=job.allowed_silent | job.actions) for job in jobs]
    return [RunRequest(job) for job in jobs]


def presets(nodes: int) -> Iterator[dict[str, Any]]:
    """The keys of the scenarios for this number of servers."""
    for path in bundled():
        if path.parent.name == FOLDER:
            keys = read_yaml(path.read_text("utf-8"), path.name).value
            if nodes in keys["sizes"]:
                keys["servers"]["count"] = nodes
                yield keys


def _described(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The keys of the scenario that the options describe, if they do not only give the number of servers."""
    given = {name: value for name, value in vars(options).items() if name in KEYS and value is not None}
    if not given:
        return
    late = {} if options.established else {"late": options.nodes}
    witness = [] if options.protocol == ZAB else ["Elected"]
    keys: dict[str, Any] = {"": {"name": "as described", "rounds": 2, "sometimes": witness, "expect": "passed"}}
    keys["servers"] = {"count": options.nodes, **late}
    for name, value in given.items():
        if value or KEYS[name] not in _OF_BUDGETS:  # a budget of nothing is no key of the scenario
            keys.setdefault(KEYS[name], {})[name] = value
    views = keys["servers"]["other_view"] = dict(options.other_view or ())
    if len(views) < len(options.other_view or ()):
        raise OutputError("--other-view gives one server two files; give each server one")
    yield keys.pop("") | keys


def _with_options(message: str) -> str:
    """A message about a scenario, with options for the keys that it advises."""
    return re.sub(r"write (protocol|grain): (\w+)", r"add --\1 \2", message)
