"""The output of `--list-variants`: the known defects of ZooKeeper, then the mutants by the area that they change."""

from __future__ import annotations

import textwrap
from typing import Any

from spec.variants import DESCRIBED, Area, Variant, is_defect

WIDTH = 110


def report() -> tuple[str, dict[str, Any]]:
    """All variants as text, and as data."""
    lines = _text("known defects", _defects())
    for area in Area:
        mutants = [each for each in _mutants() if DESCRIBED[each].area is area]
        lines += _text("mutants" if area is Area.ZAB else f"mutants of {area.value}", mutants) if mutants else []
    return "\n".join(lines), {
        "defects": [_data(each) for each in _defects()],
        "mutants": [_data(each) for each in _mutants()],
    }


def _defects() -> list[Variant]:
    return [each for each in DESCRIBED if is_defect(each)]


def _mutants() -> list[Variant]:
    return [each for each in DESCRIBED if not is_defect(each)]


def _text(title: str, variants: list[Variant]) -> list[str]:
    width = max(len(each.value) for each in DESCRIBED)
    lines = [title]
    for each in variants:
        described = DESCRIBED[each]
        fixed = f"; fixed: {described.fixed}" if described.fixed else ""
        wrapped = textwrap.wrap(described.wrong + fixed, WIDTH - width - 4, break_on_hyphens=False)
        lines += [f"  {(each.value if not n else '').ljust(width)}  {line}" for n, line in enumerate(wrapped)]
    return lines


def _data(variant: Variant) -> dict[str, Any]:
    described = DESCRIBED[variant]
    said = {"wrong": described.wrong, "fixed": described.fixed or None, "of": described.area.value}
    return {"name": variant.value, **said}
