"""The metrics of a server in the text format of Prometheus, by the names of ZooKeeper's provider.

Rules this module keeps:

- A metric has the name and the type that ZooKeeper 3.9.5 exposes. Only figures that this server has are exposed, and
  none that is text.
- While the server does not serve, only the figures of the process are exposed.

Source: `PrometheusMetricsProvider`; the text format 0.0.4 of Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterator

from refimpl.admin.http import TEXT, HttpAnswer, HttpRequest
from refimpl.admin.view import AdminView, process_figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTERS = frozenset({"connection_rejected", "digest_mismatches_count"})
"""The figures that only grow, as ZooKeeper types them: what `srst` sets to zero is a gauge."""


def answer_metrics(view: AdminView, request: HttpRequest) -> HttpAnswer:
    """The answer to a scrape."""
    if request.path != "/metrics":
        return HttpAnswer(404, TEXT, b"the metrics are at /metrics\n")
    return HttpAnswer(200, CONTENT_TYPE, "".join(exposition(view)).encode())


def exposition(view: AdminView) -> Iterator[str]:
    """The metrics, each with its type."""
    backend = view.backend
    if backend is not None:
        for name, value in view.figures(backend).items():
            if not isinstance(value, str):
                yield _metric(name, value, "counter" if name in COUNTERS else "gauge", name)
    for name, value, kind, text in process_figures():
        yield _metric(name, value, kind, text)


def _metric(name: str, value: float, kind: str, text: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{name} {float(value)!r}\n"
