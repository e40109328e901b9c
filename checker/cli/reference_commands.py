"""The commands that print reference material: the list of scenarios, proofs, tables and the gallery."""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from checker.cli.command import Command, refused, unread_output_discarded
from checker.report.verdict import ExitCode
from spec.variants import DESCRIBED, Area, Variant, is_defect


def _listing(_: argparse.Namespace) -> int:
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


LISTING = Command(
    "list", "Lists the scenarios that come with the package, and the properties.", lambda _: None, _listing
)


def _proofs(_: argparse.Namespace) -> int:
    from checker.symbolic import cycle_lines, every_proof  # noqa: PLC0415
    from checker.symbolic.proofs import Theorem  # noqa: PLC0415

    proofs = every_proof()
    with unread_output_discarded():
        for proof in proofs:
            print(f"{proof.RESULT}: {proof.statement}")
        print("\n".join(cycle_lines()))
    return int(ExitCode.PASSED if all(isinstance(proof, Theorem) for proof in proofs) else ExitCode.SAFETY)


PROOFS = Command(
    "proofs", "Proves with z3 what holds for any number of servers and any votes.", lambda _: None, _proofs
)


def _tables_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the tables as JSON")


def _tables(options: argparse.Namespace) -> int:
    from checker.cli.tables import report  # noqa: PLC0415

    text, data = report()
    print(json.dumps(data) if options.json else text)
    return int(ExitCode.PASSED)


TABLES = Command("tables", "Computes who survives the loss of servers and of links (R2, R3).", _tables_options, _tables)


def _gallery_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the pages are written")
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="shipped scenarios (default: all), whose pages are written"
    )


def _gallery(options: argparse.Namespace) -> int:
    from checker.gallery import write_gallery  # noqa: PLC0415
    from checker.scenario import ScenarioError  # noqa: PLC0415

    try:
        return write_gallery(options.folder, options.files)
    except ScenarioError as error:
        return refused(str(error), ExitCode.SCENARIO)
    except OSError as error:
        return refused(f"{options.folder}: no page can be written there ({error})", ExitCode.COMMAND_LINE)


GALLERY = Command(
    "gallery", "Writes a page for each scenario, with every run that is found in it.", _gallery_options, _gallery
)


VARIANT_WIDTH = 110


def variants_report() -> tuple[str, dict[str, Any]]:
    """All variants as text and as data: the known defects, then the mutants by the area that they change."""
    lines = _variant_lines("known defects", _defects())
    for area in Area:
        mutants = [each for each in _mutants() if DESCRIBED[each].area is area]
        lines += (
            _variant_lines("mutants" if area is Area.ZAB else f"mutants of {area.value}", mutants) if mutants else []
        )
    return "\n".join(lines), {
        "defects": [_variant_data(each) for each in _defects()],
        "mutants": [_variant_data(each) for each in _mutants()],
    }


def _defects() -> list[Variant]:
    return [each for each in DESCRIBED if is_defect(each)]


def _mutants() -> list[Variant]:
    return [each for each in DESCRIBED if not is_defect(each)]


def _variant_lines(title: str, variants: list[Variant]) -> list[str]:
    width = max(len(each.value) for each in DESCRIBED)
    lines = [title]
    for each in variants:
        described = DESCRIBED[each]
        fixed = f"; fixed: {described.fixed}" if described.fixed else ""
        wrapped = textwrap.wrap(described.wrong + fixed, VARIANT_WIDTH - width - 4, break_on_hyphens=False)
        lines += [f"  {(each.value if not n else '').ljust(width)}  {line}" for n, line in enumerate(wrapped)]
    return lines


def _variant_data(variant: Variant) -> dict[str, Any]:
    described = DESCRIBED[variant]
    texts = {"wrong": described.wrong, "fixed": described.fixed or None, "of": described.area.value}
    return {"name": variant.value, **texts}
