"""The herd as aligned text, as bars of text, and as JSON.

Rules: all forms show the same figures; the counts of the model are next to the measured ones, and a figure that differs
from the model is reported in a separate line, never smoothed over.
"""

import json
from collections.abc import Iterator

from research.herd.live import SERVERS, Report, Row

NONE = "-"
BAR_WIDTH = 48
BAR = "█"


def as_text(report: Report) -> str:
    """The table, the bars, the conditions of the measurement, the differences from the model, the missing figures."""
    lines = [_headings(report), *(_cells(row, report) for row in report.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [[cell.rjust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    table = ["  ".join([line[0].ljust(widths[0]), *row[1:]]) for line, row in zip(lines, rows, strict=True)]
    rests = (
        f"per death of a leader, medians of {report.deaths}; {SERVERS} servers; a leader dies by the end of its"
        " session, and ms is from there until a new leader knows"
    )
    anew = [
        f"{kind}: a server stopped answering {times} times, and the crowd began anew"
        for kind, times in report.begun_anew.items()
        if times
    ]
    missed = [*anew, *(f"{missed.name}: {missed}" for missed in report.missed)]
    return "\n".join([*(line.rstrip() for line in table), rests, "", *bars(report), *differences(report), *missed])


def _headings(report: Report) -> tuple[str, ...]:
    heading = ["watched", "clients", "notifications: model"]
    heading += [*report.kinds, "requests: model", *report.kinds]
    return (*heading, *(f"{kind} ms" for kind in report.kinds), *(f"{kind} worst" for kind in report.kinds))


def _cells(row: Row, report: Report) -> tuple[str, ...]:
    measured = [kind if kind in row.deaths else None for kind in report.kinds]
    return (
        row.strategy.name,
        str(row.clients),
        str(row.counted.notifications),
        *(NONE if kind is None else f"{row.notifications(kind):g}" for kind in measured),
        str(row.counted.requests),
        *(NONE if kind is None else f"{row.requests(kind):g}" for kind in measured),
        *(NONE if kind is None else f"{row.seconds(kind) * 1000:.1f}" for kind in measured),
        *(
            NONE if kind is None else f"{max(death.seconds for death in row.deaths[kind]) * 1000:.1f}"
            for kind in measured
        ),
    )


def bars(report: Report) -> Iterator[str]:
    """The notifications of one death as bars, for each strategy and size; from a server if one was measured."""
    kind = next((kind for kind in report.kinds if all(kind in row.deaths for row in report.rows)), None)
    yield f"notifications per leader's death ({'the model' if kind is None else kind})"
    figures = [float(row.counted.notifications) if kind is None else row.notifications(kind) for row in report.rows]
    names = [f"{row.strategy.name}, {row.clients}" for row in report.rows]
    width, most = max(map(len, names)), max(figures)
    for name, figure in zip(names, figures, strict=True):
        yield f"{name.ljust(width)}  {BAR * max(1, round(BAR_WIDTH * figure / most))} {figure:g}"
    yield ""


def differences(report: Report) -> Iterator[str]:
    """A line for each case in which the cost of a death differs from the model."""
    for row in report.rows:
        for kind in row.deaths:
            if not row.agrees(kind):
                model = row.counted.notifications, row.counted.requests
                odd = [
                    f"{death.notifications} and {death.requests} at the clients,"
                    f" {death.server_notifications} and {death.server_requests} at the servers"
                    for death in row.deaths[kind]
                    if {(death.notifications, death.requests), (death.server_notifications, death.server_requests)}
                    != {model}
                ]
                yield (
                    f"{kind}: {row.strategy.name}, {row.clients} clients: {len(odd)} of {len(row.deaths[kind])} deaths"
                    f" cost other than {model[0]} notifications and {model[1]} requests; the first: {odd[0]}"
                )


def as_json(report: Report) -> str:
    """One object: `deaths`, `servers`, `rows` (the model's counts, all deaths of each kind), `begun_anew`, `missed`."""
    rows = [
        {
            "watched": row.strategy.name,
            "recipe": row.strategy.recipe,
            "variants": sorted(variant.value for variant in row.strategy.variants),
            "clients": row.clients,
            "model": vars(row.counted),
            "kinds": {
                kind: {
                    "agrees": row.agrees(kind),
                    "median_notifications": row.notifications(kind),
                    "median_requests": row.requests(kind),
                    "median_seconds": row.seconds(kind),
                    "deaths": [vars(death) for death in deaths],
                }
                for kind, deaths in row.deaths.items()
            },
        }
        for row in report.rows
    ]
    whole: dict[str, object] = {
        "deaths": report.deaths,
        "servers": SERVERS,
        "rows": rows,
        "begun_anew": report.begun_anew,
    }
    whole["missed"] = list(map(vars, report.missed))
    return json.dumps(whole, indent=2)
