"""`list`: lists the shipped scenarios and the available properties."""

from __future__ import annotations

import argparse

from checker.cli.commands.command import Command
from checker.report.verdict import ExitCode


def _run(_: argparse.Namespace) -> int:
    from checker.properties import ENSEMBLE_PROPERTIES  # noqa: PLC0415
    from checker.properties.recipes import RECIPE_PROPERTIES  # noqa: PLC0415
    from checker.properties.service import SERVICE_PROPERTIES  # noqa: PLC0415
    from checker.scenario import bundled, load  # noqa: PLC0415

    print("scenarios")
    width = max(len(path.stem) for path in bundled())
    for path in bundled():
        job = load(path)
        expected = job.expected.value if job.expected else ""
        print(f"  {path.stem:<{width}}  {job.grain:<6}  {expected:<8}  {job.name}")
    for registry in (ENSEMBLE_PROPERTIES, SERVICE_PROPERTIES, RECIPE_PROPERTIES):
        print(f"properties of {registry.models}")
        width = max(map(len, registry))
        for name, each in registry.items():
            print(f"  {name:<{width}}  {each.kind.value:<11}  {each.meaning}")
    return int(ExitCode.PASSED)


COMMAND = Command("list", "Lists the scenarios that come with the package, and the properties.", lambda _: None, _run)
