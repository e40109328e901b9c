"""Reports: the verdict of a run, and its views.

`judge` makes the verdict. `report_lines`, `summary_line` and `report_json` are views of it, `invariants_lines` sums up
several runs, and `Progress` shows a run in progress. The names below are imported on first use, since commands that end
in an error need none of the views.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checker.report.json_report import report_json
    from checker.report.text import Progress, invariants_lines, print_report, report_lines, summary_line
    from checker.report.verdict import Judgement, judge, refuse

__all__ = [
    "Judgement",
    "Progress",
    "invariants_lines",
    "judge",
    "print_report",
    "refuse",
    "report_json",
    "report_lines",
    "summary_line",
]

_MODULES = {
    "json_report": ("report_json",),
    "text": ("Progress", "invariants_lines", "print_report", "report_lines", "summary_line"),
    "verdict": ("Judgement", "judge", "refuse"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import the module of a public name. Raises AttributeError for any other name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
