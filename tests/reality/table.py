"""The table of a run: kinds and their outcomes, and each disagreement."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.reality.driver import Outcome


def summary(lines: Sequence[dict[str, Any]]) -> str:
    """The outcomes by kind and by route as a table in Markdown, and a list of what did not agree.

    A change that was carried out again counts once, with its last outcome.
    """
    changes = list({line["number"]: line for line in lines}.values())
    heads = [outcome.value for outcome in Outcome]
    rows = [f"| | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for column in ("kind", "route"):
        for name in dict.fromkeys(sorted(str(line[column]) for line in changes)):
            rows.append(_row(name, [line for line in changes if line[column] == name], heads))
    rows.append(_row("all", changes, heads))
    seconds = sum(line["seconds"] for line in changes)
    planner = sum(line["planner_seconds"] for line in changes)
    count = max(len(changes), 1)
    rows += ["", f"{len(changes)} changes, {seconds / count:.1f} s each, {planner / count:.1f} s of it the planner"]
    for outcome in (Outcome.DISAGREES, Outcome.FAILED):
        for line in changes:
            if line["outcome"] == outcome.value:
                text = f"{line['number']}. {line['title']} ({line['route']}): {line['verdict']}: {line['reason']}"
                rows.append(f"- {outcome.value}: {text}")
    return "\n".join(rows)


def _row(name: str, changes: Sequence[dict[str, Any]], heads: Sequence[str]) -> str:
    counts = Counter(line["outcome"] for line in changes)
    return f"| {name} | {' | '.join(str(counts[head] or '') for head in heads)} |"
