"""What a run says while it goes on and when it ends.

`judge` decides once what a run comes to; `report_lines`, `summary_line` and `report_json` are views of that one
judgement, and `invariants_lines` adds up what several runs put to the test; `Progress` shows a run under way. Nothing
here explores or decides anything else.
"""

from checker.report.json import report_json
from checker.report.progress import Progress
from checker.report.text import invariants_lines, print_report, report_lines, summary_line
from checker.report.verdict import ExitCode, Judgement, judge, refuse

__all__ = [
    "ExitCode",
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
